package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// asker is a connection of the pool, or the one beside it.
type asker interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// soon is how long what came of an attempt waits for the pool before it goes beside it: little, as nobody extends
// the lease meanwhile.
const soon = 100 * time.Millisecond

// spare is a connection beside the pool. It is opened when it is needed, and closed when nobody needed it for a while.
type spare struct {
	turn    chan struct{} // has an element while somebody has the rest
	conn    *pgx.Conn     // nil: there is none
	goodbye *time.Timer
}

func newSpare() *spare { return &spare{turn: make(chan struct{}, 1)} }

// urgent runs ask on a connection of the pool, or on the spare one when handlers hold the whole pool for longer
// than patience: the work under a lease would be done again if it had to wait for them.
func (s *Store) urgent(ctx context.Context, patience time.Duration, ask func(asker) error) error {
	patience = max(patience, time.Millisecond)
	for {
		patient, cancel := context.WithTimeout(ctx, patience)
		conn, err := s.pool.Acquire(patient)
		impatient := patient.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			defer conn.Release()
			return ask(conn)
		case !impatient:
			return err
		}
		select {
		case s.spare.turn <- struct{}{}:
			defer func() { <-s.spare.turn }()
			return s.spare.run(ctx, s.pool, ask)
		case <-time.After(patience): // the pool may be the faster one by now
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// run runs ask. It is the caller's turn.
func (s *spare) run(ctx context.Context, pool *pgxpool.Pool, ask func(asker) error) error {
	if s.goodbye != nil {
		s.goodbye.Stop()
	}
	if s.conn == nil || s.conn.IsClosed() {
		conn, err := connect(ctx, pool.Config())
		if err != nil {
			return err
		}
		s.conn = conn
	}
	s.goodbye = time.AfterFunc(linger, s.close)
	return ask(s.conn)
}

// close closes the connection, if there is one, when whoever has it is done.
func (s *spare) close() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.conn == nil {
		return
	}
	s.goodbye.Stop()
	hangUp(s.conn)
	s.conn = nil
}

// connect opens a connection as the pool would.
func connect(ctx context.Context, cfg *pgxpool.Config) (*pgx.Conn, error) {
	if cfg.BeforeConnect != nil {
		if err := cfg.BeforeConnect(ctx, cfg.ConnConfig); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil || cfg.AfterConnect == nil {
		return conn, err
	}
	if err := cfg.AfterConnect(ctx, conn); err != nil {
		hangUp(conn)
		return nil, err
	}
	return conn, nil
}

// hangUp closes the connection, whatever became of the caller's context.
func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}

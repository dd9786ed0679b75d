package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// spare is a connection beside the pool. It is opened when it is needed, and closed when nobody needed it for a while.
type spare struct {
	turn    chan struct{} // has an element while somebody has the rest
	conn    *pgx.Conn     // nil: there is none
	goodbye *time.Timer
}

func newSpare() *spare { return &spare{turn: make(chan struct{}, 1)} }

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

// linger is how long a store goes on listening after the last one who waited left.
const linger = 10 * time.Second

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

// cleanupTimeout bounds the rollback and the trace of a failed attempt, which the caller's context
// does not cut short.
const cleanupTimeout = 5 * time.Second

// asker is a connection of the pool, or the one beside it.
type asker interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

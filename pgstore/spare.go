package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// asker is a pool, or a connection.
type asker interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// spare returns where to extend a lease by d, which can not wait for handlers that hold all connections of the
// pool: after a part of d it opens one beside the pool, one at a time. Done must be called after use.
func (s *Store) spare(ctx context.Context, d time.Duration) (on asker, done func(), err error) {
	const part = 12 // heartbeats come at each third
	patient, cancel := context.WithTimeout(ctx, max(d/part, time.Millisecond))
	defer cancel()
	conn, err := s.pool.Acquire(patient)
	if err == nil {
		return conn, conn.Release, nil
	}
	if patient.Err() == nil || ctx.Err() != nil {
		return nil, nil, err
	}
	select {
	case s.beside <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	own, err := connect(ctx, s.pool.Config())
	if err != nil {
		<-s.beside
		return nil, nil, err
	}
	return own, func() { hangUp(own); <-s.beside }, nil
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

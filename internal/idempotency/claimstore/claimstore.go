// Package claimstore keeps the claims and answers of the gateway's sources in mode idempotency, in the database
// of its journal. It is apart from the gateway because both know many stores.
package claimstore

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/pgstandby"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/sqlstore"
)

// Options are what a [Store] needs besides a database.
type Options struct {
	// Remember says how long the claims of each source are kept. Those of other sources are never touched:
	// programs that share the database have claims in the same table.
	Remember map[string]time.Duration
	// Awaited is set if somebody waits for what other processes do, so that they tell each other.
	Awaited bool
	// Standing returns an error unless what was committed is where a restart will find it. Nil: it is.
	Standing func() error
	// Now is the clock.
	Now func() time.Time
	// Logger receives what goes wrong in the background.
	Logger *slog.Logger
}

// Store keeps claims and answers, and forgets them in time. Close must be called.
type Store struct {
	hookonce.ResponseStore
	opt       Options
	inspector hookonce.Inspector                       // the same store. Nil: it is none
	keep      atomic.Pointer[map[string]time.Duration] // see Options.Remember
	pool      *pgxpool.Pool                            // on Postgres
	close     func()
	stop      context.CancelFunc
	stopped   chan struct{}
}

// OpenSQLite returns a store on db, which it closes. The tables are current.
func OpenSQLite(db *sql.DB, o Options) (*Store, error) {
	inspector := sqlstore.New(db, sqlstore.SQLite, sqlstore.WithClock(o.Now))
	var store hookonce.ResponseStore = oneWriter{inspector}
	if o.Standing != nil {
		store = standing{store, o.Standing}
	}
	return start(&Store{
		ResponseStore: store, inspector: inspector,
		opt: o, close: func() { _ = db.Close() }, // nothing is written at the end
	}), nil
}

// OpenPostgres returns a store with connections of its own to the database at dsn, where the tables are in
// the schema called name, and current.
func OpenPostgres(ctx context.Context, dsn, name string, o Options) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.AfterConnect = durable
	waits := pgstandby.Watch(cfg.ConnConfig)
	pgstore.FollowPrimary(cfg)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	opts := []pgstore.Option{pgstore.WithSchema(name), pgstore.WithClock(o.Now)}
	if o.Awaited {
		opts = append(opts, pgstore.WithNotify())
	}
	store := pgstore.New(pool, opts...)
	return start(&Store{
		ResponseStore: replicated{store, waits}, inspector: store,
		opt: o, pool: pool, close: func() { store.Close(); pool.Close() },
	}), nil
}

// durable makes the connection wait for the disk at every commit, and hear where it waits for a standby no longer, where the
// server's settings would not.
func durable(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, `SELECT set_config(name, safe, false) `+pgstandby.UnsafeSettings)
	return err
}

// start begins to forget.
func start(s *Store) *Store {
	ctx, cancel := context.WithCancel(context.Background())
	s.Remember(s.opt.Remember)
	s.stop, s.stopped = cancel, make(chan struct{})
	go func() {
		defer close(s.stopped)
		s.forget(ctx)
	}()
	return s
}

// Remember says anew how long the claims of each source are kept, in place of [Options.Remember]. It counts from
// the next round on.
func (s *Store) Remember(keep map[string]time.Duration) { s.keep.Store(&keep) }

// Awaited reports whether processes tell each other of what they do.
func (s *Store) Awaited() bool { return s.opt.Awaited }

// Await implements [hookonce.Awaiter]. It fails where the database cannot tell; then asking has to do.
func (s *Store) Await(ctx context.Context, ref hookonce.Ref) error {
	if a, ok := s.ResponseStore.(hookonce.Awaiter); ok {
		return a.Await(ctx, ref)
	}
	return errors.ErrUnsupported
}

// Close waits for what is under way.
func (s *Store) Close() {
	s.stop()
	<-s.stopped
	s.close()
}

package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/crowd"
	"github.com/hookonce/hookonce/internal/schema"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// DefaultWait is how long Claim and Within wait for a transaction that holds the same key.
const DefaultWait = 2 * time.Second

// Store holds claims in PostgreSQL, and what belongs to them: responses, guards, and an outbox. It is safe for concurrent use, and any number of stores in any
// number of processes may share a database.
type Store struct {
	pool   *pgxpool.Pool
	clock  func() time.Time
	wait   time.Duration
	schema string
	notify bool
	looks  looks
	sql    statements
	ears   *ears
	crowd  crowd.Crowd
	size   int // of the pool, at most
	spare  *spare

	patience time.Duration // with a handler whose context has ended
}

var (
	_ hookonce.TxResponseStore[pgx.Tx] = (*Store)(nil)
	_ hookonce.Guards[pgx.Tx]          = (*Store)(nil)
	_ hookonce.Outbox[pgx.Tx]          = (*Store)(nil)
	_ hookonce.Awaiter                 = (*Store)(nil)
)

// Option changes a Store when it is made.
type Option func(*Store)

// WithClock makes the store take its time from clock. The default is [time.Now]. Times are kept in
// microseconds.
func WithClock(clock func() time.Time) Option { return func(s *Store) { s.clock = clock } }

// WithWait sets how long Claim and Within wait for another transaction that holds the same key
// before they answer Busy. The default is [DefaultWait]; one millisecond is the least.
func WithWait(d time.Duration) Option { return func(s *Store) { s.wait = d } }

// WithSchema sets the PostgreSQL schema of the tables. The default is "hookonce". A name consists of
// lower-case letters, digits and underscores, a letter first, 48 at most; [New] panics at others.
func WithSchema(name string) Option { return func(s *Store) { s.schema = name } }

// WithNotify makes the store tell with NOTIFY when it ends work in lease mode (Complete, CompleteWith, Fail),
// and makes Await listen instead of asking again and again. All stores on the same tables need it. NOTIFY
// takes one lock of the whole server during the commit, so ends of work then wait for each other, and for
// others that notify. Transactions of handlers never do it.
func WithNotify() Option { return func(s *Store) { s.notify = true } }

// New returns a store over pool, which stays the caller's to close. It does not connect: see [Store.Check].
// The tables are made by `hookonce migrate`, or by package [github.com/hookonce/hookonce/schema].
func New(pool *pgxpool.Pool, opts ...Option) *Store {
	s := &Store{pool: pool, clock: time.Now, wait: DefaultWait, schema: schema.DefaultName, looks: looks{shortestLook, longestLook}, ears: newEars(), spare: newSpare(), patience: cleanupTimeout}
	if pool != nil {
		s.size = int(pool.Config().MaxConns)
	}
	for _, o := range opts {
		o(s)
	}
	prefix, err := schema.Prefix(schema.Postgres, s.schema)
	if err != nil {
		panic(err)
	}
	channel := ""
	if s.notify {
		channel = s.channel()
	}
	s.sql = newStatements(prefix, channel)
	return s
}

// Check returns nil if the tables are at the version that this program needs, and otherwise an error
// that wraps [hookonce.ErrSchemaMissing] or [hookonce.ErrSchemaNewer] and says what to do. It also refuses
// connections on which there are no transactions, as through PgBouncer in statement mode.
func (s *Store) Check(ctx context.Context) error {
	db := stdlib.OpenDBFromPool(s.pool)
	err := schema.Transactional(ctx, db)
	if err == nil {
		err = schema.CheckProgram(ctx, db, schema.Postgres, s.schema)
	}
	return errors.Join(err, db.Close())
}

// waits is how often somebody has waited for a connection of the pool, in vain or not.
func (s *Store) waits() int64 {
	stat := s.pool.Stat()
	return stat.EmptyAcquireCount() + stat.CanceledAcquireCount()
}

// now returns the time in the resolution that the database keeps.
func (s *Store) now() time.Time { return instant(s.clock()) }

// instant returns t in the resolution that the database keeps.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

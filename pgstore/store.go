package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/pgerror"
)

// DefaultWait is how long Claim and Within wait for a transaction that holds the same key.
const DefaultWait = 2 * time.Second

// Store holds claims in PostgreSQL, and what belongs to them: responses, guards, and an outbox. It is safe for
// concurrent use, and any number of stores in any number of processes may share a database.
type Store struct {
	pool     *pgxpool.Pool
	clock    func() time.Time
	wait     time.Duration
	schema   string
	notify   bool
	looks    looks
	sql      claimsql.Statements
	listener *listener
	watch    claimsql.PoolWatch
	size     int // of the pool, at most
	spare    *spare

	patience time.Duration // with a handler whose context has ended
}

// looks say how often Await looks for itself: more and more rarely where nobody tells it, and while it
// listens only for what nobody tells, such as a lease that ran out.
type looks struct{ shortest, longest time.Duration }

const (
	shortestLook = 50 * time.Millisecond
	longestLook  = time.Second
)

var (
	_ hookonce.TxResponseStore[pgx.Tx] = (*Store)(nil)
	_ hookonce.Guards[pgx.Tx]          = (*Store)(nil)
	_ hookonce.Outbox[pgx.Tx]          = (*Store)(nil)
	_ hookonce.Awaiter                 = (*Store)(nil)
	_ hookonce.Inspector               = (*Store)(nil)
	_ hookonce.Tallier                 = (*Store)(nil)
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
	s := &Store{
		pool: pool, clock: time.Now, wait: DefaultWait, schema: ddl.DefaultName, looks: looks{shortestLook, longestLook}, listener: newListener(),
		spare: newSpare(), patience: cleanupTimeout,
	}
	if pool != nil {
		s.size = int(pool.Config().MaxConns)
	}
	for _, o := range opts {
		o(s)
	}
	prefix, err := ddl.Prefix(ddl.Postgres, s.schema)
	if err != nil {
		panic(err)
	}
	channel := ""
	if s.notify {
		channel = s.channel()
	}
	s.sql = claimsql.Postgres(prefix, channel)
	return s
}

// Check returns nil if the tables are at the version that this program needs, and otherwise an error
// that wraps [hookonce.ErrSchemaMissing] or [hookonce.ErrSchemaNewer] and says what to do. It also refuses
// connections on which there are no transactions, as through PgBouncer in statement mode, and servers whose advisory
// locks lock nothing, as CockroachDB's before a change of April 2026, and YugabyteDB, whose transactions have no numbers. So it does
// with databases of another encoding than UTF8 (or SQL_ASCII), which could not write every key, type and error, standbys, connections that are read-only (default_transaction_read_only), and roles that may read claims and write nothing.
func (s *Store) Check(ctx context.Context) error {
	db := stdlib.OpenDBFromPool(s.pool)
	err := ddl.TakesClaims(ctx, db)
	if err == nil {
		err = ddl.CheckProgram(ctx, db, ddl.Postgres, s.schema)
	}
	return errors.Join(err, db.Close())
}

// Close closes the connections that the store has beside the pool: the one on which Await listens, and the one on
// which outcomes are recorded while handlers hold the pool. Callers go on, and the store can be used as before. The
// pool is the caller's.
func (s *Store) Close() {
	s.listener.stop()
	s.spare.close()
}

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

// soon is how long what came of an attempt waits for the pool before it goes beside it: little, as nobody extends
// the lease meanwhile.
const soon = 100 * time.Millisecond

// again runs try until it does not fail for a lost race, as often as that takes within the store's wait, and
// maxTries times at least: an outcome has to be recorded.
func (s *Store) again(ctx context.Context, try func() error) error {
	return claimsql.Retry(ctx, s.wait, maxTries, pgerror.LostRace, try)
}

// maxTries bounds how often a statement that lost a race is tried again.
const maxTries = 8

// waits is how often somebody has waited for a connection of the pool, in vain or not.
func (s *Store) waits() int64 {
	stat := s.pool.Stat()
	return stat.EmptyAcquireCount() + stat.CanceledAcquireCount()
}

// now returns the time in the resolution that the database keeps.
func (s *Store) now() time.Time { return instant(s.clock()) }

// instant returns t in the resolution that the database keeps.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// wrap says what could not be done to what. It returns nil if err is nil.
func wrap(verb string, what any, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pgstore: %s %v: %w", verb, what, explain(err))
}

// explain adds what to do to an error of one of the store's own statements, which name nothing but
// the store's own tables.
func explain(err error) error {
	if pgerror.Unmigrated(err) {
		return ddl.Missing(ddl.Postgres, err)
	}
	return err
}

// channel is where ends of work are told.
func (s *Store) channel() string { return s.schema + "_claims" }

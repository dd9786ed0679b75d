package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/hookonce/hookonce/internal/ddl"
)

// DefaultWait is how long Claim and Within wait for a transaction that holds the same key.
const DefaultWait = 2 * time.Second

// Store keeps claims in a database. It is safe for concurrent use by many goroutines, and any number
// of stores in any number of processes may share the database.
type Store struct {
	db      *sql.DB
	dialect dialect
	name    string
	clock   func() time.Time
	wait    time.Duration
	watch   claimsql.PoolWatch
	// patience is how long a commit may take.
	patience time.Duration
	asked    atomic.Pointer[time.Time] // when a connection last answered: see alive
}

var (
	_ hookonce.TxResponseStore[*sql.Tx] = (*Store)(nil)
	_ hookonce.Guards[*sql.Tx]          = (*Store)(nil)
	_ hookonce.Outbox[*sql.Tx]          = (*Store)(nil)
	_ hookonce.Inspector                = (*Store)(nil)
	_ hookonce.Tallier                  = (*Store)(nil)
)

// Dialect is the kind of database that a store speaks to.
type Dialect = ddl.Dialect

// The dialects.
const (
	// SQLite is SQLite 3.35 or later.
	SQLite = ddl.SQLite
	// Postgres is PostgreSQL 13 or later.
	Postgres = ddl.Postgres
	// MySQL is MySQL 8.0 or later, or MariaDB 10.6 or later.
	MySQL = ddl.MySQL
)

// dialects make what the store needs to know about each, from what stands before the names of tables.
var dialects = map[Dialect]func(prefix string) dialect{SQLite: sqlite, Postgres: postgres, MySQL: mysql}

// Option changes a Store when it is made.
type Option func(*Store)

// WithClock makes the store take its time from clock. The default is [time.Now].
func WithClock(clock func() time.Time) Option { return func(s *Store) { s.clock = clock } }

// WithSchema names the Postgres schema that holds the tables, and elsewhere their prefix: lower-case
// letters, digits and underscores, a letter first, at most 48. The default is hookonce. The command relay, and others that look
// into an application's outbox and claims, take it as --schema.
func WithSchema(name string) Option { return func(s *Store) { s.name = name } }

// WithWait sets how long Claim and Within wait for another transaction that holds the same key (on
// SQLite: for any other writer) before they answer Busy. The default is [DefaultWait]. The finest step is
// a millisecond; on MySQL, which knows none below a second, the wait for a transaction is rounded up.
func WithWait(d time.Duration) Option { return func(s *Store) { s.wait = d } }

// New returns a store on db, which must speak the dialect d. It does not touch the database: call [Store.Check]
// first. The tables are made by `hookonce migrate`, or by package [github.com/hookonce/hookonce/schema]. The caller closes db. New panics if the name given to
// [WithSchema] cannot be used, or if d is not one of the package's dialects.
func New(db *sql.DB, d Dialect, opts ...Option) *Store {
	s := &Store{db: db, name: ddl.DefaultName, clock: time.Now, wait: DefaultWait, patience: commitDeadline}
	for _, o := range opts {
		o(s)
	}
	var err error
	if s.dialect, err = named(d, s.name); err != nil {
		panic(err)
	}
	return s
}

// named returns what the store needs to know about d, with the tables under name.
func named(d Dialect, name string) (dialect, error) {
	prefix, err := ddl.Prefix(d, name)
	if err != nil {
		return dialect{}, err
	}
	own := dialects[d](prefix)
	own.schema = d
	return own, nil
}

// Check reports whether the tables are what this program needs, without changing anything, and whether claims
// hold on connections like the database's: it refuses SQLite with PRAGMA read_uncommitted, or in a memory of each
// connection's own, MySQL under READ UNCOMMITTED or without autocommit, or with semi-synchronous replication that waits after the
// commit (AFTER_COMMIT), and PgBouncer in statement mode. On Postgres and MySQL
// it refuses servers that take no writes, read-only connections, and roles that may read claims and write nothing, too.
// Errors: [hookonce.ErrSchemaMissing], [hookonce.ErrSchemaNewer].
func (s *Store) Check(ctx context.Context) error {
	if err := s.sound(ctx); err != nil {
		return err
	}
	if err := ddl.CheckProgram(ctx, s.db, s.dialect.schema, s.name); err != nil || s.dialect.writable == nil {
		return err
	}
	if err := s.dialect.writable(ctx, s.db); err != nil {
		return fmt.Errorf("sqlstore: %w", err)
	}
	return nil
}

// sound returns an error if no claim would hold on connections like the database's.
func (s *Store) sound(ctx context.Context) error {
	if err := s.dialect.sound(ctx, s.db); err != nil {
		return fmt.Errorf("sqlstore: %w", err)
	}
	return nil
}

// insist runs op until it gets its turn, for at most the store's bounded wait. It returns op's last
// error, with that of ctx if it ended meanwhile. There is no least number of tries: one may itself have waited as long
// as the database's own busy timeout.
func (s *Store) insist(ctx context.Context, op func() error) error {
	return claimsql.Retry(ctx, s.wait, 1, func(err error) bool { return s.dialect.contended(err) == again }, op)
}

// busy reports whether err means that others were in the way to the end of the bounded wait.
func (s *Store) busy(err error) bool {
	return err != nil && (errors.Is(err, errOvertaken) || s.dialect.contended(err) != uncontended)
}

// explain adds what to do to an error of one of the store's own statements, which q ran.
func (s *Store) explain(ctx context.Context, q querier, err error) error {
	switch {
	case err == nil:
		return nil
	case notPrimary(err):
		return fmt.Errorf("%w: %w", errNotPrimary, err)
	case !s.dialect.unmigrated(ctx, q, s.name, err):
		return err
	}
	return ddl.Missing(s.dialect.schema, err)
}

// size is how many connections the pool has at most; 0: as many as are wanted.
func (s *Store) size() int { return s.db.Stats().MaxOpenConnections }

// waits is how often somebody has waited for a connection of the pool.
func (s *Store) waits() int64 { return s.db.Stats().WaitCount }

// now returns the time in the resolution that databases keep.
func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

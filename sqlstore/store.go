package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/crowd"
	"github.com/hookonce/hookonce/internal/schema"
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
	crowd   crowd.Crowd
}

var (
	_ hookonce.TxResponseStore[*sql.Tx] = (*Store)(nil)
	_ hookonce.Guards[*sql.Tx]          = (*Store)(nil)
	_ hookonce.Outbox[*sql.Tx]          = (*Store)(nil)
)

// Option changes a Store when it is made.
type Option func(*Store)

// WithClock makes the store take its time from clock. The default is [time.Now].
func WithClock(clock func() time.Time) Option { return func(s *Store) { s.clock = clock } }

// WithSchema names the Postgres schema that holds the tables, and elsewhere their prefix: lower-case
// letters, digits and underscores, a letter first, at most 48. The default is hookonce.
func WithSchema(name string) Option { return func(s *Store) { s.name = name } }

// WithWait sets how long Claim and Within wait for another transaction that holds the same key (on
// SQLite: for any other writer) before they answer Busy. The default is [DefaultWait]. The finest step is
// a millisecond; on MySQL, which knows none below a second, the wait for a transaction is rounded up.
func WithWait(d time.Duration) Option { return func(s *Store) { s.wait = d } }

// New returns a store on db, which must speak the dialect d. It does not touch the database: call [Store.Check]
// first. The tables are made by `hookonce migrate`, or by package [github.com/hookonce/hookonce/schema]. The caller closes db. New panics if the name given to
// [WithSchema] cannot be used, or if d is not one of the package's dialects.
func New(db *sql.DB, d Dialect, opts ...Option) *Store {
	s := &Store{db: db, name: schema.DefaultName, clock: time.Now, wait: DefaultWait}
	for _, o := range opts {
		o(s)
	}
	var err error
	if s.dialect, err = named(d, s.name); err != nil {
		panic(err)
	}
	return s
}

// Check reports whether the tables are what this program needs, without changing anything, and whether claims
// hold on connections like the database's: it refuses SQLite with PRAGMA read_uncommitted, MySQL under READ
// UNCOMMITTED or without autocommit, and PgBouncer in statement mode. Errors: [hookonce.ErrSchemaMissing],
// [hookonce.ErrSchemaNewer].
func (s *Store) Check(ctx context.Context) error {
	if err := s.sound(ctx); err != nil {
		return err
	}
	return schema.CheckProgram(ctx, s.db, s.dialect.schema, s.name)
}

// sound returns an error if no claim would hold on connections like the database's.
func (s *Store) sound(ctx context.Context) error {
	if err := s.dialect.sound(ctx, s.db); err != nil {
		return fmt.Errorf("sqlstore: %w", err)
	}
	return nil
}

// size is how many connections the pool has at most; 0: as many as are wanted.
func (s *Store) size() int { return s.db.Stats().MaxOpenConnections }

// waits is how often somebody has waited for a connection of the pool.
func (s *Store) waits() int64 { return s.db.Stats().WaitCount }

// now returns the time in the resolution that databases keep.
func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// explain adds what to do to an error of one of the store's own statements, which q ran.
func (s *Store) explain(ctx context.Context, q querier, err error) error {
	if err == nil || !s.dialect.unmigrated(ctx, q, s.name, err) {
		return err
	}
	return schema.Missing(s.dialect.schema, err)
}

// fields are the destinations for the columns of a claim, in the order of claimColumns.
func fields(c *hookonce.Claim) []any {
	return []any{
		&c.State, &c.Token, stamp{&c.Lease}, &c.Type, &c.Digest,
		stamp{&c.FirstSeen}, stamp{&c.UpdatedAt}, &c.LastError, &c.Pinned,
	}
}

// stamp scans a time in the form of any dialect; null is the zero time.
type stamp struct{ to *time.Time }

// Scan implements [sql.Scanner].
func (s stamp) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*s.to = time.Time{}
	case int64:
		*s.to = time.UnixMicro(v).UTC()
	case []byte: // a number that the driver leaves as the server wrote it
		micros, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			return fmt.Errorf("sqlstore: a time came back as %q: %w", v, err)
		}
		*s.to = time.UnixMicro(micros).UTC()
	case time.Time:
		*s.to = v.UTC()
	default:
		return fmt.Errorf("sqlstore: a time came back as %T", src)
	}
	return nil
}

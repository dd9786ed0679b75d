// Package pg keeps the journal in PostgreSQL, where any number of processes can share it.
//
// Accept, Take, Extend and Finish are one statement and one round trip each, whatever the size of
// the batch; Accept needs a second one for the copies in it, if there are any. Nothing depends on
// the state of a connection, so every query exec mode of pgx works, and with it PgBouncer in
// transaction mode. The connection that listens for other processes is apart from that, and is done without
// behind a pooler.
package pg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/pgprimary"
	"github.com/hookonce/hookonce/internal/pgstandby"
	"github.com/hookonce/hookonce/schema"
)

// Options configure [Open]. The zero value of every field means its default.
type Options struct {
	// Schema is where the tables live. Default [schema.DefaultName].
	Schema string
	// Migrate creates or upgrades the tables when they are not current. Default: only check them.
	Migrate bool
	// MaxConns bounds the connections. It wins over pool_max_conns in the DSN. Default 8.
	MaxConns int32
	// Logger receives what is worth knowing about retried and refused statements. Default: nothing.
	Logger *slog.Logger
}

// defaultConns suits one gateway process: two writers, takers, and some room.
const defaultConns = 8

// Store is a [journal.Store] in PostgreSQL. It is safe for concurrent use, also by several Stores in
// several processes on one database.
type Store struct {
	pool     *pgxpool.Pool
	sql      statements
	prefix   string // of the tables
	channel  string // where processes notify each other
	log      *slog.Logger
	picking  sync.Map // by destination: why its work could not be picked, while it cannot
	writer   int
	divided  bool          // bodies and attempts are in partitions, which they are not on YugabyteDB
	attach   time.Duration // see maxAttach
	crowded  sync.Map      // by kind: when a default partition was too large to attach another one beside it
	dropping sync.Mutex    // over looks: a partition of each kind at a time
	looks    map[journal.Kind]*aside
	turn     chan struct{} // to change alerts: one at a time
	fence    atomic.Pointer[fencedStatements]
	// oneSnapshot is set where transactions have one snapshot for all that they do, unless they are begun as others.
	oneSnapshot atomic.Bool
	waits       *pgstandby.Waits
}

var _ journal.Store = (*Store)(nil)

// Open connects to the database at dsn, a URL or key=value string as pgx reads it, and checks that
// the tables are current. Errors wrap [hookonce.ErrSchemaMissing] or [hookonce.ErrSchemaNewer] when
// they are not. A server that does not do what the journal rests on is refused: see [ddl.Sound]. Close must be called.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	prefix, err := ddl.Prefix(schema.Postgres, o.Schema)
	if err != nil {
		return nil, err
	}
	cfg, err := poolConfig(dsn, o)
	if err != nil {
		return nil, err
	}
	waits := pgstandby.Watch(cfg.ConnConfig)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("journal/pg: %w", err)
	}
	s := newStore(pool, prefix, o)
	s.waits = waits
	if err := s.prepare(ctx, o); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

func newStore(pool *pgxpool.Pool, prefix string, o Options) *Store {
	s := &Store{pool: pool, sql: newStatements(prefix), prefix: prefix,
		channel: cmp.Or(o.Schema, schema.DefaultName), log: o.Logger, attach: maxAttach, looks: map[journal.Kind]*aside{}, turn: make(chan struct{}, 1), waits: new(pgstandby.Waits)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// poolConfig reads the DSN. The size of the pool is the option's, the DSN's, or the default.
func poolConfig(dsn string, o Options) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("journal/pg: %w", err)
	}
	limits(cfg, dsn, o)
	cfg.AfterConnect = registerBytes
	pgprimary.Follow(cfg)
	return cfg, nil
}

// limits bounds the pool, and the wait for a connection.
func limits(cfg *pgxpool.Config, dsn string, o Options) {
	switch {
	case o.MaxConns > 0:
		cfg.MaxConns = o.MaxConns
	case !sizeInDSN(dsn):
		cfg.MaxConns = defaultConns
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = 10 * time.Second
	}
}

// prepare brings the schema up to date or checks it, and draws the writer number.
func (s *Store) prepare(ctx context.Context, o Options) error {
	db := stdlib.OpenDBFromPool(s.pool)
	defer db.Close()
	if o.Migrate {
		if _, err := schema.Migrate(ctx, db, schema.Postgres, o.Schema); err != nil {
			return err
		}
	} else if err := ddl.Sound(ctx, db); err != nil { // which Migrate looks at as well
		return err
	}
	if err := ddl.Check(ctx, db, schema.Postgres, o.Schema); err != nil {
		return err
	}
	if err := s.pool.QueryRow(ctx, s.sql.writer).Scan(&s.writer); err != nil {
		return fmt.Errorf("journal/pg: drawing a writer number: %w", err)
	}
	const divided = `SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass($1)`
	if err := s.pool.QueryRow(ctx, divided, s.prefix+string(journal.KindBodies)).Scan(&s.divided); err != nil {
		return fmt.Errorf("journal/pg: looking whether the table of bodies is divided: %w", err)
	}
	return nil
}

// Writer returns the number that tells this Store's event identifiers from those of other processes,
// for [journal.NewIDs]. It is drawn from a sequence of 4095 numbers when the store is opened.
func (s *Store) Writer() int { return s.writer }

// Divided reports whether bodies and attempts are in partitions, as they are but on YugabyteDB.
func (s *Store) Divided() bool { return s.divided }

// errReadOnly says that the server answers but takes no writes.
var errReadOnly = errors.New("journal/pg: the database is read-only (a standby, or default_transaction_read_only): connect to the primary")

// errMayNotWrite says that nothing can be stored until somebody grants the right to it.
var errMayNotWrite = errors.New("journal/pg: the role may not insert events: grant it the rights of docs/operating.md, at each table")

// Ping implements [journal.Store]. It writes nothing into tables, so that a disk that is full for them alone goes unseen.
func (s *Store) Ping(ctx context.Context) error {
	var readOnly, may bool
	err := s.pool.QueryRow(ctx, s.sql.ping).Scan(&readOnly, &may)
	switch {
	case err != nil:
		return fmt.Errorf("journal/pg: %w", err)
	case readOnly:
		return errReadOnly
	case !may:
		return errMayNotWrite
	}
	return nil
}

// Close implements [journal.Store]. It waits for calls that are under way.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

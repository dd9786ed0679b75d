package gateway

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx, for Migrate

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/journal/sqlite"
	"github.com/hookonce/hookonce/internal/journal/standby"
	"github.com/hookonce/hookonce/internal/pgstandby"
	"github.com/hookonce/hookonce/internal/sqlitefile"
	"github.com/hookonce/hookonce/schema"
)

// journalStore is the journal's store, in all the roles that it has.
type journalStore struct {
	journal.Store
	notifier   journal.Notifier    // nil: this process is on its own
	partitions journal.Partitioned // nil: it has none
	standing   func() error        // of a file: why it is not the one that was opened; nil: it is no file
	pages      *standby.Records    // of which people ask; nil: they ask the store
	copy       *pg.Copy            // behind pages
}

// gone reports whether it is a file that was taken away while it was open.
func (s *journalStore) gone() bool {
	return s.standing != nil && errors.Is(s.standing(), sqlite.ErrGone)
}

// records is what people's questions are asked of.
func (s *journalStore) records() journal.Store {
	if s.pages != nil {
		return s.pages
	}
	return s.Store
}

// changed has people see what was changed up to now.
func (s *journalStore) changed() {
	if s.pages != nil {
		s.pages.Changed()
	}
}

// Close closes the store and what reads beside it.
func (s *journalStore) Close() error {
	var err error
	if s.pages != nil {
		err = errors.Join(s.pages.Close(), s.copy.Close())
	}
	return errors.Join(err, s.Store.Close())
}

// openStore opens the store, brings it up to date, and returns the generator of event ids that goes on
// where the store is.
func openStore(ctx context.Context, in storePlan, o Options) (*journalStore, *journal.IDs, error) {
	open := openSQLite
	switch {
	case o.Store != nil:
		open = openGiven
	case in.Driver == config.Postgres:
		open = openPostgres
	}
	s, ids, err := open(ctx, in, o)
	if err != nil {
		return nil, nil, explain(in.Store, err)
	}
	return s, ids, nil
}

// openExisting opens a store for a question beside gateways: it makes no file, and leaves tables on Postgres as they are, because
// gateways of an older version may run on them. None runs on a file that can be opened.
func openExisting(ctx context.Context, in storePlan, o Options) (*journalStore, *journal.IDs, error) {
	if err := Absent(in.Store); o.Store == nil && err != nil {
		return nil, nil, err
	}
	in.migrate = false
	return openStore(ctx, in, o)
}

// Absent returns an error if a store is a file that is not there, so that nothing can be asked of it. It says what to do.
func Absent(s config.Store) error {
	if s.Driver != config.SQLite {
		return nil
	}
	if _, err := os.Stat(s.DSN); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if taken := sqlitefile.Taken(s.DSN); taken != nil {
		return explain(s, taken)
	}
	return fmt.Errorf("%s is not there: no gateway has run with this store yet; name another with --store or --config", s)
}

func openSQLite(ctx context.Context, in storePlan, o Options) (*journalStore, *journal.IDs, error) {
	s, err := sqlite.Open(ctx, in.DSN, sqlite.Options{Logger: o.Logger, Registerer: o.Registry})
	if err != nil {
		return nil, nil, err
	}
	last, err := s.LastID(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return &journalStore{Store: s, standing: s.Standing}, journal.NewIDs(0, last), nil
}

// openGiven opens what [Options.Store] has.
func openGiven(ctx context.Context, _ storePlan, o Options) (*journalStore, *journal.IDs, error) {
	s, err := o.Store(ctx)
	if err != nil {
		return nil, nil, err
	}
	return &journalStore{Store: s.Store, notifier: s.Notifier}, s.IDs, nil
}

func openPostgres(ctx context.Context, in storePlan, o Options) (*journalStore, *journal.IDs, error) {
	s, err := pg.Open(ctx, in.DSN, pg.Options{Schema: in.schema, Migrate: in.migrate, Logger: o.Logger})
	if err != nil {
		return nil, nil, err
	}
	opened := &journalStore{Store: s, notifier: s, partitions: s}
	if in.read.Driver != "" {
		if err := opened.readAt(ctx, s, in, o); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("store_read %s: %w", in.read, err), s.Close())
		}
	}
	return opened, journal.NewIDs(s.Writer(), 0), nil
}

// readAt has a standby of the store answer people. One that is away may come back, and one that has diverged keeps no gateway from
// its work; one that is a standby of another is refused.
func (s *journalStore) readAt(ctx context.Context, primary *pg.Store, in storePlan, o Options) error {
	c, err := pg.OpenCopy(ctx, in.read.DSN, pg.Options{Schema: in.schema, MaxConns: readConns, Logger: o.Logger})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	written, away := primary.Written(ctx)
	replayed, silent := c.Replayed(ctx)
	if err := replayed.Follows(written); away == nil && silent == nil && errors.Is(err, pgstandby.ErrNoCopy) {
		return errors.Join(err, c.Close())
	}
	s.copy = c
	s.pages = standby.New(standby.Options{Primary: primary, Written: primary.Written, Copy: c, Now: o.Now, Logger: o.Logger})
	return nil
}

// readConns is how many connections to a standby there are: two questions at a time, and the look at how far it is.
const readConns = 3

// Migrate brings the tables of the configured store up to date and returns the versions before and
// after. It does what Start does, but for a Postgres store with migrate: false. A SQLite store
// migrates itself whenever it is opened, and must not be open elsewhere.
func Migrate(ctx context.Context, cfg *config.Config) (from, to int64, err error) {
	if cfg.Store.Driver == config.Postgres {
		from, to, err = migratePostgres(ctx, cfg)
	} else {
		from, to, err = migrateSQLite(ctx, cfg)
	}
	if err != nil {
		err = explain(cfg.Store, err)
	}
	return from, to, err
}

func migratePostgres(ctx context.Context, cfg *config.Config) (from, to int64, err error) {
	db, err := sql.Open("pgx", cfg.Store.Single())
	if err != nil {
		return 0, 0, err
	}
	defer db.Close()
	c, err := schema.Migrate(ctx, db, schema.Postgres, cfg.Schema)
	return c.From, c.To, err
}

func migrateSQLite(ctx context.Context, cfg *config.Config) (from, to int64, err error) {
	if cfg.Schema != "" && cfg.Schema != schema.DefaultName {
		return 0, 0, fmt.Errorf("schema %s: a SQLite file has none, and a gateway's tables in it begin with %s_: leave it out; an application makes tables with a prefix of its own "+
			"with schema.Migrate", cfg.Schema, schema.DefaultName)
	}
	s, err := sqlite.Open(ctx, cfg.Store.DSN, sqlite.Options{})
	if err != nil {
		return 0, 0, err
	}
	from, to = s.Migrated()
	return from, to, s.Close()
}

// Schema returns the SQL that Migrate runs on an empty database; of the given dialect, or, if it is empty, of
// the configured store's.
func Schema(cfg *config.Config, dialect string) (string, error) {
	if dialect != "" {
		return schema.Print(schema.Dialect(dialect), cfg.Schema)
	}
	if cfg.Store.Driver == config.Postgres {
		return schema.Print(schema.Postgres, cfg.Schema)
	}
	return schema.Print(schema.SQLite, schema.DefaultName)
}

// Explain makes one line of what keeps a store from being used, and says what to do.
func Explain(s config.Store, err error) error { return explain(s, err) }

// explain makes one line of what keeps a store from being used, and says what to do.
func explain(s config.Store, err error) error {
	var connect *pgconn.ConnectError
	var parse *pgconn.ParseConfigError
	var refused *pgconn.PgError
	advice := ""
	switch {
	case errors.Is(err, hookonce.ErrSchemaNewer), errors.Is(err, hookonce.ErrSchemaMissing):
	case errors.As(err, &parse):
		advice = "; correct --store"
	case errors.As(err, &connect):
		advice = "; start the database, or correct --store"
	case errors.As(err, &refused) && refused.Code == "42501": // insufficient_privilege
		advice = "; run 'hookonce migrate' as a role that may create the schema, and grant this role the use of it"
	}
	return &storeError{s, advice, err}
}

// storeError is an error of the store in one line.
type storeError struct {
	store  config.Store
	advice string
	err    error
}

func (e *storeError) Error() string {
	text := oneLine(e.err) + e.advice
	if e.store.Driver == config.SQLite {
		return "store: " + text // which names the file
	}
	return "store " + e.store.String() + ": " + text
}

// oneLine joins the lines of an error, each once: who tries several ways to connect says the same of each.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.Join(strings.Fields(line), " "); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

func (e *storeError) Unwrap() error { return e.err }

package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

// stage is where the demo's data is. It is removed at the end.
type stage struct {
	dir     string       // empty on Postgres
	journal config.Store // the gateway's
	schema  string       // empty on SQLite
	db      *sql.DB      // the shop's
	dialect sqlstore.Dialect
	ledger  string // name of the table
	seen    string // name of the naive shop's table
	param   string // what a parameter's number follows
}

// openStage opens the databases: a temporary folder, or a schema of its own in the store that is
// named.
func openStage(ctx context.Context, store string) (*stage, error) {
	if store == "" {
		return openFolder(ctx)
	}
	parsed, err := config.ParseStore(store)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--store: %w", err)
	case parsed.Driver != config.Postgres:
		return nil, errors.New("--store: the demo makes its SQLite files in a temporary folder by itself; leave --store out, or name a postgres:// database")
	}
	return openSchema(ctx, parsed)
}

func openFolder(ctx context.Context) (*stage, error) {
	dir, err := os.MkdirTemp("", "hookonce-demo-")
	if err != nil {
		return nil, err
	}
	s := &stage{
		dir: dir, journal: config.Store{Driver: config.SQLite, DSN: filepath.Join(dir, "gateway.db")},
		dialect: sqlstore.SQLite, ledger: "ledger", seen: "seen", param: "?",
	}
	u := url.URL{
		Scheme: "file", Opaque: (&url.URL{Path: filepath.Join(dir, "shop.db")}).EscapedPath(),
		RawQuery: "_pragma=journal_mode(WAL)&_pragma=busy_timeout(1000)&_pragma=synchronous(FULL)",
	}
	if s.db, err = sql.Open("sqlite", u.String()); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.db.SetMaxOpenConns(4) // there is one writer at a time; more connections would only queue
	return s.prepare(ctx)
}

func openSchema(ctx context.Context, store config.Store) (*stage, error) {
	name := fmt.Sprintf("hookonce_demo_%x", time.Now().UnixNano())
	s := &stage{
		journal: store, schema: name,
		dialect: sqlstore.Postgres, ledger: name + ".ledger", seen: name + ".seen", param: "$",
	}
	var err error
	if s.db, err = sql.Open("pgx", store.Single()); err != nil {
		return nil, fmt.Errorf("--store: %w", err)
	}
	s.db.SetMaxOpenConns(16)
	if _, err := s.db.ExecContext(ctx, "CREATE SCHEMA "+name); err != nil {
		return nil, errors.Join(fmt.Errorf("--store: making the schema %s: %w", name, err), s.db.Close())
	}
	return s.prepare(ctx)
}

// prepare makes the shop's tables and the library's. The ledger has no unique index on purpose.
func (s *stage) prepare(ctx context.Context) (*stage, error) {
	_, err := s.db.ExecContext(ctx, "CREATE TABLE "+s.ledger+" (event text NOT NULL, cents bigint NOT NULL)")
	if err == nil {
		_, err = s.db.ExecContext(ctx, "CREATE TABLE "+s.seen+" (event text PRIMARY KEY)")
	}
	if err == nil {
		_, err = schema.Migrate(ctx, s.db, s.dialect, s.schema)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// store returns the library's store in the shop's database.
func (s *stage) store() *sqlstore.Store {
	if s.schema == "" {
		return sqlstore.New(s.db, s.dialect)
	}
	return sqlstore.New(s.db, s.dialect, sqlstore.WithSchema(s.schema))
}

// Close closes the shop's database and removes everything.
func (s *stage) Close() error {
	if s.dir != "" {
		return errors.Join(s.db.Close(), os.RemoveAll(s.dir))
	}
	ctx, cancel := context.WithTimeout(context.Background(), demoPatience)
	defer cancel()
	_, err := s.db.ExecContext(ctx, "DROP SCHEMA "+s.schema+" CASCADE")
	return errors.Join(err, s.db.Close())
}

// String names the place for people.
func (s *stage) String() string {
	if s.dir != "" {
		return "SQLite"
	}
	return "PostgreSQL"
}

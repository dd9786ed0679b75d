// Package schema creates the tables that hookonce keeps in a database, and brings them up to date.
//
// Only a program that migrates by itself needs it: the stores work on tables that are there, and their Check says
// so where they are not. Others run `hookonce migrate`, or apply what [Print] returns with a migration tool of
// their own. [Migrate] takes the *sql.DB that a program has; its examples show where one with a pool of pgx has that from.
package schema

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/hookonce/hookonce/internal/ddl"
)

// Dialect is a kind of database.
type Dialect = ddl.Dialect

// The dialects.
const (
	Postgres = ddl.Postgres
	SQLite   = ddl.SQLite
	// MySQL is also MariaDB. It has the tables of the library, and none of the gateway's.
	MySQL = ddl.MySQL
	// Yugabyte is a form of Postgres: the gateway's tables without what YugabyteDB does not have (BRIN, storage parameters,
	// UNLOGGED, partitions, and the SQL functions), and with keys in ascending order. [Migrate] chooses it by itself where it is
	// given Postgres and the server says that it is YugabyteDB; [Print] has to be told. No store of the library works there.
	Yugabyte = ddl.Yugabyte
)

// DefaultName is the PostgreSQL schema that holds the tables, and elsewhere their prefix, when a store is given
// no other.
const DefaultName = ddl.DefaultName

// Change is what [Migrate] did: the version of the tables before, 0 if there were none, and after. The two are
// equal if there was nothing to do.
type Change struct{ From, To int64 }

// Migrate brings the tables under name to the version that this program needs; an empty name is [DefaultName].
// When they are there already nothing is written, so a role that cannot create tables will do. Tables that are
// newer are left as they are: each version records the oldest program that may work beside it, and an older one than
// that is refused, with an error that wraps [hookonce.ErrSchemaNewer].
// So are connections to PostgreSQL on which there are no transactions, as through PgBouncer in statement mode, and
// servers that speak its protocol and whose advisory locks lock nothing, as CockroachDB's before a change of April 2026.
//
// Any number of processes may migrate at the same time, also through a connection pooler: each
// migration is one transaction with the record of its version, which is unique. A process that loses
// the race fails there, reads the version again and goes on. MySQL has no transactions for such statements:
// there each can be run again, and the version is recorded after the last. Migrate uses one connection at a
// time, and a second one only where the server's list of locks does not show that they hold.
//
// [hookonce.ErrSchemaNewer]: https://pkg.go.dev/github.com/hookonce/hookonce#ErrSchemaNewer
func Migrate(ctx context.Context, db *sql.DB, d Dialect, name string) (Change, error) {
	t, err := ddl.Named(d, name)
	if err != nil {
		return Change{}, err
	}
	if t.Dialect == Postgres {
		if err := ddl.Sound(ctx, db); err != nil {
			return Change{}, err
		}
	}
	from, to := int64(-1), int64(0)
	for tries := maxTries(d); ; tries-- {
		before := to
		if to, err = t.Recorded(ctx, db); to > before {
			tries = maxTries(d) // others get on with it, and the next version is another race
		}
		if err == nil && from < 0 {
			from = to
		}
		if err == nil && to >= ddl.Version() {
			return Change{from, to}, t.Usable(ctx, db, to)
		}
		if err == nil {
			t, err = t.Variant(ctx, db)
		}
		if err == nil {
			err = up(ctx, db, t)
		}
		if err != nil && (tries == 1 || !wait(ctx)) {
			return Change{max(from, 0), to}, fmt.Errorf("hookonce: migrating %s from version %d to %d: %w", t.Name, to, ddl.Version(), err)
		}
	}
}

// maxTries bounds how often Migrate goes on after errors at the same version. The loser of a race has waited
// for the winner, and one more look is enough. SQLite may answer "busy" at once to whoever set no
// busy timeout, so there the patience, about 5 seconds, is ours.
func maxTries(d Dialect) int {
	if d == SQLite {
		return 50
	}
	return 3
}

// wait pauses between tries and reports whether ctx still runs.
func wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(100 * time.Millisecond):
		return true
	}
}

// up runs the migrations that the database lacks.
func up(ctx context.Context, db *sql.DB, t ddl.Tables) error {
	if err := run(ctx, db, t, 0); err != nil {
		return err
	}
	p, err := provider(db, t)
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

// executor is a database, or a transaction in it.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// run brings the database from version v-1 to v.
func run(ctx context.Context, db executor, t ddl.Tables, v int64) error {
	for _, s := range t.Statements(v) {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func provider(db *sql.DB, t ddl.Tables) (*goose.Provider, error) {
	store, err := database.NewStore(map[Dialect]database.Dialect{
		Postgres: database.DialectPostgres,
		SQLite:   database.DialectSQLite3,
		MySQL:    database.DialectMySQL,
	}[t.Dialect], t.VersionTable())
	if err != nil {
		return nil, err
	}
	var migrations []*goose.Migration
	for v := int64(1); v <= ddl.Version(); v++ {
		step := func(ctx context.Context, tx *sql.Tx) error { return run(ctx, tx, t, v) }
		migrations = append(migrations, goose.NewGoMigration(v, &goose.GoFunc{RunTx: step}, nil))
	}
	return goose.NewProvider(goose.DialectCustom, db, nil,
		goose.WithStore(versionStore{store, t}),
		goose.WithGoMigrations(migrations...),
		goose.WithDisableGlobalRegistry(true))
}

// versionStore is goose's, and differs where our table of versions does.
type versionStore struct {
	database.Store
	tables ddl.Tables
}

var _ database.StoreExtender = versionStore{}

// TableExists implements [database.StoreExtender]: version 0 has made the table. goose's own way of asking cannot cope
// with the quotes in the name.
func (versionStore) TableExists(context.Context, database.DBTxConn) (bool, error) { return true, nil }

// Insert implements [database.Store]: goose knows nothing of the oldest program that may work beside a version.
func (s versionStore) Insert(ctx context.Context, db database.DBTxConn, req database.InsertRequest) error {
	_, err := db.ExecContext(ctx, s.tables.Record(req.Version))
	return err
}

// Print returns the SQL that takes an empty database to the version that this program needs, the
// record of the version included, for teams that apply migrations with a tool of their own. The Check of a
// store is satisfied afterwards. The text begins and ends no transaction, because such tools do; a comment
// at its head says that it needs one, where there is such a thing.
func Print(d Dialect, name string) (string, error) {
	t, err := ddl.Named(d, name)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "-- The tables of hookonce in %s, version %d, for an empty database. To tables that are there apply what stands from the\n"+
		"-- version after theirs on, which is the largest version_id of goose_db_version, and nothing above it.\n-- %s\n\n%s",
		t.Name, ddl.Version(), howToRun[d], t.Text(0))
	for v := int64(1); v <= ddl.Version(); v++ {
		fmt.Fprintf(&b, "\n-- Version %d.\n%s\n%s;\n", v, t.Text(v), t.Record(v))
	}
	return b.String(), nil
}

var howToRun = map[Dialect]string{
	Postgres: "Run it in one transaction, as migration tools do by themselves, or with: psql -1 -f FILE",
	Yugabyte: "For YugabyteDB 2025.2 or newer. Run it in one transaction, as migration tools do by themselves, or with: ysqlsh -1 -f FILE",
	SQLite:   "Run it in one transaction, as migration tools do by themselves.",
	MySQL:    "MySQL commits each of these statements by itself. If one fails in a database that was empty, drop the tables and begin anew.",
}

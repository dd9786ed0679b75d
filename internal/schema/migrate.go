package schema

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// Migrate brings the database to the version that this program needs and returns the versions
// before and after. When it is there already nothing is written, so a role that cannot create
// tables will do. A schema that is newer than the program is refused, with an error that wraps
// [hookonce.ErrSchemaNewer], before anything is done.
//
// Any number of processes may migrate at the same time, also through a connection pooler: each
// migration is one transaction with the record of its version, which is unique. A process that loses
// the race fails there, reads the version again and goes on. MySQL has no transactions for such statements:
// there each can be run again, and the version is recorded after the last. Migrate uses one connection at a
// time.
func Migrate(ctx context.Context, db *sql.DB, d Dialect, name string) (from, to int64, err error) {
	n, err := newNames(d, name)
	if err != nil {
		return 0, 0, err
	}
	from = -1
	for tries := n.tries(); ; tries-- {
		before := to
		if to, err = n.recorded(ctx, db); to > before {
			tries = n.tries() // others get on with it, and the next version is another race
		}
		if err == nil && from < 0 {
			from = to
		}
		if err == nil && to >= latest {
			return from, to, n.notNewer(to)
		}
		if err == nil {
			err = n.up(ctx, db)
		}
		if err != nil && (tries == 1 || !wait(ctx)) {
			return max(from, 0), to, fmt.Errorf("hookonce: migrating %s from version %d to %d: %w", n.Name, to, latest, err)
		}
	}
}

// tries bounds how often Migrate goes on after errors at the same version. The loser of a race has waited
// for the winner, and one more look is enough. SQLite may answer "busy" at once to whoever set no
// busy timeout, so there the patience, about 5 seconds, is ours.
func (n names) tries() int {
	if n.dialect == SQLite {
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
func (n names) up(ctx context.Context, db *sql.DB) error {
	if err := n.run(ctx, db, 0); err != nil {
		return err
	}
	p, err := n.provider(db)
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
func (n names) run(ctx context.Context, db executor, v int64) error {
	for _, s := range n.statements(v) {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// statements returns the text of version v in the pieces that can be sent at once: all of it, except to
// MySQL, whose driver takes one statement at a time. There a semicolon at the end of a line ends it.
func (n names) statements(v int64) []string {
	if n.dialect != MySQL {
		return []string{n.text(v)}
	}
	pieces := strings.SplitAfter(n.text(v), ";\n")
	return pieces[:len(pieces)-1] // the last is empty, or a comment
}

func (n names) provider(db *sql.DB) (*goose.Provider, error) {
	store, err := database.NewStore(map[Dialect]database.Dialect{
		Postgres: database.DialectPostgres,
		SQLite:   database.DialectSQLite3,
		MySQL:    database.DialectMySQL,
	}[n.dialect], n.versionTable())
	if err != nil {
		return nil, err
	}
	var migrations []*goose.Migration
	for v := int64(1); v <= latest; v++ {
		run := func(ctx context.Context, tx *sql.Tx) error { return n.run(ctx, tx, v) }
		migrations = append(migrations, goose.NewGoMigration(v, &goose.GoFunc{RunTx: run}, nil))
	}
	return goose.NewProvider(goose.DialectCustom, db, nil,
		goose.WithStore(versionStore{store}),
		goose.WithGoMigrations(migrations...),
		goose.WithDisableGlobalRegistry(true))
}

// versionStore answers goose's question whether the version table exists: text(0) has made it. goose's own
// way of asking cannot cope with the quotes in the name.
type versionStore struct{ database.Store }

var _ database.StoreExtender = versionStore{}

// TableExists implements [database.StoreExtender].
func (versionStore) TableExists(context.Context, database.DBTxConn) (bool, error) { return true, nil }

// Print returns the SQL that takes an empty database to the version that this program needs, the
// record of the version included, for teams that apply migrations with a tool of their own. [Check]
// is satisfied afterwards. The text begins and ends no transaction, because such tools do; a comment
// at its head says that it needs one, where there is such a thing.
func Print(d Dialect, name string) (string, error) {
	n, err := newNames(d, name)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "-- The tables of hookonce in %s, version %d, for an empty database.\n-- %s\n\n%s",
		n.Name, latest, n.howToRun(), n.text(0))
	for v := int64(1); v <= latest; v++ {
		fmt.Fprintf(&b, "\n-- Version %d.\n%s\nINSERT INTO %s (version_id, is_applied) VALUES (%d, true);\n",
			v, n.text(v), n.versionTable(), v)
	}
	return b.String(), nil
}

func (n names) howToRun() string {
	return map[Dialect]string{
		Postgres: "Run it in one transaction, as migration tools do by themselves, or with: psql -1 -f FILE",
		SQLite:   "Run it in one transaction, as migration tools do by themselves.",
		MySQL:    "MySQL commits each of these statements by itself. If one fails, drop the tables that are there and begin anew.",
	}[n.dialect]
}

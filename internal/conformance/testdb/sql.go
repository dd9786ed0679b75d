package testdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"sync"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
	"github.com/hookonce/hookonce/storetest"
)

// SQL is a way in which users of sqlstore connect.
type SQL struct {
	Dialect   sqlstore.Dialect
	Connector func(dsn string) (driver.Connector, error)
	Parameter string // the first one in a statement
}

// Place is where a case finds a fresh, empty database.
type Place struct {
	DSN    string
	Schema string
	Used   bool // the tables are there, with the rows of an earlier case
}

// Reused lets the cases have the same tables one after the other, because servers take their time to make them.
func Reused(dsn, schema string) func(testing.TB) Place {
	used := false
	return func(testing.TB) Place {
		p := Place{dsn, schema, used}
		used = true
		return p
	}
}

// Config is the suites' configuration, over the places that the cases are given. It has faults.
func (c SQL) Config(fresh func(t testing.TB) Place) storetest.TxConfig[*sql.Tx] {
	return storetest.TxConfig[*sql.Tx]{Open: func(t testing.TB) storetest.Database[*sql.Tx] {
		return c.database(t, fresh(t))
	}}
}

func (c SQL) database(t testing.TB, p Place) storetest.Database[*sql.Tx] {
	f := new(Faults)
	db := c.Open(t, p.DSN, f)
	tables := c.Create(t, db, p)
	return storetest.Database[*sql.Tx]{
		Store: func(o storetest.Options) hookonce.TxStore[*sql.Tx] {
			opts := []sqlstore.Option{sqlstore.WithClock(o.Clock), sqlstore.WithSchema(p.Schema)}
			if o.Wait != 0 {
				opts = append(opts, sqlstore.WithWait(o.Wait))
			}
			return sqlstore.New(c.Open(t, p.DSN, f), c.Dialect, opts...)
		},
		Begin:    func(ctx context.Context) (*sql.Tx, error) { return db.BeginTx(ctx, nil) },
		Commit:   func(_ context.Context, tx *sql.Tx) error { return tx.Commit() },
		Rollback: func(_ context.Context, tx *sql.Tx) error { return tx.Rollback() },
		Effect: func(ctx context.Context, tx *sql.Tx, id string) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO `+tables+`happened (id) VALUES (`+c.Parameter+`)`, id)
			return err
		},
		Exec: func(ctx context.Context, tx *sql.Tx, statement string) error {
			_, err := tx.ExecContext(ctx, statement)
			return err
		},
		Effects:    func(ctx context.Context) (map[string]int, error) { return Happened(ctx, db, tables) },
		FailCommit: f.FailCommit,
		FailWrite:  f.FailWrite,
	}
}

// Create makes the tables, the one for effects among them, in one go: the tests of package schema
// are about migrations. It returns what stands before the names of tables.
func (c SQL) Create(t testing.TB, db *sql.DB, p Place) (tables string) {
	t.Helper()
	tables, err := ddl.Prefix(c.Dialect, p.Schema)
	if err != nil {
		t.Fatal(err)
	}
	if p.Used {
		c.empty(t, db, tables)
		return tables
	}
	statements := printed(t, c.Dialect, p.Schema)
	pieces := []string{statements}
	if c.Dialect == schema.MySQL { // its driver takes one statement at a time
		pieces = strings.SplitAfter(strings.TrimSpace(statements), ";\n")
	}
	exec(t, db, append(pieces, `CREATE TABLE `+tables+`happened (id TEXT NOT NULL)`)...)
	return tables
}

// texts are what schema.Print said, which parses templates each time.
var texts sync.Map

func printed(t testing.TB, dialect schema.Dialect, name string) string {
	t.Helper()
	type key struct {
		schema.Dialect
		name string
	}
	if text, ok := texts.Load(key{dialect, name}); ok {
		return text.(string)
	}
	text, err := schema.Print(dialect, name)
	if err != nil {
		t.Fatal(err)
	}
	texts.Store(key{dialect, name}, text)
	return text
}

// empty deletes what is in the tables, and has effects numbered from 1 again.
func (c SQL) empty(t testing.TB, db *sql.DB, tables string) {
	t.Helper()
	for _, table := range []string{"claims", "responses", "versions", "states", "tallies", "tally_hours", "tally_writers", "happened"} {
		exec(t, db, `DELETE FROM `+tables+table)
	}
	anew := map[schema.Dialect]string{schema.Postgres: ` RESTART IDENTITY`} // MySQL does so anyway
	exec(t, db, `TRUNCATE TABLE `+tables+`effects`+anew[c.Dialect])
}

func exec(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// Open opens a pool of its own, as a process would, until t ends.
func (c SQL) Open(t testing.TB, dsn string, f *Faults) *sql.DB {
	t.Helper()
	inner, err := c.Connector(dsn)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(Connector{inner, f})
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// Happened returns how often each effect happened, by the table that [SQL.Create] made.
func Happened(ctx context.Context, db *sql.DB, tables string) (map[string]int, error) {
	rows, err := db.QueryContext(ctx, `SELECT id, count(*) FROM `+tables+`happened GROUP BY id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := map[string]int{}
	for rows.Next() {
		var id string
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			return nil, err
		}
		counts[id] = n
	}
	return counts, rows.Err()
}

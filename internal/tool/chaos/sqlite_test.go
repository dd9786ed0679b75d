package chaos

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
	_ "github.com/mattn/go-sqlite3" // the driver sqlite3
	_ "modernc.org/sqlite"          // the driver sqlite
)

// files are the drivers of SQLite, with what follows the name of a file.
var files = map[string]struct{ driver, parameters string }{
	"modernc": {"sqlite", "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5)&_pragma=synchronous(OFF)"},
	"mattn":   {"sqlite3", "?_journal_mode=WAL&_busy_timeout=5&_synchronous=OFF"},
}

// long is a statement that takes long enough to be interrupted, which ends the whole transaction: see
// https://www.sqlite.org/c3ref/interrupt.html.
const long = `INSERT INTO notes WITH RECURSIVE count (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 1500) SELECT n FROM count`

// TestSQLite cuts statements short, and has another process hold the write lock.
func TestSQLite(t *testing.T) {
	for name := range files {
		t.Run(name, func(t *testing.T) {
			r := newSQLiteRound(t, name)
			r.aside = r.impatient(long)
			r.run(t)
		})
	}
}

// TestSQLiteCareless has handlers hide that statements were cut short, which ends their transaction.
func TestSQLiteCareless(t *testing.T) {
	for name := range files {
		t.Run(name, func(t *testing.T) {
			r := newSQLiteRound(t, name)
			r.aside = r.hidden(r.impatient(long, "INSERT INTO notes VALUES (NULL)"))
			r.run(t)
		})
	}
}

type sqliteRound struct {
	*round
	db *sql.DB
}

func newSQLiteRound(t *testing.T, name string) *sqliteRound {
	t.Helper()
	f := files[name]
	file := url.URL{Path: filepath.Join(t.TempDir(), "bank.db")}
	dsn := "file:" + file.EscapedPath() + f.parameters
	db := open(t, f.driver, dsn)
	createBank(t, db)
	_, err := schema.Migrate(t.Context(), db, schema.SQLite, schema.DefaultName)
	must(t, err)
	r := newRound(t, func(d *dice) harm { return holdLock(d, db) })
	process := func() *process {
		store := sqlstore.New(open(t, f.driver, dsn), sqlstore.SQLite, sqlstore.WithWait(wait))
		return newProcess(r.bank, store, execSQL)
	}
	r.join(process())
	r.join(process())
	r.witness = process().lookup
	return &sqliteRound{r, db}
}

func (r *sqliteRound) run(t *testing.T) {
	t.Helper()
	r.storm(t)
	audit(t, r.db, r.happened(t))
}

// holdLock holds the write lock for a random time, if it gets it.
func holdLock(d *dice, db *sql.DB) harm {
	return func(ctx context.Context) (bool, error) {
		conn, err := db.Conn(ctx)
		if err != nil {
			return false, err
		}
		defer conn.Close()
		if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
			return false, nil // somebody else has it
		}
		select {
		case <-time.After(d.upTo(20 * time.Millisecond)):
		case <-ctx.Done():
		}
		_, err = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return true, err
	}
}

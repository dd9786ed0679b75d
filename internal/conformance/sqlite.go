package conformance

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"modernc.org/sqlite"

	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/sqlstore"
	"github.com/hookonce/hookonce/storetest"
)

// sqlitePlace is a folder beside a file: the engine is part of this program, and what is tried is the file system.
type sqlitePlace struct{ Target }

func (p sqlitePlace) dir() string { return filepath.Join(filepath.Dir(p.URL), p.Name) }

func (p sqlitePlace) about(ctx context.Context) (string, error) {
	db := sql.OpenDB(testdb.DSNConnector{Of: &sqlite.Driver{}, DSN: ":memory:"})
	defer db.Close()
	var version string
	err := db.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&version)
	return "SQLite " + version + " of this program", err
}

func (p sqlitePlace) prepare(context.Context) error {
	err := os.Mkdir(p.dir(), 0o700)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("there is a file or folder %s already, and nothing that is there is touched: try again, for another name", p.dir())
	case err != nil:
		return fmt.Errorf("the suites need a folder of their own beside the file: %w", err)
	}
	return nil
}

func (p sqlitePlace) remove(context.Context) error { return os.RemoveAll(p.dir()) }

// database gives every case a file of its own. The busy timeout is short, so that the store's own patience is tried.
func (p sqlitePlace) database(*testing.T, string) storetest.TxConfig[*sql.Tx] {
	c := testdb.SQL{Dialect: sqlstore.SQLite, Parameter: "?", Connector: func(dsn string) (driver.Connector, error) {
		return testdb.DSNConnector{Of: &sqlite.Driver{}, DSN: dsn}, nil
	}}
	return c.Config(func(t testing.TB) testdb.Place {
		dir, err := os.MkdirTemp(p.dir(), "case")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		file := url.URL{Path: filepath.Join(dir, "claims.db")}
		return testdb.Place{DSN: "file:" + file.EscapedPath() + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5)&_pragma=synchronous(FULL)", Schema: "hookonce"}
	})
}

func sqliteSuites(target Target) []suite { return sqlSuites(sqlitePlace{target}.database) }

package sqlstore_test

import (
	"database/sql"
	"database/sql/driver"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"
	"github.com/mattn/go-sqlite3"
	"modernc.org/sqlite"

	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/testserver/mariadbtest"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/sqlstore"
	"github.com/hookonce/hookonce/storetest"
)

func TestMain(m *testing.M) {
	throwaway.TestsAtOnce(4)
	throwaway.Histories(30)
	os.Exit(m.Run())
}

// connection is a way in which users connect.
type connection struct {
	testdb.SQL
	places func(t testing.TB) func(t testing.TB) testdb.Place
}

// files gives every case a file of its own.
func files(parameters string) func(testing.TB) func(testing.TB) testdb.Place {
	return func(testing.TB) func(testing.TB) testdb.Place {
		return func(t testing.TB) testdb.Place {
			file := url.URL{Path: filepath.Join(t.TempDir(), "app.db")}
			return testdb.Place{DSN: "file:" + file.EscapedPath() + parameters, Schema: "hookonce"}
		}
	}
}

// schemas lets the cases have the same tables one after the other, because servers take their time to make
// them.
func schemas(t testing.TB) func(testing.TB) testdb.Place {
	return testdb.Reused(pgtest.DSN(t), "case_1")
}

// prefixes is the same for MySQL, where the connection has the parameters.
func prefixes(parameters string) func(testing.TB) func(testing.TB) testdb.Place {
	return func(t testing.TB) func(testing.TB) testdb.Place {
		return testdb.Reused(mariadbtest.DSN(t)+parameters, "case_1")
	}
}

// The busy timeout is short, so that the store's own patience is what is tested.
var (
	modernc = overSQLite(&sqlite.Driver{}, "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5)&_pragma=synchronous(OFF)&_pragma=foreign_keys(1)")
	mattn   = overSQLite(&sqlite3.SQLiteDriver{}, "?_journal_mode=WAL&_busy_timeout=5&_synchronous=OFF&_foreign_keys=1")

	pgxStdlib = overPostgres(func(dsn string) (driver.Connector, error) {
		cfg, err := pgx.ParseConfig(dsn)
		if err != nil {
			return nil, err
		}
		return stdlib.GetConnector(*cfg), nil
	})
	// lib/pq asks the server once to cancel a statement whose context has ended. On a busy machine that can come before the
	// statement has begun, and is lost: without a bound of the server's it would wait for the other transaction for ever.
	libpq = overPostgres(func(dsn string) (driver.Connector, error) { return pq.NewConnector(dsn + "&statement_timeout=60000") })

	goMySQL       = overMySQL("?interpolateParams=true")
	preparedMySQL = overMySQL("")
)

func overSQLite(d driver.Driver, parameters string) connection {
	connector := func(dsn string) (driver.Connector, error) { return testdb.DSNConnector{Of: d, DSN: dsn}, nil }
	return connection{testdb.SQL{Dialect: sqlstore.SQLite, Parameter: "?", Connector: connector}, files(parameters)}
}

func overPostgres(connector func(dsn string) (driver.Connector, error)) connection {
	return connection{testdb.SQL{Dialect: sqlstore.Postgres, Parameter: "$1", Connector: connector}, schemas}
}

func overMySQL(parameters string) connection {
	return connection{testdb.SQL{
		Dialect: sqlstore.MySQL, Parameter: "?",
		Connector: func(dsn string) (driver.Connector, error) {
			cfg, err := mysql.ParseDSN(dsn)
			if err != nil {
				return nil, err
			}
			return mysql.NewConnector(cfg)
		},
	}, prefixes(parameters)}
}

// One driver of each dialect is compared with the model at length: the faster one.
func TestMattn(t *testing.T) {
	testskip.Long(t)
	conformance(t, mattn)
}

func TestPgx(t *testing.T) {
	testskip.Race(t)
	conformance(t, pgxStdlib)
}

func TestMySQL(t *testing.T) {
	testskip.Race(t)
	conformance(t, goMySQL)
}

func TestOtherDrivers(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	storetest.Briefly(t)
	t.Run("modernc", func(t *testing.T) { conformance(t, modernc) })
	t.Run("pq", func(t *testing.T) { conformance(t, libpq) })
}

func BenchmarkModernc(b *testing.B) { storetest.Bench(b, modernc.config(b)) }
func BenchmarkMattn(b *testing.B)   { storetest.Bench(b, mattn.config(b)) }
func BenchmarkPgx(b *testing.B)     { storetest.Bench(b, pgxStdlib.config(b)) }
func BenchmarkPq(b *testing.B)      { storetest.Bench(b, libpq.config(b)) }
func BenchmarkMySQL(b *testing.B)   { storetest.Bench(b, goMySQL.config(b)) }

func conformance(t *testing.T, c connection) {
	t.Parallel()
	cfg := c.config(t)
	storetest.Run(t, cfg.Lease())
	storetest.RunConcurrent(t, cfg.Lease())
	storetest.RunTx(t, cfg)
	storetest.RunTxConcurrent(t, cfg)
	storetest.RunTxResponses(t, cfg)
	storetest.RunGuards(t, cfg)
	storetest.RunOutbox(t, cfg)
	storetest.RunInspector(t, cfg)
	storetest.RunTallier(t, cfg)
	storetest.RunFaults(t, cfg)
}

func (c connection) config(t testing.TB) storetest.TxConfig[*sql.Tx] { return c.Config(c.places(t)) }

func exec(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := db.ExecContext(t.Context(), s)
		must(t, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

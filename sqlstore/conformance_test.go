package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"
	"github.com/mattn/go-sqlite3"
	"modernc.org/sqlite"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/testserver/mariadbtest"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
	"github.com/hookonce/hookonce/schema"
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
	dialect   sqlstore.Dialect
	places    func(t testing.TB) func(t testing.TB) place
	connector func(dsn string) (driver.Connector, error)
	parameter string // the first one in a statement
}

// place is where a case finds a fresh, empty database.
type place struct {
	dsn    string
	schema string
	used   bool // the tables are there, with the rows of an earlier case
}

// files gives every case a file of its own.
func files(parameters string) func(testing.TB) func(testing.TB) place {
	return func(testing.TB) func(testing.TB) place {
		return func(t testing.TB) place {
			file := url.URL{Path: filepath.Join(t.TempDir(), "app.db")}
			return place{dsn: "file:" + file.EscapedPath() + parameters, schema: "hookonce"}
		}
	}
}

// schemas lets the cases have the same tables one after the other, because servers take their time to make
// them.
func schemas(t testing.TB) func(testing.TB) place { return shared(pgtest.DSN(t)) }

// prefixes is the same for MySQL, where the connection has the parameters.
func prefixes(parameters string) func(testing.TB) func(testing.TB) place {
	return func(t testing.TB) func(testing.TB) place { return shared(mariadbtest.DSN(t) + parameters) }
}

func shared(dsn string) func(testing.TB) place {
	used := false
	return func(testing.TB) place {
		p := place{dsn, "case_1", used}
		used = true
		return p
	}
}

// The busy timeout is short, so that the store's own patience is what is tested.
var (
	modernc = connection{
		dialect: sqlstore.SQLite, parameter: "?",
		places:    files("?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5)&_pragma=synchronous(OFF)&_pragma=foreign_keys(1)"),
		connector: func(dsn string) (driver.Connector, error) { return dsnConnector{&sqlite.Driver{}, dsn}, nil },
	}
	mattn = connection{
		dialect: sqlstore.SQLite, parameter: "?",
		places:    files("?_journal_mode=WAL&_busy_timeout=5&_synchronous=OFF&_foreign_keys=1"),
		connector: func(dsn string) (driver.Connector, error) { return dsnConnector{&sqlite3.SQLiteDriver{}, dsn}, nil },
	}
	pgxStdlib = connection{
		dialect: sqlstore.Postgres, parameter: "$1", places: schemas,
		connector: func(dsn string) (driver.Connector, error) {
			cfg, err := pgx.ParseConfig(dsn)
			if err != nil {
				return nil, err
			}
			return stdlib.GetConnector(*cfg), nil
		},
	}
	libpq = connection{
		dialect: sqlstore.Postgres, parameter: "$1", places: schemas,
		connector: func(dsn string) (driver.Connector, error) { return pq.NewConnector(dsn) },
	}
	goMySQL       = overMySQL("?interpolateParams=true")
	preparedMySQL = overMySQL("")
)

func overMySQL(parameters string) connection {
	return connection{
		dialect: sqlstore.MySQL, parameter: "?", places: prefixes(parameters),
		connector: func(dsn string) (driver.Connector, error) {
			cfg, err := mysql.ParseDSN(dsn)
			if err != nil {
				return nil, err
			}
			return mysql.NewConnector(cfg)
		},
	}
}

// One driver of each dialect is compared with the model at length: the faster one.
func TestMattn(t *testing.T) { conformance(t, mattn) }
func TestPgx(t *testing.T)   { conformance(t, pgxStdlib) }
func TestMySQL(t *testing.T) { conformance(t, goMySQL) }

func TestOtherDrivers(t *testing.T) {
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

func (c connection) config(t testing.TB) storetest.TxConfig[*sql.Tx] {
	fresh := c.places(t)
	return storetest.TxConfig[*sql.Tx]{Open: func(t testing.TB) storetest.Database[*sql.Tx] {
		return c.database(t, fresh(t))
	}}
}

func (c connection) database(t testing.TB, p place) storetest.Database[*sql.Tx] {
	f := new(faults)
	db := c.open(t, p.dsn, f)
	tables := c.create(t, db, p)
	return storetest.Database[*sql.Tx]{
		Store: func(o storetest.Options) hookonce.TxStore[*sql.Tx] {
			opts := []sqlstore.Option{sqlstore.WithClock(o.Clock), sqlstore.WithSchema(p.schema)}
			if o.Wait != 0 {
				opts = append(opts, sqlstore.WithWait(o.Wait))
			}
			return sqlstore.New(c.open(t, p.dsn, f), c.dialect, opts...)
		},
		Begin:    func(ctx context.Context) (*sql.Tx, error) { return db.BeginTx(ctx, nil) },
		Commit:   func(_ context.Context, tx *sql.Tx) error { return tx.Commit() },
		Rollback: func(_ context.Context, tx *sql.Tx) error { return tx.Rollback() },
		Effect: func(ctx context.Context, tx *sql.Tx, id string) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO `+tables+`happened (id) VALUES (`+c.parameter+`)`, id)
			return err
		},
		Effects:    func(ctx context.Context) (map[string]int, error) { return effects(ctx, db, tables) },
		FailCommit: f.failCommit,
		FailWrite:  f.failWrite,
	}
}

// create makes the tables, the one for effects among them, in one go: the tests of package schema
// are about migrations. It returns what stands before the names of tables.
func (c connection) create(t testing.TB, db *sql.DB, p place) (tables string) {
	t.Helper()
	tables, err := ddl.Prefix(c.dialect, p.schema)
	must(t, err)
	if p.used {
		c.empty(t, db, tables)
		return tables
	}
	statements := printed(t, c.dialect, p.schema)
	pieces := []string{statements}
	if c.dialect == schema.MySQL { // its driver takes one statement at a time
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
	must(t, err)
	texts.Store(key{dialect, name}, text)
	return text
}

// empty deletes what is in the tables, and has effects numbered from 1 again.
func (c connection) empty(t testing.TB, db *sql.DB, tables string) {
	t.Helper()
	for _, table := range []string{"claims", "responses", "versions", "states", "tallies", "tally_hours", "tally_writers", "happened"} {
		exec(t, db, `DELETE FROM `+tables+table)
	}
	anew := map[schema.Dialect]string{schema.Postgres: ` RESTART IDENTITY`} // MySQL does so anyway
	exec(t, db, `TRUNCATE TABLE `+tables+`effects`+anew[c.dialect])
}

// open opens a pool of its own, as a process would.
func (c connection) open(t testing.TB, dsn string, f *faults) *sql.DB {
	t.Helper()
	inner, err := c.connector(dsn)
	must(t, err)
	db := sql.OpenDB(connector{inner, f})
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

func effects(ctx context.Context, db *sql.DB, tables string) (map[string]int, error) {
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

package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/pgtest"
	"github.com/hookonce/hookonce/sqlstore"
	"github.com/hookonce/hookonce/storetest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"
	"github.com/mattn/go-sqlite3"
	"modernc.org/sqlite"
)

// connection is a way in which users connect.
type connection struct {
	dialect   sqlstore.Dialect
	dsn       func(t testing.TB) string // of a fresh database
	connector func(dsn string) (driver.Connector, error)
	insert    string // records an effect
}

const (
	insertSQLite   = `INSERT INTO effects (id) VALUES (?)`
	insertPostgres = `INSERT INTO effects (id) VALUES ($1)`
)

// The busy timeout is short, so that the store's own patience is what is tested.
var (
	modernc = connection{
		dialect: sqlstore.SQLite, insert: insertSQLite,
		dsn: func(t testing.TB) string {
			return "file:" + filepath.Join(t.TempDir(), "app.db") + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5)&_pragma=synchronous(OFF)"
		},
		connector: func(dsn string) (driver.Connector, error) { return dsnConnector{&sqlite.Driver{}, dsn}, nil },
	}
	mattn = connection{
		dialect: sqlstore.SQLite, insert: insertSQLite,
		dsn: func(t testing.TB) string {
			return "file:" + filepath.Join(t.TempDir(), "app.db") + "?_journal_mode=WAL&_busy_timeout=5&_synchronous=OFF"
		},
		connector: func(dsn string) (driver.Connector, error) { return dsnConnector{&sqlite3.SQLiteDriver{}, dsn}, nil },
	}
	pgxStdlib = connection{
		dialect: sqlstore.Postgres, insert: insertPostgres, dsn: pgtest.DSN,
		connector: func(dsn string) (driver.Connector, error) {
			cfg, err := pgx.ParseConfig(dsn)
			if err != nil {
				return nil, err
			}
			return stdlib.GetConnector(*cfg), nil
		},
	}
	libpq = connection{
		dialect: sqlstore.Postgres, insert: insertPostgres, dsn: pgtest.DSN,
		connector: func(dsn string) (driver.Connector, error) { return pq.NewConnector(dsn) },
	}
)

func TestModernc(t *testing.T) { conformance(t, modernc) }
func TestMattn(t *testing.T)   { conformance(t, mattn) }
func TestPgx(t *testing.T)     { conformance(t, pgxStdlib) }
func TestPq(t *testing.T)      { conformance(t, libpq) }

func BenchmarkModernc(b *testing.B) { storetest.Bench(b, modernc.config()) }
func BenchmarkMattn(b *testing.B)   { storetest.Bench(b, mattn.config()) }
func BenchmarkPgx(b *testing.B)     { storetest.Bench(b, pgxStdlib.config()) }
func BenchmarkPq(b *testing.B)      { storetest.Bench(b, libpq.config()) }

func conformance(t *testing.T, c connection) {
	cfg := c.config()
	storetest.Run(t, cfg.Lease())
	storetest.RunConcurrent(t, cfg.Lease())
	storetest.RunTx(t, cfg)
	storetest.RunTxConcurrent(t, cfg)
	storetest.RunFaults(t, cfg)
}

func (c connection) config() storetest.TxConfig[*sql.Tx] {
	return storetest.TxConfig[*sql.Tx]{Open: c.database}
}

func (c connection) database(t testing.TB) storetest.Database[*sql.Tx] {
	dsn, f := c.dsn(t), new(faults)
	db := c.open(t, dsn, f)
	must(t, sqlstore.New(db, c.dialect).Migrate(t.Context()))
	exec(t, db, `CREATE TABLE effects (id TEXT NOT NULL)`)
	return storetest.Database[*sql.Tx]{
		Store: func(o storetest.Options) hookonce.TxStore[*sql.Tx] {
			opts := []sqlstore.Option{sqlstore.WithClock(o.Clock)}
			if o.Wait != 0 {
				opts = append(opts, sqlstore.WithWait(o.Wait))
			}
			return sqlstore.New(c.open(t, dsn, f), c.dialect, opts...)
		},
		Begin:    func(ctx context.Context) (*sql.Tx, error) { return db.BeginTx(ctx, nil) },
		Commit:   func(_ context.Context, tx *sql.Tx) error { return tx.Commit() },
		Rollback: func(_ context.Context, tx *sql.Tx) error { return tx.Rollback() },
		Effect: func(ctx context.Context, tx *sql.Tx, id string) error {
			_, err := tx.ExecContext(ctx, c.insert, id)
			return err
		},
		Effects:    func(ctx context.Context) (map[string]int, error) { return effects(ctx, db) },
		FailCommit: f.failCommit,
		FailWrite:  f.failWrite,
	}
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

func effects(ctx context.Context, db *sql.DB) (map[string]int, error) {
	rows, err := db.QueryContext(ctx, `SELECT id, count(*) FROM effects GROUP BY id`)
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

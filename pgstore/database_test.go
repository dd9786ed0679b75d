package pgstore_test

import (
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/storetest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	throwaway.TestsAtOnce(4)
	throwaway.Histories(30)
	goleak.VerifyTestMain(m, pgtest.Kept())
}

// open returns a pool with the given further parameters of a connection string, such as
// "default_query_exec_mode=exec". It fails the test if a connection stays in use at the end.
func open(t testing.TB, dsn, parameters string) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(dsn + "&" + parameters)
	if err != nil {
		t.Fatal(err)
	}
	return testdb.Pool(t, cfg)
}

// newStore returns a store over a fresh database and its pool.
func newStore(t testing.TB, opts ...pgstore.Option) (*pgstore.Store, *pgxpool.Pool) {
	t.Helper()
	pool := open(t, pgtest.DSN(t), "")
	s := pgstore.New(pool, opts...)
	pgtest.Migrate(t, pool, "")
	mustExec(t, pool, "CREATE TABLE effects (id text NOT NULL)")
	return s, pool
}

func mustExec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// suite is the conformance suite's configuration over one database, in which every case has a schema
// to itself. Stores connect with dsn and parameters; tables are made through admin.
func suite(t *testing.T, admin, dsn, parameters string) storetest.TxConfig[pgx.Tx] {
	connect := func(t testing.TB) *pgxpool.Pool { return open(t, dsn, parameters) }
	return (&testdb.Postgres{Admin: open(t, admin, ""), Pool: connect, Prefix: "case"}).Config()
}

func request(key string) hookonce.ClaimRequest {
	return hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: key}}
}

package pgstore_test

import (
	"flag"
	"testing"

	"github.com/hookonce/hookonce/internal/pgtest"
	"github.com/hookonce/hookonce/storetest"
)

func TestConformance(t *testing.T) {
	dsn := pgtest.DSN(t)
	cfg := suite(t, dsn, dsn, "")
	storetest.Run(t, cfg.Lease())
	storetest.RunConcurrent(t, cfg.Lease())
	storetest.RunTx(t, cfg)
	storetest.RunTxConcurrent(t, cfg)
}

// briefly lets the comparison with the model run fewer random histories: TestConformance runs many,
// and what differs between connections shows in the first.
func briefly(t *testing.T) {
	const checks = "rapid.checks"
	before := flag.Lookup(checks).Value.String()
	if err := flag.Set(checks, "5"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set(checks, before) })
}

// Every way in which pgx can talk to the server.
func TestQueryExecModes(t *testing.T) {
	briefly(t)
	for _, mode := range []string{"cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			dsn := pgtest.DSN(t)
			cfg := suite(t, dsn, dsn, "default_query_exec_mode="+mode)
			storetest.Run(t, cfg.Lease())
			storetest.RunTx(t, cfg)
		})
	}
}

// Behind a pooler, consecutive transactions of a connection meet different servers' connections.
func TestPgBouncer(t *testing.T) {
	briefly(t)
	for _, mode := range []string{"cache_describe", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			dsn := pgtest.DSN(t)
			cfg := suite(t, dsn, pgtest.PgBouncer(t, dsn), "default_query_exec_mode="+mode)
			storetest.RunConcurrent(t, cfg.Lease())
			storetest.RunTx(t, cfg)
			storetest.RunTxConcurrent(t, cfg)
		})
	}
}

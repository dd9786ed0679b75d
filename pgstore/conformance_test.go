package pgstore_test

import (
	"testing"

	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/storetest"
	"github.com/jackc/pgx/v5"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	cfg := suite(t, dsn, pgtest.Sessions(t, dsn), "")
	storetest.Run(t, cfg.Lease())
	storetest.RunConcurrent(t, cfg.Lease())
	storetest.RunTx(t, cfg)
	storetest.RunTxConcurrent(t, cfg)
	abilities(t, cfg)
}

// abilities checks what the store has besides claims.
func abilities(t *testing.T, cfg storetest.TxConfig[pgx.Tx]) {
	storetest.RunTxResponses(t, cfg)
	storetest.RunGuards(t, cfg)
	storetest.RunOutbox(t, cfg)
	storetest.RunInspector(t, cfg)
	storetest.RunTallier(t, cfg)
}

// Every way in which pgx can talk to the server.
func TestQueryExecModes(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	storetest.Briefly(t)
	for _, mode := range []string{"cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.DSN(t)
			cfg := suite(t, dsn, pgtest.Sessions(t, dsn), "default_query_exec_mode="+mode)
			storetest.Run(t, cfg.Lease())
			storetest.RunTx(t, cfg)
			abilities(t, cfg)
		})
	}
}

// Behind a pooler, consecutive transactions of a connection meet different servers' connections.
func TestPgBouncer(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	storetest.Briefly(t)
	for _, mode := range []string{"cache_describe", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.DSN(t)
			cfg := suite(t, dsn, pgtest.PgBouncer(t, dsn), "default_query_exec_mode="+mode)
			storetest.RunConcurrent(t, cfg.Lease())
			storetest.RunTx(t, cfg)
			storetest.RunTxConcurrent(t, cfg)
			abilities(t, cfg)
		})
	}
}

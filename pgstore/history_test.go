package pgstore_test

import (
	"testing"

	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/storetest"
	"github.com/jackc/pgx/v5"
)

func TestHistory(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	p, through := newProxy(t, dsn)
	base := suite(t, dsn, through, "default_query_exec_mode=exec") // every statement travels with its text
	storetest.RunHistory(t, storetest.TxConfig[pgx.Tx]{Open: func(t testing.TB) storetest.Database[pgx.Tx] {
		db := base.Open(t)
		db.FailWrite = func(persisted bool) { p.Fail(isWrite, persisted) }
		return db
	}}.History())
}

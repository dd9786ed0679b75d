package pgstore_test

import (
	"testing"

	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/storetest"
)

func TestHistory(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	dsn := pgtest.DSN(t)
	p, through := newProxy(t, dsn)
	base := suite(t, dsn, through, "default_query_exec_mode=exec") // every statement travels with its text
	storetest.RunHistory(t, testdb.Faulty(base, p).History())
}

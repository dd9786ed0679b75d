package pg_test

import (
	"testing"

	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// The ways to connect differ in how arguments travel; these are the extremes, and what a pooler leaves of
// them.
func TestRecords(t *testing.T) {
	t.Parallel()
	journaltest.RunRecords(t, inMode(t, "cache_statement").fixture)
}

func TestRecordsInSimpleProtocol(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	journaltest.RunRecords(t, inMode(t, "simple_protocol").fixture)
}

func TestRecordsThroughPgBouncer(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	t.Parallel()
	dsn := pgtest.DSN(t)
	d := &database{direct: dsn, dsn: queryMode(pgtest.PgBouncer(t, dsn), "exec")}
	journaltest.RunRecords(t, d.fixture)
}

func TestLargeFailureGroup(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	t.Parallel()
	dsn := pgtest.DSN(t)
	journaltest.RunLargeGroup(t, (&database{direct: dsn, dsn: dsn}).fixture)
}

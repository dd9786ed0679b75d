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
	dsn := pgtest.Sessions(t, pgtest.DSN(t))
	d := &database{direct: dsn, dsn: dsn}
	t.Run("cache_statement", func(t *testing.T) { journaltest.RunRecords(t, d.fixture) })
	d.dsn = queryMode(dsn, "simple_protocol")
	t.Run("simple_protocol", func(t *testing.T) { journaltest.RunRecords(t, d.fixture) })
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

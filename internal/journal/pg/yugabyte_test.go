package pg_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/testserver/pgproxy"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// conflicts has one of so many transactions of a store that write to a table of the schema fail with 40001, which rolls it
// back. They are counted by a sequence, which no rollback touches: one that is tried again is another.
const conflicts = `
CREATE SEQUENCE IF NOT EXISTS shadow.turns;
CREATE OR REPLACE FUNCTION shadow.conflict() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE turn text := nullif(current_setting('shadow.turn', true), ''); -- of this transaction
BEGIN
	IF current_setting('application_name') <> 'store' THEN
		RETURN NULL;
	END IF;
	IF turn IS NULL THEN
		turn := set_config('shadow.turn', (nextval('shadow.turns') %% %[2]d)::text, true);
	END IF;
	IF turn = '0' THEN
		RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001';
	END IF;
	RETURN NULL;
END $$;
DO $$ DECLARE name text; BEGIN
	FOR name IN SELECT relname FROM pg_class WHERE relnamespace = '%[1]s'::regnamespace AND relkind = 'r' AND relname <> 'goose_db_version' LOOP
		EXECUTE format('CREATE TRIGGER conflict AFTER INSERT OR UPDATE OR DELETE ON %%I.%%I EXECUTE FUNCTION shadow.conflict()', '%[1]s', name);
	END LOOP;
END $$;`

// The journal works on a PostgreSQL that says that it is YugabyteDB, refuses what that has not, and gives up
// transactions again and again: with the tables in the form that it chooses there by itself.
func TestYugabyte(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	t.Parallel()
	if !*yugabyteAll {
		journaltest.Run(t, yugabyte(t, 3), "accept", "take", "pick", "finish")
		return
	}
	journaltest.Run(t, yugabyte(t, 3))
	rarely := yugabyte(t, 31) // many at once lose five times running otherwise, and a store does not try more often
	journaltest.RunRecords(t, rarely)
	journaltest.RunConcurrent(t, rarely)
}

var yugabyteAll = flag.Bool("yugabyte", false, "run all cases of the journal on what YugabyteDB has, in TestYugabyte")

// yugabyte is the journal on such a server, which gives up one transaction of so many.
func yugabyte(t *testing.T, conflict int) journaltest.Factory {
	direct := pgtest.DSN(t)
	conn, err := pgx.Connect(t.Context(), direct)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), `CREATE SCHEMA shadow`); err != nil {
		t.Fatal(err)
	}
	through := pgproxy.New(t, direct, pgproxy.Yugabyte) + "&application_name=store"
	j := &testdb.Journal{
		Connect: func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, direct) },
		Create: func(t testing.TB, schema string) {
			open(t, through, schema).Close()
			if _, err := conn.Exec(t.Context(), fmt.Sprintf(conflicts, schema, conflict)); err != nil {
				t.Fatal(err)
			}
		},
		Open: func(t testing.TB, _ *pgx.Conn, schema string) journal.Store {
			s, err := pg.Open(t.Context(), through, pg.Options{Schema: schema})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
		Prefix: "yugabyte",
	}
	return j.Fixture
}

// Nothing is divided there, and what is too old is deleted row by row.
func TestYugabyteIsNotDivided(t *testing.T) {
	t.Parallel()
	s := open(t, pgproxy.New(t, pgtest.DSN(t), pgproxy.Yugabyte), "")
	if s.Divided() {
		t.Fatal("the tables are divided")
	}
	e := entry("old")
	e.Hold, e.Destinations = nil, nil // so that it is done
	if _, err := accept(t.Context(), s, e); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(48 * time.Hour)
	keep := journal.Retention{Period: journal.Period{Bodies: 24 * time.Hour, Attempts: 24 * time.Hour}}
	if divisions, err := s.EnsurePartitions(t.Context(), later, &keep); err != nil || len(divisions) != 0 {
		t.Error(divisions, err)
	}
	if dropped, err := s.DropPartitions(t.Context(), later, &keep); err != nil || dropped.More || len(dropped.Rows) != 0 {
		t.Error(dropped, err)
	}
	purge := journal.Purge{Kind: journal.KindBodies, Before: later.Add(-keep.Bodies), Others: true, Limit: 10}
	if purged, err := s.Purge(t.Context(), purge); err != nil || purged.Deleted != 1 {
		t.Errorf("%+v, %v, want that one body is deleted", purged, err)
	}
}

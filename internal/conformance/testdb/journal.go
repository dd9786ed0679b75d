package testdb

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// Journal is a database of Postgres in which every case of journaltest has a schema to itself. It is for one suite at a
// time.
type Journal struct {
	// Connect opens a connection for what a case does behind the store's back.
	Connect func(ctx context.Context) (*pgx.Conn, error)
	// Create makes the tables in a schema that is not there.
	Create func(t testing.TB, schema string)
	// Open opens a store on these tables, until t ends. It may use conn for what must be done before.
	Open func(t testing.TB, conn *pgx.Conn, schema string) journal.Store
	// Prefix is what the names of the schemas begin with.
	Prefix string

	schemas atomic.Int64
	made    string   // the shape of a new schema
	free    []string // schemas that are empty and as they were made
}

// Fixture is what journaltest asks for.
func (j *Journal) Fixture(t testing.TB) *journaltest.Fixture {
	conn, err := j.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	schema := j.schema(t, conn)
	exec := func(t testing.TB, sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	return &journaltest.Fixture{
		Shared: true,
		Open:   func(t testing.TB) journal.Store { return j.Open(t, conn, schema) },
		Refuse: func(t testing.TB, key string) {
			exec(t, fmt.Sprintf(`ALTER TABLE %s.events ADD CHECK (key <> '%s')`, schema, key))
		},
		DropBody: func(t testing.TB, id int64) {
			exec(t, fmt.Sprintf(`DELETE FROM %s.bodies WHERE event_id = $1`, schema), id)
		},
		RanksOfOlder: func(t testing.TB) {
			exec(t, fmt.Sprintf(`UPDATE %[1]s.newest n SET resource = e.resource, rank_kind = NULL FROM %[1]s.events e WHERE e.id = n.event_id`, schema))
			exec(t, fmt.Sprintf(`UPDATE %s.events SET rank_kind = NULL`, schema))
		},
		Attempts: func(t testing.TB, id int64) []journal.Outcome { return attempts(t, conn, schema, id) },
		Rows:     func(t testing.TB, id int64) map[journal.Kind]int { return countRows(t, conn, schema, id) },
	}
}

// schema lends a schema to one case. To make the tables takes longer than most cases, so a schema whose shape
// a case did not change is emptied and lent again.
func (j *Journal) schema(t testing.TB, conn *pgx.Conn) string {
	t.Helper()
	var name string
	if n := len(j.free); n > 0 {
		name, j.free = j.free[n-1], j.free[:n-1]
	} else {
		name = fmt.Sprintf("%s_%d", j.Prefix, j.schemas.Add(1))
		j.Create(t, name)
		j.made = shape(t, conn, name)
	}
	t.Cleanup(func() {
		if !t.Failed() && shape(t, conn, name) == j.made {
			empty(t, conn, name)
			j.free = append(j.free, name)
		}
	})
	return name
}

// shape describes what a schema is made of, so that schemas can be compared.
func shape(t testing.TB, conn *pgx.Conn, schema string) (s string) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), `SELECT string_agg(what, ' ' ORDER BY what) FROM (
		SELECT relname::text AS what FROM pg_class WHERE relnamespace = $1::regnamespace
		UNION ALL SELECT conname::text FROM pg_constraint WHERE connamespace = $1::regnamespace
		UNION ALL SELECT proname::text FROM pg_proc WHERE pronamespace = $1::regnamespace) t`, schema).Scan(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// empty deletes every row but what says which version the schema has, and lets sequences begin anew. Nothing of that is
// in the server's counts of rows, which tests of rights look at, if the role may turn them off.
func empty(t testing.TB, conn *pgx.Conn, schema string) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), fmt.Sprintf(`DO $$ DECLARE name text; BEGIN
		IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
			PERFORM set_config('track_counts', 'off', true);
		END IF;
		FOR name IN SELECT relname FROM pg_class WHERE relnamespace = '%[1]s'::regnamespace AND relkind IN ('r', 'p')
			AND NOT relispartition AND relname <> 'goose_db_version' LOOP
			EXECUTE format('DELETE FROM %%I.%%I', '%[1]s', name);
		END LOOP;
		PERFORM setval(oid::regclass, 1, false) FROM pg_class WHERE relnamespace = '%[1]s'::regnamespace AND relkind = 'S'
			AND relname NOT LIKE 'goose%%'; END $$`, schema)); err != nil {
		t.Fatal(err)
	}
}

// countRows counts what there is of an event, in partitions and beside them.
func countRows(t testing.TB, conn *pgx.Conn, schema string, id int64) map[journal.Kind]int {
	t.Helper()
	n := map[journal.Kind]int{}
	for where, kind := range map[string]journal.Kind{"events WHERE id": journal.KindIDs, "answers WHERE event_id": journal.KindAnswers,
		"bodies WHERE event_id": journal.KindBodies, "kept_bodies WHERE event_id": journal.KindBodies,
		"attempts WHERE event_id": journal.KindAttempts, "kept_attempts WHERE event_id": journal.KindAttempts} {
		var rows int
		if err := conn.QueryRow(t.Context(), fmt.Sprintf(`SELECT count(*) FROM %s.%s = $1`, schema, where), id).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		n[kind] += rows
	}
	return n
}

func attempts(t testing.TB, conn *pgx.Conn, schema string, id int64) []journal.Outcome {
	rows, err := conn.Query(t.Context(), fmt.Sprintf(`SELECT event_id, destination, token, outcome, status, error,
		started_at, duration_us, answer FROM (SELECT * FROM %[1]s.attempts UNION ALL SELECT * FROM %[1]s.kept_attempts) a
		WHERE event_id = $1 ORDER BY destination, token`, schema), id)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o journal.Outcome, err error) {
		var us int64
		err = row.Scan(&o.EventID, &o.Destination, &o.Token, &o.State, &o.Status, &o.Error, &o.Started, &us, &o.Excerpt)
		o.Duration = time.Duration(us) * time.Microsecond
		return o, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

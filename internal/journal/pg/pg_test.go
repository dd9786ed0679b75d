package pg_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

func TestMain(m *testing.M) {
	throwaway.TestsAtOnce(4)
	os.Exit(m.Run())
}

// database is where the fixtures of one test live, each in a schema of its own.
type database struct {
	direct, dsn string // for the test's own statements, and for the stores
	role        string // of the stores, which may do what the page lists and no more; empty: the owner of all
	schemas     atomic.Int64
	made        string   // the shape of a new schema
	free        []string // schemas that are empty and as they were made
}

// schema lends a schema to one case. To make the tables takes longer than most cases, so a schema whose shape
// a case did not change is emptied and lent again.
func (d *database) schema(t testing.TB, conn *pgx.Conn) string {
	t.Helper()
	var name string
	if n := len(d.free); n > 0 {
		name, d.free = d.free[n-1], d.free[:n-1]
	} else {
		name = fmt.Sprintf("case_%d", d.schemas.Add(1))
		open(t, d.direct, name).Close()
		d.made = shape(t, conn, name)
	}
	t.Cleanup(func() {
		if !t.Failed() && shape(t, conn, name) == d.made {
			empty(t, conn, name)
			d.free = append(d.free, name)
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
// in the server's counts of rows, which tests of rights look at.
func empty(t testing.TB, conn *pgx.Conn, schema string) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), fmt.Sprintf(`DO $$ DECLARE name text; BEGIN
		PERFORM set_config('track_counts', 'off', true);
		FOR name IN SELECT relname FROM pg_class WHERE relnamespace = '%[1]s'::regnamespace AND relkind IN ('r', 'p')
			AND NOT relispartition AND relname <> 'goose_db_version' LOOP
			EXECUTE format('DELETE FROM %%I.%%I', '%[1]s', name);
		END LOOP;
		PERFORM setval(oid::regclass, 1, false) FROM pg_class WHERE relnamespace = '%[1]s'::regnamespace AND relkind = 'S'
			AND relname NOT LIKE 'goose%%'; END $$`, schema)); err != nil {
		t.Fatal(err)
	}
}

func (d *database) fixture(t testing.TB) *journaltest.Fixture {
	conn, err := pgx.Connect(t.Context(), d.direct)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	schema := d.schema(t, conn)
	exec := func(t testing.TB, sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	return &journaltest.Fixture{
		Shared: true,
		Open: func(t testing.TB) journal.Store {
			if d.role == "" {
				return open(t, d.dsn, schema)
			}
			open(t, d.direct, schema).Close()
			exec(t, "GRANT USAGE ON SCHEMA "+schema+" TO "+d.role)
			for _, g := range gatewayRights(t) {
				exec(t, g.in(schema, d.role))
			}
			s, err := pg.Open(t.Context(), d.dsn, pg.Options{Schema: schema})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
		Refuse: func(t testing.TB, key string) {
			exec(t, fmt.Sprintf(`ALTER TABLE %s.events ADD CHECK (key <> '%s')`, schema, key))
		},
		DropBody: func(t testing.TB, id int64) {
			exec(t, fmt.Sprintf(`DELETE FROM %s.bodies WHERE event_id = $1`, schema), id)
		},
		Attempts: func(t testing.TB, id int64) []journal.Outcome { return attempts(t, conn, schema, id) },
		Rows:     func(t testing.TB, id int64) map[journal.Kind]int { return countRows(t, conn, schema, id) },
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

func open(t testing.TB, dsn, schema string) *pg.Store {
	t.Helper()
	s, err := pg.Open(t.Context(), dsn, pg.Options{Schema: schema, Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// queryMode returns the connection string with a query exec mode of pgx, which decides how arguments travel.
func queryMode(dsn, mode string) string { return dsn + "&default_query_exec_mode=" + mode }

// TestStore runs all cases in the mode that is used unless the URL says otherwise, and in the one in which every argument
// is a literal in the statement's text. Of the other modes, exec (arguments as text) has all cases in [TestPgBouncer] and
// describe_exec (the server is asked for types each time) in [TestRights]. What is left, cache_describe, sends what
// describe_exec does, but remembers the types: it has the statements that a connection repeats.
func TestStore(t *testing.T) {
	t.Parallel()
	for _, mode := range []struct {
		name   string
		groups []string
	}{
		{name: "cache_statement"},
		{name: "simple_protocol"},
		{name: "cache_describe", groups: []string{"accept", "take", "extend", "finish"}},
	} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.DSN(t)
			d := &database{direct: dsn, dsn: queryMode(dsn, mode.name)}
			journaltest.Run(t, d.fixture, mode.groups...)
		})
	}
}

func TestPgBouncer(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	d := &database{direct: dsn, dsn: queryMode(pgtest.PgBouncer(t, dsn), "exec")}
	journaltest.Run(t, d.fixture)
	journaltest.RunConcurrent(t, d.fixture)
}

// TestSeveralStores spreads the calls of one caller over three stores on one database.
func TestSeveralStores(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	d := &database{direct: dsn, dsn: dsn}
	journaltest.Run(t, func(t testing.TB) *journaltest.Fixture {
		f := d.fixture(t)
		one := f.Open
		f.Open = func(t testing.TB) journal.Store { return journaltest.Rotate(one(t), one(t), one(t)) }
		return f
	})
}

// TestConcurrent also expects the server to have seen no deadlock: one would be survived, after a
// second or more that everybody in the batch waits.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	journaltest.RunConcurrent(t, (&database{direct: dsn, dsn: dsn}).fixture)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	awaitAlone(t, conn) // sessions report when they end
	var deadlocks int
	if err := conn.QueryRow(t.Context(), `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&deadlocks); err != nil {
		t.Fatal(err)
	}
	if deadlocks != 0 {
		t.Errorf("the server broke %d deadlocks", deadlocks)
	}
}

// awaitAlone waits until the connection is the only one to its database.
func awaitAlone(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var others int
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&others)
		if err != nil {
			t.Fatal(err)
		}
		if others == 0 {
			return
		}
	}
	t.Fatal("connections of closed stores are still open")
}

// TestTakeSkipsWhatIsLocked takes while another session is taking one of two deliveries and has not
// committed yet. Take must not wait for it.
func TestTakeSkipsWhatIsLocked(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn, "")
	first, second := entry("first"), entry("second")
	first.Hold, second.Hold = nil, nil
	if _, err := accept(t.Context(), s, first, second); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT 1 FROM hookonce.deliveries WHERE event_id = $1 FOR UPDATE`, first.ID); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	work, err := s.Take(ctx, time.Now(), time.Now().Add(time.Hour), journal.Wanted{Deliveries: 10})
	if err != nil || len(work) != 1 || work[0].Key != "second" {
		t.Fatalf("took %v (%v), want the second delivery only", work, err)
	}
}

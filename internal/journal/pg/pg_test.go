package pg_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
	"github.com/hookonce/hookonce/internal/testskip"
)

func TestMain(m *testing.M) {
	throwaway.TestsAtOnce(4)
	os.Exit(m.Run())
}

// database is where the fixtures of one test live, each in a schema of its own.
type database struct {
	direct, dsn string // for the test's own statements, and for the stores
	role        string // of the stores, which may do what the page lists and no more; empty: the owner of all
	journal     *testdb.Journal
}

func (d *database) fixture(t testing.TB) *journaltest.Fixture {
	if d.journal == nil {
		d.journal = &testdb.Journal{
			Connect: func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, d.direct) },
			Create:  func(t testing.TB, schema string) { open(t, d.direct, schema).Close() },
			Open:    d.open,
			Prefix:  "case",
		}
	}
	return d.journal.Fixture(t)
}

// open opens a store as the role, which is given its rights by conn.
func (d *database) open(t testing.TB, conn *pgx.Conn, schema string) journal.Store {
	if d.role == "" {
		return open(t, d.dsn, schema)
	}
	grants := []string{"GRANT USAGE ON SCHEMA " + schema + " TO " + d.role}
	for _, g := range gatewayRights(t) {
		grants = append(grants, g.in(schema, d.role))
	}
	for _, g := range grants {
		if _, err := conn.Exec(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	s, err := pg.Open(t.Context(), d.dsn, pg.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
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

// inMode is a database whose stores send their statements in this mode.
func inMode(t *testing.T, mode string) *database {
	dsn := pgtest.Sessions(t, pgtest.DSN(t))
	return &database{direct: dsn, dsn: queryMode(dsn, mode)}
}

// TestStore runs all cases in the mode that is used unless the URL says otherwise.
func TestStore(t *testing.T) {
	t.Parallel()
	journaltest.Run(t, inMode(t, "cache_statement").fixture)
}

// TestStoreInOtherModes runs all cases in the mode in which every argument is a literal in the statement's text. Of the other
// modes, exec (arguments as text) has all cases in [TestPgBouncer] and describe_exec (the server is asked for types each time)
// in [TestRights]. What is left, cache_describe, sends what describe_exec does, but remembers the types: it has the statements
// that a connection repeats.
func TestStoreInOtherModes(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	t.Run("simple_protocol", func(t *testing.T) {
		t.Parallel()
		journaltest.Run(t, inMode(t, "simple_protocol").fixture)
	})
	t.Run("cache_describe", func(t *testing.T) {
		t.Parallel()
		journaltest.Run(t, inMode(t, "cache_describe").fixture, "accept", "take", "extend", "finish")
	})
}

func TestPgBouncer(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	t.Parallel()
	dsn := pgtest.DSN(t)
	d := &database{direct: dsn, dsn: queryMode(pgtest.PgBouncer(t, dsn), "exec")}
	journaltest.Run(t, d.fixture)
	journaltest.RunConcurrent(t, d.fixture)
}

// TestSeveralStores spreads the calls of one caller over three stores on one database.
func TestSeveralStores(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	t.Parallel()
	dsn := pgtest.Sessions(t, pgtest.DSN(t))
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
	testskip.Long(t)
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

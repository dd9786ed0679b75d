package ddl_test

import (
	"context"
	"database/sql"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/testserver/pgproxy"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

func connect(t *testing.T, dsn string, connections int) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(connections)
	return db
}

func run(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	db := connect(t, dsn, 1)
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// A server is judged by what its locks do, and not by what it says of itself.
func TestSound(t *testing.T) {
	for name, tt := range map[string]struct {
		fault       func(string) string // of the server; nil: none
		says        string              // what it is refused with; empty: it is not
		connections int
	}{
		"as it is":                  {connections: 1},
		"no list of locks":          {fault: replace("pg_locks", "(SELECT * FROM pg_locks WHERE false) AS pg_locks"), connections: 2},
		"the list is forbidden":     {fault: replace("pg_locks", "pg_forbidden"), connections: 2},
		"forbidden, one connection": {fault: replace("pg_locks", "pg_forbidden"), connections: 1},
		"locks lock nothing":        {fault: pgproxy.NoOpLocks.Text, connections: 2, says: "two transactions were given the same one at once (PostgreSQL"},
		"nothing, one connection":   {fault: pgproxy.NoOpLocks.Text, connections: 1, says: "give the pool two"},
		"no such function":          {fault: replace("pg_try_advisory_xact_lock", "pg_no_such_lock"), connections: 2, says: "no advisory locks of transactions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.DSN(t)
			if tt.fault != nil {
				run(t, dsn, pgproxy.NoOpLocksSetup...)
				dsn = pgproxy.New(t, dsn, pgproxy.Fault{Text: tt.fault})
			}
			err := ddl.Sound(t.Context(), connect(t, dsn, tt.connections))
			switch {
			case tt.says == "" && err != nil:
				t.Error(err)
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "--conformance")):
				t.Errorf("%v, want a refusal that says %q", err, tt.says)
			}
		})
	}
}

func replace(old, with string) func(string) string {
	return func(sql string) string { return strings.ReplaceAll(sql, old, with) }
}

// Nobody is refused who may look less, or meets the lock of another.
func TestSoundRefusesNobodyWrongly(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	run(t, dsn, `CREATE ROLE nobody LOGIN`, `REVOKE ALL ON SCHEMA public FROM PUBLIC`, `REVOKE SELECT ON pg_locks FROM PUBLIC`)
	nobody := strings.Replace(dsn, "postgres@", "nobody@", 1)
	for name, at := range map[string]string{
		"a role without rights": nobody,
		"read-only":             dsn + "&default_transaction_read_only=on",
		"serializable":          dsn + "&default_transaction_isolation=serializable",
		"PgBouncer":             pgtest.PgBouncer(t, dsn) + "&default_query_exec_mode=exec",
	} {
		for _, connections := range []int{1, 3} {
			if err := ddl.Sound(t.Context(), connect(t, at, connections)); err != nil {
				t.Errorf("%s, %d connections: %v", name, connections, err)
			}
		}
	}
	other, err := connect(t, dsn, 1).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback()
	if _, err := other.Exec(`SELECT pg_advisory_xact_lock(x'686f6f6b6c6f636b'::bigint)`); err != nil {
		t.Fatal(err)
	}
	if err := ddl.Sound(t.Context(), connect(t, dsn, 1)); err != nil {
		t.Error("another process looks at the same time: ", err)
	}
}

func TestSoundOnAStandby(t *testing.T) {
	c := pgtest.Start(t, pgtest.Options{})
	dsn := c.DSN(t)
	if err := ddl.Sound(t.Context(), connect(t, c.Standby(t).Alone(dsn), 1)); err != nil {
		t.Error(err)
	}
}

// What is asked at every start is little.
func TestSoundAsksTwice(t *testing.T) {
	var asked atomic.Int64
	count := func(m pgproto3.FrontendMessage) {
		if q, is := m.(*pgproto3.Query); is && q.String != "-- ping" { // of the driver, before it lends a connection again
			asked.Add(1)
		}
	}
	dsn := pgproxy.New(t, pgtest.DSN(t), pgproxy.Fault{Request: count})
	db := connect(t, dsn+"&default_query_exec_mode=simple_protocol", 1)
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked.Store(0)
	if err := ddl.Sound(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 4 { // with BEGIN and ROLLBACK
		t.Errorf("%d round trips, want 4", n)
	}
}

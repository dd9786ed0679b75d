package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	_ "github.com/mattn/go-sqlite3"
	_ "modernc.org/sqlite"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/testserver/mariadbtest"
	"github.com/hookonce/hookonce/internal/testserver/pgproxy"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/schema"
)

// driver is one way in which a user's program opens a database.
type driver struct {
	name    string // in database/sql
	dialect schema.Dialect
	// fresh returns the connection string of an empty database.
	fresh func(t *testing.T) string
}

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "test.db") }

func drivers() []driver {
	return []driver{
		{"sqlite", schema.SQLite, file},
		{"sqlite3", schema.SQLite, file},
		{"pgx", schema.Postgres, func(t *testing.T) string { return pgtest.DSN(t) }},
		{"postgres", schema.Postgres, func(t *testing.T) string { return pgtest.DSN(t) }},
		{"mysql", schema.MySQL, func(t *testing.T) string { return mariadbtest.DSN(t) }},
	}
}

func each(t *testing.T, test func(t *testing.T, d driver)) {
	for _, d := range drivers() {
		t.Run(d.name, func(t *testing.T) { test(t, d) })
	}
}

// eachWhole is each where there are the gateway's tables, and transactions that can undo what was created.
func eachWhole(t *testing.T, test func(t *testing.T, d driver)) {
	for _, d := range drivers() {
		if d.dialect != schema.MySQL {
			t.Run(d.name, func(t *testing.T) { test(t, d) })
		}
	}
}

func (d driver) open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.name, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func exec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%v\n%s", err, statement)
	}
}

// libraryTables are those that there are in every dialect, and journalTables those of the gateway.
var libraryTables = []string{"claims", "responses", "effects", "versions", "states"}

var journalTables = []string{"events", "bodies", "deliveries", "attempts", "lanes", "newest", "twins", "sightings", "pauses", "audits", "answers", "tallies", "tally_hours", "tally_writers",
	"alerts", "alert_silences", "alert_records", "alert_notices", "reconcile_marks", "reconcile_missing"}

func mustHaveTables(t *testing.T, db *sql.DB, d schema.Dialect, name string) {
	t.Helper()
	prefix, err := ddl.Prefix(d, name)
	if err != nil {
		t.Fatal(err)
	}
	tables := libraryTables
	if d != schema.MySQL {
		tables = append(journalTables, libraryTables...)
	}
	for _, table := range tables {
		exec(t, db, "SELECT * FROM "+prefix+table)
	}
}

func migrate(t *testing.T, db *sql.DB, d schema.Dialect, name string) (from, to int64) {
	t.Helper()
	c, err := schema.Migrate(t.Context(), db, d, name)
	if err != nil {
		t.Fatal(err)
	}
	return c.From, c.To
}

func TestMigrate(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		db := d.open(t, d.fresh(t))
		if err := ddl.Check(t.Context(), db, d.dialect, ""); !errors.Is(err, hookonce.ErrSchemaMissing) {
			t.Fatalf("Check of an empty database = %v", err)
		}
		if from, to := migrate(t, db, d.dialect, ""); from != 0 || to != ddl.Version() {
			t.Errorf("first run: %d to %d", from, to)
		}
		if err := ddl.Check(t.Context(), db, d.dialect, ""); err != nil {
			t.Error(err)
		}
		mustHaveTables(t, db, d.dialect, "")
		if from, to := migrate(t, db, d.dialect, ""); from != ddl.Version() || to != ddl.Version() {
			t.Errorf("second run: %d to %d", from, to)
		}
	})
}

func TestMigrateOnOneConnection(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		db := d.open(t, d.fresh(t))
		db.SetMaxOpenConns(1)
		migrate(t, db, d.dialect, "")
	})
}

func TestTwoNamesLiveSideBySide(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		db := d.open(t, d.fresh(t))
		for _, name := range []string{"select", "b_2"} { // a reserved word needs its quotes
			if from, _ := migrate(t, db, d.dialect, name); from != 0 {
				t.Errorf("%s was at version %d", name, from)
			}
			mustHaveTables(t, db, d.dialect, name)
		}
	})
}

// What a program finds after a newer one migrated its database: it runs beside what says that it may, and is refused by
// everything else before anything is done.
func TestNewerSchema(t *testing.T) {
	now := ddl.Version()
	tests := []struct {
		name     string
		oldest   []string // what the versions above this program's record
		accepted bool
	}{
		{"this version will do", []string{fmt.Sprint(now)}, true},
		{"an older one would do", []string{fmt.Sprint(now - 1)}, true},
		{"two that this version will do for", []string{fmt.Sprint(now), fmt.Sprint(now)}, true},
		{"only its own will do", []string{fmt.Sprint(now + 1)}, false},
		{"nothing was recorded", []string{"NULL"}, false},
		{"nothing was recorded of the first of two", []string{"NULL", fmt.Sprint(now)}, false},
	}
	each(t, func(t *testing.T, d driver) {
		dsn := d.fresh(t)
		for i, tt := range tests {
			db, name := d.open(t, dsn), fmt.Sprintf("n%d", i)
			migrate(t, db, d.dialect, name)
			prefix, _ := ddl.Prefix(d.dialect, name)
			newest := now
			for _, oldest := range tt.oldest {
				newest++
				exec(t, db, fmt.Sprintf("INSERT INTO %sgoose_db_version (version_id, is_applied, oldest) VALUES (%d, true, %s)", prefix, newest, oldest))
			}
			err := ddl.Check(t.Context(), db, d.dialect, name)
			c, migrating := schema.Migrate(t.Context(), db, d.dialect, name)
			if c.From != newest || c.To != newest {
				t.Errorf("%s: Migrate went from %d to %d", tt.name, c.From, c.To)
			}
			for _, err := range []error{err, migrating} {
				switch {
				case tt.accepted && err != nil:
					t.Errorf("%s: %v", tt.name, err)
				case !tt.accepted && !errors.Is(err, hookonce.ErrSchemaNewer):
					t.Errorf("%s: accepted (%v)", tt.name, err)
				case !tt.accepted && !strings.Contains(err.Error(), fmt.Sprintf("version %d,", newest)):
					t.Errorf("%s: the error does not name the version: %v", tt.name, err)
				}
			}
		}
	})
}

// Whoever migrates, by a call or by the SQL that is printed, records which programs may run beside the version.
func TestVersionsRecordTheirOldestProgram(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		db := d.open(t, d.fresh(t))
		migrate(t, db, d.dialect, "called")
		names := []string{"called"}
		if d.dialect != schema.MySQL { // whose driver takes one statement at a time
			text, err := schema.Print(d.dialect, "printed")
			if err != nil {
				t.Fatal(err)
			}
			exec(t, db, text)
			names = append(names, "printed")
		}
		for _, name := range names {
			prefix, _ := ddl.Prefix(d.dialect, name)
			var silent, oldest int64
			err := db.QueryRowContext(t.Context(), "SELECT sum(CASE WHEN oldest IS NULL THEN 1 ELSE 0 END), max(oldest) FROM "+prefix+"goose_db_version WHERE version_id >= 12").
				Scan(&silent, &oldest)
			if err != nil || silent > 0 || oldest < 12 || oldest > ddl.Version() {
				t.Errorf("%s: %d versions say nothing, the others %d at most, %v", name, silent, oldest, err)
			}
		}
	})
}

// A record of an older version: what a program finds after it was upgraded.
func TestOlderSchemaIsReported(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		db := d.open(t, d.fresh(t))
		migrate(t, db, d.dialect, "")
		prefix, _ := ddl.Prefix(d.dialect, "")
		exec(t, db, fmt.Sprintf("DELETE FROM %sgoose_db_version WHERE version_id >= %d", prefix, ddl.Version()))
		err := ddl.Check(t.Context(), db, d.dialect, "")
		if !errors.Is(err, hookonce.ErrSchemaMissing) || !strings.Contains(err.Error(), "hookonce migrate") {
			t.Errorf("Check = %v", err)
		}
	})
}

// before returns the SQL that takes an empty database to the version before the given one.
func before(t *testing.T, d driver, version int64) string {
	t.Helper()
	text, err := schema.Print(d.dialect, "")
	if err != nil {
		t.Fatal(err)
	}
	older, _, found := strings.Cut(text, fmt.Sprintf("\n-- Version %d.\n", version))
	if !found {
		t.Fatalf("there is no version %d", version)
	}
	return older
}

// Version 2 keeps what version 1 held.
func TestUpgradeFromVersion1(t *testing.T) {
	eachWhole(t, func(t *testing.T, d driver) {
		db := d.open(t, d.fresh(t))
		prefix, _ := ddl.Prefix(d.dialect, "")
		exec(t, db, before(t, d, 2))
		at := map[schema.Dialect]string{schema.Postgres: "'2026-01-01'", schema.SQLite: "1767225600000000"}[d.dialect]
		for _, insert := range []string{
			"events (id, source, key, received_at) VALUES (7, 'billing', 'evt_1', " + at + ")",
			"bodies (event_id, header, body) VALUES (7, '', '')",
			"deliveries (event_id, destination, state, token, tries, due_at) VALUES (7, 'app', 'failed', 3, 2, " + at + ")",
			"attempts (event_id, destination, token, outcome, status, started_at, duration_us) VALUES (7, 'app', 3, 'failed', 500, " + at + ", 9)",
		} {
			exec(t, db, "INSERT INTO "+prefix+insert)
		}
		if from, to := migrate(t, db, d.dialect, ""); from != 1 || to != ddl.Version() {
			t.Errorf("migrated from %d to %d", from, to)
		}
		var token, tries, status int
		var forced bool
		err := db.QueryRowContext(t.Context(), "SELECT d.token, d.tries, d.forced, a.status FROM "+prefix+"deliveries d JOIN "+
			prefix+"attempts a ON a.event_id = d.event_id JOIN "+prefix+"events e ON e.id = d.event_id WHERE d.resource IS NULL AND "+
			"a.answer IS NULL AND e.resource IS NULL AND e.rank IS NULL AND d.state = 'failed'").Scan(&token, &tries, &forced, &status)
		if err != nil || token != 3 || tries != 2 || forced || status != 500 {
			t.Errorf("token %d, tries %d, forced %v, status %d, error %v", token, tries, forced, status, err)
		}
		mustHaveTables(t, db, d.dialect, "")
	})
}

// Version 8 keeps what version 7 held.
func TestUpgradeFromVersion7(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		dsn := d.fresh(t)
		db := d.open(t, dsn)
		prefix, _ := ddl.Prefix(d.dialect, "")
		older := db
		if d.dialect == schema.MySQL {
			older = d.open(t, dsn+"?multiStatements=true")
		}
		exec(t, older, before(t, d, 8))
		fillVersion7(t, db, d.dialect, prefix)
		if from, to := migrate(t, db, d.dialect, ""); from != 7 || to != ddl.Version() {
			t.Errorf("migrated from %d to %d", from, to)
		}
		mustHaveTables(t, db, d.dialect, "")
		mustHoldVersion7(t, db, prefix)
	})
}

// fillVersion7 stores a row in each table that version 8 changes.
func fillVersion7(t *testing.T, db *sql.DB, d schema.Dialect, prefix string) {
	t.Helper()
	at, key := "1767225600000000", "key"
	switch d {
	case schema.Postgres:
		at = "'2026-01-01'"
	case schema.MySQL:
		key = "`key`"
	}
	for _, insert := range []string{
		"claims (source, " + key + ", state, token, event_type, first_seen, updated_at, last_error) VALUES ('billing', 'evt_1', 'failed', 3, 'paid', " + at + ", " + at + ", 'declined')",
		"effects (source, " + key + ", step, name, payload, state, token, tries, due_at, enqueued_at, updated_at, last_error) " +
			"VALUES ('billing', 'evt_1', 'mail', 'mail', 'Hello', 'processing', 4, 2, " + at + ", " + at + ", " + at + ", 'declined')",
		"versions (resource, version, updated_at) VALUES ('invoice_1', 9, " + at + ")",
	} {
		exec(t, db, "INSERT INTO "+prefix+insert)
	}
}

// mustHoldVersion7 insists on the rows of fillVersion7 with what is new in version 8: nothing is pinned, nothing has
// died, and numbers are versions.
func mustHoldVersion7(t *testing.T, db *sql.DB, prefix string) {
	t.Helper()
	var state, kind string
	var token, pinned, tries, deaths, version int
	err := db.QueryRowContext(t.Context(), "SELECT c.state, c.token, c.pinned, e.tries, e.deaths, v.version, v.kind FROM "+
		prefix+"claims c, "+prefix+"effects e, "+prefix+"versions v WHERE e.state = 'processing'").
		Scan(&state, &token, &pinned, &tries, &deaths, &version, &kind)
	got := fmt.Sprint(state, token, pinned, tries, deaths, version, kind)
	if want := fmt.Sprint("failed", 3, 0, 2, 0, 9, "version"); err != nil || got != want {
		t.Errorf("the rows hold %s, want %s (%v)", got, want, err)
	}
}

// Version 10 makes the SQL functions anew where older ones are, whatever those do, and the trigger of one.
func TestUpgradeReplacesFunctions(t *testing.T) {
	d := driver{name: "pgx", dialect: schema.Postgres}
	functions := func(db *sql.DB) (all string) {
		t.Helper()
		err := db.QueryRowContext(t.Context(), `SELECT string_agg(pg_get_functiondef(oid), E'\n' ORDER BY oid::regprocedure::text) ||
			(SELECT string_agg(pg_get_triggerdef(oid), E'\n') FROM pg_trigger WHERE tgname = 'claimed_alone')
			FROM pg_proc WHERE pronamespace = 'hookonce'::regnamespace`).Scan(&all)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	fresh := d.open(t, pgtest.DSN(t))
	migrate(t, fresh, d.dialect, "")
	old := d.open(t, pgtest.DSN(t))
	exec(t, old, before(t, d, 10))
	for _, text := range []string{
		`CREATE TYPE hookonce.claim_answer AS (verdict text)`,
		`CREATE FUNCTION hookonce.lookup(a text, b text) RETURNS SETOF hookonce.claim_answer LANGUAGE sql AS 'SELECT NULL::text'`,
		`CREATE FUNCTION hookonce.alone() RETURNS boolean LANGUAGE sql AS 'SELECT false'`,
		`CREATE FUNCTION hookonce.claimed_alone() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
		`CREATE CONSTRAINT TRIGGER claimed_alone AFTER INSERT ON hookonce.claims FOR EACH ROW EXECUTE FUNCTION hookonce.claimed_alone()`,
	} {
		exec(t, old, text)
	}
	migrate(t, old, d.dialect, "")
	if got, want := functions(old), functions(fresh); got != want {
		t.Errorf("the functions differ from those of new tables:\n%s", got)
	}
}

// Version 9 keeps what version 8 held: nobody is known to have vouched for it, and it is not known to be unrouted.
func TestUpgradeFromVersion8(t *testing.T) {
	eachWhole(t, func(t *testing.T, d driver) {
		db := d.open(t, d.fresh(t))
		prefix, _ := ddl.Prefix(d.dialect, "")
		exec(t, db, before(t, d, 9))
		at := map[schema.Dialect]string{schema.Postgres: "'2026-01-01'", schema.SQLite: "1767225600000000"}[d.dialect]
		exec(t, db, "INSERT INTO "+prefix+"events (id, source, key, received_at) VALUES (7, 'billing', 'evt_1', "+at+")")
		if from, to := migrate(t, db, d.dialect, ""); from != 8 || to != ddl.Version() {
			t.Errorf("migrated from %d to %d", from, to)
		}
		mustHaveTables(t, db, d.dialect, "")
		var key string
		var vouched int
		var unrouted sql.NullBool
		err := db.QueryRowContext(t.Context(), "SELECT key, vouched, unrouted FROM "+prefix+"events WHERE id = 7").Scan(&key, &vouched, &unrouted)
		if err != nil || key != "evt_1" || vouched != 0 || unrouted.Valid {
			t.Errorf("the event has key %q, vouched %d and unrouted %v, %v", key, vouched, unrouted, err)
		}
	})
}

// What reads all attempts leaves the deliveries alone, into which acceptance writes, and the other way round: whoever
// finishes a delivery takes both, in the other order.
func TestNoVersionTakesDeliveriesAndAttempts(t *testing.T) {
	d := driver{name: "pgx", dialect: schema.Postgres}
	db := d.open(t, pgtest.DSN(t))
	exec(t, db, before(t, d, 10))
	tables, err := ddl.Named(d.dialect, "")
	if err != nil {
		t.Fatal(err)
	}
	for v := int64(10); v <= ddl.Version(); v++ {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), tables.Text(v)); err != nil {
			t.Fatal(err)
		}
		var which int
		if err := tx.QueryRowContext(t.Context(), `SELECT count(DISTINCT relation) FROM pg_locks WHERE pid = pg_backend_pid() AND mode IN ('ShareLock', 'AccessExclusiveLock')
			AND relation IN ('hookonce.deliveries'::regclass, 'hookonce.attempts'::regclass)`).Scan(&which); err != nil || which > 1 {
			t.Errorf("version %d locks %d of the two tables, %v", v, which, err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

// Versions 10 and 11 keep what version 9 held: deliveries follow their event, as far as is known, and nothing was counted.
// What failed then, and what a process of that version goes on to do, is of the kind other.
func TestUpgradeFromVersion9(t *testing.T) {
	eachWhole(t, func(t *testing.T, d driver) {
		db := d.open(t, d.fresh(t))
		prefix, _ := ddl.Prefix(d.dialect, "")
		exec(t, db, before(t, d, 10))
		at := map[schema.Dialect]string{schema.Postgres: "'2026-01-01'", schema.SQLite: "1767225600000000"}[d.dialect]
		exec(t, db, "INSERT INTO "+prefix+"deliveries (event_id, destination, state, token, tries, due_at, last_error) VALUES (7, 'app', 'failed', 3, 2, "+at+", 'why')")
		exec(t, db, "INSERT INTO "+prefix+"deliveries (event_id, destination, state, token, tries, due_at) VALUES (8, 'app', 'processing', 1, 1, "+at+")")
		if from, to := migrate(t, db, d.dialect, ""); from != 9 || to != ddl.Version() {
			t.Errorf("migrated from %d to %d", from, to)
		}
		mustHaveTables(t, db, d.dialect, "")
		exec(t, db, "INSERT INTO "+prefix+"deliveries (event_id, destination, state, token, tries, due_at) VALUES (9, 'app', 'processing', 1, 1, "+at+")")
		exec(t, db, "UPDATE "+prefix+"deliveries SET state = 'dead', due_at = NULL, last_error = 'why' WHERE event_id IN (8, 9)")
		var others int
		err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+prefix+"deliveries WHERE error_kind = 'other' AND status = 0 AND state IN ('failed', 'dead')").Scan(&others)
		if err != nil || others != 3 {
			t.Errorf("%d of 3 are of the kind other, %v", others, err)
		}
		var state, text string
		var tries, origin, counted int
		err = db.QueryRowContext(t.Context(), "SELECT state, last_error, tries, origin, (SELECT count(*) FROM "+prefix+"tallies) FROM "+
			prefix+"deliveries WHERE event_id = 7").Scan(&state, &text, &tries, &origin, &counted)
		if err != nil || state != "failed" || text != "why" || tries != 2 || origin != 0 || counted != 0 {
			t.Errorf("the delivery is %s (%s), try %d, origin %d, and %d points were counted, %v", state, text, tries, origin, counted, err)
		}
	})
}

// Version 17 gives the ordering groups of what is open the names of their sources, and keeps who has the turn.
func TestUpgradeFromVersion15(t *testing.T) {
	eachWhole(t, func(t *testing.T, d driver) {
		db := d.open(t, d.fresh(t))
		prefix, _ := ddl.Prefix(d.dialect, "")
		exec(t, db, before(t, d, 16))
		at := func(minute int) string {
			return map[schema.Dialect]string{
				schema.Postgres: fmt.Sprintf("timestamptz '2026-01-01Z' + interval '%d minutes'", minute),
				schema.SQLite:   strconv.Itoa(1767225600000000 + minute*60_000_000),
			}[d.dialect]
		}
		for _, insert := range []string{
			"events (id, source, key, received_at, resource) VALUES (1, 'shop', 'a', " + at(0) + ", '7'), (2, 'shop', 'b', " + at(0) + ", 'shop/7'), " +
				"(3, 'billing', 'c', " + at(0) + ", '7'), (4, 'shop', 'd', " + at(0) + ", '8')",
			"deliveries (event_id, destination, state, token, tries, due_at, resource) VALUES (1, 'app', 'processing', 1, 1, " + at(9) + ", '7'), " +
				"(3, 'app', 'pending', 0, 0, " + at(1) + ", '7'), (2, 'app', 'failed', 1, 1, " + at(2) + ", 'shop/7'), " +
				"(4, 'app', 'dead', 1, 1, NULL, '8'), (1, 'audit', 'pending', 0, 0, " + at(3) + ", NULL)",
			"lanes (destination, resource, due_at, event_id) VALUES ('app', '7', " + at(9) + ", 1), ('app', 'shop/7', " + at(2) + ", NULL)",
		} {
			exec(t, db, "INSERT INTO "+prefix+insert)
		}
		if from, to := migrate(t, db, d.dialect, ""); from != 15 || to != ddl.Version() {
			t.Errorf("migrated from %d to %d", from, to)
		}
		for query, want := range map[string]string{
			"SELECT event_id || destination || ' ' || coalesce(resource, 'none') FROM " + prefix + "deliveries ORDER BY event_id, destination": "[1app shop/7 1audit none 2app shop/shop/7 3app billing/7 4app shop/8]",
			"SELECT resource || ' ' || coalesce(event_id, 0) FROM " + prefix + "lanes l WHERE due_at = (SELECT min(due_at) FROM " + prefix +
				"deliveries d WHERE d.resource = l.resource) ORDER BY resource": "[billing/7 0 shop/7 1 shop/shop/7 0]",
		} {
			if got := fmt.Sprint(column(t, db, query)); got != want {
				t.Errorf("%s:\n%s, want\n%s", query, got, want)
			}
		}
		mustHaveTables(t, db, d.dialect, "")
	})
}

// column returns the texts that a query finds.
func column(t *testing.T, db *sql.DB, query string) (texts []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return texts
}

func TestPrintedSQLSatisfiesCheck(t *testing.T) {
	eachWhole(t, func(t *testing.T, d driver) {
		db := d.open(t, d.fresh(t))
		text, err := schema.Print(d.dialect, "own_tool")
		if err != nil {
			t.Fatal(err)
		}
		apply(t, db, text, (*sql.Tx).Rollback) // the transaction is the tool's, and so is its end
		if err := ddl.Check(t.Context(), db, d.dialect, "own_tool"); !errors.Is(err, hookonce.ErrSchemaMissing) {
			t.Errorf("Check after a rollback = %v", err)
		}
		apply(t, db, text, (*sql.Tx).Commit)
		if err := ddl.Check(t.Context(), db, d.dialect, "own_tool"); err != nil {
			t.Error(err)
		}
		if from, _ := migrate(t, db, d.dialect, "own_tool"); from != ddl.Version() {
			t.Errorf("Migrate found version %d", from)
		}
		mustHaveTables(t, db, d.dialect, "own_tool")
	})
}

// MySQL has no transactions for such statements, but each of them can be sent by itself.
func TestPrintedSQLForMySQL(t *testing.T) {
	dsn := mariadbtest.DSN(t)
	db := driver{name: "mysql"}.open(t, dsn+"?multiStatements=true")
	text, err := schema.Print(schema.MySQL, "own_tool")
	if err != nil {
		t.Fatal(err)
	}
	exec(t, db, text)
	if err := ddl.Check(t.Context(), db, schema.MySQL, "own_tool"); err != nil {
		t.Error(err)
	}
	mustHaveTables(t, db, schema.MySQL, "own_tool")
}

// A migration of MySQL that ended between two statements goes on where it is run again.
func TestInterruptedMigrationOfMySQL(t *testing.T) {
	dsn := mariadbtest.DSN(t)
	db := driver{name: "mysql"}.open(t, dsn)
	migrate(t, db, schema.MySQL, "")
	exec(t, db, "DROP TABLE hookonce_states")
	exec(t, db, "DELETE FROM hookonce_goose_db_version WHERE version_id > 0")
	if from, to := migrate(t, db, schema.MySQL, ""); from != 0 || to != ddl.Version() {
		t.Errorf("migrated from %d to %d", from, to)
	}
	mustHaveTables(t, db, schema.MySQL, "")
}

// One that ended inside version 8 keeps what version 7 held, wherever that was.
func TestInterruptedVersion8OfMySQL(t *testing.T) {
	undone := []string{ // from the last one of the version to the first
		"DROP INDEX hookonce_effects_done ON hookonce_effects", "DROP INDEX hookonce_claims_done ON hookonce_claims",
		"ALTER TABLE hookonce_versions DROP COLUMN kind", "DROP INDEX hookonce_effects_held ON hookonce_effects",
		"ALTER TABLE hookonce_effects DROP COLUMN deaths", "ALTER TABLE hookonce_claims DROP COLUMN pinned",
	}
	db := driver{name: "mysql"}.open(t, mariadbtest.DSN(t))
	migrate(t, db, schema.MySQL, "")
	fillVersion7(t, db, schema.MySQL, "hookonce_")
	for n := range undone {
		for _, statement := range undone[:n+1] {
			exec(t, db, statement)
		}
		exec(t, db, "DELETE FROM hookonce_goose_db_version WHERE version_id > 7")
		if from, to := migrate(t, db, schema.MySQL, ""); from != 7 || to != ddl.Version() {
			t.Errorf("without the last %d: migrated from %d to %d", n+1, from, to)
		}
		mustHoldVersion7(t, db, "hookonce_")
	}
}

// apply runs statements in a transaction and ends it.
func apply(t *testing.T, db *sql.DB, statements string, end func(*sql.Tx) error) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), statements); err != nil {
		t.Error(err)
	}
	if err := end(tx); err != nil {
		t.Error(err)
	}
}

// Many processes start at once on an empty database: all succeed, and each version is applied once.
func TestConcurrentMigrations(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		dsn := d.fresh(t)
		const processes = 12
		errs := make(chan error, processes)
		for range processes {
			db := d.open(t, dsn)
			go func() {
				c, err := schema.Migrate(context.WithoutCancel(t.Context()), db, d.dialect, "")
				if err == nil && c.To != ddl.Version() {
					err = fmt.Errorf("version %d", c.To)
				}
				errs <- err
			}()
		}
		for range processes {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		prefix, _ := ddl.Prefix(d.dialect, "")
		var rows int64
		err := d.open(t, dsn).QueryRowContext(t.Context(), "SELECT count(*) FROM "+prefix+"goose_db_version").Scan(&rows)
		if err != nil || rows != ddl.Version()+1 {
			t.Errorf("%d versions are recorded, %v", rows, err)
		}
	})
}

// The application's role may use the tables and create nothing.
func TestMigratedDatabaseNeedsNoRights(t *testing.T) {
	dsn := pgtest.DSN(t)
	d := driver{name: "pgx"}
	db := d.open(t, dsn)
	migrate(t, db, schema.Postgres, "")
	exec(t, db, `DROP ROLE IF EXISTS schema_app; CREATE ROLE schema_app LOGIN;
		GRANT USAGE ON SCHEMA hookonce TO schema_app; GRANT SELECT ON ALL TABLES IN SCHEMA hookonce TO schema_app`)
	app := d.open(t, strings.Replace(dsn, "postgres@", "schema_app@", 1))
	if err := ddl.Check(t.Context(), app, schema.Postgres, ""); err != nil {
		t.Error(err)
	}
	migrate(t, app, schema.Postgres, "")

	_, err := schema.Migrate(t.Context(), app, schema.Postgres, "other")
	if err == nil {
		t.Error("a role without rights created a schema")
	}
	exec(t, db, "DROP OWNED BY schema_app; DROP ROLE schema_app")
}

func TestMigrateThroughPgBouncer(t *testing.T) {
	dsn := pgtest.PgBouncer(t, pgtest.DSN(t)) + "&default_query_exec_mode=simple_protocol"
	db := driver{name: "pgx"}.open(t, dsn)
	migrate(t, db, schema.Postgres, "")
	mustHaveTables(t, db, schema.Postgres, "")
}

func TestMigrateEndsWithItsContext(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := schema.Migrate(ctx, d.open(t, d.fresh(t)), d.dialect, ""); !errors.Is(err, context.Canceled) {
			t.Errorf("Migrate = %v", err)
		}
	})
}

func TestPrefix(t *testing.T) {
	tests := []struct {
		dialect schema.Dialect
		name    string
		want    string // empty: refused
	}{
		{schema.Postgres, "", `"hookonce".`},
		{schema.SQLite, "", "hookonce_"},
		{schema.Postgres, "a1_b", `"a1_b".`},
		{schema.SQLite, "a1_b", "a1_b_"},
		{schema.MySQL, "a1_b", "a1_b_"},
		{schema.Postgres, strings.Repeat("a", 48), `"` + strings.Repeat("a", 48) + `".`},
		{schema.Postgres, strings.Repeat("a", 49), ""},
		{schema.Postgres, "pg_mine", ""},
		{schema.Postgres, "Upper", ""},
		{schema.Postgres, `a"; DROP TABLE x; --`, ""},
		{schema.SQLite, "1a", ""},
		{schema.SQLite, "a b", ""},
		{"oracle", "", ""},
	}
	for _, tt := range tests {
		got, err := ddl.Prefix(tt.dialect, tt.name)
		if got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("Prefix(%s, %q) = %q, %v; want %q", tt.dialect, tt.name, got, err, tt.want)
		}
	}
}

// No tables are made where advisory locks lock nothing.
func TestMigrateRefusesLocksThatLockNothing(t *testing.T) {
	dsn := pgtest.DSN(t)
	db, err := sql.Open("pgx", pgproxy.WithoutLocks(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	change, err := schema.Migrate(t.Context(), db, schema.Postgres, "")
	if err == nil || change.To != 0 || !strings.Contains(err.Error(), "two transactions were given the same one at once") {
		t.Error(change, err)
	}
}

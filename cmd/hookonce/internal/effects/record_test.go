package effects

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/inspect"
	"github.com/hookonce/hookonce/schema"
)

// application returns the database of one that has payments.
func application(t *testing.T) (path string, db *sql.DB) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "app.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Exec("CREATE TABLE payments (event_id TEXT)"); err != nil {
		t.Fatal(err)
	}
	return path, db
}

// What was found is on record with its question, bounded, the latest first; without tables the answer says what to do.
func TestRecord(t *testing.T) {
	ctx, now := t.Context(), time.Date(2026, 11, 23, 4, 0, 0, 0, time.UTC)
	path, db := application(t)
	store := config.Store{Driver: config.SQLite, DSN: path}
	if err := Record(ctx, store, Question{}, &Report{}, now); err == nil || !strings.Contains(err.Error(), "hookonce migrate") {
		t.Errorf("without tables: %v", err)
	}
	if _, err := schema.Migrate(ctx, db, schema.SQLite, ""); err != nil {
		t.Fatal(err)
	}
	for i := range doubledEvents {
		if _, err := db.Exec("INSERT INTO payments VALUES (?1), (?1)", fmt.Sprintf("evt_%03d", i)); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(q Question, at time.Time) {
		t.Helper()
		q.Table, q.Event, q.Limit, q.Timeout = "payments", "event_id", 1000, time.Minute
		r, err := Ask(context.Background(), store, q)
		if err == nil {
			err = Record(ctx, store, q, r, at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ask(Question{}, now)
	ask(Question{Where: "event_id < 'evt_001'"}, now.Add(time.Hour))
	ask(Question{}, now.Add(24*time.Hour))
	tables, err := inspect.New(db, ddl.SQLite, "", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	all, err := tables.Reconciliations(ctx, 10)
	if err != nil || len(all) != 3 || !all[0].At.Equal(now.Add(24*time.Hour)) || all[0].Doubled != doubledEvents || len(all[0].Found) != 100 || all[0].Found[0].Rows != 2 ||
		all[1].Doubled != 1 || all[1].Question.Where == "" || all[0].Lost != nil {
		t.Fatalf("%d: %+v, %v", len(all), all[:min(2, len(all))], err)
	}
	if latest, err := inspect.Latest(ctx, tables.Reconciliations); err != nil || len(latest) != 2 || !latest[0].At.Equal(all[0].At) || latest[1].Question.Where == "" {
		t.Errorf("the latest of each question: %+v, %v", latest, err)
	}
	if got := strings.Join(all[1].Question.Flags(), " "); got != "--table payments --event-column event_id --where event_id < 'evt_001'" {
		t.Errorf("the flags are %s", got)
	}
}

// An application's file may hold its tables under another name, beside those of another program.
func TestNamedTablesOfAFile(t *testing.T) {
	ctx := t.Context()
	path, db := application(t)
	if _, err := db.Exec("INSERT INTO payments VALUES ('evt_1'), ('evt_1')"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "shop"} {
		if _, err := schema.Migrate(ctx, db, schema.SQLite, name); err != nil {
			t.Fatal(err)
		}
	}
	const claim = "INSERT INTO %s_claims (source, key, state, token, first_seen, updated_at) VALUES ('stripe', '%s', 'done', 1, 1, 1)"
	for _, text := range []string{fmt.Sprintf(claim, "shop", "evt_2"), fmt.Sprintf(claim, ddl.DefaultName, "evt_of_another_program")} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	store := config.Store{Driver: config.SQLite, DSN: path}
	q := Question{Table: "payments", Event: "event_id", Only: "stripe", Lost: Claims, Schema: "shop", Limit: 10, Timeout: time.Minute}
	r, err := Ask(ctx, store, q)
	if err != nil {
		t.Fatal(err)
	}
	if r.Doubled != 1 || r.Lost == nil || r.Lost.Fault != "" || len(r.Lost.Events) != 1 || r.Lost.Events[0].Event != "evt_2" {
		t.Errorf("found %+v, lost %+v", r, r.Lost)
	}
	if err := Record(ctx, store, q, r, time.Now()); err != nil {
		t.Fatal(err)
	}
	events := q
	events.Lost = Events
	if r, err = Ask(ctx, store, events); err != nil || r.Lost == nil || !strings.HasPrefix(r.Lost.Fault, "hookonce_events is empty") {
		t.Fatalf("of a gateway: %+v, %v", r, err)
	}
	for range 2 {
		if err := Record(ctx, store, events, r, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int{"": 2, "shop": 1} {
		tables, err := inspect.New(db, ddl.SQLite, name, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := tables.Reconciliations(ctx, 10); err != nil || len(all) != want {
			t.Errorf("under the name %q are %d on record, and not %d; %v", name, len(all), want, err)
		}
	}
}

// doubledEvents is how many events are doubled: more than are named.
const doubledEvents = 120

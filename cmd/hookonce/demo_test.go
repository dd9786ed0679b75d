package main

import (
	"bytes"
	"database/sql"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/internal/pgtest"
	"github.com/hookonce/hookonce/internal/storm"
	"github.com/hookonce/hookonce/provider"
)

// perform runs a short demo and returns its output.
func perform(t *testing.T, o demoOptions) (string, error) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	o.scale = .25
	var out bytes.Buffer
	err := o.run(t.Context(), &world{args: []string{"hookonce", "demo"}, out: &out, err: &out})
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return out.String(), err
}

func TestDemoOnSQLite(t *testing.T) {
	out, err := perform(t, demoOptions{seed: 3})
	if err != nil || !strings.Contains(out, "Exactly once in effect: nothing doubled, nothing lost.") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestDemoOnPostgres(t *testing.T) {
	dsn := pgtest.DSN(t)
	out, err := perform(t, demoOptions{seed: 4, store: dsn})
	if err != nil || !strings.Contains(out, "Exactly once in effect: nothing doubled, nothing lost.") {
		t.Errorf("%v\n%s", err, out)
	}
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var left int
	if err := db.QueryRow("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'hookonce%'").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d schemas are left behind, %v", left, err)
	}
}

// The naive shop loses every order whose first attempt fails, so this does not depend on luck.
func TestDemoNaive(t *testing.T) {
	out, err := perform(t, demoOptions{seed: 5, naive: true})
	if err != nil || !strings.Contains(out, "orders booked more than once") || strings.Contains(out, ", 0 never.") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A count that is off is a failure of the demo, and the naive shop's luck is one of the proof.
func TestDemoVerdict(t *testing.T) {
	tests := map[string]struct {
		naive bool
		t     tally
		fails bool
	}{
		"good":           {false, tally{events: 2, effects: 2}, false},
		"doubled":        {false, tally{events: 2, effects: 3, doubled: 1}, true},
		"lost":           {false, tally{events: 2, effects: 1, lost: 1}, true},
		"naive doubles":  {true, tally{doubled: 1}, false},
		"naive loses":    {true, tally{lost: 1}, false},
		"naive is lucky": {true, tally{events: 2, effects: 2}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := (&demo{naive: tt.naive}).verdict(tt.t); (err != nil) != tt.fails {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The ledger is counted, not believed: entries that the shop did not make by the rules show.
func TestDemoCountsTheLedger(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, err := openStage(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := &chapter{events: []*sale{{id: "once", cents: 5}, {id: "twice", cents: 7}, {id: "never", cents: 9}}}
	c.sent.Add(4)
	for _, id := range []string{"once", "twice", "twice"} {
		if _, err := s.db.Exec(s.sql("INSERT INTO {ledger} VALUES (@1, 7)"), id); err != nil {
			t.Fatal(err)
		}
	}
	got, err := (&demo{stage: s}).count(t.Context(), c)
	want := tally{events: 3, sent: 4, effects: 3, doubled: 1, lost: 1, sold: 21, booked: 21}
	if err != nil || got != want || got.duplicates() != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestDemoIsSeeded(t *testing.T) {
	plan := func(seed uint64) (all []any) {
		for _, c := range chapters(rand.New(rand.NewPCG(seed, 0)), seed, 1) {
			for _, s := range c.events {
				all = append(all, c.title, s.id, s.order, s.cents, s.shop.times, int(s.shop.kind), len(s.steps))
				for _, step := range s.steps {
					all = append(all, step.wait, step.copies, step.hangUp)
				}
			}
		}
		return all
	}
	if diff := cmp.Diff(plan(1), plan(1)); diff != "" {
		t.Errorf("one seed, two storms:\n%s", diff)
	}
	if cmp.Equal(plan(1), plan(2)) {
		t.Error("two seeds, one storm")
	}
}

func TestDemoRefuses(t *testing.T) {
	for store, says := range map[string]string{
		"mysql://x":                   "names no store",
		"sqlite:mine.db":              "leave --store out",
		"postgres://u@127.0.0.1:1/db": "making the schema",
	} {
		_, err := perform(t, demoOptions{store: store})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", store, err)
		}
	}
}

// The provider goes on until somebody acknowledges, whatever else it is answered or not answered.
func TestSenderRetriesUntilAcknowledged(t *testing.T) {
	var requests atomic.Int64
	url := endpoint(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch requests.Add(1) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			panic(http.ErrAbortHandler)
		case 3:
			w.WriteHeader(http.StatusFound)
		}
	}))
	target, err := storm.ParseTarget(url)
	if err != nil {
		t.Fatal(err)
	}
	s := &sender{target: target, url: url, provider: provider.Standard(demoSecret), random: rand.New(rand.NewPCG(1, 1))}
	c := &chapter{events: []*sale{{id: "evt_1", steps: []step{{copies: 1}}}}}
	if err := s.play(t.Context(), c); err != nil || c.sent.Load() != 4 || requests.Load() != 4 {
		t.Errorf("%d sent, %d received, %v; want 4", c.sent.Load(), requests.Load(), err)
	}
}

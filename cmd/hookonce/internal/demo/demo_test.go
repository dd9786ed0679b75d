package demo

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/traffic"
	"github.com/hookonce/hookonce/provider"
)

// ask reads a resource of the admin API.
func ask(ctx context.Context, url, path string, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+api.Base+path, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return json.NewDecoder(res.Body).Decode(out)
}

// perform runs a short demo and returns its output.
func perform(t *testing.T, o Options) (string, error) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	o.Scale, o.Out, o.Ask = .25, &out, ask
	err := Run(t.Context(), o)
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
	out, err := perform(t, Options{Seed: 3})
	if err != nil || !strings.Contains(out, "Exactly once in effect: nothing doubled, nothing lost.") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestDemoOnPostgres(t *testing.T) {
	dsn := pgtest.DSN(t)
	out, err := perform(t, Options{Seed: 4, Store: dsn})
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
	out, err := perform(t, Options{Seed: 5, Naive: true})
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
		"late":           {false, tally{events: 2, effects: 1, late: 1}, true},
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

// What the journal still has to deliver is late, and what it does not have is lost: the demo says which, and calls
// nothing a bug that was only slow. It is at rest when the journal has nothing open.
func TestDemoTellsLateFromLost(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	stage, err := openStage(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer stage.Close()
	var out bytes.Buffer
	d := &demo{stage: stage, seed: 1, progress: &progress{out: &out}, ask: ask, shop: new(shop)}
	opened := make(chan struct{})
	open := sync.OnceFunc(func() { close(opened) })
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-opened }))
	defer app.Close()
	defer open()
	if d.gateway, err = gateway.Start(t.Context(), d.gatewayConfig(app.URL), gateway.Options{}); err != nil {
		t.Fatal(err)
	}
	defer d.gateway.Close(context.Background())
	url := "http://" + d.gateway.Addr().String() + "/in/shop"
	target, err := traffic.ParseTarget(url)
	if err != nil {
		t.Fatal(err)
	}
	d.sender = &sender{target: target, url: url, provider: provider.Standard(demoSecret), random: rand.New(rand.NewPCG(1, 1))}
	late, lost := &sale{id: "evt_late", cents: 5, steps: []step{{copies: 1}}}, &sale{id: "evt_lost", cents: 7}
	c := &chapter{title: "slow", events: []*sale{late}}
	if err := d.sender.play(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	c.events = append(c.events, lost)
	if d.delivered(t.Context()) {
		t.Error("it is at rest although a delivery is open")
	}
	found, err := d.late(t.Context(), c)
	if err != nil || !found["evt_late"] || found["evt_lost"] {
		t.Errorf("late are %v, %v", found, err)
	}
	got, err := d.count(t.Context(), found, c)
	if err != nil || got.late != 1 || got.lost != 1 {
		t.Errorf("counted %+v, %v", got, err)
	}
	d.progress.row(c.title, tally{events: 2, late: 1})
	if !strings.Contains(out.String(), "1 of them are still to be delivered: late, not lost") {
		t.Errorf("the row says %s", out.String())
	}
	if says := d.conclusion(tally{events: 2, late: 1}); !strings.Contains(says, "nothing lost; 1 of 2 orders are still to come") {
		t.Errorf("it concludes %s", says)
	}
	open()
	if err := d.settle(t.Context(), finalPatience); err != nil || !d.delivered(t.Context()) {
		t.Errorf("it does not come to rest, %v", err)
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
	c := &chapter{events: []*sale{{id: "once", cents: 5}, {id: "twice", cents: 7}, {id: "never", cents: 9}, {id: "later", cents: 11}}}
	c.sent.Add(5)
	for _, id := range []string{"once", "twice", "twice"} {
		if _, err := s.db.Exec(s.sql("INSERT INTO {ledger} VALUES (@1, 7)"), id); err != nil {
			t.Fatal(err)
		}
	}
	got, err := (&demo{stage: s}).count(t.Context(), map[string]bool{"later": true, "once": true}, c)
	want := tally{events: 4, sent: 5, effects: 3, doubled: 1, lost: 1, late: 1, sold: 32, booked: 21}
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
		_, err := perform(t, Options{Store: store})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", store, err)
		}
	}
}

// The provider goes on until somebody acknowledges, whatever else it is answered or not answered.
func TestSenderRetriesUntilAcknowledged(t *testing.T) {
	var requests atomic.Int64
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch requests.Add(1) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			panic(http.ErrAbortHandler)
		case 3:
			w.WriteHeader(http.StatusFound)
		}
	}))
	defer shop.Close()
	url := shop.URL
	target, err := traffic.ParseTarget(url)
	if err != nil {
		t.Fatal(err)
	}
	s := &sender{target: target, url: url, provider: provider.Standard(demoSecret), random: rand.New(rand.NewPCG(1, 1))}
	c := &chapter{events: []*sale{{id: "evt_1", steps: []step{{copies: 1}}}}}
	if err := s.play(t.Context(), c); err != nil || c.sent.Load() != 4 || requests.Load() != 4 {
		t.Errorf("%d sent, %d received, %v; want 4", c.sent.Load(), requests.Load(), err)
	}
}

// A connection that is not made in the time that the sender waits is no answer, whichever of the two timers rings first; one that
// is refused is a failure.
func TestOutOfTime(t *testing.T) {
	for text, err := range map[string]error{
		"i/o timeout": &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}, "a deadline": context.DeadlineExceeded,
		"refused": &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, "nothing": nil,
	} {
		if err != nil {
			err = fmt.Errorf("connecting: %w", err)
		}
		if got, want := outOfTime(t.Context(), err), text == "i/o timeout" || text == "a deadline"; got != want {
			t.Errorf("%s is out of time: %t", text, got)
		}
	}
}

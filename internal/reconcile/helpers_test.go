package reconcile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/reconcile"
	"github.com/hookonce/hookonce/internal/reconcile/reconciletest"
	"github.com/hookonce/hookonce/provider/spec"
)

// ledger is what is on record, in memory.
type ledger struct {
	mu     sync.Mutex
	known  map[string]reconcile.Known
	asked  int
	most   int
	before func(asked int) error
}

func (l *ledger) Known(ctx context.Context, source string, keys []string) (map[string]reconcile.Known, error) {
	if source != "billing" {
		return nil, fmt.Errorf("the source is %q", source)
	}
	l.mu.Lock()
	l.asked++
	l.most = max(l.most, len(keys))
	asked := l.asked
	l.mu.Unlock()
	if l.before != nil {
		if err := l.before(asked); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[string]reconcile.Known{}
	for _, key := range keys {
		if k, is := l.known[key]; is {
			found[key] = k
		}
	}
	if once := slices.Compact(slices.Sorted(slices.Values(keys))); len(once) < len(keys) {
		return nil, fmt.Errorf("a key is asked for twice: %q", keys)
	}
	return found, nil
}

// put records keys.
func (l *ledger) put(keys ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = map[string]reconcile.Known{}
	}
	for _, key := range keys {
		l.known[key] = reconcile.Known{Status: "done"}
	}
}

// ingest stores an event, unless its key is on record.
func (l *ledger) ingest(_ context.Context, event hookonce.Event) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, is := l.known[event.Key]; is {
		return false, nil
	}
	if l.known == nil {
		l.known = map[string]reconcile.Known{}
	}
	l.known[event.Key] = reconcile.Known{Listed: true, Status: "pending"}
	return true, nil
}

// world is a server, what is on record, and the options of a run.
type world struct {
	*testing.T
	server *reconciletest.Server
	ledger *ledger
	opts   reconcile.Options
	log    bytes.Buffer
}

// newWorld returns one whose last two days are compared. Call it in a bubble: its clock is that of the bubble.
func newWorld(t *testing.T, server *reconciletest.Server, change ...func(*spec.Spec)) *world {
	t.Helper()
	s := server.Spec(reconciletest.Origin)
	for _, c := range change {
		c(&s)
	}
	p, err := spec.New(s, spec.Settings{Secrets: spec.Secrets(reconciletest.Secret)})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, server: server, ledger: &ledger{}}
	w.opts = reconcile.Options{
		Source: "billing", Provider: p, Token: reconciletest.Token, Ledger: w.ledger,
		Since: time.Now().Add(-48 * time.Hour), Transport: server,
		Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	return w
}

// run runs, and holds every run to what is true of all: the sums of the report, and that the token is nowhere.
func (w *world) run() (*reconcile.Report, error) {
	w.Helper()
	r, err := reconcile.Run(w.Context(), w.opts)
	return r, w.check(r, err)
}

func (w *world) check(r *reconcile.Report, err error) error {
	w.Helper()
	text, _ := json.Marshal(r)
	for _, secret := range []string{reconciletest.Token, "fake-client-secret", "fake-access-token"} {
		if strings.Contains(string(text)+w.log.String()+fmt.Sprintf("%v %+v", err, err), secret) {
			w.Errorf("the token is told: %s, %v, %s", text, err, w.log.String())
		}
	}
	if err == nil && r.Listed != r.Known+r.Missing+r.Young+r.Forgotten+r.Undated+r.Other+r.Unkeyed {
		w.Errorf("the sums are wrong: %s", text)
	}
	if w.ledger.most > reconcile.MaxKeys {
		w.Errorf("%d keys were asked for at once", w.ledger.most)
	}
	return err
}

// mustRun runs without an error.
func (w *world) mustRun() *reconcile.Report {
	w.Helper()
	r, err := w.run()
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// entries returns n entries, one a minute, the newest an hour old.
func entries(n int) []reconciletest.Entry {
	all := make([]reconciletest.Entry, n)
	for i := range all {
		all[i] = reconciletest.Entry{ID: fmt.Sprintf("evt_%03d", i), At: time.Now().Add(-time.Hour - time.Duration(n-i)*time.Minute).Truncate(time.Second)}
	}
	return all
}

// keys returns the keys of what is missing, sorted.
func keys(events []reconcile.Missing) []string {
	set := map[string]bool{}
	for _, m := range events {
		if set[m.Key] {
			return []string{"twice: " + m.Key}
		}
		set[m.Key] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// ids returns the ids of entries, sorted.
func ids(all []reconciletest.Entry) []string {
	var out []string
	for _, e := range all {
		out = append(out, e.ID)
	}
	slices.Sort(out)
	return out
}

// bubble runs a test in a bubble whose clock only the test moves on.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

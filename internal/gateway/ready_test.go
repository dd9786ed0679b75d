package gateway

import (
	"context"
	"errors"
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/settings"

	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// awaitReady waits until /readyz is 200.
func awaitReady(t *testing.T, c *http.Client, g *Gateway) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		res, body := get(t, c, g, "/readyz")
		if res.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("readyz: %d %s, want 200", res.StatusCode, body)
		}
	}
}

// awaitAway waits until the gateway has seen that its store is away: what others were told a moment before counts for a second.
func awaitAway(t *testing.T, g *Gateway) {
	t.Helper()
	for deadline := time.Now().Add(patience); gauge(t, g, "hookonce_ready") != 0; <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("an event could be stored without a store")
		}
	}
}

// Where all gateways on a store are told to be away with it, no event comes to be delivered past it. What keeps a gateway from
// delivering past the store, or is its own, leads senders to others.
func TestWhoIsReady(t *testing.T) {
	t.Parallel()
	gone, strange := errors.New("the connection was refused"), fmt.Errorf("%w: it is the cell eu", cells.ErrNotThisCell)
	for name, tt := range map[string]struct {
		observed, open, full, stopping bool
		store                          error
		want                           error
	}{
		"all is well":                                      {},
		"the store is away":                                {store: gone, want: errStore},
		"the store is away, a source is open":              {open: true, store: gone},
		"the store is away, the queue full, a source open": {open: true, full: true, store: gone},
		"the store is away, a source is observed":          {observed: true, store: gone},
		"the queue is full":                                {full: true, want: errFull},
		"the queue is full, a source is open":              {open: true, full: true, want: errFull},
		"the queue is full, a source is observed":          {observed: true, full: true},
		"a cell without its map, a source is open":         {open: true, store: cells.ErrNoMap, want: errStore},
		"the store of a cell, a source is open":            {open: true, store: strange, want: errStore},
		"it stops while the store is away":                 {open: true, stopping: true, store: gone, want: ErrStopping},
		"it stops while a source is observed":              {observed: true, stopping: true, want: ErrStopping},
	} {
		r := readiness{
			stopping: new(atomic.Bool), now: time.Now, log: slog.New(slog.DiscardHandler),
			observed: func() bool { return tt.observed }, open: func() bool { return tt.open }, full: func() bool { return tt.full },
			ping: func(context.Context) error { return tt.store },
		}
		r.stopping.Store(tt.stopping)
		if err := r.ready(); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// However many ask whether the gateway is ready, the store is looked at once a second, and senders notice nothing.
func TestReadyLooksOnceASecond(t *testing.T) {
	sink := newSink(t)
	cfg := configured(sqliteStore(t), sink.URL)
	g, c := start(t, cfg), client(t)
	var pings, nanos atomic.Int64
	g.readiness.mu.Lock() // the gateway looks by itself as well
	ping := g.readiness.ping
	g.readiness.ping = func(ctx context.Context) error {
		pings.Add(1)
		_ = ping(ctx) // on a busy machine it may take longer than the question waits for it
		return nil
	}
	began := time.Now()
	g.readiness.now = func() time.Time { return began.Add(time.Duration(nanos.Load())) }
	g.readiness.looked = time.Time{}
	g.readiness.mu.Unlock()
	ask := func() {
		var askers sync.WaitGroup
		for range 500 {
			askers.Go(func() {
				w := httptest.NewRecorder()
				(*g.admin.handler.Load()).ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
				if w.Code != http.StatusOK {
					t.Errorf("readyz: %d %s", w.Code, w.Body)
				}
			})
		}
		askers.Wait()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, id := range ids("a", 100) {
			if r, err := post(t, c, g, cfg.Sources[0], event(id)); err != nil || r.status != 200 {
				t.Errorf("a sender was answered %+v, %v", r, err)
			}
		}
	}()
	for second := range int64(5) {
		ask()
		if n := pings.Load(); n != second+1 {
			t.Errorf("after %d s the store was looked at %d times", second, n)
		}
		nanos.Add(int64(readyFor))
	}
	<-done
	if ready := gauge(t, g, "hookonce_ready"); ready != 1 {
		t.Errorf("hookonce_ready is %v", ready)
	}
}

// gauge returns the value of a gauge without labels.
func gauge(t *testing.T, g *Gateway, name string) float64 {
	t.Helper()
	all, err := g.opt.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.GetName() == name {
			return m.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// What the store says is for the log, and for those who may look at everything.
func TestReadyTellsStrangersNothing(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{})
	cfg := configured(config.Store{Driver: config.Postgres, DSN: cluster.DSN(t)}, "")
	cfg.AdminTokens = []config.AdminToken{{Name: "probe", Token: settings.Literal("a-fake-token-for-reading"), Role: config.RoleRead}}
	log := new(logged)
	g, err := Start(t.Context(), cfg, Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, g) })
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitAway(t, g)
	ask := func(token, host, from string) string {
		t.Helper()
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/readyz", nil)
		r.Host, r.RemoteAddr = host, from
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		(*g.admin.handler.Load()).ServeHTTP(w, r)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("readyz: %d %s", w.Code, w.Body)
		}
		return w.Body.String()
	}
	const stranger = `"detail":"the store cannot be written to"`
	const local = "127.0.0.1:8081"
	for _, token := range []string{"", "a-fake-guess-of-somebody"} {
		if text := ask(token, local, local); !strings.Contains(text, stranger) {
			t.Errorf("a stranger with the token %q is told %s", token, text)
		}
	}
	if text := ask("a-fake-token-for-reading", "admin.example", "192.0.2.1:1"); !strings.Contains(text, "journal/pg: ") {
		t.Errorf("who has a token is told %s", text)
	}
	if text := log.String(); !strings.Contains(text, "gateway: not ready") || !strings.Contains(text, "journal/pg: ") {
		t.Errorf("the log: %s", text)
	}
	g.guard.Reload(nil)
	if text := ask("", local, local); !strings.Contains(text, "journal/pg: ") {
		t.Errorf("without tokens, who is on this machine is told %s", text)
	}
	if text := ask("", "evil.example", local); !strings.Contains(text, stranger) {
		t.Errorf("without tokens, a page elsewhere is told %s", text)
	}
	if ready := gauge(t, g, "hookonce_ready"); ready != 0 {
		t.Errorf("hookonce_ready is %v while the store is away", ready)
	}
}

// The log has a line when the reason changes and every minute, and what was said is forgotten when it is over.
func TestReadyInTheLog(t *testing.T) {
	t.Parallel()
	log, now := new(logged), time.Now()
	var fault error
	r := readiness{ping: func(context.Context) error { return fault }, now: func() time.Time { return now }, log: slog.New(slog.NewTextHandler(log, nil))}
	for i, step := range []struct {
		fault string
		lines int // up to then
	}{{"", 0}, {"a", 1}, {"a", 1}, {"b", 2}, {"b", 2}, {"", 2}, {"b", 3}} {
		if fault = nil; step.fault != "" {
			fault = errors.New(step.fault)
		}
		now = now.Add(readyFor)
		if got := r.check(); got != fault {
			t.Errorf("step %d: %v", i, got)
		}
		if got := strings.Count(log.String(), "\n"); got != step.lines {
			t.Errorf("step %d: %d lines, want %d", i, got, step.lines)
		}
	}
	for range 3 * int(saidFor/readyFor) {
		now = now.Add(readyFor)
		r.check()
	}
	if got := strings.Count(log.String(), "\n"); got != 6 {
		t.Errorf("%d lines after three minutes", got)
	}
	now = now.Add(-time.Hour) // a clock that is put back does not stop it
	fault = nil
	if err := r.check(); err != nil {
		t.Errorf("%v, although the store is well", err)
	}
}

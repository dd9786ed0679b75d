package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider/spec"
)

// versioned is a source whose events have a resource inside a tenant, a version, and a change that logical duplicates
// have in common.
func versioned(name string) config.Source {
	s := source(name, "")
	s.Provider = "custom"
	s.Spec = &spec.Spec{
		Name:   "our-crm",
		Verify: []spec.Verify{{Signature: spec.Signature{In: "header:X-Signature"}, Sign: []spec.Value{"body"}}},
		Event: spec.Extract{
			Key: [][]spec.Value{{"json:$.id"}}, Type: []spec.Value{"json:$.type"},
			Resource: []spec.Value{"json:$.object"}, Tenant: []spec.Value{"json:$.tenant"},
		},
		Dedup: spec.Dedup{Logical: []spec.Logical{{Key: []spec.Value{"json:$.change"}}}},
		Order: &spec.Order{By: "json:$.version"},
	}
	return s
}

// state is the event that an object of a tenant has come to a version.
type state struct {
	ID, Type, Tenant, Object, Change string
	Version                          int
}

func (s state) body(t *testing.T) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"id": s.ID, "type": s.Type, "tenant": s.Tenant, "object": s.Object, "change": s.Change, "version": s.Version,
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// ledger is a destination that watches the order of what it is given.
type ledger struct {
	*httptest.Server
	board
	answer func(s state, times int) int // nil: 200

	times map[string]int         // attempts, by id
	seen  map[string]http.Header // of the last attempt, by id
	busy  map[string]bool        // resources of which an event is being handled
	done  map[string][]int       // versions, by resource, in the order in which they were done
	total int                    // of those
	fault error
}

func newLedger(t *testing.T) *ledger {
	l := &ledger{board: newBoard(), times: map[string]int{}, seen: map[string]http.Header{}, busy: map[string]bool{}, done: map[string][]int{}}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var s state
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		http.Error(w, "this is no event", http.StatusBadRequest)
		return
	}
	status := l.begin(s, r.Header)
	runtime.Gosched() // another event of the resource may come in here
	l.end(s, status)
	w.WriteHeader(status)
}

// begin notes an attempt and decides how it ends.
func (l *ledger) begin(s state, h http.Header) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy[s.resource()] {
		l.fault = fmt.Errorf("two events of %s are handled at once, one of them %s", s.resource(), s.ID)
	}
	l.busy[s.resource()] = true
	l.times[s.ID]++
	l.seen[s.ID] = h
	if l.answer == nil {
		return http.StatusOK
	}
	return l.answer(s, l.times[s.ID])
}

func (l *ledger) end(s state, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy[s.resource()] = false
	if status == http.StatusOK {
		l.done[s.resource()] = append(l.done[s.resource()], s.Version)
		l.total++
	}
	l.changed()
}

func (s state) resource() string { return s.Tenant + "/" + s.Object }

// ordered returns a configuration with one destination that keeps the order of resources.
func ordered(store config.Store, to *ledger, change func(*config.Config, *config.Destination)) *config.Config {
	cfg := configured(store, "")
	d := cfg.NewDestination("ledger", to.URL)
	d.Order = config.ByResource
	cfg.Sources = []config.Source{versioned("orders")}
	cfg.Sources[0].Routes = []config.Route{{To: []string{"ledger"}}}
	if change != nil {
		change(cfg, &d)
	}
	cfg.Destinations = []config.Destination{d}
	return cfg
}

// The events of a resource follow each other, oldest first, however many of them fail at first, and
// whichever of several gateways took them. Other resources go their own way, and so does the same object
// of another tenant.
func TestOrderByResource(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		to := newLedger(t)
		cfg := ordered(store, to, nil)
		keepsOrder(t, cfg, to, start(t, cfg))
	})
	t.Run("three gateways", func(t *testing.T) {
		to := newLedger(t)
		cfg := ordered(postgresStore(t), to, nil)
		keepsOrder(t, cfg, to, start(t, cfg), start(t, cfg), start(t, cfg))
	})
}

func keepsOrder(t *testing.T, cfg *config.Config, to *ledger, gateways ...*Gateway) {
	const objects, versions = 12, 6
	to.answer = func(s state, times int) int {
		if n := len(to.done[s.resource()]); n != s.Version-1 {
			to.fault = fmt.Errorf("%s begins when %d versions are done", s.ID, n)
		}
		if times < 3 && rand.IntN(3) == 0 {
			return http.StatusConflict // which is tried again, and says nothing about the destination
		}
		return http.StatusOK
	}
	c := client(t)
	var senders sync.WaitGroup
	var all []int
	for v := range versions {
		all = append(all, v+1)
	}
	for i := range objects {
		senders.Go(func() {
			for _, v := range all { // each is acknowledged before the next is sent
				s := state{Type: "changed", Tenant: fmt.Sprint(i % 2), Object: fmt.Sprint(i / 2), Version: v}
				s.ID = fmt.Sprintf("%s/%d", s.resource(), v)
				insist(t, c, gateways[(i+v)%len(gateways)], cfg.Sources[0], s.body(t))
			}
		})
	}
	senders.Wait()
	to.await(t, "everything", func() bool { return to.total >= objects*versions })
	c.CloseIdleConnections()
	for _, g := range gateways {
		closeNow(t, g)
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.fault != nil {
		t.Error(to.fault)
	}
	for resource, done := range to.done {
		if diff := cmp.Diff(all, done); diff != "" {
			t.Errorf("%s: %s", resource, diff)
		}
	}
}

// An event that an event about a newer state has overtaken is labelled, or not delivered.
func TestStaleEvents(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	for _, stale := range []string{config.StaleDeliver, config.StaleFlag, config.StaleDrop} {
		t.Run(stale, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, store config.Store) {
				to := newLedger(t)
				cfg := ordered(store, to, func(_ *config.Config, d *config.Destination) { d.Stale = stale })
				g, c := start(t, cfg), client(t)
				for _, s := range []state{
					{ID: "second", Tenant: "a", Object: "o", Version: 2},
					{ID: "first", Tenant: "a", Object: "o", Version: 1},
					{ID: "other tenant", Tenant: "b", Object: "o", Version: 1},
					{ID: "third", Tenant: "a", Object: "o", Version: 3},
				} {
					insist(t, c, g, cfg.Sources[0], s.body(t))
				}
				to.await(t, "the last of each", func() bool { return to.times["third"] > 0 && to.times["other tenant"] > 0 })
				to.mu.Lock()
				defer to.mu.Unlock()
				if delivered := to.times["first"] == 1; delivered == (stale == config.StaleDrop) {
					t.Errorf("the stale event was delivered %d times", to.times["first"])
				}
				for id, h := range to.seen {
					want := ""
					if id == "first" && stale == config.StaleFlag {
						want = "true"
					}
					if got := h.Get("Hookonce-Stale"); got != want {
						t.Errorf("%s: Hookonce-Stale = %q, want %q", id, got, want)
					}
				}
			})
		})
	}
}

// Two sources may give their objects the same names: what one of them got, or holds up, says nothing about the other's.
func TestSourcesDoNotShareResources(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		to := newLedger(t)
		to.answer = func(s state, _ int) int {
			return map[bool]int{true: http.StatusConflict, false: http.StatusOK}[s.ID == "orders v6"]
		}
		cfg := ordered(store, to, func(cfg *config.Config, d *config.Destination) {
			d.Stale = config.StaleDrop
			d.Backoff, d.BackoffMax = 10*patience, 20*patience
			cfg.Sources = append(cfg.Sources, versioned("returns"))
			cfg.Sources[1].Routes = cfg.Sources[0].Routes
		})
		g, c := start(t, cfg), client(t)
		for i, s := range []state{{ID: "orders v5", Version: 5}, {ID: "orders v6", Version: 6}, {ID: "returns v1", Version: 1}} {
			s.Object = "7"
			insist(t, c, g, cfg.Sources[i/2], s.body(t))
			to.await(t, s.ID, func() bool { return to.times[s.ID] > 0 })
		}
		closeNow(t, g)
	})
}

// A rank of another kind than the newest is delivered, as when a sender that had times begins to send versions.
func TestRanksOfTwoKinds(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		to := newLedger(t)
		cfg := ordered(store, to, func(cfg *config.Config, d *config.Destination) {
			d.Stale = config.StaleDrop
			cfg.Sources[0].Spec.Order = &spec.Order{By: "json:$.version", Unit: spec.Seconds}
		})
		g, c := start(t, cfg), client(t)
		deliver := func(s state) {
			s.Object = "7"
			insist(t, c, g, cfg.Sources[0], s.body(t))
			to.await(t, s.ID, func() bool { return to.times[s.ID] > 0 })
		}
		deliver(state{ID: "a time", Version: 1_700_000_000})
		closeNow(t, g)
		routes := cfg.Sources[0].Routes
		cfg.Sources[0] = versioned("orders")
		cfg.Sources[0].Routes = routes
		g = start(t, cfg)
		deliver(state{ID: "version 12", Version: 12})
		deliver(state{ID: "version 13", Version: 13})
		closeNow(t, g)
	})
}

// The second event for one change is labelled, and not delivered where its type was named.
func TestLogicalDuplicates(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		to := newLedger(t)
		cfg := ordered(store, to, func(cfg *config.Config, _ *config.Destination) {
			cfg.Sources[0].LogicalDuplicates.Drop = []string{"dropped"}
		})
		g, c := start(t, cfg), client(t)
		for _, s := range []state{
			{ID: "a", Type: "flagged", Object: "o", Change: "1"},
			{ID: "b", Type: "flagged", Object: "o", Change: "1"},
			{ID: "c", Type: "dropped", Object: "o", Change: "1"},
			{ID: "d", Type: "dropped", Object: "o", Change: "2"},
			{ID: "e", Type: "dropped", Object: "o"},
			{ID: "f", Type: "flagged", Object: "o", Change: "3"},
		} {
			if r := insist(t, c, g, cfg.Sources[0], s.body(t)); r.verdict != "accepted" {
				t.Errorf("%s: %+v", s.ID, r)
			}
		}
		to.await(t, "the last one", func() bool { return to.times["f"] > 0 })
		closeNow(t, g)
		to.mu.Lock()
		defer to.mu.Unlock()
		if got := slices.Sorted(maps.Keys(to.times)); !slices.Equal(got, []string{"a", "b", "d", "e", "f"}) {
			t.Errorf("delivered: %v", got)
		}
		for id, h := range to.seen {
			want := map[string]string{"b": "a"}[id]
			if got := h.Get("Hookonce-Logical-Duplicate-Of"); got != want {
				t.Errorf("%s: Hookonce-Logical-Duplicate-Of = %q, want %q", id, got, want)
			}
		}
	})
}

// The second event for one change is not dropped where its destination never got the first, whether that
// went elsewhere or nowhere.
func TestLogicalDuplicatesElsewhere(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		books, shipping := newLedger(t), newLedger(t)
		cfg := ordered(store, books, func(cfg *config.Config, _ *config.Destination) {
			cfg.Sources[0].LogicalDuplicates.Drop = []string{"shipped"}
			cfg.Sources[0].Routes = []config.Route{
				{To: []string{"ledger"}, Types: []string{"paid"}},
				{To: []string{"shipping"}, Types: []string{"shipped"}},
			}
		})
		cfg.Destinations = append(cfg.Destinations, cfg.NewDestination("shipping", shipping.URL))
		g, c := start(t, cfg), client(t)
		for _, s := range []state{
			{ID: "a", Type: "paid", Object: "o", Change: "1"},
			{ID: "b", Type: "shipped", Object: "o", Change: "1"},
			{ID: "c", Type: "unknown", Object: "o", Change: "2"},
			{ID: "d", Type: "shipped", Object: "o", Change: "2"},
			{ID: "e", Type: "shipped", Object: "o", Change: "2"}, // the only one that adds nothing
			{ID: "f", Type: "shipped", Object: "o", Change: "3"},
		} {
			insist(t, c, g, cfg.Sources[0], s.body(t))
		}
		books.await(t, "the payment", func() bool { return books.times["a"] > 0 })
		shipping.await(t, "the last one", func() bool { return shipping.times["f"] > 0 })
		closeNow(t, g)
		shipping.mu.Lock()
		defer shipping.mu.Unlock()
		if got := slices.Sorted(maps.Keys(shipping.times)); !slices.Equal(got, []string{"b", "d", "f"}) {
			t.Errorf("shipping got %v", got)
		}
	})
}

// The database dies under three gateways, again and again, and order holds: what is not known to be done
// may be done once more, but nothing younger begins before it is known.
func TestOrderSurvivesTheDatabase(t *testing.T) {
	testskip.Long(t)
	t.Parallel() // it waits for a server of its own
	const objects, versions, kills = 8, 40, 3
	cluster := pgtest.Start(t, pgtest.Options{Fsync: true})
	to := newLedger(t)
	to.answer = func(s state, _ int) int {
		if last := len(slices.Compact(slices.Clone(to.done[s.resource()]))); last != s.Version-1 && last != s.Version {
			to.fault = fmt.Errorf("%s begins when %d versions are done", s.ID, last)
		}
		return http.StatusOK
	}
	cfg := ordered(config.Store{Driver: config.Postgres, DSN: cluster.DSN(t)}, to, nil)
	gateways := []*Gateway{start(t, cfg), start(t, cfg), start(t, cfg)}
	c := client(t)
	var senders sync.WaitGroup
	for i := range objects {
		senders.Go(func() {
			for v := range versions {
				s := state{Type: "changed", Object: fmt.Sprint(i), Version: v + 1}
				s.ID = fmt.Sprintf("%s/%d", s.resource(), s.Version)
				insist(t, c, gateways[(i+v)%len(gateways)], cfg.Sources[0], s.body(t))
			}
		})
	}
	for kill := range kills {
		to.await(t, "deliveries before the next kill", func() bool { return to.total >= objects*versions*(kill+1)/(kills+2) })
		if err := cluster.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cluster.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	senders.Wait()
	to.await(t, "everything", func() bool { return len(to.times) == objects*versions })
	c.CloseIdleConnections()
	for _, g := range gateways {
		closeNow(t, g)
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.fault != nil {
		t.Error(to.fault)
	}
	t.Logf("%d deliveries of %d events", to.total, objects*versions)
}

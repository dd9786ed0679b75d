package gateway

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/testskip"
)

// The check that a popular gateway fails: 200 ids, each in 8 copies at once. Every id is delivered
// exactly once, every answer is a 2xx or a retryable 503, and one answer per id says accepted, unless that
// answer was lost in a 503.
func TestCopiesAtOnce(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		sink := newSink(t)
		cfg := unhurried(configured(store, sink.URL))
		storm(t, cfg, []*Gateway{start(t, cfg)}, sink, 100, 8, 0)
	})
}

// The same with three gateways on one database: each copy goes to the next of them.
func TestCopiesAtOnceOnThreeGateways(t *testing.T) {
	t.Parallel()
	sink := newSink(t)
	cfg := unhurried(configured(postgresStore(t), sink.URL))
	storm(t, cfg, []*Gateway{start(t, cfg), start(t, cfg), start(t, cfg)}, sink, 100, 8, 0)
}

// Copies that come a moment later meet other code: the event is committed, under delivery, or done.
func TestCopiesApart(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	for _, gap := range []time.Duration{50 * time.Millisecond, 500 * time.Millisecond} {
		t.Run(gap.String(), func(t *testing.T) {
			t.Parallel()
			onEveryStore(t, func(t *testing.T, store config.Store) {
				sink := newSink(t)
				cfg := unhurried(configured(store, sink.URL))
				storm(t, cfg, []*Gateway{start(t, cfg)}, sink, 50, 3, gap)
			})
			t.Run("three gateways", func(t *testing.T) {
				sink := newSink(t)
				cfg := unhurried(configured(postgresStore(t), sink.URL))
				storm(t, cfg, []*Gateway{start(t, cfg), start(t, cfg), start(t, cfg)}, sink, 50, 3, gap)
			})
		})
	}
}

// storm sends every id in so many copies, gap apart, to the gateways in turn.
func storm(t *testing.T, cfg *config.Config, gateways []*Gateway, sink *sink, n, copies int, gap time.Duration) {
	all := ids("evt", n)
	c := client(t)
	accepted, again := make([]atomic.Int64, n), make([]atomic.Bool, n)
	var senders sync.WaitGroup
	for i, id := range all {
		senders.Go(func() {
			var inFlight sync.WaitGroup
			for copy := range copies {
				if gap > 0 && copy > 0 {
					<-time.After(gap)
				}
				inFlight.Go(func() {
					g := gateways[(i+copy)%len(gateways)]
					r := insist(t, c, g, cfg.Sources[0], event(id))
					if r.verdict == "accepted" {
						accepted[i].Add(1)
					}
					if r.again > 0 {
						again[i].Store(true)
					}
				})
			}
			inFlight.Wait()
		})
	}
	senders.Wait()
	sink.awaitIDs(t, all)
	c.CloseIdleConnections() // or stopping waits for the ones that were opened and never used
	for _, g := range gateways {
		closeNow(t, g) // nothing is under way any more: what is delivered now stays so
	}
	sink.eachOnce(t, all)
	for i, id := range all {
		if got := accepted[i].Load(); got > 1 || got == 0 && !again[i].Load() {
			t.Errorf("%d answers to %s said accepted, want one", got, id)
		}
	}
}

// A request that nobody signed must leave no trace: the genuine one after it is new.
func TestUnverifiedCopyFirst(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		sink := newSink(t)
		cfg := configured(store, sink.URL)
		g, c := start(t, cfg), client(t)
		forged, err := postSigned(c, g, "orders", http.Header{"X-Signature": {"00"}}, event("a"))
		if err != nil || forged.status != http.StatusUnauthorized {
			t.Fatalf("forged: %+v %v, want 401", forged, err)
		}
		if r := insist(t, c, g, cfg.Sources[0], event("a")); !r.says("accepted") {
			t.Errorf("genuine: %+v, want accepted", r)
		}
		sink.awaitIDs(t, []string{"a"})
	})
}

// Keys are scoped by source: the same id from another source is another event.
func TestSameIDFromTwoSources(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		sink := newSink(t)
		cfg := configured(store, sink.URL)
		cfg.Sources = append(cfg.Sources, source("refunds", sink.URL))
		g, c := start(t, cfg), client(t)
		for _, s := range cfg.Sources {
			if r := insist(t, c, g, s, event("a")); !r.says("accepted") {
				t.Errorf("%s: %+v, want accepted", s.Name, r)
			}
		}
		sink.await(t, "both", func() bool { return sink.seen["a"] == 2 })
		if n := len(sink.keys["a"]); n != 2 {
			t.Errorf("the two events came under %d keys", n)
		}
	})
}

// Events without an id are never collapsed onto one key.
func TestEventsWithoutID(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		sink := newSink(t)
		cfg := configured(store, sink.URL)
		unhurried(cfg)
		g, c := start(t, cfg), client(t)
		again := 0 // each may have been stored although its sender was told to come again
		for range 20 {
			r := insist(t, c, g, cfg.Sources[0], event(""))
			if again += r.again; r.verdict != "unkeyed" {
				t.Errorf("%+v, want unkeyed", r)
			}
		}
		awaitNothingOpen(t, g)
		closeNow(t, g)
		if stored := len(sink.keys[""]); stored < 20 || stored > 20+again || sink.total != stored {
			t.Errorf("%d events in %d deliveries, want 20 of each, and at most %d more for what was sent again", stored, sink.total, again)
		}
	})
}

// awaitNothingOpen waits until all that is stored is delivered, or dead.
func awaitNothingOpen(t *testing.T, g *Gateway) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		s, err := g.journal.Stats(t.Context())
		open := s.Open[journal.Pending] + s.Open[journal.Processing] + s.Open[journal.Failed]
		if err == nil && open == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d deliveries are open after %v: %v", open, patience, err)
		}
	}
}

// Failed work is tried again, under the same key.
func TestFailedDeliveryIsTriedAgain(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		sink := newSink(t)
		sink.answer = func(_ string, times int) int {
			if times < 3 {
				return http.StatusInternalServerError
			}
			return http.StatusOK
		}
		cfg := configured(store, sink.URL)
		g, c := start(t, cfg), client(t)
		insist(t, c, g, cfg.Sources[0], event("a"))
		sink.await(t, "three attempts", func() bool { return sink.seen["a"] == 3 })
		closeNow(t, g)
		if len(sink.keys["a"]) != 1 || sink.seen["a"] != 3 {
			t.Errorf("%d attempts under keys %v, want 3 under one", sink.seen["a"], sink.keys["a"])
		}
	})
}

// Gateways with different sources share a database: each takes up its own work alone, and leaves
// alone what is due to the other.
func TestGatewaysWithDifferentSources(t *testing.T) {
	t.Parallel()
	sink := newSink(t)
	sink.answer = func(_ string, times int) int {
		if times == 1 {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	}
	orders := configured(postgresStore(t), sink.URL)
	orders.Delivery.Backoff, orders.Delivery.BackoffMax = time.Hour, time.Hour
	refunds, nobody := *orders, *orders
	refunds.Sources = []config.Source{source("refunds", sink.URL)}
	nobody.Sources = []config.Source{source("stored", "")}
	for id, cfg := range map[string]*config.Config{"a": orders, "b": &refunds} {
		g := start(t, cfg)
		insist(t, client(t), g, cfg.Sources[0], event(id))
		sink.await(t, "a first attempt", func() bool { return sink.seen[id] == 1 })
		closeNow(t, g)
	}
	execSQL(t, orders.Store.DSN, `UPDATE hookonce.deliveries SET due_at = now() -
		CASE destination WHEN 'orders' THEN interval '2 hours' ELSE interval '1 hour' END`)
	start(t, &nobody)
	g := start(t, &refunds)
	sink.await(t, "the second attempt", func() bool { return sink.seen["b"] == 2 })
	closeNow(t, g) // it had a before its eyes when it took b
	execSQL(t, orders.Store.DSN, `DO $$ BEGIN
		ASSERT (SELECT token = 1 AND tries = 1 AND state = 'failed' FROM hookonce.deliveries WHERE destination = 'orders');
	END $$`)
	start(t, orders)
	sink.await(t, "the second attempt of the other", func() bool { return sink.seen["a"] == 2 })
}

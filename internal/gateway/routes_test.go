package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hookonce/hookonce/internal/config"
)

// typed is an event of the given type, and live or a test.
func typed(id, eventType string, live bool) []byte {
	return fmt.Appendf(nil, `{"id":%q,"type":%q,"live":%v}`, id, eventType, live)
}

// routed returns a configuration whose source sends invoices to the ledger, and what is live to the
// mailer.
func routed(store config.Store, ledger, mailer *sink) *config.Config {
	cfg := configured(store, "")
	cfg.Destinations = []config.Destination{cfg.NewDestination("ledger", ledger.URL), cfg.NewDestination("mailer", mailer.URL)}
	cfg.Sources[0].Routes = []config.Route{
		{To: []string{"ledger"}, Types: []string{"invoice.*"}},
		{To: []string{"mailer"}, Where: []config.Match{{Field: "json:$.live", Text: "true"}}},
	}
	return cfg
}

// Every destination gets what its routes say. While one of them fails the other notices nothing, and
// the one that failed gets everything later, under the keys that it has seen.
func TestRoutes(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		ledger, mailer := newSink(t), newSink(t)
		var ill atomic.Bool
		ill.Store(true)
		ledger.answer = func(string, int) int {
			if ill.Load() {
				return http.StatusInternalServerError
			}
			return http.StatusOK
		}
		cfg := routed(store, ledger, mailer)
		g, c := start(t, cfg), client(t)
		var both, mails []string
		for i := range 20 {
			id := fmt.Sprintf("both-%d", i)
			insist(t, c, g, cfg.Sources[0], typed(id, "invoice.paid", true))
			both = append(both, id)
			id = fmt.Sprintf("mail-%d", i)
			insist(t, c, g, cfg.Sources[0], typed(id, "customer.created", true))
			mails = append(mails, id)
		}
		insist(t, c, g, cfg.Sources[0], typed("ledger-only", "invoice.paid", false))
		mailer.awaitIDs(t, slices.Concat(both, mails)) // although nothing is done at the ledger
		ledger.await(t, "a first failure", func() bool { return ledger.total > 0 })
		ill.Store(false)
		done := append(both, "ledger-only")
		ledger.awaitIDs(t, done)
		closeNow(t, g) // nothing is under way any more
		mailer.eachOnce(t, slices.Concat(both, mails))
		ledger.mu.Lock()
		defer ledger.mu.Unlock()
		for id, keys := range ledger.keys {
			if len(keys) != 1 || !slices.Contains(done, id) {
				t.Errorf("%s came to the ledger under %d keys", id, len(keys))
			}
		}
	})
}

// What no route takes is acknowledged, because the sender can do nothing about it, and counted.
func TestUnroutedEventsAreDone(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		ledger, mailer := newSink(t), newSink(t)
		cfg := routed(store, ledger, mailer)
		g, c := start(t, cfg), client(t)
		nowhere := typed("nowhere", "customer.created", false)
		for _, want := range []string{"accepted", "duplicate"} {
			if r := insist(t, c, g, cfg.Sources[0], nowhere); r.verdict != want {
				t.Errorf("answered %+v, want %s", r, want)
			}
		}
		if _, metrics := get(t, c, g, "/metrics"); !strings.Contains(metrics, `hookonce_unrouted_total{reason="unmatched",source="orders"} 1`) {
			t.Error("the event that goes nowhere is not counted once")
		}
		insist(t, c, g, cfg.Sources[0], typed("somewhere", "invoice.paid", false))
		ledger.awaitIDs(t, []string{"somewhere"})
		closeNow(t, g)
		ledger.eachOnce(t, []string{"somewhere"})
		mailer.eachOnce(t, nil)
	})
}

// What a source takes is bounded, in the way that its sender retries.
func TestRateOfASource(t *testing.T) {
	app := newSink(t)
	cfg := configured(sqliteStore(t), app.URL)
	cfg.Sources = append(cfg.Sources, source("refunds", app.URL))
	cfg.Sources[0].Rate, cfg.Sources[0].Burst = 0.001, 3
	g, c := start(t, cfg), client(t)
	var taken, refused int
	for _, id := range ids("a", 6) {
		r, err := post(t, c, g, cfg.Sources[0], event(id))
		switch {
		case err == nil && r.status == http.StatusOK:
			taken++
		case err == nil && r.status == http.StatusServiceUnavailable && r.retry != "":
			refused++
		default:
			t.Errorf("answered %+v, %v", r, err)
		}
		insist(t, c, g, cfg.Sources[1], event(id))
	}
	if taken != 3 || refused != 3 {
		t.Errorf("%d were taken and %d refused, want 3 and 3", taken, refused)
	}
}

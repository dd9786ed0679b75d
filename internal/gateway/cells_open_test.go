package gateway

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/reconcile/reconciletest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// What never arrived stands in each cell that compares its source, until it is on record in any of them: then it is over in all.
func TestCellsCloseWhatAnotherOneHas(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	sink := newSink(t)
	l, s := newLister(t, sink.URL)
	compared(&s, reconciletest.Token, config.Report)
	w := newCellWorld(t, sink.URL, 1, 1)
	w.change = func(cfg *config.Config) { cfg.Sources = append(cfg.Sources, s) }
	w.startAll()
	w.awaitMap(int64(w.number), w.cells...)
	await := func(what string, as func(c *testCell) (bool, error)) {
		t.Helper()
		for deadline := time.Now().Add(2 * patience); ; pause(5) {
			all := true
			for _, c := range w.cells {
				is, err := as(c)
				all = all && is && err == nil
			}
			if all {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("waited for %s", what)
			}
		}
	}
	for _, c := range w.cells {
		begun(t, c.gateway.store, "billing")
	}
	missing := func(want ...string) func(c *testCell) (bool, error) {
		return func(c *testCell) (bool, error) {
			var keys []string
			all, err := c.gateway.store.Missing(t.Context(), journal.MissingQuery{Source: "billing", Now: time.Now(), Limit: 10})
			for _, m := range all {
				keys = append(keys, m.Key)
			}
			slices.Sort(keys)
			return slices.Equal(keys, want), err
		}
	}
	l.make("evt_1", "evt_2")
	await("what never arrived", missing("evt_1", "evt_2"))
	if r, err := w.insistTo(client(t), w.cells[0], "billing", reconciletest.Entry{ID: "evt_1"}.Body()); err != nil || r.status != http.StatusOK {
		t.Fatal(r, err)
	}
	await("the end of what arrived", missing("evt_2"))
}

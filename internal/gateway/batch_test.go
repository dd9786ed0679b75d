package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/provider/spec"
)

// batched is a source whose sender puts events into an array, and retries some of them in another one.
func batched(to string) config.Source {
	s := source("crm", to)
	s.Provider = "custom"
	s.Spec = &spec.Spec{
		Name:   "our-crm",
		Verify: []spec.Verify{{Signature: spec.Signature{In: "header:X-Signature"}, Sign: []spec.Value{"body"}}},
		Split:  &spec.Split{Items: []spec.Value{"json:$.events[*]"}},
		Event:  spec.Extract{Key: [][]spec.Value{{"item:$.id"}}},
	}
	return s
}

func batch(ids ...string) []byte {
	var items []string
	for _, id := range ids {
		items = append(items, fmt.Sprintf(`{"id":%q}`, id))
	}
	return []byte(`{"events":[` + strings.Join(items, ",") + `]}`)
}

// Copies are recognised item by item, however the sender puts them together.
func TestBatchesAreDeduplicatedByItem(t *testing.T) {
	onEveryStore(t, func(t *testing.T, store config.Store) {
		app := newSink(t)
		s := batched(app.URL)
		cfg := settings(store, app.URL)
		cfg.Sources = []config.Source{s}
		g, c := start(t, cfg), client(t)
		for _, sent := range []struct {
			body    []byte
			verdict string
		}{
			{batch("a", "b"), "accepted"},
			{batch("b", "c"), "accepted"}, // of which only c is new
			{batch("c", "a", "b"), "duplicate"},
			{batch("d", "d"), "accepted"},
			{batch(), "accepted"},
		} {
			r, err := post(t, c, g, s, sent.body)
			if err != nil || r.status != 200 || r.verdict != sent.verdict {
				t.Errorf("%s: answered %+v, %v; want 200, %s", sent.body, r, err, sent.verdict)
			}
		}
		app.awaitIDs(t, []string{"a", "b", "c", "d"})
		closeNow(t, g) // nothing more comes
		app.eachOnce(t, []string{"a", "b", "c", "d"})
	})
}

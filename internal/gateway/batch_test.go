package gateway

import (
	"fmt"
	"net/http"
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

// goCardless is a source whose sender is in the catalogue and batches in the same form.
func goCardless(to string) config.Source {
	s := source("payments", to)
	s.Provider = "gocardless"
	return s
}

// Copies are recognised item by item, however the sender puts them together.
func TestBatchesAreDeduplicatedByItem(t *testing.T) {
	onEveryStore(t, func(t *testing.T, store config.Store) { rebatch(t, store, batched) })
	t.Run("gocardless", func(t *testing.T) { rebatch(t, sqliteStore(t), goCardless) })
}

func rebatch(t *testing.T, store config.Store, from func(to string) config.Source) {
	app := newSink(t)
	s := from(app.URL)
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
}

// All items of a request are stored in one transaction, even when they are more than share one otherwise.
func TestBatchIsOneTransaction(t *testing.T) {
	cfg := settings(postgresStore(t), "")
	cfg.Sources = []config.Source{goCardless("")}
	g, c := start(t, cfg), client(t)
	const n = 600
	r, err := post(t, c, g, cfg.Sources[0], batch(ids("EV", n)...))
	if err != nil || r.status != http.StatusOK || r.verdict != "accepted" {
		t.Fatalf("answered %+v, %v", r, err)
	}
	execSQL(t, cfg.Store.DSN, fmt.Sprintf(`DO $$ BEGIN
		ASSERT (SELECT count(*) = %d AND count(DISTINCT xmin::text) = 1 FROM hookonce.events), 'not one transaction';
	END $$`, n))
}

// An item that the database refuses leaves its neighbours stored, and nothing of the request is
// acknowledged until it is stored as well.
func TestPoisonedBatchIsNotAcknowledged(t *testing.T) {
	app := newSink(t)
	cfg := settings(postgresStore(t), app.URL)
	s := goCardless(app.URL)
	cfg.Sources = []config.Source{s}
	g, c := start(t, cfg), client(t)
	execSQL(t, cfg.Store.DSN, `ALTER TABLE hookonce.events ADD CONSTRAINT refuse CHECK (key <> 'poison')`)
	for _, body := range [][]byte{batch("a", "poison", "b"), batch("a", "poison", "b"), batch("poison", "c")} {
		r, err := post(t, c, g, s, body)
		if err != nil || r.status != http.StatusServiceUnavailable || r.retry == "" || r.verdict != "" {
			t.Errorf("%s: answered %+v, %v; want a 503 with Retry-After", body, r, err)
		}
	}
	app.awaitIDs(t, []string{"a", "b", "c"})
	execSQL(t, cfg.Store.DSN, `ALTER TABLE hookonce.events DROP CONSTRAINT refuse`)
	if r, err := post(t, c, g, s, batch("a", "poison", "b")); err != nil || r.status != http.StatusOK || r.verdict != "accepted" {
		t.Errorf("the retry is answered %+v, %v", r, err)
	}
	app.awaitIDs(t, []string{"poison"})
	closeNow(t, g) // nothing more comes
	app.eachOnce(t, []string{"a", "b", "c", "poison"})
}

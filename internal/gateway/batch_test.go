package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/testskip"
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
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) { rebatch(t, store, batched) })
	t.Run("gocardless", func(t *testing.T) { rebatch(t, sqliteStore(t), goCardless) })
}

func rebatch(t *testing.T, store config.Store, from func(to string) config.Source) {
	app := newSink(t)
	s := from(app.URL)
	cfg := configured(store, app.URL)
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

// All items of a request are stored in one transaction, unless they are more than a part has.
func TestBatchIsOneTransaction(t *testing.T) {
	t.Parallel()
	cfg := configured(postgresStore(t), "")
	cfg.Sources = []config.Source{goCardless("")}
	g, c := start(t, cfg), client(t)
	const n = 256
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
	t.Parallel()
	app := newSink(t)
	cfg := configured(postgresStore(t), app.URL)
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

// Signed batches whose items together are many times as large as the requests take no more memory than is set aside, and
// those who send single events, or batches of a few, get in beside them.
func TestBatchesThatGrow(t *testing.T) {
	testskip.Long(t)
	app := newSink(t)
	grown, single := batched(app.URL), source("orders", app.URL)
	cfg := configured(sqliteStore(t), app.URL)
	cfg.Sources, cfg.Queue.Bytes = []config.Source{grown, single}, 16<<20
	cfg.Sources[0].MaxBody = 4 << 20
	g, c := start(t, cfg), client(t)
	peak := watchHeap(t)

	const attacks, items = 16, 60
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	var attackers sync.WaitGroup
	for i := range attacks {
		ids := make([]string, items)
		for n := range ids {
			ids[n] = fmt.Sprintf("grown-%d-%d", i, n)
		}
		body := append(bytes.TrimSuffix(batch(ids...), []byte("}")), `,"x":"`+strings.Repeat("x", 2<<20)+`"}`...)
		header := signed(t, grown, body)
		attackers.Go(func() {
			for ctx.Err() == nil {
				r, err := postSigned(c, g, grown.Name, header, body)
				if err != nil || r.status != http.StatusOK && (r.status != http.StatusServiceUnavailable || r.retry == "") {
					t.Errorf("a batch was answered %+v, %v", r, err)
				}
			}
		})
	}
	for n := 0; ctx.Err() == nil; n++ {
		for _, sent := range []struct {
			source config.Source
			body   []byte
		}{
			{single, event(fmt.Sprint("single-", n))},
			{grown, batch(fmt.Sprint("item-", n))},
			{grown, batch(fmt.Sprint("one-", n), fmt.Sprint("two-", n))},
		} {
			if r, err := post(t, c, g, sent.source, sent.body); err != nil || r.status != http.StatusOK {
				t.Errorf("a genuine request was answered %+v, %v", r, err)
			}
		}
	}
	attackers.Wait()
	// What is live at most, and as much garbage: bodies that are read, the queue, what is held, and the attackers' own.
	const bound = 2 * (128<<20 + 16<<20 + 64<<20 + attacks*2<<20)
	if got := peak(); got > bound {
		t.Errorf("the heap grew to %d MiB, more than %d", got>>20, bound>>20)
	} else {
		t.Logf("the heap grew to %d MiB of %d", got>>20, bound>>20)
	}
}

// A batch of more events than the queue has room for gets in while others send as fast as they can.
func TestLargeBatchAtSteadyLoad(t *testing.T) {
	testskip.Long(t)
	onEveryStore(t, func(t *testing.T, store config.Store) {
		app := newSink(t)
		crm, single := batched(app.URL), source("orders", app.URL)
		cfg := configured(store, app.URL)
		crm.Deadline = patience // how long it may take is not what is tested
		cfg.Sources, cfg.Queue.Events = []config.Source{crm, single}, 500
		g, c := start(t, cfg), client(t)
		var load sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for i := range 4 {
			load.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					if r, err := post(t, c, g, single, event(fmt.Sprintf("%d-%d", i, n))); err != nil || r.status != http.StatusOK {
						t.Errorf("a single event was answered %+v, %v", r, err)
					}
				}
			})
		}
		ids := make([]string, 2250)
		for n := range ids {
			ids[n] = fmt.Sprint("item-", n)
		}
		for _, verdict := range []string{"accepted", "duplicate"} {
			if r := insist(t, c, g, crm, batch(ids...)); r.verdict != verdict && r.again == 0 {
				t.Errorf("the batch was answered %+v, want %s", r, verdict)
			}
		}
		stop()
		load.Wait()
	})
}

// watchHeap samples what the objects on the heap take, garbage included, and returns the most that it saw.
func watchHeap(t *testing.T) func() uint64 {
	t.Helper()
	runtime.GC()
	stop, most := make(chan struct{}), make(chan uint64, 1)
	go func() {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		peak := uint64(0)
		for {
			metrics.Read(sample)
			peak = max(peak, sample[0].Value.Uint64())
			select {
			case <-stop:
				most <- peak
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(stop); return <-most }
}

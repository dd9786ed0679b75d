package ingest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// newSyncGate serves "billing" in mode sync, with an application that answers every delivery with a.
func newSyncGate(t *testing.T, a *journal.Response, change func(*ingest.Source)) *gate {
	t.Helper()
	g := newGate(t, func(o *ingest.Options) {
		o.Answers = o.Journal.(*engine.Engine)
		o.Sources[0].Sync = true
		if change != nil {
			change(&o.Sources[0])
		}
	})
	go func() {
		for w := range g.journal.Work() {
			g.journal.Finish(journal.Outcome{Held: w.Held, State: journal.Done, Status: 200, Response: a})
		}
	}()
	return g
}

var spoken = &journal.Response{Status: 201, Header: []byte("Content-Type: text/xml\r\nX-Two: a\r\nX-Two: b\r\n"), Body: []byte("<Response/>")}

// A sender gets status, headers and body of the answer, with a verdict; copies get the same.
func TestSyncReply(t *testing.T) {
	g := newSyncGate(t, spoken, nil)
	for _, verdict := range []string{"accepted", "duplicate"} {
		w := g.send("billing", `{"id":"a"}`)
		wantAnswer(t, w, 201, verdict, "<Response/>")
		if h := w.Header(); h.Get("Content-Type") != "text/xml" || len(h["X-Two"]) != 2 {
			t.Errorf("headers %v", h)
		}
	}
	wantAnswer(t, g.send("billing", `{"id":"a","other":true}`), 201, "conflict", "<Response/>")
}

// Requests of several events, and of none, are acknowledged as with async.
func TestSyncBatch(t *testing.T) {
	g := newSyncGate(t, spoken, nil)
	wantAnswer(t, g.send("billing", `[{"id":"a"},{"id":"b"}]`), 200, "accepted", `{"status":"accepted","accepted":2,"duplicate":0,"conflict":0,"unkeyed":0}`+"\n")
	wantAnswer(t, g.send("billing", `[]`), 200, "accepted", `{"status":"accepted","accepted":0,"duplicate":0,"conflict":0,"unkeyed":0}`+"\n")
	wantAnswer(t, g.send("billing", `[{"id":"c"}]`), 201, "accepted", "<Response/>")
}

// What goes nowhere, and what was done without an answer, is acknowledged.
func TestSyncWithoutAnswer(t *testing.T) {
	g := newSyncGate(t, nil, func(s *ingest.Source) { s.Routes[0].Types = []string{"call"} })
	wantAnswer(t, g.send("billing", `{"id":"a","type":"call"}`), 200, "accepted", `{"status":"accepted","key":"a"}`+"\n")
	wantAnswer(t, g.send("billing", `{"id":"b","type":"other"}`), 200, "accepted", `{"status":"accepted","key":"b"}`+"\n")
}

// standing are answers that say the same of every delivery.
type standing journal.DeliveryStatus

func (s standing) Await(context.Context, journal.DeliveryID) (journal.DeliveryStatus, error) {
	return journal.DeliveryStatus(s), nil
}

// A copy of an event that is not done is not acknowledged because there is no delivery to the source's
// destination: it waits for another one, which had this one's place before.
func TestSyncCopyWaitsElsewhere(t *testing.T) {
	for _, c := range []struct {
		journal.Result
		code int
	}{
		{journal.Result{Status: journal.Accepted}, 200}, // dropped, as stale
		{journal.Result{Status: journal.Unkeyed}, 200},
		{journal.Result{Status: journal.Duplicate, Done: true}, 200}, // its answer is not kept any more
		{journal.Result{Status: journal.Conflict, Done: true}, 200},
		{journal.Result{Status: journal.Duplicate}, 503},
		{journal.Result{Status: journal.Conflict}, 503},
		{journal.Result{Status: journal.Duplicate, Redriven: true}, 503},
	} {
		g := newGate(t, func(o *ingest.Options) {
			c.ID = 1
			o.Journal, o.Answers, o.Sources[0].Sync = stub{results: []journal.Result{c.Result}}, standing{State: journal.Done}, true
		})
		w := g.send("billing", `{"id":"a"}`)
		if w.Code != c.code {
			t.Errorf("%+v is answered %d, want %d", c.Result, w.Code, c.code)
		}
		if c.code != http.StatusOK {
			wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), c.code, "unanswered")
		}
	}
}

// An event that vanishes from the store while its sender waits, because another database took over that does not have it, is
// not acknowledged, and the sender brings it again. One that is known to be done is, whatever became of its record.
func TestSyncEventVanishes(t *testing.T) {
	g := newGate(t, func(o *ingest.Options) {
		o.Answers = o.Journal.(*engine.Engine)
		o.Sources[0].Sync = true
	})
	go func() {
		lost := false
		for w := range g.journal.Work() {
			if !lost {
				g.model.Lose(w.EventID)
			}
			lost = true
			g.journal.Finish(journal.Outcome{Held: w.Held, State: journal.Done, Status: 200, Response: spoken})
		}
	}()
	w := g.send("billing", `{"id":"a"}`)
	wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, "store")
	wantAnswer(t, g.send("billing", `{"id":"a"}`), 201, "accepted", "<Response/>")

	for _, c := range []struct {
		journal.Result
		code int
	}{
		{journal.Result{Status: journal.Accepted}, 503},
		{journal.Result{Status: journal.Unkeyed}, 503},
		{journal.Result{Status: journal.Duplicate}, 503},
		{journal.Result{Status: journal.Duplicate, Redriven: true}, 503},
		{journal.Result{Status: journal.Conflict}, 503},
		{journal.Result{Status: journal.Duplicate, Done: true}, 200},
		{journal.Result{Status: journal.Conflict, Done: true}, 200},
	} {
		g := newGate(t, func(o *ingest.Options) {
			c.ID = 1
			o.Journal, o.Answers, o.Sources[0].Sync = stub{results: []journal.Result{c.Result}}, standing{State: journal.Absent}, true
		})
		w := g.send("billing", `{"id":"a"}`)
		if w.Code != c.code {
			t.Errorf("%+v is answered %d, want %d", c.Result, w.Code, c.code)
		}
		if c.code != http.StatusOK {
			wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), c.code, "store")
		}
	}
}

// While nobody delivers, the sender is told to come again when its time is over, and nothing is acknowledged.
func TestSyncUnanswered(t *testing.T) {
	g := newGate(t, func(o *ingest.Options) {
		o.Answers = o.Journal.(*engine.Engine)
		o.Sources[0].Sync, o.Sources[0].Deadline = true, 100*time.Millisecond
	})
	w := g.send("billing", `{"id":"a"}`)
	wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, "unanswered")
	g.receive(t)
}

// held are answers that come when they are released.
type held struct {
	waiting chan context.Context
	release chan struct{}
}

func (h held) Await(ctx context.Context, _ journal.DeliveryID) (journal.DeliveryStatus, error) {
	h.waiting <- ctx
	<-h.release
	return journal.DeliveryStatus{State: journal.Done, Response: spoken}, ctx.Err()
}

// A sender that waits for its answer takes up room until it has it, so that no crowd of them waits; and
// one that hangs up ends nothing.
func TestSyncSendersTakeUpRoom(t *testing.T) {
	h := held{make(chan context.Context, 3), make(chan struct{})}
	g := newGate(t, func(o *ingest.Options) {
		o.MaxQueued, o.Sources, o.Answers = 2, o.Sources[:1], h
		o.Sources[0].Sync = true
	})
	answers := make(chan *httptest.ResponseRecorder, 3)
	for _, id := range []string{"a", "b"} {
		ctx, hangUp := context.WithCancel(t.Context())
		go func() { answers <- serve(g, request("billing", `{"id":"`+id+`"}`).WithContext(ctx)) }()
		waiting := <-h.waiting
		hangUp()
		if err := waiting.Err(); err != nil {
			t.Errorf("nobody waits for the answer any more: %v", err)
		}
	}
	go func() { answers <- g.send("billing", `{"id":"c"}`) }()
	select {
	case w := <-answers:
		wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, "queue_full")
	case <-h.waiting:
		t.Error("a third one waits where there is room for two")
	}
	close(h.release)
	for range 2 {
		wantAnswer(t, <-answers, 201, "accepted", "<Response/>")
	}
	wantAnswer(t, g.send("billing", `{"id":"c"}`), 201, "accepted", "<Response/>")
}

// No request is answered whose event may not be stored.
func TestSyncStoreFails(t *testing.T) {
	g := newSyncGate(t, spoken, nil)
	g.faulty.Fail(journaltest.OpAccept, 1, journaltest.NotPersisted)
	w := g.send("billing", `{"id":"a"}`)
	wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, "store")
}

// newOpenGate serves "billing" open for carts, and returns the keys that went past the store.
func newOpenGate(t *testing.T, accept error, attempt journal.State) (*gate, *[]string) {
	t.Helper()
	var mu sync.Mutex
	var bypassed []string
	g := newGate(t, func(o *ingest.Options) {
		o.Bypasser = o.Journal.(*engine.Engine)
		o.Journal = stub{err: accept}
		o.Sources[0].Open, o.Sources[0].OpenTypes = true, []string{"cart.*"}
		o.BypassAttempt = func(_ context.Context, w *journal.Work) journal.Outcome {
			mu.Lock()
			defer mu.Unlock()
			bypassed = append(bypassed, w.Key)
			return journal.Outcome{Held: w.Held, State: attempt, Started: time.Now()}
		}
	})
	return g, &bypassed
}

// Which requests go past the store: those whose every event may, when the store is at fault.
func TestOpen(t *testing.T) {
	const cart = `{"id":"a","type":"cart.updated"}`
	for _, c := range []struct {
		name, source, body string
		accept             error
		attempt            journal.State
		bypassed           int
		verdict, reason    string // one of them
	}{
		{"a cart", "billing", cart, journal.ErrUnavailable, journal.Done, 1, "unprotected", ""},
		{"a batch of carts", "billing", `[` + cart + `,{"id":"b","type":"cart.x"}]`, journal.ErrUnavailable, journal.Done, 2, "unprotected", ""},
		{"the destination fails", "billing", cart, journal.ErrUnavailable, journal.Failed, 1, "", "store"},
		{"another type", "billing", `{"id":"a","type":"order.paid"}`, journal.ErrUnavailable, journal.Done, 0, "", "store"},
		{"a batch with another type", "billing", `[` + cart + `,{"id":"b","type":"order.paid"}]`, journal.ErrUnavailable, journal.Done, 0, "", "store"},
		{"no key", "billing", `{"type":"cart.updated"}`, journal.ErrUnavailable, journal.Done, 0, "", "store"},
		{"a source that is closed", "orders", cart, journal.ErrUnavailable, journal.Done, 0, "", "store"},
		{"the queue is full", "billing", cart, journal.ErrFull, journal.Done, 0, "", "queue_full"},
		{"the gateway stops", "billing", cart, journal.ErrClosed, journal.Done, 0, "", "closing"},
		{"a fault of another kind", "billing", cart, errors.New("surprise"), journal.Done, 0, "", "internal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, bypassed := newOpenGate(t, c.accept, c.attempt)
			w := g.send(c.source, c.body)
			if len(*bypassed) != c.bypassed {
				t.Errorf("%q went past the store, want %d", *bypassed, c.bypassed)
			}
			if c.reason != "" {
				wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, c.reason)
				return
			}
			if w.Code != http.StatusOK || w.Header().Get("Hookonce-Status") != c.verdict {
				t.Errorf("answered %d %q", w.Code, w.Header().Get("Hookonce-Status"))
			}
			if n := gather(t, g, "hookonce_events_total")["billing,unprotected"]; n != float64(c.bypassed) {
				t.Errorf("%v events counted, want %d", n, c.bypassed)
			}
		})
	}
}

// A request that is not verified never goes past the store.
func TestOpenUnverified(t *testing.T) {
	g, bypassed := newOpenGate(t, journal.ErrUnavailable, journal.Done)
	r := request("billing", `{"id":"a","type":"cart.updated"}`)
	r.Header.Set(signatureHeader, "00")
	if w := serve(g, r); w.Code != http.StatusUnauthorized || len(*bypassed) != 0 {
		t.Errorf("answered %d, %q went past the store", w.Code, *bypassed)
	}
}

package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// Law 1: an unverified request leaves no trace, so the genuine copy after it is new.
func TestUnverifiedFirstThenVerified(t *testing.T) {
	g := newGate(t, nil)
	forged := request("billing", `{"id":"a"}`)
	forged.Header.Set(signatureHeader, sign("something else"))
	w := serve(g, forged)
	wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), 401, "signature_mismatch")
	if strings.Contains(w.Body.String(), sign(`{"id":"a"}`)) {
		t.Errorf("the answer says what would have matched: %s", w.Body)
	}
	if n := g.model.Events(); n != 0 {
		t.Fatalf("%d events stored for a forged request", n)
	}
	wantAnswer(t, g.send("billing", `{"id":"a"}`), 200, "accepted", `{"status":"accepted","key":"a"}`+"\n")
	g.receive(t)
}

// Law 3: copies that arrive while the first is being committed are not acknowledged before it is.
func TestNothingIsAcknowledgedBeforeTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, nil)
		hold := g.faulty.Block(journaltest.OpAccept)
		const copies = 8
		answers := make(chan string, copies)
		for range copies {
			go func() { answers <- g.send("billing", `{"id":"a"}`).Header().Get("Hookonce-Status") }()
		}
		synctest.Wait()
		if n := len(answers); n != 0 {
			t.Fatalf("%d copies were answered before the commit", n)
		}
		hold.Open()
		counts := map[string]int{}
		for range copies {
			counts[<-answers]++
		}
		if counts["accepted"] != 1 || counts["duplicate"] != copies-1 {
			t.Errorf("answers: %v, want one accepted and %d duplicates", counts, copies-1)
		}
	})
}

// Law 4: events without a key are all passed on; the same key of another source is another event.
func TestNothingCollapses(t *testing.T) {
	t.Run("events without an id", func(t *testing.T) {
		g := newGate(t, nil)
		for range 20 {
			wantAnswer(t, g.send("billing", `{"type":"x"}`), 200, "unkeyed", `{"status":"unkeyed"}`+"\n")
		}
		for range 20 {
			if w := g.receive(t); w.Key != "" {
				t.Errorf("an unkeyed event came out with key %q", w.Key)
			}
		}
	})
	t.Run("the same id from two sources", func(t *testing.T) {
		g := newGate(t, nil)
		for _, source := range []string{"billing", "orders"} {
			wantAnswer(t, g.send(source, `{"id":"a"}`), 200, "accepted", `{"status":"accepted","key":"a"}`+"\n")
		}
		if a, b := g.receive(t), g.receive(t); a.Source == b.Source {
			t.Errorf("both deliveries are of source %q", a.Source)
		}
	})
}

// Law 8: a sender that hangs up while its event is being committed cancels nothing.
func TestSenderHangsUpDuringTheCommit(t *testing.T) {
	g := newGate(t, nil)
	hold := g.faulty.Block(journaltest.OpAccept)
	gone, served := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		go func() {
			<-r.Context().Done()
			close(gone)
		}()
		g.ServeHTTP(w, r)
		close(served)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(hold.Open)

	ctx, hangUp := context.WithCancel(context.Background())
	body := `{"id":"a"}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/in/billing", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(signatureHeader, sign(body))
	failed := make(chan error, 1)
	go func() {
		_, err := http.DefaultTransport.RoundTrip(r)
		failed <- err
	}()
	<-hold.Arrived
	hangUp()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatalf("the sender got %v", err)
	}
	<-gone
	hold.Open()
	<-served
	if _, ok := g.model.Lookup("billing", "a"); !ok {
		t.Error("the event is not stored")
	}
	g.receive(t)
	// The handler itself saw the commit through: it knows what became of the event.
	if n := gather(t, g, "hookonce_events_total")["billing,accepted"]; n != 1 {
		t.Errorf("hookonce_events_total = %v, want 1", n)
	}
	wantAnswer(t, g.send("billing", body), 200, "duplicate", `{"status":"duplicate","key":"a"}`+"\n")
}

// Laws 3, 9 and 10: a store that fails is a 503, and the retry reads the truth.
func TestStoreFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		mode  journaltest.Mode
		retry string
	}{
		{"not persisted", journaltest.NotPersisted, "accepted"},
		{"but persisted", journaltest.Persisted, "duplicate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t, nil)
				g.faulty.Fail(journaltest.OpAccept, 1, c.mode)
				w := g.send("billing", `{"id":"a"}`)
				wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), 503, "store")
				wantAnswer(t, g.send("billing", `{"id":"a"}`), 200, c.retry, fmt.Sprintf(`{"status":%q,"key":"a"}`+"\n", c.retry))
				g.receive(t) // at once, or when the lease of the lost commit ends
				if n := g.model.Events(); n != 1 {
					t.Errorf("%d events stored, want 1", n)
				}
				wantAnswer(t, g.send("billing", `{"id":"a"}`), 200, "duplicate", `{"status":"duplicate","key":"a"}`+"\n")
			})
		})
	}
}

// Law 10: a store that does not answer in time leaves the outcome unknown, and the answer is a 503
// after the deadline of our own.
func TestStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, nil)
		hold := g.faulty.Block(journaltest.OpAccept)
		start := time.Now()
		w := g.send("billing", `{"id":"a"}`)
		wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), 503, "timeout")
		if took := time.Since(start); took != acceptTimeout {
			t.Errorf("answered after %v, want %v", took, acceptTimeout)
		}
		hold.Open()
		g.receive(t)
		wantAnswer(t, g.send("billing", `{"id":"a"}`), 200, "duplicate", `{"status":"duplicate","key":"a"}`+"\n")
	})
}

// Law 12: a row that the store refuses leaves its neighbours stored, and is not acknowledged.
func TestPoisonedRow(t *testing.T) {
	g := newGate(t, nil)
	g.model.Refuse = func(e *journal.Record) error {
		if e.Key == "poison" {
			return errors.New("the row is refused")
		}
		return nil
	}
	w := g.send("billing", `[{"id":"a"},{"id":"poison"},{"id":"b"}]`)
	wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), 503, "row_refused")
	for _, key := range []string{"a", "b"} {
		if _, ok := g.model.Lookup("billing", key); !ok {
			t.Errorf("the neighbour %q is not stored", key)
		}
		g.receive(t)
	}
	w = g.send("billing", `{"id":"poison"}`)
	wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), 503, "row_refused")
	if _, ok := g.model.Lookup("billing", "poison"); ok {
		t.Error("the refused row is stored")
	}
}

// Back-pressure: a full queue is answered 503 without waiting.
func TestQueueFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journaltest.NewFaulty(journaltest.NewMemory())
		j, err := engine.New(store, journaltest.Options(engine.Options{QueueEntries: 1}))
		if err != nil {
			t.Fatal(err)
		}
		hold := store.Block(journaltest.OpAccept)
		g := newGate(t, func(o *ingest.Options) { o.Journal = j })
		first := make(chan int)
		go func() { first <- g.send("billing", `{"id":"a"}`).Code }()
		<-hold.Arrived
		w := g.send("billing", `{"id":"b"}`)
		wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), 503, "queue_full")
		hold.Open()
		if code := <-first; code != 200 {
			t.Errorf("the first was answered %d", code)
		}
		work := <-j.Work()
		j.Finish(journal.Outcome{Held: work.Held, State: journal.Done})
		if err := j.Close(t.Context()); err != nil {
			t.Error(err)
		}
		w = g.send("billing", `{"id":"c"}`)
		wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), 503, "closing")
	})
}

// The race that check-then-insert loses: 200 ids, 8 copies of each at once.
func TestStormOfCopies(t *testing.T) {
	const ids, copies = 200, 8
	g := newGate(t, nil)
	var wg sync.WaitGroup
	verdicts := make(chan string, ids*copies)
	for i := range ids {
		body := fmt.Sprintf(`{"id":"evt_%d"}`, i)
		for range copies {
			wg.Go(func() { verdicts <- g.send("billing", body).Header().Get("Hookonce-Status") })
		}
	}
	delivered := map[string]int{}
	for range ids {
		delivered[g.receive(t).Key]++
	}
	wg.Wait()
	close(verdicts)
	counts := map[string]int{}
	for v := range verdicts {
		counts[v]++
	}
	if counts["accepted"] != ids || counts["duplicate"] != ids*(copies-1) {
		t.Errorf("answers: %v", counts)
	}
	if len(delivered) != ids || len(g.journal.Work()) != 0 {
		t.Errorf("%d ids came out, and %d deliveries too many", len(delivered), len(g.journal.Work()))
	}
}

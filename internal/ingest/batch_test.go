package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/provider"
)

// many returns a body of n items in the form of GoCardless, whose identifiers begin with name, each with pad bytes of its own,
// with around bytes about them.
func many(name string, n, pad, around int) string {
	var b strings.Builder
	b.WriteString(`{"events":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"%s-%d","pad":"%s"}`, name, i, strings.Repeat("x", pad))
	}
	fmt.Fprintf(&b, `],"meta":{"pad":"%s"}}`, strings.Repeat("y", around))
	return b.String()
}

// batches makes the sources those of a sender of batches.
func batches(o *ingest.Options) {
	for i := range o.Sources {
		o.Sources[i].Provider = provider.GoCardless(testSecret)
		o.Sources[i].MaxBody = 8 << 20
	}
}

// post sends a body as GoCardless signs it.
func (g *gate) post(source, body string) *httptest.ResponseRecorder {
	r := request(source, body)
	r.Header.Del(signatureHeader)
	r.Header.Set("Webhook-Signature", sign(body))
	return serve(g, r)
}

// ledger is a journal that notes in which parts the events came to it, and whether they were stored.
type ledger struct {
	ingest.Journal
	fail func(call int) error // before that call; nil: none

	mu    sync.Mutex
	calls int
	parts [][]string
	bytes int64 // of the largest part
}

func (l *ledger) Accept(ctx context.Context, entries []*journal.Event) ([]journal.Result, error) {
	var keys []string
	weight := int64(0)
	for _, e := range entries {
		keys = append(keys, e.Key)
		weight += e.Size()
	}
	l.mu.Lock()
	l.calls++
	call := l.calls
	l.bytes = max(l.bytes, weight)
	l.mu.Unlock()
	if l.fail != nil {
		if err := l.fail(call); err != nil {
			return nil, err
		}
	}
	results, err := l.Journal.Accept(ctx, entries)
	if err == nil {
		l.mu.Lock()
		l.parts = append(l.parts, keys)
		l.mu.Unlock()
	}
	return results, err
}

// A batch of more events than the queue has room for is stored part after part, in the order of its items, and answered when
// all of it is.
func TestLargeBatchComesInParts(t *testing.T) {
	l := &ledger{}
	g := newGate(t, func(o *ingest.Options) {
		batches(o)
		l.Journal, o.Journal, o.MaxQueued, o.MaxQueuedBytes = o.Journal, l, 8192, 64<<20
	})
	for name, c := range map[string]struct{ items, pad, around, parts int }{
		"many":       {9000, 100, 0, 36},
		"small":      {200, 100, 0, 1},
		"enveloped":  {60, 10, 500 << 10, 20}, // three make 1 MiB and more
		"large each": {5, 700 << 10, 0, 3},
	} {
		l.parts, l.bytes = nil, 0
		w := g.post("billing", many(name, c.items, c.pad, c.around))
		wantAnswer(t, w, http.StatusOK, "accepted", fmt.Sprintf(`{"status":"accepted","accepted":%d,"duplicate":0,"conflict":0,"unkeyed":0}`+"\n", c.items))
		if len(l.parts) != c.parts {
			t.Errorf("%s: stored in %d parts, want %d", name, len(l.parts), c.parts)
		}
		if l.bytes > 3<<20 {
			t.Errorf("%s: a part has %d bytes", name, l.bytes)
		}
		for i, key := range slices.Concat(l.parts...) {
			if want := fmt.Sprintf("%s-%d", name, i); key != want {
				t.Fatalf("%s: item %d was stored as the one at %d", name, i, i)
			}
		}
	}
}

// When a part of a batch fails, whatever it was that failed, the answer is 503; the sender's copy completes it, and nothing is
// there twice.
func TestPartOfABatchFails(t *testing.T) {
	const items = 1000
	body := many("evt", items, 100, 0)
	for name, c := range map[string]struct {
		harm   func(g *gate, l *ledger)
		reason string
		stored int // of the first attempt, at least
	}{
		"not persisted": {func(g *gate, l *ledger) {
			l.fail = func(call int) error {
				if call == 3 {
					g.faulty.Fail(journaltest.OpAccept, 1, journaltest.NotPersisted)
				}
				return nil
			}
		}, "store", 512},
		"persisted, and not known": {func(g *gate, l *ledger) {
			l.fail = func(call int) error {
				if call == 3 {
					g.faulty.Fail(journaltest.OpAccept, 1, journaltest.Persisted)
				}
				return nil
			}
		}, "store", 768},
		"full": {func(g *gate, l *ledger) {
			l.fail = func(call int) error {
				if call == 2 {
					return journal.ErrFull
				}
				return nil
			}
		}, "queue_full", 256},
		"a row is refused": {func(g *gate, l *ledger) {
			g.model.Refuse = func(e *journal.Record) error {
				if e.Key == "evt-300" && l.calls < 5 {
					return errors.New("refused")
				}
				return nil
			}
		}, "row_refused", items - 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{}
			g := newGate(t, func(o *ingest.Options) {
				batches(o)
				l.Journal, o.Journal = o.Journal, l
			})
			c.harm(g, l)
			w := g.post("billing", body)
			wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, c.reason)
			if n := g.model.Events(); n < c.stored || n >= items {
				t.Errorf("%d events are stored", n)
			}
			w = g.post("billing", body)
			if w.Code != http.StatusOK || g.model.Events() != items {
				t.Errorf("the copy was answered %d %s; %d events are stored", w.Code, w.Body, g.model.Events())
			}
			for i := range items {
				if _, ok := g.model.Lookup("billing", fmt.Sprintf("evt-%d", i)); !ok {
					t.Fatalf("evt-%d is lost", i)
				}
			}
		})
	}
}

// pace is a journal that says which source comes, and lets one call go on when it is told to.
type pace struct {
	instant
	came    chan string
	release chan struct{}
}

func newPace() *pace { return &pace{came: make(chan string, 1000), release: make(chan struct{})} }

func (p *pace) Accept(ctx context.Context, entries []*journal.Event) ([]journal.Result, error) {
	name, _, _ := strings.Cut(entries[0].Key, "-")
	p.came <- name
	select {
	case <-p.release:
		return p.instant.Accept(ctx, entries)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// step lets one part be stored and returns whose came next.
func (p *pace) step() []string {
	p.release <- struct{}{}
	synctest.Wait()
	return p.next()
}

func (p *pace) next() (names []string) {
	for {
		select {
		case name := <-p.came:
			names = append(names, name)
		default:
			return names
		}
	}
}

// One part of a batch is in the queue at a time: of the source that went longest ago, and of its batches that which has the least
// left.
func TestBatchesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		g := newGate(t, func(o *ingest.Options) {
			batches(o)
			o.Journal = p
		})
		answers := make(chan int, 5)
		var got []string
		send := func(source, name string, items int) {
			go func() { answers <- g.post(source, many(name, items, 10, 0)).Code }()
			synctest.Wait()
			got = append(got, p.next()...)
		}
		send("billing", "giant", 256*3)
		send("billing", "larger", 256*4)
		send("billing", "small", 256*2)
		send("orders", "other", 256*2)
		for range 11 {
			if n := len(got); n > 0 {
				p.release <- struct{}{}
				synctest.Wait()
				got = append(got, p.next()...)
			}
		}
		want := []string{"giant", "other", "small", "other", "small", "giant", "giant", "larger", "larger", "larger", "larger"}
		if !slices.Equal(got, want) {
			t.Errorf("the parts came as %v\nwant %v", got, want)
		}
		for range 4 {
			if code := <-answers; code != http.StatusOK {
				t.Errorf("answered %d", code)
			}
		}
	})
}

// After each part the store has half as much time for others as the part took.
func TestBatchesRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		g := newGate(t, func(o *ingest.Options) {
			batches(o)
			o.Journal = p
		})
		go g.post("billing", many("first", 600, 10, 0))
		for range 2 {
			synctest.Wait()
			time.Sleep(time.Second)
			p.next()
			p.release <- struct{}{}
			time.Sleep(time.Second/2 - 1)
			synctest.Wait()
			if came := p.next(); len(came) > 0 {
				t.Errorf("%v came while the turn rests", came)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if came := p.next(); len(came) != 1 {
				t.Errorf("%v came when the turn had rested", came)
			}
		}
		close(p.release)
	})
}

// A batch that has waited for as long as its sender waits is answered 503, and leaves its turn and its room to others.
func TestBatchWaitsForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		g := newGate(t, func(o *ingest.Options) {
			batches(o)
			o.Journal, o.MaxQueued, o.Sources = p, 64, o.Sources[:1]
		})
		answers := map[string]chan *httptest.ResponseRecorder{}
		post := func(name string, items int) {
			answer := make(chan *httptest.ResponseRecorder, 1)
			answers[name] = answer
			go func() { answer <- g.post("billing", many(name, items, 10, 0)) }()
			synctest.Wait()
		}
		post("first", 3) // two parts
		time.Sleep(time.Second)
		post("large", 20)
		time.Sleep(time.Second)
		post("small", 10)
		for _, at := range []time.Duration{1, 5} { // after each part the turn rests for half as long
			time.Sleep(at * time.Second)
			p.release <- struct{}{}
		}
		if w := <-answers["first"]; w.Code != http.StatusOK {
			t.Errorf("answered %d", w.Code)
		}
		for name, reason := range map[string]string{"large": "queue_full", "small": "timeout"} {
			w := <-answers[name]
			wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, reason)
		}
		p.next()
		close(p.release)
		for _, items := range []int{1, 10, 64, 1000} {
			if w := g.post("billing", many("later", items, 10, 0)); w.Code != http.StatusOK {
				t.Errorf("%d items were answered %d %s", items, w.Code, w.Body)
			}
		}
	})
}

// A queue that others keep full lets a part in all the same: what is freed is left to it.
func TestPartGetsIntoAFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		g := newGate(t, func(o *ingest.Options) {
			batches(o)
			o.Journal, o.MaxQueued, o.Sources = p, 64, o.Sources[:1]
		})
		answers := make(chan int, 200)
		post := func(name string, items int) {
			go func() { answers <- g.post("billing", many(name, items, 10, 0)).Code }()
			synctest.Wait()
		}
		for i := range 64 {
			post(fmt.Sprintf("single%d", i), 1)
		}
		post("batch", 20)
		post("refused", 1)
		if code := <-answers; code != http.StatusServiceUnavailable {
			t.Errorf("answered %d beyond the bound", code)
		}
		p.next()
		p.release <- struct{}{}
		synctest.Wait()
		<-answers
		post("refused", 1) // what is freed is the batch's
		if code := <-answers; code != http.StatusServiceUnavailable {
			t.Errorf("answered %d: a batch waits for the room", code)
		}
		if got := p.step(); !slices.Equal(got, []string{"batch"}) {
			t.Errorf("%v came when there was room for a part of two", got)
		}
		close(p.release)
		for range 64 {
			if code := <-answers; code != http.StatusOK {
				t.Errorf("answered %d", code)
			}
		}
	})
}

// Batches that wait hold no more than half of the memory for bodies, and what is no batch gets in beside them.
func TestWaitingBatchesLeaveRoomForBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		g := newGate(t, func(o *ingest.Options) {
			batches(o)
			o.Journal, o.MaxReading, o.Sources = p, 8<<20, o.Sources[:1]
			o.Sources[0].MaxBody = 1 << 20
		})
		answers := make(chan int, 100)
		post := func(items int) {
			body := many("batch", items, 1000, 0)
			go func() { answers <- g.post("billing", body).Code }()
			synctest.Wait()
		}
		for range 8 {
			post(700) // 0.7 MB, of which five and a bit are a half of the memory
		}
		for range 3 {
			select {
			case code := <-answers:
				if code != http.StatusServiceUnavailable {
					t.Errorf("a batch beyond the bound was answered %d", code)
				}
			default:
				t.Error("a batch beyond the bound waits")
			}
		}
		for range 20 {
			post(1)
		}
		close(p.release)
		for range 25 {
			if code := <-answers; code != http.StatusOK {
				t.Errorf("answered %d", code)
			}
		}
	})
}

// A provider that counts fewer events than it yields, or more, is never acknowledged: one of them would be lost.
func TestMiscountedBatch(t *testing.T) {
	for _, n := range []int{2, 4, 5000} {
		g := newGate(t, func(o *ingest.Options) { o.Sources[0].Provider = miscounting(n) })
		w := g.send("billing", "three")
		wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, "internal")
	}
}

// miscounting is a provider whose batches have three events and are said to have another number.
type miscounting int

func (miscounting) Profile() hookonce.Profile { return hookonce.Profile{Name: "test"} }

func (n miscounting) Open(*hookonce.Request) (*hookonce.Verified, error) {
	return &hookonce.Verified{Batch: &hookonce.Batch{Len: int(n), All: func(yield func(*hookonce.Event) bool) {
		for i := range 3 {
			if !yield(&hookonce.Event{Key: fmt.Sprint(i)}) {
				return
			}
		}
	}}}, nil
}

// A batch past the store goes there as a whole, the parts that were not stored before.
func TestLargeBatchPastTheStore(t *testing.T) {
	var keys []string
	g := newGate(t, func(o *ingest.Options) {
		batches(o)
		o.Sources[0].Open = true
		o.Bypasser = bypassed(func(entries []*journal.Event) {
			for _, e := range entries {
				keys = append(keys, e.Key)
			}
		})
		o.Journal = &ledger{Journal: o.Journal, fail: func(call int) error {
			if call > 1 {
				return journal.ErrUnavailable
			}
			return nil
		}}
	})
	w := g.post("billing", many("evt", 600, 10, 0))
	wantAnswer(t, w, http.StatusOK, "unprotected", `{"status":"unprotected","accepted":256,"duplicate":0,"conflict":0,"unkeyed":0,"unprotected":344}`+"\n")
	if len(keys) != 344 || keys[0] != "evt-256" || keys[343] != "evt-599" {
		t.Errorf("%d went past the store", len(keys))
	}
	keys = nil
	unkeyed := strings.Replace(many("evt", 600, 10, 0), `"id":"evt-599"`, `"id":null`, 1)
	w = g.post("billing", unkeyed)
	wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), http.StatusServiceUnavailable, "store")
	if len(keys) > 0 {
		t.Errorf("%d went past the store, though one of the request may not", len(keys))
	}
}

type bypassed func([]*journal.Event)

func (b bypassed) Bypass(_ context.Context, entries []*journal.Event, _ journal.Attempter) ([]journal.Result, error) {
	b(entries)
	results := make([]journal.Result, len(entries))
	for i := range results {
		results[i].Status = journal.Unprotected
	}
	return results, nil
}

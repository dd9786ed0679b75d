package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// ledger is the reference model's side for people, which can fail and counts what is recorded.
type ledger struct {
	*journaltest.Memory
	down    atomic.Bool
	slow    atomic.Int64 // nanoseconds that a call takes
	calls   atomic.Int64
	largest atomic.Int64 // number of duplicate receipts in one call
}

func (l *ledger) RecordDuplicates(ctx context.Context, seen []journal.DuplicateReceipt) error {
	l.calls.Add(1)
	l.largest.Store(max(l.largest.Load(), int64(len(seen))))
	if l.down.Load() {
		return journaltest.ErrInjected
	}
	select {
	case <-time.After(time.Duration(l.slow.Load())):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return l.Memory.RecordDuplicates(ctx, seen)
}

// runRecorded is run with a journal that records duplicate receipts and follows pauses.
func runRecorded(t *testing.T, opt engine.Options, test func(t *testing.T, r *rig, l *ledger)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := journaltest.NewMemory()
		l := &ledger{Memory: store}
		test(t, startOn(t, store, l, 0, opt), l)
	})
}

// receipts returns what is on record about an event: how many copies of each kind.
func (r *rig) receipts(id int64) map[journal.ReceiptKind]int {
	r.t.Helper()
	h, err := r.store.History(context.Background(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	seen := map[journal.ReceiptKind]int{}
	for _, s := range h.Duplicates {
		seen[s.Kind] += s.Copies
	}
	return seen
}

func (r *rig) wantReceipts(id int64, want string) {
	r.t.Helper()
	if got := fmt.Sprint(r.receipts(id)); got != "map["+want+"]" {
		r.t.Errorf("on record %s, want %s", got, want)
	}
}

// Every copy is on record a second after it was answered, whichever way it was recognised.
func TestReceipts(t *testing.T) {
	runRecorded(t, engine.Options{}, func(t *testing.T, r *rig, _ *ledger) {
		gate := r.fault.Block(journaltest.OpAccept)
		lead, follower := r.goAccept(entry("a")), r.goAccept(entry("a"))
		gate.Open()
		first := r.want(<-lead, journal.Accepted)
		r.want(<-follower, journal.Duplicate) // attached to the first
		r.want(r.accept(entry("a")), journal.Duplicate)
		r.want(r.accept(forged("a")), journal.Conflict)
		r.wantReceipts(first.ID, "")
		sleep(time.Second)
		r.wantReceipts(first.ID, "conflict:1 duplicate:2")
		r.finish(r.receive(), journal.Failed, time.Now().Add(time.Hour))
		r.want(r.accept(entry("a")), journal.Duplicate)
		sleep(time.Second)
		r.wantReceipts(first.ID, "conflict:1 duplicate:2 redriven:1")
		r.finish(r.receive(), journal.Done, time.Time{})
		r.want(r.accept(entry("a")), journal.Duplicate) // from the memory of done keys
		sleep(time.Second)
		r.wantReceipts(first.ID, "conflict:1 duplicate:3 redriven:1")
	})
}

// A new event is no copy, and leaves nothing.
func TestReceipts_notOfNewEvents(t *testing.T) {
	runRecorded(t, engine.Options{}, func(t *testing.T, r *rig, l *ledger) {
		for i := range 10 {
			r.want(r.accept(entry(key(i))), journal.Accepted)
			r.want(r.accept(entry("")), journal.Unkeyed)
		}
		sleep(time.Minute)
		if n := l.calls.Load(); n != 0 {
			t.Errorf("%d calls of the store", n)
		}
	})
}

// A storm of copies of what is done costs the store one small transaction a second, and no copy waits for
// it, even if the store hangs.
func TestReceipts_stormNeedsNoStore(t *testing.T) {
	runRecorded(t, engine.Options{}, func(t *testing.T, r *rig, l *ledger) {
		first := r.want(r.accept(entry("a")), journal.Accepted)
		r.finish(r.receive(), journal.Done, time.Time{})
		before := r.fault.Calls(journaltest.OpAccept)
		for range 5 {
			for range 1000 {
				r.want(r.accept(entry("a")), journal.Duplicate)
			}
			sleep(time.Second)
		}
		if n := r.fault.Calls(journaltest.OpAccept) - before; n != 0 {
			t.Errorf("%d copies asked the store", n)
		}
		if n := l.calls.Load(); n > 5 || l.largest.Load() != 1 {
			t.Errorf("%d calls recorded at most %d duplicate receipts at once", n, l.largest.Load())
		}
		r.wantReceipts(first.ID, "duplicate:5000")
	})
}

// What is being recorded when the stop begins is recorded.
func TestReceipts_stopWaitsForThem(t *testing.T) {
	runRecorded(t, engine.Options{}, func(t *testing.T, r *rig, l *ledger) {
		first := r.want(r.accept(entry("a")), journal.Accepted)
		r.finish(r.receive(), journal.Done, time.Time{})
		r.want(r.accept(entry("a")), journal.Duplicate)
		l.slow.Store(int64(time.Second))
		sleep(time.Second)
		if n := l.calls.Load(); n != 1 {
			t.Fatalf("%d calls of the store", n)
		}
		if err := r.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		r.wantReceipts(first.ID, "duplicate:1")
	})
}

// What cannot be recorded waits, is bounded, and never keeps a copy from its answer.
func TestReceipts_storeIsDown(t *testing.T) {
	testskip.Race(t)
	const events = 4096 + 100
	runRecorded(t, engine.Options{DoneKeys: 2 * events, MaxHeld: events}, func(t *testing.T, r *rig, l *ledger) {
		var ids []int64
		for i := range events {
			ids = append(ids, r.want(r.accept(entry(key(i))), journal.Accepted).ID)
			r.finish(r.receive(), journal.Done, time.Time{})
		}
		l.down.Store(true)
		for range 3 {
			for i := range events {
				r.want(r.accept(entry(key(i))), journal.Duplicate)
			}
			sleep(5 * time.Second)
		}
		r.wantLog(1, "the store fails")
		l.down.Store(false)
		sleep(time.Minute)
		r.wantLog(1, "the store works again")
		kept := 0
		for _, id := range ids {
			if n := r.receipts(id)[journal.ReceiptDuplicate]; n > 0 {
				kept++
			}
		}
		if kept != 4096 {
			t.Errorf("copies of %d events were kept, the bound is 4096", kept)
		}
		if n := l.largest.Load(); n > 500 {
			t.Errorf("%d duplicate receipts in one transaction", n)
		}
	})
}

// Closing records what is left.
func TestReceipts_areRecordedAtTheEnd(t *testing.T) {
	runRecorded(t, engine.Options{}, func(t *testing.T, r *rig, _ *ledger) {
		first := r.want(r.accept(entry("a")), journal.Accepted)
		r.want(r.accept(entry("a")), journal.Duplicate)
		r.finish(r.receive(), journal.Done, time.Time{})
		if err := r.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		r.wantReceipts(first.ID, "duplicate:1")
	})
}

func pause(name string) journal.Pause {
	return journal.Pause{Destination: name, At: time.Now(), By: "ada", Reason: "test"}
}

func (r *rig) setPaused(name string, paused bool) {
	r.t.Helper()
	if _, err := r.SetPaused(context.Background(), pause(name), paused); err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
}

var appAndAudit = map[string]journal.Destination{"app": {}, "audit": {}}

// to returns an entry for one destination.
func to(destination, key string) *journal.Event {
	e := entry(key)
	e.Destinations = []string{destination}
	return e
}

// While a destination is paused nothing is handed out for it, neither what is new nor what is due, and the
// others go on.
func TestPause(t *testing.T) {
	runRecorded(t, engine.Options{Destinations: appAndAudit}, func(t *testing.T, r *rig, _ *ledger) {
		r.want(r.accept(to("app", "failed")), journal.Accepted)
		r.finish(r.receive(), journal.Failed, time.Now().Add(time.Minute))
		r.setPaused("app", true)
		if !r.Paused("app") || r.Paused("audit") {
			t.Errorf("app is paused: %v, audit: %v", r.Paused("app"), r.Paused("audit"))
		}
		r.want(r.accept(to("app", "new")), journal.Accepted)
		r.want(r.accept(to("audit", "other")), journal.Accepted)
		if w := r.receive(); w.Destination != "audit" {
			t.Errorf("received %+v", w.Held)
		}
		sleep(time.Hour)
		r.idle()
		r.Suspend("app", strictly(time.Now().Add(time.Second))) // a breaker's decision does not end that of a person
		sleep(time.Minute)
		r.Suspend("app", journal.Rest{})
		sleep(time.Minute)
		r.idle()
		r.setPaused("app", false)
		got := []string{r.receive().Key, r.receive().Key}
		if slices.Sort(got); !slices.Equal(got, []string{"failed", "new"}) {
			t.Errorf("received %v", got)
		}
	})
}

// Other processes follow within a second, and one that starts later knows at once.
func TestPause_holdsForAllProcesses(t *testing.T) {
	runRecorded(t, engine.Options{Destinations: appAndAudit}, func(t *testing.T, r *rig, l *ledger) {
		other := startOn(r.t, r.store, l, 1, engine.Options{Destinations: appAndAudit})
		r.setPaused("app", true)
		sleep(time.Second)
		if !other.Paused("app") {
			t.Error("the other process does not know")
		}
		third := startOn(r.t, r.store, l, 2, engine.Options{Destinations: appAndAudit})
		for _, p := range []*rig{r, other, third} {
			r.want(p.accept(to("app", fmt.Sprintf("%p", p))), journal.Accepted)
		}
		sleep(time.Minute)
		for _, p := range []*rig{r, other, third} {
			p.idle()
		}
		third.setPaused("app", false)
		sleep(2 * time.Second)
		n := 0
		for _, p := range []*rig{r, other, third} {
			for range len(p.Work()) {
				p.receive()
				n++
			}
		}
		if n != 3 {
			t.Errorf("%d deliveries begin after the resumption, want 3", n)
		}
	})
}

// A replayed event is delivered at once, without waiting for the next look into the store.
func TestReplayIsLookedForAtOnce(t *testing.T) {
	runRecorded(t, engine.Options{Poll: time.Hour}, func(t *testing.T, r *rig, _ *ledger) {
		r.want(r.accept(entry("a")), journal.Accepted)
		r.finish(r.receive(), journal.Dead, time.Time{})
		done, err := r.Replay(context.Background(), journal.Replay{Start: time.Now(), By: "ada", Reason: "test"}, 10)
		if err != nil || done.Deliveries != 1 {
			t.Fatal(done, err)
		}
		if w := r.receive(); w.Token != 2 || w.Forced {
			t.Errorf("received %+v", w)
		}
	})
}

// A forced replay right after the outcome that could not be recorded yet is made: the process that holds
// the old delivery does not take the new one for it.
func TestReplayByForceIsNotAdopted(t *testing.T) {
	runRecorded(t, engine.Options{Poll: 10 * time.Millisecond}, func(t *testing.T, r *rig, _ *ledger) {
		r.want(r.accept(entry("a")), journal.Accepted)
		w := r.receive()
		r.fault.Fail(journaltest.OpFinish, 1, journaltest.Persisted)
		r.Finish(journal.Outcome{Held: w.Held, State: journal.Done, Started: time.Now()})
		sleep(time.Millisecond) // it is recorded, and nobody here knows
		replay := journal.Replay{Start: time.Now(), Force: true, By: "ada", Reason: "test"}
		done, err := r.Replay(context.Background(), replay, 10)
		if err != nil || done.Forced != 1 {
			t.Fatal(done, err)
		}
		sleep(20 * time.Millisecond)
		if w := r.receive(); !w.Forced {
			t.Errorf("received %+v", w)
		}
	})
}

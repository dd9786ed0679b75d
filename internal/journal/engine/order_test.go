package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// ordered is a journal with one destination that keeps the order of resources, and looks into the store
// only when it has a reason to.
func ordered() engine.Options {
	return engine.Options{Poll: time.Hour, Destinations: map[string]journal.Destination{"app": {Ordered: true}}}
}

// about returns an entry for the key that is about a resource, in a version; 0: none is known.
func about(key, resource string, rank int64) *journal.Event {
	e := entry(key)
	if e.Resource = resource; rank != 0 {
		e.Rank = hookonce.Version(rank)
	}
	return e
}

// Deliveries of a resource come one after the other, the next as soon as the one before it is done or dead.
func TestOrder(t *testing.T) {
	run(t, ordered(), func(t *testing.T, r *rig) {
		for i := range 4 {
			r.want(r.accept(about(key(i), "a", 0)), journal.Accepted)
		}
		r.want(r.accept(about("other", "b", 0)), journal.Accepted)
		first, other := r.receive(), r.receive()
		if first.Key != "evt_0" || first.Resource != "a" || other.Key != "other" {
			t.Fatalf("got %s and %s", first.Key, other.Key)
		}
		r.idle()
		r.finish(first, journal.Done, time.Time{})
		second := r.receive()
		r.finish(second, journal.Failed, time.Now().Add(time.Second))
		r.idle()
		sleep(time.Second)
		again := r.receive()
		r.finish(again, journal.Dead, time.Time{})
		third := r.receive()
		r.finish(third, journal.Pending, time.Now())
		third = r.receive()
		if second.Key != "evt_1" || again.Key != "evt_1" || third.Key != "evt_2" {
			t.Errorf("got %s, %s and %s", second.Key, again.Key, third.Key)
		}
		r.idle()
	})
}

// An ordered delivery is never held when it is accepted: an older one may be under way elsewhere. Events
// without a resource need no turn.
func TestOrder_isNotHeldWhenAccepted(t *testing.T) {
	run(t, ordered(), func(t *testing.T, r *rig) {
		takes := r.fault.Calls(journaltest.OpTake)
		r.want(r.accept(entry("free")), journal.Accepted)
		r.receive()
		if r.fault.Calls(journaltest.OpTake) != takes {
			t.Error("the store was asked for an event without a resource")
		}
		r.want(r.accept(about("evt_1", "a", 0)), journal.Accepted)
		r.receive()
		if r.fault.Calls(journaltest.OpTake) == takes {
			t.Error("the store was not asked for an event with a resource")
		}
	})
}

// What was stored in order stays so where its destination is in order no more, and the next still comes as soon as the one before
// it is done. What never was in order has nobody look for a next.
func TestOrder_takenOut(t *testing.T) {
	run(t, ordered(), func(t *testing.T, r *rig) {
		r.Suspend("app", journal.Rest{Until: time.Now().Add(24 * time.Hour)})
		for i := range 4 {
			r.want(r.accept(about(key(i), "a", 0)), journal.Accepted)
		}
		next := r.another(engine.Options{Poll: time.Hour, Destinations: map[string]journal.Destination{"app": {}}})
		began := time.Now()
		for i := range 4 {
			w := next.receive()
			if w.Key != key(i) {
				t.Errorf("got %s, want %s", w.Key, key(i))
			}
			next.idle()
			next.finish(w, journal.Done, time.Time{})
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("they came in %v", took)
		}
		takes := next.fault.Calls(journaltest.OpTake)
		next.want(next.accept(about("free", "a", 0)), journal.Accepted)
		w := next.receive()
		next.finish(w, journal.Failed, time.Now().Add(time.Second))
		sleep(time.Second)
		next.finish(next.receive(), journal.Done, time.Time{})
		if n := next.fault.Calls(journaltest.OpTake) - takes; n != 1 {
			t.Errorf("the store was asked %d times for an event in no order and its retry, want once", n)
		}
	})
}

// Two processes never have a resource at the same time, and when one dies the other goes on with what
// that had.
func TestOrder_twoProcesses(t *testing.T) {
	run(t, ordered(), func(t *testing.T, r *rig) {
		other := r.another(ordered())
		r.want(r.accept(about("evt_1", "a", 0)), journal.Accepted)
		first := r.receive()
		r.fault.Fail(journaltest.OpAccept, -1, journaltest.NotPersisted)
		other.want(other.accept(about("evt_2", "a", 0)), journal.Accepted)
		other.idle()
		r.finish(first, journal.Done, time.Time{})
		second := r.receive()
		other.idle()

		// The first process dies with the second event in its hands. Nothing tells the other one.
		r.fault.Fail(journaltest.OpExtend, -1, journaltest.NotPersisted)
		r.fault.Fail(journaltest.OpTake, -1, journaltest.NotPersisted)
		other.want(other.accept(about("evt_3", "a", 0)), journal.Accepted)
		sleep(8 * time.Second)
		other.idle()
		sleep(2 * time.Second)
		other.want(other.accept(about("wake", "b", 0)), journal.Accepted)
		keys := []string{other.receive().Key, other.receive().Key}
		slices.Sort(keys)
		if !slices.Equal(keys, []string{"evt_2", "wake"}) || second.Key != "evt_2" {
			t.Errorf("got %q", keys)
		}
		other.idle()
	})
}

// A delivery says when something newer of its resource was delivered, to those who ask.
func TestStale(t *testing.T) {
	opt := engine.Options{Destinations: map[string]journal.Destination{"app": {Stale: true}, "b": {}}}
	run(t, opt, func(t *testing.T, r *rig) {
		for i, tt := range []struct {
			rank  int64
			stale bool
		}{{5, false}, {4, true}, {5, false}, {0, false}, {7, false}, {6, true}} {
			e := about(key(i), "a", tt.rank)
			e.Destinations = []string{"app", "b"}
			r.want(r.accept(e), journal.Accepted)
			for range 2 {
				w := r.receive()
				if want := tt.stale && w.Destination == "app"; w.Stale != want || w.Rank.N != tt.rank {
					t.Errorf("%s of rank %d to %s is stale: %v, want %v", w.Key, w.Rank.N, w.Destination, w.Stale, want)
				}
				r.finish(w, journal.Done, time.Time{})
			}
		}
	})
}

// Only what is done raises the mark.
func TestStale_failuresDoNotCount(t *testing.T) {
	opt := engine.Options{Destinations: map[string]journal.Destination{"app": {Stale: true}}}
	run(t, opt, func(t *testing.T, r *rig) {
		r.want(r.accept(about("evt_9", "a", 9)), journal.Accepted)
		r.finish(r.receive(), journal.Dead, time.Time{})
		r.want(r.accept(about("evt_1", "a", 1)), journal.Accepted)
		if w := r.receive(); w.Stale {
			t.Error("stale, although the newer one was not delivered")
		}
	})
}

// The later of two logical duplicates says whose it is, also when it is held at once.
func TestLogicalDuplicates(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		first, second := entry("evt_1"), entry("evt_2")
		first.LogicalKey, second.LogicalKey = "paid", "paid"
		id := r.want(r.accept(first), journal.Accepted).ID
		if res := r.want(r.accept(second), journal.Accepted); res.LogicalDuplicateOf != id || res.LogicalDuplicateKey != "evt_1" {
			t.Errorf("got %+v, want a logical duplicate of %d", res, id)
		}
		for _, want := range []string{"", "evt_1"} {
			if w := r.receive(); w.LogicalDuplicateKey != want || w.Token != 1 {
				t.Errorf("%s: a logical duplicate of %q, want %q", w.Key, w.LogicalDuplicateKey, want)
			}
		}
	})
}

// A dropped logical duplicate takes no room, and its copies are no copies of something done while the first is not.
func TestLogicalDuplicates_dropped(t *testing.T) {
	run(t, engine.Options{MaxHeld: 1, Poll: time.Hour}, func(t *testing.T, r *rig) {
		first := entry("evt_0")
		first.LogicalKey = "paid"
		r.want(r.accept(first), journal.Accepted)
		w := r.receive()
		duplicate := func(key string) *journal.Event {
			e := entry(key)
			e.LogicalKey, e.DropLogicalDuplicate = "paid", true
			return e
		}
		r.want(r.accept(duplicate("evt_1"), duplicate("evt_1")), journal.Accepted)
		r.idle()
		for range 2 {
			r.finish(w, journal.Dead, time.Time{})
			if res := r.want(r.accept(duplicate("evt_1")), journal.Duplicate); !res.Redriven || res.Done {
				t.Errorf("got %+v, want the first re-driven by a copy of its logical duplicate", res)
			}
			w = r.receive()
		}
		r.finish(w, journal.Dead, time.Time{})
		if res := r.want(r.accept(duplicate("evt_2")), journal.Accepted); !res.Redriven {
			t.Errorf("got %+v, want the first re-driven by its logical duplicate", res)
		}
		r.finish(r.receive(), journal.Done, time.Time{})
		if res := r.want(r.accept(duplicate("evt_2")), journal.Duplicate); !res.Done || res.Redriven {
			t.Errorf("got %+v, want it done", res)
		}
		if r.Tracked() != 0 {
			t.Errorf("%d deliveries are still held", r.Tracked())
		}
	})
}

// follower is an app that checks, for the events of one sender, that no resource goes back.
type follower struct {
	t    *testing.T
	mu   sync.Mutex
	last map[string]int
	seen map[string]int
}

// work delivers until the journal closes; some attempts fail first.
func (f *follower) work(j *engine.Engine) {
	for w := range j.Work() {
		o := journal.Outcome{Held: w.Held, State: journal.Done, Started: time.Now()}
		switch {
		case !j.Current(w.Held):
			o.State, o.Due = journal.Pending, time.Now()
		case w.Tries < 3 && w.ReceivedAt.UnixMilli()%4 == 0:
			o.State, o.Due = journal.Failed, time.Now().Add(time.Second)
		default:
			f.deliver(w)
		}
		j.Finish(o)
	}
}

func (f *follower) deliver(w *journal.Work) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[w.Key]++
	var n int
	if _, err := fmt.Sscanf(w.Key, "evt_%d", &n); err != nil {
		f.t.Error(err)
	}
	if n < f.last[w.Resource] {
		f.t.Errorf("%s of %s after evt_%d", w.Key, w.Resource, f.last[w.Resource])
	}
	f.last[w.Resource] = n
}

// process is one of several on a store, with faults of its own.
type process struct {
	*engine.Engine
	fault *journaltest.Faulty
}

// start starts a process with three workers.
func (f *follower) start(store journal.Store, writer int) process {
	p := process{fault: journaltest.NewFaulty(store)}
	opt := ordered()
	opt.Poll, opt.Lease, opt.MaxBatch, opt.IDs = time.Second, 3*time.Second, 4, journal.NewIDs(writer, 0)
	p.Engine = open(f.t, p.fault, opt)
	for range 3 {
		go f.work(p.Engine)
	}
	return p
}

// disturb makes some calls fail, before the commit or after it.
func (p process) disturb(random *rand.Rand) {
	ops := []journaltest.Op{journaltest.OpAccept, journaltest.OpTake, journaltest.OpExtend, journaltest.OpFinish}
	if random.IntN(3) == 0 {
		p.fault.Fail(ops[random.IntN(len(ops))], 1+random.IntN(5), journaltest.Mode(random.IntN(2)))
	}
}

// stop closes a process, which may have to give up.
func (p process) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = p.Close(ctx)
}

// Stores that fail at random while processes come and go: the order of each resource is kept, and nothing
// is lost.
func TestOrder_withFaults(t *testing.T) {
	const events, resources = 80, 5
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) // identifiers begin in 2020
			store := journaltest.NewMemory()
			f := &follower{t: t, last: map[string]int{}, seen: map[string]int{}}
			first, second := f.start(store, 0), f.start(store, 1)
			for i := range events {
				sleep(time.Millisecond) // processes have one clock, and one event follows the other on it
				first.disturb(random)
				second.disturb(random)
				e := func() *journal.Event { return about(key(i), fmt.Sprintf("r%d", i%resources), 0) }
				for result(first.Accept(context.Background(), []*journal.Event{e(), e()})).err != nil {
					sleep(100 * time.Millisecond)
				}
				if i%20 == 19 {
					first.stop()
					first, second = second, f.start(store, i)
				}
			}
			sleep(5 * time.Minute)
			for i := range events {
				if f.seen[key(i)] == 0 {
					t.Errorf("%s was acknowledged and lost", key(i))
				}
			}
			if left := store.Deliveries(); len(left) != 0 {
				t.Errorf("open: %+v", left)
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
}

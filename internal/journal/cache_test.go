package journal_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// asks reports whether accepting e reaches the store.
func (r *rig) asks(e *journal.Entry) bool {
	synctest.Wait() // what follows from earlier answers has happened
	before := r.fault.Calls(journaltest.OpAccept)
	if a := r.accept(e); a.err != nil {
		r.t.Fatal(a.err)
	}
	return r.fault.Calls(journaltest.OpAccept) > before
}

// Law 13: the cache answers for done events, and for nothing else.
func TestCache_onlyRemembersDone(t *testing.T) {
	for name, tt := range map[string]struct {
		state  journal.State // of the delivery when the copy comes; Processing: not finished
		cached bool
	}{
		"processing": {journal.Processing, false},
		"failed":     {journal.Failed, false},
		"dead":       {journal.Dead, false},
		"done":       {journal.Done, true},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, journal.Options{Poll: time.Hour}, func(t *testing.T, r *rig) {
				r.want(r.accept(entry("evt_1")), journal.Accepted)
				if w := r.receive(); tt.state != journal.Processing {
					r.finish(w, tt.state, time.Now().Add(time.Hour))
				}
				if asked := r.asks(entry("evt_1")); asked == tt.cached {
					t.Errorf("asked the store: %v", asked)
				}
			})
		})
	}
}

// Law 13: an outcome that is reported but not recorded does not count.
func TestCache_waitsForTheRecord(t *testing.T) {
	run(t, journal.Options{}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		gate := r.fault.Block(journaltest.OpFinish)
		r.finish(r.receive(), journal.Done, time.Time{})
		<-gate.Arrived
		if !r.asks(entry("evt_1")) {
			t.Error("answered from the cache before the outcome was recorded")
		}
		gate.Open()
		sleep(time.Second)
		if r.asks(entry("evt_1")) {
			t.Error("not answered from the cache")
		}
	})
}

// An event with several destinations is done when the last one is.
func TestCache_waitsForAllDestinations(t *testing.T) {
	for name, last := range map[string]journal.State{"done": journal.Done, "dead": journal.Dead} {
		t.Run(name, func(t *testing.T) {
			run(t, journal.Options{}, func(t *testing.T, r *rig) {
				e := entry("evt_1")
				e.Destinations = []string{"app", "audit"}
				r.want(r.accept(e), journal.Accepted)
				first, second := r.receive(), r.receive()
				r.finish(first, journal.Done, time.Time{})
				if !r.asks(e) {
					t.Error("answered from the cache with one destination open")
				}
				r.finish(second, last, time.Time{})
				if asked := r.asks(e); asked != (last != journal.Done) {
					t.Errorf("second destination %s: asked the store: %v", last, asked)
				}
			})
		})
	}
}

// What the cache answers is what the store would.
func TestCache_answersLikeTheStore(t *testing.T) {
	run(t, journal.Options{}, func(t *testing.T, r *rig) {
		id := r.want(r.accept(entry("evt_1")), journal.Accepted).ID
		r.finish(r.receive(), journal.Done, time.Time{})
		synctest.Wait()
		before := r.fault.Calls(journaltest.OpAccept)
		same, other := r.accept(entry("evt_1")), r.accept(forged("evt_1"))
		if r.fault.Calls(journaltest.OpAccept) != before {
			t.Error("the store was asked")
		}
		for a, want := range map[answer]journal.Status{same: journal.Duplicate, other: journal.Conflict} {
			if res := r.want(a, want); res.ID != id || !res.Done {
				t.Errorf("got %+v", res)
			}
		}
		elsewhere := entry("evt_1")
		elsewhere.Source = "shop"
		r.want(r.accept(elsewhere), journal.Accepted)
	})
}

// A store that knows an event as done teaches the cache; a conflict teaches nothing, because the
// stored digest is not known.
func TestCache_learnsFromTheStore(t *testing.T) {
	run(t, journal.Options{}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		r.finish(r.receive(), journal.Done, time.Time{})

		other := r.another(journal.Options{})
		other.want(other.accept(forged("evt_1")), journal.Conflict)
		if !other.asks(entry("evt_1")) {
			t.Error("learned from a conflict")
		}
		if other.asks(entry("evt_1")) {
			t.Error("did not learn from a duplicate")
		}
	})
}

func TestCache_isBounded(t *testing.T) {
	run(t, journal.Options{DoneKeys: 2}, func(t *testing.T, r *rig) {
		for i := range 3 {
			r.want(r.accept(entry(key(i))), journal.Accepted)
			r.finish(r.receive(), journal.Done, time.Time{})
		}
		if r.asks(entry(key(2))) || r.asks(entry(key(1))) || !r.asks(entry(key(0))) {
			t.Error("does not hold exactly the last two keys")
		}
	})
}

func TestCache_canBeOff(t *testing.T) {
	run(t, journal.Options{DoneKeys: -1}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		r.finish(r.receive(), journal.Done, time.Time{})
		if !r.asks(entry("evt_1")) {
			t.Error("answered without the store")
		}
	})
}

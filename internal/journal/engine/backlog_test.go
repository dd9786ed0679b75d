package engine_test

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// What finds no room among the held waits in the store and comes as soon as there is room, not at the
// next poll.
func TestBacklog_comesWhenThereIsRoom(t *testing.T) {
	for name, opt := range map[string]engine.Options{
		"slots": {Poll: time.Hour, Lease: 10 * time.Hour, MaxHeld: 2},
		"bytes": {Poll: time.Hour, Lease: 10 * time.Hour, HeldBytes: 120},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, opt, func(t *testing.T, r *rig) {
				for i := range 9 {
					r.want(r.accept(entry(key(i))), journal.Accepted)
				}
				seen := map[string]bool{}
				for range 9 {
					w := r.receive()
					seen[w.Key] = true
					r.finish(w, journal.Done, time.Time{})
				}
				if len(seen) != 9 {
					t.Errorf("delivered %v", seen)
				}
				r.idle()
			})
		})
	}
}

// MaxHeld bounds what is leased to this process.
func TestBacklog_heldIsBounded(t *testing.T) {
	run(t, engine.Options{MaxHeld: 3}, func(t *testing.T, r *rig) {
		for i := range 9 {
			e := entry(key(i))
			e.Destinations = []string{"app", "audit"}
			r.want(r.accept(e), journal.Accepted)
		}
		sleep(time.Minute)
		for range 3 {
			r.receive()
		}
		r.idle()
		stats, err := r.Stats(t.Context())
		if err != nil || stats.Open[journal.Processing] != 3 || stats.Open[journal.Pending] != 15 || stats.Events != 9 {
			t.Errorf("got %+v, %v", stats, err)
		}
	})
}

// HeldBytes bounds the same by weight; what weighs more than all of it is taken alone.
func TestBacklog_heldBytesAreBounded(t *testing.T) {
	run(t, engine.Options{HeldBytes: 10_000, MaxBatch: 4}, func(t *testing.T, r *rig) {
		heavy := func(i, weight int) *journal.Event {
			e := entry(key(i))
			e.Body = make([]byte, weight)
			return e
		}
		for i := range 20 {
			r.want(r.accept(heavy(i, 3000)), journal.Accepted)
		}
		r.want(r.accept(heavy(20, 50_000)), journal.Accepted)
		for left := 21; left > 0; left-- {
			sleep(time.Minute)
			stats, err := r.Stats(t.Context())
			// Three fit, and the last may go beyond the bound.
			if n := stats.Open[journal.Processing]; err != nil || n > 3+1 || n < min(3, int64(left)-1) {
				t.Fatalf("%d deliveries are held with %d left, error %v", n, left, err)
			}
			r.finish(r.receive(), journal.Done, time.Time{})
		}
	})
}

// A process that starts before a backlog of large bodies takes no more of them than it may hold.
func TestBacklog_firstTakeIsBounded(t *testing.T) {
	run(t, engine.Options{MaxHeld: 1}, func(t *testing.T, r *rig) {
		for i := range 100 {
			e := entry(key(i))
			e.Body = make([]byte, 1000)
			r.want(r.accept(e), journal.Accepted)
		}
		next := r.another(engine.Options{HeldBytes: 5000})
		for range 5 {
			next.receive()
		}
		next.idle()
	})
}

// Work for destinations that a process does not know is left to the processes that do.
func TestPoller_leavesOthersDestinations(t *testing.T) {
	run(t, engine.Options{Destinations: map[string]journal.Destination{"app": {}}}, func(t *testing.T, r *rig) {
		other := r.another(engine.Options{Destinations: map[string]journal.Destination{"audit": {}}})
		e := entry("evt_1")
		r.want(r.accept(e), journal.Accepted)
		for try := range 20 {
			w := r.receive()
			if w.Tries != try+1 {
				t.Fatalf("got try %d, want %d", w.Tries, try+1)
			}
			r.finish(w, journal.Failed, time.Now().Add(time.Second))
			sleep(2 * time.Second)
			other.idle()
		}
	})
}

// A retry that comes due while there is no room is taken when there is.
func TestBacklog_retryFindsNoRoom(t *testing.T) {
	run(t, engine.Options{MaxHeld: 1, Poll: time.Hour, Lease: 10 * time.Hour}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		r.finish(r.receive(), journal.Failed, time.Now().Add(time.Second))
		r.want(r.accept(entry("evt_2")), journal.Accepted)
		w := r.receive()
		sleep(time.Minute)
		r.idle()
		r.finish(w, journal.Done, time.Time{})
		if w := r.receive(); w.Key != "evt_1" {
			t.Errorf("got %+v", w)
		}
	})
}

// While older work waits in the store, fresh work leaves half of the room to it: under a steady
// overload both go on.
func TestBacklog_isNotStarved(t *testing.T) {
	run(t, engine.Options{MaxHeld: 8}, func(t *testing.T, r *rig) {
		old := entry("evt_old")
		for i := range 8 {
			r.want(r.accept(entry(key(i))), journal.Accepted)
		}
		r.want(r.accept(old), journal.Accepted)
		for i := range 100 {
			// One delivery ends, two events come.
			w := r.receive()
			if w.Key == old.Key {
				return
			}
			r.Finish(journal.Outcome{Held: w.Held, State: journal.Done})
			r.accept(entry(key(100+2*i)), entry(key(101+2*i)))
		}
		t.Error("the oldest event did not get its turn")
	})
}

// A backlog larger than a batch is taken batch after batch without waiting.
func TestPoller_goesOnWhileBatchesAreFull(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		// Accepted by a process with no room, which then dies.
		dead := r.another(engine.Options{MaxHeld: 1})
		dead.fault.Fail(journaltest.OpTake, -1, journaltest.NotPersisted)
		for i := range 50 {
			dead.accept(entry(key(i)), entry(""))
		}
		dead.fault.Fail(journaltest.OpExtend, -1, journaltest.NotPersisted)

		next := r.another(engine.Options{MaxBatch: 4, Poll: time.Hour})
		r.fault.Fail(journaltest.OpTake, -1, journaltest.NotPersisted)
		for range 99 {
			next.receive()
		}
		next.idle()
	})
}

// After a failed Take the poller goes on, and what was taken in spite of the failure comes back.
func TestPoller_takeFails(t *testing.T) {
	for name, mode := range map[string]journaltest.Mode{
		"not persisted": journaltest.NotPersisted,
		"persisted":     journaltest.Persisted,
	} {
		t.Run(name, func(t *testing.T) {
			run(t, engine.Options{MaxHeld: 2}, func(t *testing.T, r *rig) {
				r.want(r.accept(entry("evt_1")), journal.Accepted)
				r.finish(r.receive(), journal.Failed, time.Now().Add(time.Second))
				r.fault.Fail(journaltest.OpTake, 1, mode)
				sleep(15 * time.Second)
				w := r.receive()
				r.finish(w, journal.Done, time.Time{})
				if left := r.store.Deliveries(); len(left) != 0 {
					t.Errorf("still open: %+v", left)
				}
			})
		})
	}
}

// Law 11: what is past its retention is purged in steps, and open work never is.
func TestJanitor_purges(t *testing.T) {
	const hour = time.Hour
	for name, tt := range map[string]struct {
		keep   *journal.Retention
		events int // left after an hour
	}{
		"short":    {&journal.Retention{Period: journal.Period{IDs: hour / 2, Bodies: hour / 4}}, 1},
		"for ever": {&journal.Retention{}, 1201},
		"ids only": {&journal.Retention{Period: journal.Period{Bodies: hour / 4}}, 1201},
		"default":  {nil, 1201},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, engine.Options{Retention: tt.keep}, func(t *testing.T, r *rig) {
				var batch []*journal.Event
				for i := range 1200 {
					e := entry(key(i))
					e.Destinations = nil
					batch = append(batch, e)
				}
				r.want(r.accept(batch...), journal.Accepted)
				r.want(r.accept(entry("evt_open")), journal.Accepted)
				r.finish(r.receive(), journal.Dead, time.Time{})
				sleep(hour)
				if n := r.store.Events(); n != tt.events {
					t.Errorf("%d events left, want %d", n, tt.events)
				}
			})
		})
	}
}

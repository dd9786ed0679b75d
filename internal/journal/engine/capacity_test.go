package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// destinations are some with default settings.
func destinations(names ...string) map[string]journal.Destination {
	all := map[string]journal.Destination{}
	for _, name := range names {
		all[name] = journal.Destination{}
	}
	return all
}

// toward returns an entry for the key and these destinations.
func toward(key string, names ...string) *journal.Event {
	e := entry(key)
	e.Destinations = names
	return e
}

// processing counts what a destination has under way, in all processes.
func (r *rig) processing(destination string) (n int) {
	for _, d := range r.store.Deliveries() {
		if d.Destination == destination && d.State == journal.Processing {
			n++
		}
	}
	return n
}

// drain receives everything that there is at the moment, and finishes what is not for except.
func (r *rig) drain(except string) (received map[string]int) {
	received = map[string]int{}
	for synctest.Wait(); ; synctest.Wait() {
		select {
		case w := <-r.Work():
			received[w.Destination]++
			if w.Destination != except {
				r.Finish(journal.Outcome{Held: w.Held, State: journal.Done})
			}
		default:
			return received
		}
	}
}

// A destination that finishes nothing holds its share and no more, whether its events are fresh or come
// from the store, and the others get all of theirs at once.
func TestCapacity_deadDestinationDelaysNobody(t *testing.T) {
	for name, tt := range map[string]struct {
		opt  engine.Options
		most int
	}{
		"fair share":     {engine.Options{MaxHeld: 800, Destinations: destinations("dead", "a", "b", "c")}, 200},
		"smallest share": {engine.Options{MaxHeld: 400, Destinations: destinations("dead", "a", "b", "c")}, 128},
		"bytes": {engine.Options{HeldBytes: 100 * entry("evt_00000").Size(),
			Destinations: destinations("dead", "a")}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, tt.opt, func(t *testing.T, r *rig) {
				for i := range 1000 {
					r.want(r.accept(toward(fmt.Sprintf("evt_%05d", i), "dead")), journal.Accepted)
					if i%10 == 0 {
						r.want(r.accept(toward(fmt.Sprintf("one_%05d", i), "a")), journal.Accepted)
						if got := r.drain("dead"); got["a"] != 1 {
							t.Fatalf("after %d events nothing for a, but %v", i, got)
						}
					}
				}
				if n := r.processing("dead"); n > tt.most {
					t.Errorf("the dead destination holds %d, want %d at most", n, tt.most)
				}
				sleep(10 * time.Second) // all that there is room for comes by and by
				r.drain("dead")
				if n := r.processing("dead"); n != tt.most {
					t.Errorf("the dead destination holds %d in the end, want %d", n, tt.most)
				}
			})
		})
	}
}

// A process that starts before the old backlog of a dead destination takes the others' work as well.
func TestCapacity_backlogOfOneDelaysNobody(t *testing.T) {
	run(t, engine.Options{Destinations: destinations("none")}, func(t *testing.T, r *rig) {
		for i := range 2000 {
			r.want(r.accept(toward(key(i), "dead")), journal.Accepted)
		}
		r.want(r.accept(toward("evt_a", "a")), journal.Accepted)
		next := r.another(engine.Options{MaxHeld: 600, Poll: time.Hour, Destinations: destinations("dead", "a")})
		if got := next.drain("dead"); got["a"] != 1 || got["dead"] < 299 {
			t.Errorf("received %v; want 299 at least for the dead destination and what there is for the other", got)
		}
	})
}

// However many destinations finish nothing, there is room for the next one: in bytes, whether the events are
// fresh or come from the store, and in slots, of which the shares add up to more than there are.
func TestCapacity_hangingDestinationsLeaveRoom(t *testing.T) {
	testskip.Race(t)
	const kb = 1 << 10
	for name, tt := range map[string]struct {
		opt           engine.Options
		hang          int
		events, bytes int // for each of those that hang
		stored        bool
	}{
		"two, fresh":      {engine.Options{HeldBytes: 1024 * kb}, 2, 80, 16 * kb, false},
		"two, stored":     {engine.Options{HeldBytes: 1024 * kb}, 2, 80, 16 * kb, true},
		"seven, fresh":    {engine.Options{HeldBytes: 1024 * kb}, 7, 80, 16 * kb, false},
		"seven, stored":   {engine.Options{HeldBytes: 1024 * kb, MaxBatch: 8}, 7, 80, 16 * kb, true},
		"many by slots":   {engine.Options{}, 39, 150, 10, false},
		"many, few slots": {engine.Options{MaxHeld: 300}, 5, 150, 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			hanging := make([]string, tt.hang)
			for i := range hanging {
				hanging[i] = fmt.Sprintf("hangs%02d", i)
			}
			tt.opt.Destinations = destinations(append(hanging, "ok")...)
			first := tt.opt
			if tt.stored {
				first.Destinations = destinations("none")
			}
			run(t, first, func(t *testing.T, r *rig) {
				for i := range tt.events {
					for _, name := range hanging {
						e := toward(fmt.Sprintf("%s_%d", name, i), name)
						e.Body = make([]byte, tt.bytes)
						r.want(r.accept(e), journal.Accepted)
					}
				}
				if tt.stored {
					r = r.another(tt.opt)
				}
				sleep(10 * time.Second) // they take what they can get
				for r.hang() > 0 {
				}
				for i := range 10 {
					r.want(r.accept(toward(fmt.Sprintf("ok_%d", i), "ok")), journal.Accepted)
				}
				sleep(5 * time.Second)
				if got := r.drain(""); got["ok"] != 10 {
					t.Errorf("received %v, want 10 for the destination that does not hang", got)
				}
			})
		})
	}
}

// hang receives what there is, and leaves it unfinished.
func (r *rig) hang() (received int) {
	synctest.Wait()
	for {
		select {
		case <-r.Work():
			received++
		default:
			return received
		}
	}
}

// The backlog of one destination of several comes batch after batch, without waiting for a poll.
func TestCapacity_oneOfManyIsNotSlow(t *testing.T) {
	run(t, engine.Options{Destinations: destinations("none")}, func(t *testing.T, r *rig) {
		for i := range 2000 {
			r.want(r.accept(toward(key(i), "app")), journal.Accepted)
		}
		next := r.another(engine.Options{Poll: time.Hour, MaxHeld: 600, Destinations: destinations("app", "b", "c")})
		began := time.Now()
		if got := next.drain(""); got["app"] != 2000 || time.Since(began) > 0 {
			t.Errorf("received %v in %v", got, time.Since(began))
		}
	})
}

// When many destinations have a backlog, all of them get their turn, however little is taken at a time.
func TestCapacity_turns(t *testing.T) {
	run(t, engine.Options{Destinations: destinations("none")}, func(t *testing.T, r *rig) {
		var names []string
		for d := range 50 {
			names = append(names, fmt.Sprintf("d%02d", d))
		}
		for i := range 20 {
			r.want(r.accept(toward(key(i), names...)), journal.Accepted)
		}
		next := r.another(engine.Options{MaxHeld: 60, MaxBatch: 4, Poll: time.Hour, Destinations: destinations(names...)})
		first := map[string]bool{}
		for range 50 {
			first[next.receive().Destination] = true
		}
		if len(first) < 10 {
			t.Errorf("the first 50 deliveries are for %d destinations", len(first))
		}
	})
}

// An entry is held for the destinations that have room, and the others get theirs from the store.
func TestCapacity_roomForSome(t *testing.T) {
	run(t, engine.Options{Poll: time.Hour, Destinations: destinations("full", "app")}, func(t *testing.T, r *rig) {
		r.Suspend("full", journal.Rest{Most: 1, Strict: true})
		r.want(r.accept(toward("evt_1", "full")), journal.Accepted)
		first := r.receive()
		r.want(r.accept(toward("evt_2", "full", "app")), journal.Accepted)
		if w := r.receive(); w.Destination != "app" || w.Token != 1 {
			t.Errorf("got %+v", w.Held)
		}
		r.idle()
		r.finish(first, journal.Done, time.Time{})
		if w := r.receive(); w.Destination != "full" || w.Key != "evt_2" {
			t.Errorf("got %+v", w)
		}
	})
}

// Work for a destination that this process does not know stays in the store.
func TestCapacity_unknownDestination(t *testing.T) {
	run(t, engine.Options{Destinations: destinations("app")}, func(t *testing.T, r *rig) {
		r.want(r.accept(toward("evt_1", "stranger", "app")), journal.Accepted)
		if w := r.receive(); w.Destination != "app" {
			t.Errorf("got %+v", w.Held)
		}
		r.idle()
		if w := r.another(engine.Options{Destinations: destinations("stranger")}).receive(); w.Destination != "stranger" {
			t.Errorf("got %+v", w.Held)
		}
	})
}

// What a failed Accept or Take had reserved is free again.
func TestCapacity_failuresLeaveTheRoom(t *testing.T) {
	run(t, engine.Options{MaxHeld: 8, Destinations: destinations("app", "b")}, func(t *testing.T, r *rig) {
		r.Suspend("app", journal.Rest{Most: 2, Strict: true})
		r.fault.Fail(journaltest.OpAccept, 20, journaltest.NotPersisted)
		r.fault.Fail(journaltest.OpTake, 20, journaltest.NotPersisted)
		for i := range 20 {
			if a := r.accept(toward(key(i), "app", "b")); a.err == nil {
				t.Fatal("no error")
			}
			sleep(time.Second)
		}
		r.want(r.accept(toward("evt_1", "app", "b")), journal.Accepted)
		if got := r.drain(""); got["app"] != 1 || got["b"] != 1 {
			t.Errorf("received %v", got)
		}
	})
}

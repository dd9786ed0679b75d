package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// reload makes these the destinations and goes on once nothing happens any more.
func (r *rig) reload(to map[string]journal.Destination) {
	r.t.Helper()
	keep := journaltest.Retention()
	if err := r.Reload(to, &keep); err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
}

// What waits in the store for a destination is taken as soon as it is configured, and its events are
// held from then on.
func TestReload_added(t *testing.T) {
	run(t, quiet("app"), func(t *testing.T, r *rig) {
		r.want(r.accept(toward("evt_1", "new")), journal.Accepted)
		r.idle()
		r.reload(destinations("app", "new"))
		if w := r.receive(); w.Key != "evt_1" || w.Destination != "new" {
			t.Errorf("received %+v", w)
		}
		r.want(r.accept(toward("evt_2", "new")), journal.Accepted)
		if w := r.receive(); w.Key != "evt_2" {
			t.Errorf("received %+v", w)
		}
	})
}

// What is held for a destination that goes stays with its receiver; what is handed back, or accepted
// later, waits for somebody who knows it, or until it is there again, however it stood before.
func TestReload_removed(t *testing.T) {
	run(t, quiet("app", "b"), func(t *testing.T, r *rig) {
		r.want(r.accept(toward("evt_1", "app", "b")), journal.Accepted)
		r.want(r.accept(toward("evt_2", "app")), journal.Accepted)
		first, other, second := r.receive(), r.receive(), r.receive()
		if other.Key == "evt_2" { // those of one event are in no order
			other, second = second, other
		} else if first.Key == "evt_2" {
			first, second = second, first
		}
		r.reload(destinations("b"))
		for _, w := range []*journal.Work{first, other, second} {
			if !r.Current(w.Held) {
				t.Errorf("%+v is not current any more", w.Held)
			}
		}
		r.finish(first, journal.Done, time.Time{})
		r.finish(other, journal.Done, time.Time{})
		r.finish(second, journal.Pending, time.Now())
		r.want(r.accept(toward("evt_3", "app")), journal.Accepted)
		sleep(time.Hour)
		r.idle()
		r.Suspend("app", strictly(time.Now().Add(24*time.Hour))) // of a breaker that is gone, too
		r.reload(destinations("app", "b"))
		if a, b := r.receive(), r.receive(); a.Key != "evt_2" || a.Tries != 1 || b.Key != "evt_3" {
			t.Errorf("received %s, try %d, and %s", a.Key, a.Tries, b.Key)
		}
	})
}

// Another process goes on with what waits for a destination that is gone here.
func TestReload_othersGoOn(t *testing.T) {
	run(t, quiet("app"), func(t *testing.T, r *rig) {
		r.want(r.accept(toward("evt_1", "app")), journal.Accepted)
		w := r.receive()
		r.reload(map[string]journal.Destination{})
		r.finish(w, journal.Pending, time.Now())
		synctest.Wait()
		if w := r.another(quiet("app")).receive(); w.Key != "evt_1" {
			t.Errorf("received %+v", w)
		}
	})
}

// All slots of all destinations are free at the end, however often they came and went while work was
// held, taken and finished; a slot that is lost would keep Close from ending.
func TestReload_losesNoSlot(t *testing.T) {
	run(t, engine.Options{MaxHeld: 16, MaxBatch: 4, Destinations: destinations("app", "b")}, func(t *testing.T, r *rig) {
		done, reloaded := make(chan bool), make(chan bool)
		go func() {
			defer close(reloaded)
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
				}
				keep, to := journaltest.Retention(), []map[string]journal.Destination{destinations("app"), destinations("b"), destinations("app", "b")}
				_ = r.Reload(to[i%3], &keep)
			}
		}()
		for i := range 200 {
			r.want(r.accept(toward(key(i), "app", "b")), journal.Accepted)
			for range 2 {
				select {
				case w := <-r.Work():
					r.Finish(journal.Outcome{Held: w.Held, State: []journal.State{journal.Done, journal.Pending}[i%2], Due: time.Now()})
				case <-time.After(3 * time.Millisecond):
				}
			}
		}
		close(done)
		<-reloaded
		r.reload(destinations("app", "b"))
		for n := 0; len(r.store.Deliveries()) > 0; n++ {
			if n == 1000 {
				t.Fatalf("%d deliveries never came", len(r.store.Deliveries()))
			}
			select {
			case w := <-r.Work():
				r.Finish(journal.Outcome{Held: w.Held, State: journal.Done})
			case <-time.After(time.Second):
			}
			synctest.Wait()
		}
		if err := <-r.goClose(time.Minute); err != nil {
			t.Error(err)
		}
	})
}

// A destination that goes while work is taken for it gets its room back when it comes again.
func TestReload_whileTaking(t *testing.T) {
	opt := quiet("app")
	opt.MaxHeld = 1
	run(t, opt, func(t *testing.T, r *rig) {
		for i := range 20 {
			gate := r.fault.Block(journaltest.OpTake)
			r.Look()
			synctest.Wait() // the room is offered
			keep := journaltest.Retention()
			if err := r.Reload(destinations(), &keep); err != nil {
				t.Fatal(err)
			}
			gate.Open()
			synctest.Wait()
			r.reload(destinations("app"))
			r.want(r.accept(toward(key(i), "app")), journal.Accepted)
			r.finish(r.receive(), journal.Done, time.Time{})
		}
		if got := len(r.store.Deliveries()); got != 0 {
			t.Errorf("%d deliveries are left", got)
		}
	})
}

// The room of one destination is what the others leave, from the reload on.
func TestReload_sharesFollow(t *testing.T) {
	run(t, engine.Options{MaxHeld: 800, Destinations: destinations("dead")}, func(t *testing.T, r *rig) {
		r.reload(destinations("dead", "a", "b", "c"))
		for i := range 1000 {
			r.want(r.accept(toward(key(i), "dead")), journal.Accepted)
		}
		if n := r.processing("dead"); n > 200 {
			t.Errorf("%d are held for one of four destinations, want 200 at most", n)
		}
	})
}

// A delivery is in its resource's order, or not, by what held when its event was accepted.
func TestReload_order(t *testing.T) {
	run(t, quiet("app"), func(t *testing.T, r *rig) {
		about := func(key string) *journal.Event {
			e := toward(key, "app")
			e.Resource = "sub_1"
			return e
		}
		r.want(r.accept(about("evt_1")), journal.Accepted)
		r.reload(map[string]journal.Destination{"app": {Ordered: true}})
		r.want(r.accept(about("evt_2")), journal.Accepted)
		r.want(r.accept(about("evt_3")), journal.Accepted)
		first, second := r.receive(), r.receive()
		if first.Key != "evt_1" || second.Key != "evt_2" {
			t.Fatalf("received %s and %s", first.Key, second.Key)
		}
		r.idle()
		r.finish(second, journal.Done, time.Time{})
		if w := r.receive(); w.Key != "evt_3" {
			t.Errorf("received %s, want evt_3", w.Key)
		}
	})
}

// So it is for a destination that was removed while the request was under way, and comes back.
func TestReload_removedKeepsTheOrder(t *testing.T) {
	run(t, ordered(), func(t *testing.T, r *rig) {
		r.want(r.accept(about("evt_1", "a", 0)), journal.Accepted)
		r.finish(r.receive(), journal.Failed, time.Now().Add(time.Hour))
		r.reload(destinations("other"))
		r.want(r.accept(about("evt_2", "a", 0)), journal.Accepted)
		r.reload(ordered().Destinations)
		r.idle()
		sleep(time.Hour)
		w := r.receive()
		if w.Key != "evt_1" {
			t.Fatalf("received %s before what came before it", w.Key)
		}
		r.finish(w, journal.Done, time.Time{})
		if w := r.receive(); w.Key != "evt_2" {
			t.Errorf("received %s, want evt_2", w.Key)
		}
	})
}

// What was accepted in order stays so after the order was taken out, and waits for nothing but its turn.
func TestReload_orderTakenOut(t *testing.T) {
	run(t, ordered(), func(t *testing.T, r *rig) {
		for i := range 3 {
			r.want(r.accept(about(key(i), "a", 0)), journal.Accepted)
		}
		r.reload(map[string]journal.Destination{"app": {}})
		for i := range 3 {
			w := r.receive()
			if w.Key != key(i) {
				t.Fatalf("received %s, want %s", w.Key, key(i))
			}
			r.idle()
			r.finish(w, journal.Done, time.Time{})
		}
	})
}

// What an operator paused stays so for a destination that comes later.
func TestReload_pausedStays(t *testing.T) {
	runRecorded(t, engine.Options{Poll: time.Hour, Destinations: destinations("b")}, func(t *testing.T, r *rig, _ *ledger) {
		r.setPaused("app", true)
		r.reload(destinations("app", "b"))
		r.want(r.accept(toward("evt_1", "app")), journal.Accepted)
		r.idle()
		r.setPaused("app", false)
		r.receive()
	})
}

// A shorter retention counts from the reload on, and one that makes no sense changes nothing.
func TestReload_retention(t *testing.T) {
	run(t, engine.Options{Destinations: destinations("app")}, func(t *testing.T, r *rig) {
		e := entry("evt_1")
		e.Destinations = nil
		id := r.want(r.accept(e), journal.Accepted).ID
		sleep(2 * time.Hour)
		if err := r.Reload(destinations("other"), &journal.Retention{Period: journal.Period{IDs: -1}}); err == nil {
			t.Error("a negative retention was taken")
		}
		r.want(r.accept(entry("evt_2")), journal.Accepted)
		r.receive() // app still is a destination
		if err := r.Reload(destinations("app"), &journal.Retention{Period: journal.Period{IDs: 48 * time.Hour, Bodies: time.Hour}}); err != nil {
			t.Fatal(err)
		}
		sleep(10 * time.Minute)
		if left := r.left(id); left != "id" {
			t.Errorf("left of what is older than the new period: %q, want its id alone", left)
		}
	})
}

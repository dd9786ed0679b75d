package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// A fresh event goes straight to Work with everything that its delivery needs.
func TestWork_freshEvent(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		e := entry("evt_1")
		e.Destinations = []string{"app", "audit"}
		id := r.want(r.accept(e), journal.Accepted).ID
		takes := r.fault.Calls(journaltest.OpTake)
		for _, dest := range e.Destinations {
			w := r.receive()
			if (w.Held != journal.Held{EventID: id, Destination: dest, Token: 1}) || w.Tries != 1 ||
				w.Source != e.Source || w.Key != e.Key || w.Type != e.Type || !w.ReceivedAt.Equal(e.ReceivedAt) ||
				string(w.Header) != string(e.Lines()) || string(w.Body) != string(e.Body) ||
				!w.Lease.Equal(time.Now().Add(9*time.Second)) {
				t.Errorf("got %+v", w)
			}
			if !r.Current(w.Held) {
				t.Error("fresh work is not current")
			}
		}
		if r.fault.Calls(journaltest.OpTake) != takes {
			t.Error("the store was asked for fresh work")
		}
	})
}

// Law 5: failed work is tried again when it is due, not at the next poll and not before.
func TestFinish_retriesWhenDue(t *testing.T) {
	run(t, engine.Options{Poll: time.Minute}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		r.finish(r.receive(), journal.Failed, time.Now().Add(700*time.Millisecond))
		sleep(699 * time.Millisecond)
		r.idle()
		sleep(time.Millisecond)
		w := r.receive()
		if w.Token != 2 || w.Tries != 2 {
			t.Errorf("token %d, try %d; want 2, 2", w.Token, w.Tries)
		}
		r.finish(w, journal.Done, time.Time{})
		if left := r.store.Deliveries(); len(left) != 0 {
			t.Errorf("still open: %+v", left)
		}
		if n := len(r.store.Attempts()); n != 2 {
			t.Errorf("%d attempts recorded, want 2", n)
		}
	})
}

// Every retry wakes the poller, whatever order they come in.
func TestFinish_everyRetryInTime(t *testing.T) {
	run(t, engine.Options{Poll: time.Minute}, func(t *testing.T, r *rig) {
		for i, delay := range []time.Duration{30, 10, 20, 5} {
			r.want(r.accept(entry(key(i))), journal.Accepted)
			r.finish(r.receive(), journal.Failed, time.Now().Add(delay*time.Second))
		}
		var got []string
		for _, step := range []time.Duration{5, 5, 10, 10} {
			sleep(step * time.Second)
			got = append(got, r.receive().Key)
		}
		if want := "evt_3 evt_1 evt_2 evt_0"; strings.Join(got, " ") != want {
			t.Errorf("got %v, want %s", got, want)
		}
	})
}

func TestFinish_deadStaysDead(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		r.finish(r.receive(), journal.Dead, time.Time{})
		sleep(time.Hour)
		r.idle()
		if d := r.delivery(); d.State != journal.Dead {
			t.Errorf("got %+v", d)
		}
	})
}

// An outcome survives an outage of the store: it is recorded when the store is back, and the event is
// not delivered a second time although its lease has ended long ago.
func TestFinish_survivesAnOutage(t *testing.T) {
	for name, mode := range map[string]journaltest.Mode{
		"not persisted": journaltest.NotPersisted,
		"persisted":     journaltest.Persisted,
	} {
		t.Run(name, func(t *testing.T) {
			run(t, engine.Options{MaxBatch: 4}, func(t *testing.T, r *rig) {
				for i := range 10 {
					r.want(r.accept(entry(key(i))), journal.Accepted)
				}
				for _, op := range []journaltest.Op{journaltest.OpFinish, journaltest.OpExtend} {
					r.fault.Fail(op, -1, mode)
				}
				r.fault.Fail(journaltest.OpTake, -1, journaltest.NotPersisted)
				for range 10 {
					r.finish(r.receive(), journal.Done, time.Time{})
				}
				sleep(time.Minute)
				// The poller is back before the finisher is: the worst order.
				r.fault.Fail(journaltest.OpTake, 0, mode)
				sleep(3 * time.Second)
				for _, op := range []journaltest.Op{journaltest.OpFinish, journaltest.OpExtend} {
					r.fault.Fail(op, 0, mode)
				}
				sleep(10 * time.Second)
				r.idle()
				r.wantLog(0, "a lease was lost")
				r.wantLog(0, "came too late")
				if left := r.store.Deliveries(); len(left) != 0 {
					t.Errorf("not recorded: %+v", left)
				}
				if n := r.Tracked(); n != 0 {
					t.Errorf("%d deliveries are still tracked", n)
				}
				if n := len(r.store.Attempts()); n != 10 {
					t.Errorf("%d attempts recorded, want 10", n)
				}
			})
		})
	}
}

// A delivery that is leased to us again while its outcome is on its way to the store is recorded under
// the new token.
func TestFinish_tokenChangesOnTheWay(t *testing.T) {
	run(t, engine.Options{Timeout: time.Hour}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		w := r.receive()
		gate := r.fault.Block(journaltest.OpFinish)
		r.fault.Fail(journaltest.OpExtend, -1, journaltest.NotPersisted)
		r.finish(w, journal.Done, time.Time{})
		sleep(10 * time.Second)
		if d := r.delivery(); d.Token != 2 {
			t.Fatalf("not leased again: %+v", d)
		}
		gate.Open()
		synctest.Wait()
		if left := r.store.Deliveries(); len(left) != 0 {
			t.Errorf("not recorded: %+v", left)
		}
		r.idle()
	})
}

// A failure that was recorded, although the store reported otherwise, is followed by a real attempt.
func TestFinish_recordedFailureIsRetried(t *testing.T) {
	run(t, engine.Options{Poll: 10 * time.Millisecond}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		w := r.receive()
		r.fault.Fail(journaltest.OpFinish, 1, journaltest.Persisted)
		r.finish(w, journal.Failed, time.Now())
		sleep(time.Second)
		r.finish(r.receive(), journal.Done, time.Time{})
		if n := len(r.store.Attempts()); n != 2 {
			t.Errorf("%d attempts recorded, want 2", n)
		}
	})
}

// Law 13: when it is not known whether an outcome was recorded, the event does not count as done.
func TestFinish_unknownIsNotDone(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		w := r.receive()
		r.fault.Fail(journaltest.OpFinish, 1, journaltest.NotPersisted)
		r.Finish(journal.Outcome{Held: w.Held, State: journal.Done})
		steal(r, w.Held)
		sleep(time.Second)
		if d := r.delivery(); d.Token != 2 {
			t.Fatalf("got %+v", d)
		}
		if !r.asks(entry("evt_1")) {
			t.Error("answered from the cache")
		}
	})
}

// An outcome that the store never takes does not hold up the others.
func TestFinish_badOutcomeLeavesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journaltest.NewMemory()
		picky := &pickyStore{Store: store}
		r := start(t, store, 0, engine.Options{MaxBatch: 8, Poll: time.Hour})
		r.Engine = open(t, picky, engine.Options{MaxBatch: 8})
		for i := range 8 {
			r.want(r.accept(entry(key(i))), journal.Accepted)
		}
		for range 8 {
			w := r.receive()
			if w.Key == key(3) {
				picky.refuse = w.EventID
			}
			r.Finish(journal.Outcome{Held: w.Held, State: journal.Done})
		}
		sleep(30 * time.Second)
		if d := r.delivery(); d.EventID != picky.refuse {
			t.Errorf("left open: %+v", d)
		}
		if d := r.delivery(); d.Token != 1 || !d.Due.After(time.Now()) {
			t.Errorf("the lease of the bad outcome was not extended: %+v", d)
		}
	})
}

// Law 6: only the first report under the current token counts.
func TestFinish_onlyOnce(t *testing.T) {
	run(t, engine.Options{MaxHeld: 1}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		w := r.receive()
		r.Finish(journal.Outcome{Held: w.Held, State: journal.Dead})
		r.finish(w, journal.Done, time.Time{})
		r.finish(w, journal.Done, time.Time{})
		wrong := *w
		wrong.Token = 7
		r.finish(&wrong, journal.Done, time.Time{})
		if d := r.delivery(); d.State != journal.Dead {
			t.Errorf("got %+v", d)
		}
		// And no slot was given back twice.
		r.want(r.accept(entry("evt_2"), entry("evt_3")), journal.Accepted)
		r.receive()
		sleep(time.Minute)
		r.idle()
	})
}

// The poller takes over what a dead process held, when the lease ends.
func TestPoller_takesOverExpired(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		dead := r.another(engine.Options{})
		dead.want(dead.accept(entry("evt_1")), journal.Accepted)
		dead.receive()
		for _, op := range []journaltest.Op{journaltest.OpExtend, journaltest.OpFinish, journaltest.OpTake} {
			dead.fault.Fail(op, -1, journaltest.NotPersisted)
		}
		sleep(8 * time.Second)
		r.idle()
		sleep(2 * time.Second)
		w := r.receive()
		if w.Token != 2 || w.Tries != 1 || string(w.Body) != `{"id":"evt_1"}` {
			t.Errorf("got %+v", w)
		}
	})
}

// While answers of Take are lost no attempt is made, and so none is used up.
func TestPoller_lostAnswersCostNoTries(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		w := r.receive()
		r.fault.Fail(journaltest.OpTake, -1, journaltest.Persisted)
		r.finish(w, journal.Failed, time.Now().Add(time.Second))
		sleep(2 * time.Minute)
		r.idle()
		if d := r.delivery(); d.Token < 10 {
			t.Fatalf("token %d, want one of many takes", d.Token)
		}
		r.fault.Fail(journaltest.OpTake, 0, journaltest.Persisted)
		sleep(10 * time.Second)
		if w := r.receive(); w.Tries != 2 {
			t.Errorf("the second attempt is try %d", w.Tries)
		}
	})
}

// Where the store knows that nobody else is alive, the work of the last run begins at once.
func TestNew_adoptsOrphans(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		r.receive()
		r.store.Exclusive = true
		next := r.another(engine.Options{})
		if w := next.receive(); w.Token != 2 {
			t.Errorf("got %+v", w)
		}
	})
}

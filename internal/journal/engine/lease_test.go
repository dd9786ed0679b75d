package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// Work that is under way during an outage longer than its lease is not begun a second time by the
// same process.
func TestLease_workUnderWayOutlivesAnOutage(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		w := r.receive()
		for range 2 { // the second outage meets a delivery that was adopted already
			r.fault.Fail(journaltest.OpExtend, -1, journaltest.NotPersisted)
			r.fault.Fail(journaltest.OpTake, -1, journaltest.NotPersisted)
			sleep(20 * time.Second)
			if r.Current(w.Held) {
				t.Error("current although its lease has ended")
			}
			r.fault.Fail(journaltest.OpTake, 0, journaltest.NotPersisted)
			sleep(2 * time.Second)
			r.fault.Fail(journaltest.OpExtend, 0, journaltest.NotPersisted)
			sleep(20 * time.Second)
			r.idle()
			if !r.Current(w.Held) {
				t.Error("not current after the outage")
			}
		}
		if d := r.delivery(); d.Token != 3 {
			t.Errorf("token %d, want 3: taken over by ourselves twice", d.Token)
		}
		r.finish(w, journal.Done, time.Time{})
		if left := r.store.Deliveries(); len(left) != 0 {
			t.Errorf("not recorded: %+v", left)
		}
		if r.asks(entry("evt_1")) {
			t.Error("the event is not known as done")
		}
		if n := r.Tracked(); n != 0 {
			t.Errorf("%d deliveries are still tracked", n)
		}
	})
}

// A delivery that is recorded as done, although the store reports otherwise, is not taken for lost
// when its lease cannot be extended any more.
func TestLease_recordedIsNotLost(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		w := r.receive()
		r.fault.Fail(journaltest.OpFinish, -1, journaltest.Persisted)
		r.finish(w, journal.Done, time.Time{})
		sleep(time.Minute)
		if r.fault.Calls(journaltest.OpExtend) == 0 {
			t.Error("the lease was never extended")
		}
		r.fault.Fail(journaltest.OpFinish, 0, journaltest.Persisted)
		sleep(time.Second)
		r.wantLog(0, "a lease was lost")
		r.wantLog(0, "came too late")
	})
}

// Law 6: slow work keeps its lease, and nobody takes it.
func TestLease_slowWorkIsExtended(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		other := r.another(engine.Options{})
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		w := r.receive()
		sleep(10 * time.Minute)
		other.idle()
		if !r.Current(w.Held) {
			t.Error("the work is not current any more")
		}
		r.finish(w, journal.Done, time.Time{})
		if left := r.store.Deliveries(); len(left) != 0 {
			t.Errorf("not recorded: %+v", left)
		}
	})
}

// Short work costs no extension.
func TestLease_shortWorkIsLeftAlone(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		for i := range 20 {
			r.want(r.accept(entry(key(i))), journal.Accepted)
			w := r.receive()
			sleep(time.Second)
			r.finish(w, journal.Done, time.Time{})
		}
		if n := r.fault.Calls(journaltest.OpExtend); n != 0 {
			t.Errorf("%d calls of Extend", n)
		}
	})
}

// A few failures of Extend do not cost the lease.
func TestLease_extendIsTriedAgain(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		other := r.another(engine.Options{})
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		r.receive()
		for range 20 {
			r.fault.Fail(journaltest.OpExtend, 5, journaltest.NotPersisted)
			sleep(5 * time.Second)
		}
		other.idle()
	})
}

// Law 6: what the store says only when its lease is over, because the machine stood still meanwhile, is
// not handed out: somebody else may have it. It comes with its next lease.
func TestLease_tooLateIsNotHandedOut(t *testing.T) {
	var stoodStill atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(stoodStill.Load())) }
	run(t, engine.Options{Now: now}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		r.finish(r.receive(), journal.Failed, time.Now().Add(time.Minute))
		gate := r.fault.Block(journaltest.OpTake)
		sleep(time.Minute)
		<-gate.Arrived
		stoodStill.Store(int64(time.Hour))
		gate.Open()
		r.idle()
		sleep(time.Minute)
		if w := r.receive(); w.Token != 3 || !r.Current(w.Held) {
			t.Errorf("it came under token %d, and is ours: %v; want the third, after that of the try and that which was over", w.Token, r.Current(w.Held))
		}
	})
}

// Laws 6 and 12: a lease that was lost is noticed, its outcome counts for nothing, and its slot comes
// back.
func TestLease_lostIsNoticed(t *testing.T) {
	run(t, engine.Options{MaxHeld: 1}, func(t *testing.T, r *rig) {
		other := r.another(engine.Options{})
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		w := r.receive()
		r.fault.Fail(journaltest.OpExtend, -1, journaltest.NotPersisted)
		r.fault.Fail(journaltest.OpTake, -1, journaltest.NotPersisted)
		sleep(12 * time.Second)
		taken := other.receive()
		if taken.Token != 2 {
			t.Fatalf("taken over under token %d", taken.Token)
		}
		r.fault.Fail(journaltest.OpExtend, 0, journaltest.NotPersisted)
		sleep(12 * time.Second)
		if r.Current(w.Held) {
			t.Error("current although another process has it")
		}
		r.finish(w, journal.Done, time.Time{})
		if d := r.delivery(); d.State != journal.Processing || d.Token != 2 {
			t.Errorf("the stale outcome was applied: %+v", d)
		}
		if !r.asks(entry("evt_1")) {
			t.Error("the stale outcome is in the cache")
		}
		other.finish(taken, journal.Done, time.Time{})
		r.want(r.accept(entry("evt_2")), journal.Accepted)
		if w := r.receive(); w.Token != 1 {
			t.Error("the slot of the lost work was not given back")
		}
	})
}

// A lease that was lost without anybody noticing is noticed when the outcome is refused.
func TestLease_lostIsNoticedAtFinish(t *testing.T) {
	run(t, engine.Options{Lease: time.Hour}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		w := r.receive()
		steal(r, w.Held)
		r.finish(w, journal.Done, time.Time{})
		if d := r.delivery(); d.Token != 2 {
			t.Errorf("the stale outcome was applied: %+v", d)
		}
		if !r.asks(entry("evt_1")) {
			t.Error("the stale outcome is in the cache")
		}
	})
}

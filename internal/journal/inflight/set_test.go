package inflight_test

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/inflight"
)

func newSet(deliveries int) *inflight.Set {
	return inflight.New(inflight.Options{MaxDeliveries: deliveries, MaxBytes: 1 << 20, MaxBatch: 8, Now: time.Now}, func() {})
}

// take has the store hand out one delivery under a token, and returns what is new of it.
func take(t *testing.T, s *inflight.Set, token int64) []*inflight.Item {
	t.Helper()
	offered := s.Offer()
	if offered.Deliveries == 0 {
		t.Fatal("no room is offered")
	}
	held := journal.Held{EventID: 1, Destination: "app", Token: token}
	return s.Taken(offered, []*journal.Work{{Held: held, Source: "stripe", Key: "evt_1"}}, time.Now().Add(time.Minute))
}

// record reports an outcome and has the store answer it.
func record(t *testing.T, s *inflight.Set, o journal.Outcome, applied bool) (late bool) {
	t.Helper()
	items, outcomes := s.Next(nil, nil, 8)
	if len(items) != 1 || outcomes[0].Token != o.Token || outcomes[0].State != o.State {
		t.Fatalf("to record: %+v, want one of token %d", outcomes, o.Token)
	}
	return s.Conclude(items[0], outcomes[0], applied, 0, func(*inflight.Event, int64) {})
}

// A slot is taken from the offer on until the store has answered the outcome, and the set is idle then.
func TestSlotIsHeldUntilTheOutcomeIsRecorded(t *testing.T) {
	s := newSet(8)
	it := take(t, s, 1)[0]
	o := journal.Outcome{Held: it.Held, State: journal.Done}
	if !s.Current(it.Held, time.Now()) || !s.HasKey("stripe", "evt_1") || s.Count() != 1 {
		t.Error("the delivery is not in flight")
	}
	idle := s.Close()
	if !s.Finish(o) || s.Finish(o) {
		t.Error("an outcome counts once")
	}
	select {
	case <-idle:
		t.Fatal("idle before the outcome is recorded")
	default:
	}
	if record(t, s, o, true) {
		t.Error("an outcome that was applied is late")
	}
	<-idle
	if s.Count() != 0 || s.Remembered() != 0 || s.Offer().Deliveries != 0 {
		t.Errorf("%d slots, %d items after the end", s.Count(), s.Remembered())
	}
}

// A delivery that the store leases to us again is the one in our hands: it does not begin a second time, and its outcome
// is recorded under the new token.
func TestDeliveryTakenAgainIsAdopted(t *testing.T) {
	s := newSet(8)
	it := take(t, s, 1)[0]
	if fresh := take(t, s, 2); len(fresh) != 0 {
		t.Fatalf("it begins again: %+v", fresh[0].Held)
	}
	if s.Count() != 1 || !s.Finish(journal.Outcome{Held: it.Held, State: journal.Done}) {
		t.Fatalf("%d slots; the worker's own token is not taken", s.Count())
	}
	record(t, s, journal.Outcome{Held: journal.Held{Token: 2}, State: journal.Done}, true)
	if s.Count() != 0 || s.Remembered() != 0 {
		t.Errorf("%d slots, %d items are left", s.Count(), s.Remembered())
	}
}

// A failure that was reported may be recorded: what the store hands out then is its next attempt.
func TestReportedFailureIsNotAdopted(t *testing.T) {
	s := newSet(8)
	it := take(t, s, 1)[0]
	s.Finish(journal.Outcome{Held: it.Held, State: journal.Failed})
	if fresh := take(t, s, 2); len(fresh) != 1 || s.Count() != 2 {
		t.Fatalf("%d begin, %d slots; want the next attempt", len(fresh), s.Count())
	}
	if !record(t, s, journal.Outcome{Held: it.Held, State: journal.Failed}, false) {
		t.Error("an outcome that the store did not apply is late")
	}
	if s.Count() != 1 {
		t.Errorf("%d slots; the next attempt has one", s.Count())
	}
}

// A delivery that is done may be leased to us again at the moment in which the store finds that its outcome came under the old
// token. Whoever of the two hears of it first, it does not begin again.
func TestDoneWhileTakenAgainDoesNotBegin(t *testing.T) {
	s := newSet(8)
	it := take(t, s, 1)[0]
	done := journal.Outcome{Held: it.Held, State: journal.Done}
	s.Finish(done)
	offered := s.Offer()
	if record(t, s, done, false) {
		t.Error("late, although it may be ours again")
	}
	again := &journal.Work{Held: journal.Held{EventID: 1, Destination: "app", Token: 2}, Source: "stripe", Key: "evt_1"}
	if fresh := s.Taken(offered, []*journal.Work{again}, time.Now().Add(time.Minute)); len(fresh) != 0 {
		t.Fatalf("it begins again: %+v", fresh[0].Held)
	}
	record(t, s, journal.Outcome{Held: again.Held, State: journal.Done}, true)
	if s.Count() != 0 || s.Remembered() != 0 {
		t.Errorf("%d slots, %d items are left", s.Count(), s.Remembered())
	}
}

// If it is not leased to us it was late, which is told once, whatever is offered by then.
func TestDoneWhileOthersAreTakenIsLate(t *testing.T) {
	s := newSet(8)
	it := take(t, s, 1)[0]
	done := journal.Outcome{Held: it.Held, State: journal.Done}
	s.Finish(done)
	offered := s.Offer()
	record(t, s, done, false)
	s.Taken(offered, nil, time.Now().Add(time.Minute))
	s.Offer()
	if !record(t, s, done, false) {
		t.Error("an outcome that the store did not apply is not late")
	}
	if s.Remembered() != 0 {
		t.Errorf("%d items are left", s.Remembered())
	}
}

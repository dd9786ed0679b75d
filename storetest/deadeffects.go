package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

func deadEffectCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"is never tried by itself", deadRests[Tx]},
		{"is tried again when it is revived", deadRevived[Tx]},
		{"others cannot be revived", deadOnly[Tx]},
	}
}

// dead stores an effect, fails it twice, the second time for good, and returns it.
func (f *txFixture[Tx]) dead(t testing.TB, key string) hookonce.QueuedEffect {
	t.Helper()
	f.enqueue(t, asks(key, ""))
	ok(t, f.outbox(t).FailEffect(t.Context(), f.takeOne(t), hookonce.Failure{}, f.clock.Now()))
	ok(t, f.outbox(t).FailEffect(t.Context(), f.takeOne(t), hookonce.Failure{Err: errDeclined, Dead: true}, f.clock.Now()))
	return f.only(t, hookonce.StateDead)
}

func deadRests[Tx any](t *testing.T, f *txFixture[Tx]) {
	want := f.dead(t, "evt_1")
	if !want.Due.IsZero() || !want.Lease.IsZero() || want.Tries != 2 || want.LastError != errDeclined.Error() {
		t.Fatalf("a dead effect is %+v", want)
	}
	f.clock.Advance(10 * 365 * 24 * time.Hour)
	f.untouched(t, func() { f.take(t, 1, 0) })
}

func deadRevived[Tx any](t *testing.T, f *txFixture[Tx]) {
	want := f.dead(t, "evt_1")
	f.clock.Advance(time.Hour)
	ok(t, f.outbox(t).ReviveEffect(t.Context(), want.ID))
	want.State, want.Tries, want.Due = hookonce.StateFailed, 0, f.clock.Now()
	sameEffect(t, "revived effect", f.only(t, hookonce.StateFailed), want)
	want.State, want.Tries, want.Token, want.Due, want.Lease = hookonce.StateProcessing, 1, 3, time.Time{}, f.clock.Now().Add(lease)
	e := f.takeOne(t)
	sameEffect(t, "first attempt after it", e, want)
	ok(t, f.outbox(t).CompleteEffect(t.Context(), e))
}

func deadOnly[Tx any](t *testing.T, f *txFixture[Tx]) {
	refused := func(id int64) {
		t.Helper()
		f.untouched(t, func() { refuses(t, f.outbox(t).ReviveEffect(t.Context(), id), hookonce.ErrStale) })
	}
	id := f.dead(t, "evt_1").ID
	ok(t, f.outbox(t).ReviveEffect(t.Context(), id))
	refused(id) // failed
	e := f.takeOne(t)
	refused(id) // processing
	ok(t, f.outbox(t).CompleteEffect(t.Context(), e))
	refused(id) // done
	f.enqueue(t, asks("evt_2", ""))
	refused(f.only(t, hookonce.StatePending).ID)
}

func purgeEffectCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"deletes done work of old", purgeEffectsDone[Tx]},
		{"deletes at most the limit", purgeEffectsLimit[Tx]},
		{"never deletes work that is not done", purgeEffectsOpen[Tx]},
		{"what is gone is not recognised", purgeEffectsForgotten[Tx]},
		{"one source, or all but some", purgeEffectsSources[Tx]},
		{"claims and effects go by themselves", purgeApart[Tx]},
	}
}

// carryOut stores an effect and completes it.
func (f *txFixture[Tx]) carryOut(t testing.TB, key string) {
	t.Helper()
	f.enqueue(t, asks(key, ""))
	ok(t, f.outbox(t).CompleteEffect(t.Context(), f.takeOne(t)))
}

func (f *txFixture[Tx]) purgeEffects(t testing.TB, before time.Time, limit, want int) {
	t.Helper()
	n, err := f.outbox(t).Purge(t.Context(), oldEffects(before, limit))
	ok(t, err)
	if n != want {
		t.Fatalf("purged %d effects, want %d", n, want)
	}
}

// oldEffects asks for effects that were done before the given time.
func oldEffects(t time.Time, limit int) hookonce.PurgeRequest {
	return hookonce.PurgeRequest{Kind: hookonce.PurgeEffects, Before: t, Limit: limit}
}

func purgeEffectsDone[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.carryOut(t, "old")
	f.clock.Advance(time.Second)
	f.carryOut(t, "young")
	f.purgeEffects(t, f.clock.Now(), 10, 1)
	if e := f.only(t, hookonce.StateDone); e.Key != "young" {
		t.Fatalf("%s is left, want the young one", e.Ref)
	}
	f.purgeEffects(t, f.clock.Now(), 10, 0) // the bound itself stays
	f.clock.Advance(time.Microsecond)
	f.purgeEffects(t, f.clock.Now(), 10, 1)
}

func purgeEffectsLimit[Tx any](t *testing.T, f *txFixture[Tx]) {
	for i := range 5 {
		f.carryOut(t, fmt.Sprint("evt_", i))
	}
	f.clock.Advance(time.Second)
	for _, step := range [][2]int{{0, 0}, {-1, 0}, {3, 3}, {3, 2}, {3, 0}} {
		f.purgeEffects(t, f.clock.Now(), step[0], step[1])
	}
}

func purgeEffectsOpen[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.dead(t, "dead")
	f.enqueue(t, asks("failed", ""))
	ok(t, f.outbox(t).FailEffect(t.Context(), f.takeOne(t), hookonce.Failure{}, f.clock.Now().Add(time.Hour)))
	f.enqueue(t, asks("processing", ""))
	f.takeOne(t)
	f.enqueue(t, asks("pending", ""))
	f.clock.Advance(10 * 365 * 24 * time.Hour)
	f.untouched(t, func() { f.purgeEffects(t, f.clock.Now(), 100, 0) })
	if n := len(f.all(t)); n != 4 {
		t.Fatalf("there are effects in %d states, want 4", n)
	}
}

func purgeEffectsForgotten[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.carryOut(t, "evt_1")
	before := f.only(t, hookonce.StateDone)
	f.clock.Advance(time.Second)
	f.purgeEffects(t, f.clock.Now(), 1, 1)
	f.enqueue(t, asks("evt_1", ""))
	if e := f.takeOne(t); e.ID == before.ID || e.Token != 1 {
		t.Fatalf("a new effect took the place of one that is gone: %+v, before %+v", e, before)
	}
}

func purgeEffectsSources[Tx any](t *testing.T, f *txFixture[Tx]) {
	for _, source := range []string{"a", "b", "once:c", "d"} {
		e := asks("evt_1", "")
		e.Source = source
		f.enqueue(t, e)
		ok(t, f.outbox(t).CompleteEffect(t.Context(), f.takeOne(t)))
	}
	f.clock.Advance(time.Second)
	left := func(want ...string) {
		t.Helper()
		var got []string
		for _, e := range f.listed(t, hookonce.StateDone) {
			got = append(got, e.Source)
		}
		if d := diff(got, want); d != "" {
			t.Fatalf("left: -got +want\n%s", d)
		}
	}
	req := oldEffects(f.clock.Now(), 100)
	req.Source = "b"
	purgeOf(t, f.outbox(t), req, 1)
	left("a", "once:c", "d")
	req.Source, req.Except = "", []string{"a"}
	req.Dry = true
	purgeOf(t, f.outbox(t), req, 2)
	left("a", "once:c", "d")
	req.Dry = false
	purgeOf(t, f.outbox(t), req, 2)
	left("a")
}

func purgeApart[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.carryOut(t, "evt_1")
	_, err := f.Within(t.Context(), request("evt_1"), func(Tx, hookonce.Claim) error { return nil })
	ok(t, err)
	f.clock.Advance(time.Second)
	purge(t, f, f.clock.Now(), 100, 1)
	absent(t, f, request("evt_1").Ref)
	f.only(t, hookonce.StateDone)
	purge(t, f, f.clock.Now(), 100, 0)
	f.purgeEffects(t, f.clock.Now(), 100, 1)
}

package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

func takeCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"leases what is due", takeLeases[Tx]},
		{"the longest due comes first", takeOrder[Tx]},
		{"nothing is taken before it is due, to the microsecond", takeDue[Tx]},
		{"takes what it is asked for and no more", takeNames[Tx]},
		{"a lease holds until it ends, to the microsecond", takeExpired[Tx]},
		{"a lease that ran out is a death, until there is an outcome", takeDeaths[Tx]},
		{"takes no more suspects than it is asked for, and what is no suspect beside", takeSuspects[Tx]},
		{"one that always fails holds up no other", takePoisoned[Tx]},
		{"needs a positive lease", takeNegative[Tx]},
		{"an ended context takes nothing", takeCancelled[Tx]},
	}
}

func takeLeases[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.enqueue(t, asks("evt_1", ""))
	want := f.only(t, hookonce.StatePending)
	f.clock.Advance(time.Second)
	want.State, want.Token, want.Tries, want.Due, want.Lease = hookonce.StateProcessing, 1, 1, time.Time{}, f.clock.Now().Add(lease)
	same(t, "taken effect", f.takeOne(t), want)
	same(t, "stored effect", f.only(t, hookonce.StateProcessing), want)
	f.untouched(t, func() { f.take(t, 1, 0) })
}

func takeOrder[Tx any](t *testing.T, f *txFixture[Tx]) {
	const n = 6
	names := []string{receipt, "mail.reminder"}
	for i := range n {
		e := asks(fmt.Sprint("evt_", i), "")
		e.Name = names[i%2]
		e.Due = f.clock.Now().Add(-time.Duration((i*5)%n) * time.Second) // in another order than they are stored
		f.enqueue(t, e)
	}
	level := asks("evt_same", "")
	level.Due = f.clock.Now().Add(-(n - 1) * time.Second)
	f.enqueue(t, level)
	var order []string
	for _, limit := range []int{2, 1, 4} {
		taken, err := f.outbox(t).TakeEffects(t.Context(), hookonce.TakeRequest{Names: names, Limit: limit, Lease: lease})
		ok(t, err)
		for _, e := range taken {
			order = append(order, e.Key)
		}
	}
	want := []string{"evt_1", "evt_same", "evt_2", "evt_3", "evt_4", "evt_5", "evt_0"}
	same(t, "taken in the wrong order", order, want)
}

func takeDue[Tx any](t *testing.T, f *txFixture[Tx]) {
	e := asks("evt_1", "")
	e.Due = f.clock.Now().Add(time.Hour)
	f.enqueue(t, e)
	f.clock.Advance(time.Hour - time.Microsecond)
	f.untouched(t, func() { f.take(t, 1, 0) })
	f.clock.Advance(time.Microsecond)
	f.takeOne(t)
}

func takeNames[Tx any](t *testing.T, f *txFixture[Tx]) {
	names := []string{receipt, "mail.reminder", "Mail.receipt", "mail.%", "other"}
	for _, name := range names {
		for i := range 3 {
			f.enqueue(t, hookonce.Effect{Ref: request(fmt.Sprint("evt_", i)).Ref, Name: name})
		}
	}
	take := func(limit int, want map[string]int, names ...string) {
		t.Helper()
		taken, err := f.outbox(t).TakeEffects(t.Context(), hookonce.TakeRequest{Names: names, Limit: limit, Lease: lease})
		ok(t, err)
		got := map[string]int{}
		for _, e := range taken {
			got[e.Name]++
		}
		same(t, fmt.Sprintf("of %q at most %d", names, limit), got, want)
	}
	take(10, nil)
	take(10, nil, "nobody's")
	take(0, nil, receipt)
	take(-1, nil, receipt)
	take(2, map[string]int{"mail.%": 2}, "mail.%")
	take(4, map[string]int{"mail.%": 1, receipt: 3}, "mail.%", receipt, receipt, "nobody's")
	take(4, map[string]int{"mail.reminder": 3, "other": 1}, "other", "mail.reminder")
	take(10, map[string]int{"other": 2, "Mail.receipt": 3}, names...)
}

func takeExpired[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.enqueue(t, asks("evt_1", ""))
	want := f.takeOne(t)
	for range 3 {
		f.clock.Advance(lease - time.Microsecond)
		f.untouched(t, func() { f.take(t, 1, 0) })
		f.clock.Advance(time.Microsecond)
		want.Token++
		want.Deaths++
		want.Lease = f.clock.Now().Add(lease)
		same(t, "taken over", f.takeOne(t), want)
	}
}

func takeDeaths[Tx any](t *testing.T, f *txFixture[Tx]) {
	outcomes := map[string]func(hookonce.QueuedEffect){
		"complete": func(e hookonce.QueuedEffect) { ok(t, f.outbox(t).CompleteEffect(t.Context(), e)) },
		"fail": func(e hookonce.QueuedEffect) {
			ok(t, f.outbox(t).FailEffect(t.Context(), e, hookonce.Failure{Err: errDeclined}, f.clock.Now()))
			if again := f.takeOne(t); again.Deaths != 0 {
				t.Fatalf("a failure leaves %d deaths", again.Deaths)
			}
			f.clock.Advance(lease)
			e = f.takeOne(t)
			ok(t, f.outbox(t).CompleteEffect(t.Context(), e))
		},
		"give up": func(e hookonce.QueuedEffect) {
			ok(t, f.outbox(t).FailEffect(t.Context(), e, hookonce.Failure{Err: errDeclined, Dead: true}, time.Time{}))
			if dead := f.only(t, hookonce.StateDead); dead.Deaths != 0 {
				t.Fatalf("a dead effect has %d deaths", dead.Deaths)
			}
			ok(t, f.outbox(t).RedriveEffect(t.Context(), e.ID))
			e = f.takeOne(t)
			if e.Deaths != 0 {
				t.Fatalf("a redriven effect has %d deaths", e.Deaths)
			}
			ok(t, f.outbox(t).CompleteEffect(t.Context(), e))
		},
	}
	for name, end := range outcomes {
		f.enqueue(t, asks(name, ""))
		e := f.takeOne(t)
		for deaths := range 3 {
			if e.Deaths != deaths {
				t.Fatalf("%s: %d deaths, want %d", name, e.Deaths, deaths)
			}
			ok(t, errorOf(f.outbox(t).ExtendEffect(t.Context(), e, lease)))
			if held := f.only(t, hookonce.StateProcessing); held.Deaths != deaths {
				t.Fatalf("%s: extending leaves %d deaths, want %d", name, held.Deaths, deaths)
			}
			f.clock.Advance(lease)
			e = f.takeOne(t)
		}
		end(e)
	}
	for _, done := range f.listed(t, hookonce.StateDone) {
		if done.Deaths != 0 {
			t.Fatalf("a done effect has %d deaths", done.Deaths)
		}
	}
}

func takeSuspects[Tx any](t *testing.T, f *txFixture[Tx]) {
	for i := range 4 {
		f.enqueue(t, asks(fmt.Sprint("suspect_", i), ""))
	}
	other := asks("other", "")
	other.Name = "mail.reminder"
	f.enqueue(t, other)
	names := []string{receipt, other.Name}
	ok(t, errorOf(f.outbox(t).TakeEffects(t.Context(), hookonce.TakeRequest{Names: names, Limit: 5, Lease: lease})))
	f.clock.Advance(lease + time.Second)
	for i := range 4 {
		f.enqueue(t, asks(fmt.Sprint("fresh_", i), ""))
	}
	take := func(limit, suspects int, want ...string) {
		t.Helper()
		taken, err := f.outbox(t).TakeEffects(t.Context(), hookonce.TakeRequest{Names: names, Limit: limit, Suspects: suspects, Lease: lease})
		ok(t, err)
		var got []string
		for _, e := range taken {
			got = append(got, e.Key)
		}
		same(t, fmt.Sprintf("at most %d, %d suspects", limit, suspects), got, want)
	}
	take(1, 0, "fresh_0")
	take(2, 1, "suspect_0", "fresh_1")
	take(1, 5, "suspect_1")
	take(4, 1, "suspect_2", "fresh_2", "fresh_3")
	take(4, -1)
	take(0, 4)
	take(4, 4, "suspect_3", "other")
	take(4, 4)
}

func takePoisoned[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.enqueue(t, asks("poisoned", ""))
	done := 0
	for i := range 5 {
		f.enqueue(t, asks(fmt.Sprint("evt_", i), ""))
		for _, e := range f.take(t, 2, 2) {
			if e.Key == "poisoned" {
				ok(t, f.outbox(t).FailEffect(t.Context(), e, hookonce.Failure{Err: errDeclined}, f.clock.Now()))
				continue
			}
			ok(t, f.outbox(t).CompleteEffect(t.Context(), e))
			done++
		}
	}
	if done != 5 || f.only(t, hookonce.StateFailed).Tries != 5 {
		t.Fatalf("%d of 5 were done beside one that fails", done)
	}
}

func takeNegative[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.enqueue(t, asks("evt_1", ""))
	f.untouched(t, func() {
		for _, d := range []time.Duration{0, -time.Second} {
			if _, err := f.outbox(t).TakeEffects(t.Context(), hookonce.TakeRequest{Names: []string{receipt}, Limit: 1, Lease: d}); err == nil {
				t.Fatalf("taken for %v", d)
			}
		}
	})
}

func takeCancelled[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.enqueue(t, asks("evt_1", ""))
	f.untouched(t, func() {
		refuses(t, errorOf(f.outbox(t).TakeEffects(ended(t), taking(1))), context.Canceled)
	})
}

func effectCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"complete ends the work", effectCompletes[Tx]},
		{"fail lets another attempt begin later", effectFails[Tx]},
		{"extend moves the lease", effectExtends[Tx]},
		{"outcomes may be repeated", effectRepeated[Tx]},
		{"the first outcome of an attempt holds", effectFirst[Tx]},
		{"works after the lease, if nobody took over", effectLate[Tx]},
		{"needs the current token", effectStale[Tx]},
		{"needs an effect", effectMissing[Tx]},
		{"keeps what can be kept of an error's text", effectText[Tx]},
		{"extend needs a positive duration", effectExtendNegative[Tx]},
		{"lists by number, a page at a time", effectPages[Tx]},
	}
}

func effectCompletes[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.enqueue(t, asks("evt_1", ""))
	want := f.takeOne(t)
	f.clock.Advance(time.Second)
	ok(t, f.outbox(t).CompleteEffect(t.Context(), want))
	want.State, want.Lease = hookonce.StateDone, time.Time{}
	same(t, "stored effect", f.only(t, hookonce.StateDone), want)
	f.clock.Advance(1000 * lease)
	f.untouched(t, func() { f.take(t, 1, 0) })
}

func effectFails[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.enqueue(t, asks("evt_1", ""))
	want := f.takeOne(t)
	retry := f.clock.Now().Add(time.Hour)
	ok(t, f.outbox(t).FailEffect(t.Context(), want, hookonce.Failure{Err: errDeclined}, retry))
	want.State, want.Lease, want.Due, want.LastError = hookonce.StateFailed, time.Time{}, retry, errDeclined.Error()
	same(t, "stored effect", f.only(t, hookonce.StateFailed), want)

	f.clock.Advance(time.Hour - time.Microsecond)
	f.take(t, 1, 0)
	f.clock.Advance(time.Microsecond)
	want.State, want.Due, want.Lease = hookonce.StateProcessing, time.Time{}, f.clock.Now().Add(lease)
	want.Token, want.Tries = 2, 2
	e := f.takeOne(t)
	same(t, "second attempt", e, want)
	ok(t, f.outbox(t).CompleteEffect(t.Context(), e))
	if got := f.only(t, hookonce.StateDone); got.LastError != errDeclined.Error() {
		t.Fatalf("the last failure is forgotten: %+v", got)
	}
}

func effectExtends[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.enqueue(t, asks("evt_1", ""))
	want := f.takeOne(t)
	f.clock.Advance(lease / 2)
	got, err := f.outbox(t).ExtendEffect(t.Context(), want, lease)
	ok(t, err)
	want.Lease = f.clock.Now().Add(lease)
	same(t, "extended effect", got, want)
	same(t, "stored effect", f.only(t, hookonce.StateProcessing), want)
	f.clock.Advance(lease * 3 / 4) // past the first lease, before the second
	f.take(t, 1, 0)
	ok(t, f.outbox(t).CompleteEffect(t.Context(), got))
}

// ends are the ways in which an attempt ends, by the state that they leave behind.
func ends[Tx any](t testing.TB, f *txFixture[Tx]) map[hookonce.State]func(hookonce.QueuedEffect) error {
	return map[hookonce.State]func(hookonce.QueuedEffect) error{
		hookonce.StateDone: func(e hookonce.QueuedEffect) error { return f.outbox(t).CompleteEffect(t.Context(), e) },
		hookonce.StateFailed: func(e hookonce.QueuedEffect) error {
			return f.outbox(t).FailEffect(t.Context(), e, hookonce.Failure{Err: errDeclined}, f.clock.Now().Add(time.Hour))
		},
		hookonce.StateDead: func(e hookonce.QueuedEffect) error {
			return f.outbox(t).FailEffect(t.Context(), e, hookonce.Failure{Err: errDeclined, Dead: true}, time.Time{})
		},
	}
}

func effectRepeated[Tx any](t *testing.T, f *txFixture[Tx]) {
	for state, end := range ends(t, f) {
		f.enqueue(t, asks(string(state), ""))
		e := f.takeOne(t)
		ok(t, end(e))
		f.clock.Advance(time.Second)
		f.untouched(t, func() { ok(t, end(e)) })
	}
}

func effectFirst[Tx any](t *testing.T, f *txFixture[Tx]) {
	all := ends(t, f)
	for state, end := range all {
		f.enqueue(t, asks(string(state), ""))
		e := f.takeOne(t)
		ok(t, end(e))
		f.untouched(t, func() {
			refuses(t, errorOf(f.outbox(t).ExtendEffect(t.Context(), e, lease)), hookonce.ErrStale)
			if state == hookonce.StateDone {
				refuses(t, all[hookonce.StateFailed](e), hookonce.ErrStale)
				refuses(t, all[hookonce.StateDead](e), hookonce.ErrStale)
				return
			}
			refuses(t, all[hookonce.StateDone](e), hookonce.ErrStale)
		})
	}
}

func effectLate[Tx any](t *testing.T, f *txFixture[Tx]) {
	for state, end := range ends(t, f) {
		f.enqueue(t, asks(string(state), ""))
		e := f.takeOne(t)
		f.clock.Advance(2 * lease)
		ok(t, end(e))
		f.only(t, state)
	}
	f.enqueue(t, asks("extended", ""))
	e := f.takeOne(t)
	f.clock.Advance(2 * lease)
	ok(t, errorOf(f.outbox(t).ExtendEffect(t.Context(), e, lease)))
	f.take(t, 1, 0)
}

func effectStale[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.enqueue(t, asks("evt_1", ""))
	pending := f.only(t, hookonce.StatePending)
	refused := func(e hookonce.QueuedEffect) {
		t.Helper()
		f.untouched(t, func() {
			for _, end := range ends(t, f) {
				refuses(t, end(e), hookonce.ErrStale)
			}
			refuses(t, errorOf(f.outbox(t).ExtendEffect(t.Context(), e, lease)), hookonce.ErrStale)
		})
	}
	refused(pending)
	old := f.takeOne(t)
	f.clock.Advance(lease)
	current := f.takeOne(t)
	for _, token := range []int64{old.Token, 0, -1, current.Token + 1} {
		e := current
		e.Token = token
		refused(e)
	}
	ok(t, f.outbox(t).CompleteEffect(t.Context(), current))
	refused(old)
}

func effectMissing[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.enqueue(t, asks("evt_1", ""))
	e := f.takeOne(t)
	f.untouched(t, func() {
		for _, id := range []int64{e.ID + 1, 0, -1} {
			missing := e
			missing.ID = id
			for _, end := range ends(t, f) {
				refuses(t, end(missing), hookonce.ErrNotFound)
			}
			refuses(t, errorOf(f.outbox(t).ExtendEffect(t.Context(), missing, lease)), hookonce.ErrNotFound)
			refuses(t, f.outbox(t).RedriveEffect(t.Context(), id), hookonce.ErrNotFound)
		}
	})
}

func effectText[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.enqueue(t, asks("evt_1", ""))
	for text, want := range awkwardTexts() {
		e := f.takeOne(t)
		ok(t, f.outbox(t).FailEffect(t.Context(), e, hookonce.Failure{Err: errors.New(text)}, f.clock.Now()))
		kept(t, f.only(t, hookonce.StateFailed).LastError, want)
	}
	e := f.takeOne(t)
	ok(t, f.outbox(t).FailEffect(t.Context(), e, hookonce.Failure{}, f.clock.Now()))
	if got := f.only(t, hookonce.StateFailed); got.LastError != "" {
		t.Fatalf("the failure before is taken for the last one: %+v", got)
	}
}

func effectExtendNegative[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.enqueue(t, asks("evt_1", ""))
	e := f.takeOne(t)
	f.untouched(t, func() {
		for _, d := range []time.Duration{0, -time.Second} {
			if _, err := f.outbox(t).ExtendEffect(t.Context(), e, d); err == nil {
				t.Fatalf("extended by %v", d)
			}
		}
	})
}

func effectPages[Tx any](t *testing.T, f *txFixture[Tx]) {
	for i := range 5 {
		f.enqueue(t, asks(fmt.Sprint("evt_", i), ""))
	}
	want := f.listed(t, hookonce.StatePending)
	var got []hookonce.QueuedEffect
	after := int64(0)
	for _, n := range []int{2, 2, 1, 0} {
		page, err := f.outbox(t).Effects(t.Context(), hookonce.StatePending, after, 2)
		ok(t, err)
		if len(page) != n {
			t.Fatalf("a page has %d effects, want %d", len(page), n)
		}
		got = append(got, page...)
		after = got[len(got)-1].ID
	}
	same(t, "pages", got, want)
	for _, limit := range []int{0, -1} {
		page, err := f.outbox(t).Effects(t.Context(), hookonce.StatePending, 0, limit)
		ok(t, err)
		if len(page) != 0 {
			t.Fatalf("asked for %d effects, got %d", limit, len(page))
		}
	}
}

func deadEffectCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"is never tried by itself", deadRests[Tx]},
		{"is tried again when it is redriven", deadRedriven[Tx]},
		{"others cannot be redriven", deadOnly[Tx]},
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

func deadRedriven[Tx any](t *testing.T, f *txFixture[Tx]) {
	want := f.dead(t, "evt_1")
	f.clock.Advance(time.Hour)
	ok(t, f.outbox(t).RedriveEffect(t.Context(), want.ID))
	want.State, want.Tries, want.Due = hookonce.StateFailed, 0, f.clock.Now()
	same(t, "redriven effect", f.only(t, hookonce.StateFailed), want)
	want.State, want.Tries, want.Token, want.Due, want.Lease = hookonce.StateProcessing, 1, 3, time.Time{}, f.clock.Now().Add(lease)
	e := f.takeOne(t)
	same(t, "first attempt after it", e, want)
	ok(t, f.outbox(t).CompleteEffect(t.Context(), e))
}

func deadOnly[Tx any](t *testing.T, f *txFixture[Tx]) {
	refused := func(id int64) {
		t.Helper()
		f.untouched(t, func() { refuses(t, f.outbox(t).RedriveEffect(t.Context(), id), hookonce.ErrStale) })
	}
	id := f.dead(t, "evt_1").ID
	ok(t, f.outbox(t).RedriveEffect(t.Context(), id))
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
		same(t, "left", got, want)
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
	ok(t, errorOf(f.Within(t.Context(), request("evt_1"), func(Tx, hookonce.Claim) error { return nil })))
	f.clock.Advance(time.Second)
	purge(t, f, f.clock.Now(), 100, 1)
	absent(t, f, request("evt_1").Ref)
	f.only(t, hookonce.StateDone)
	purge(t, f, f.clock.Now(), 100, 0)
	f.purgeEffects(t, f.clock.Now(), 100, 1)
}

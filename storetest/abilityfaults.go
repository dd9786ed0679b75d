package storetest

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// bothWays makes a case of each way in which a write can fail.
func bothWays[Tx any](what string, run func(t *testing.T, f *txFixture[Tx], persisted bool)) []txCase[Tx] {
	return []txCase[Tx]{
		{what + " failed, not persisted", func(t *testing.T, f *txFixture[Tx]) { run(t, f, false) }},
		{what + " failed, but persisted", func(t *testing.T, f *txFixture[Tx]) { run(t, f, true) }},
	}
}

func responseFaultCases[Tx any]() []txCase[Tx] {
	return append(bothWays("commit of a response", faultKeep[Tx]), bothWays("completion with a response", faultCompleteWith[Tx])...)
}

// lose runs work for the key in a transaction whose commit fails.
func (f *txFixture[Tx]) lose(t testing.TB, key string, persisted bool, work func(Tx) error) {
	t.Helper()
	f.db.FailCommit(persisted)
	_, err := f.Within(t.Context(), request(key), func(tx Tx, _ hookonce.Claim) error { return work(tx) })
	refuses(t, err, hookonce.ErrUnknownOutcome)
}

// faultKeep checks that the response shares the fate of the claim and the effect.
func faultKeep[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	req := request("evt_1")
	f.db.FailCommit(persisted)
	_, err := f.answer(t, req, response("first"), nil)
	refuses(t, err, hookonce.ErrUnknownOutcome)
	if !persisted {
		silent(t, f, req.Ref)
	}
	c, err := f.answer(t, req, response("second"), nil)
	ok(t, err)
	verdict(t, c, map[bool]hookonce.Verdict{true: hookonce.Duplicate, false: hookonce.Acquired}[persisted])
	responds(t, f, req.Ref, response(map[bool]string{true: "first", false: "second"}[persisted]))
	f.effects(t, map[string]int{"evt_1": 1})
}

func faultCompleteWith[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	if !f.failing(t, persisted, func() error { return keeps(t, f).CompleteWith(t.Context(), c, response("first")) }) {
		return
	}
	if !persisted {
		stored(t, f, c.Ref, hookonce.StateProcessing, 1)
		silent(t, f, c.Ref)
	}
	ok(t, keeps(t, f).CompleteWith(t.Context(), c, response("second")))
	stored(t, f, c.Ref, hookonce.StateDone, 1)
	responds(t, f, c.Ref, response(map[bool]string{true: "first", false: "second"}[persisted]))
}

func guardFaultCases[Tx any]() []txCase[Tx] {
	return append(bothWays("commit of a version", faultNewer[Tx]), bothWays("commit of a move", faultTransition[Tx])...)
}

func faultNewer[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	f.newer(t, "order-1", 1, true)
	f.lose(t, "evt_1", persisted, func(tx Tx) error {
		_, err := f.guards(t).Newer(t.Context(), tx, "order-1", hookonce.Version(2))
		return err
	})
	f.newer(t, "order-1", 2, !persisted)
}

func faultTransition[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	f.moves(t, "order-1", "", "open", "open", hookonce.Moved)
	f.lose(t, "evt_1", persisted, func(tx Tx) error {
		_, _, err := f.guards(t).Transition(t.Context(), tx, "order-1", "open", "paid")
		return err
	})
	f.moves(t, "order-1", "open", "paid", "paid", hookonce.MoveOf(!persisted, "paid", "paid"))
}

func outboxFaultCases[Tx any]() (cases []txCase[Tx]) {
	for what, run := range map[string]func(*testing.T, *txFixture[Tx], bool){
		"commit of an effect": faultEnqueue[Tx],
		"taking":              faultTake[Tx],
		"completion":          faultCompleteEffect[Tx],
		"failure":             faultFailEffect[Tx],
		"extension":           faultExtendEffect[Tx],
		"revival":             faultRevive[Tx],
	} {
		cases = append(cases, bothWays(what, run)...)
	}
	return cases
}

// faultEnqueue checks that the effect is there if and only if the claim is done, whatever the caller was
// told.
func faultEnqueue[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	enqueue := func(tx Tx) error { return f.outbox(t).Enqueue(t.Context(), tx, asks("evt_1", "")) }
	f.lose(t, "evt_1", persisted, enqueue)
	if !persisted {
		f.take(t, 1, 0)
	}
	c, err := f.Within(t.Context(), request("evt_1"), func(tx Tx, _ hookonce.Claim) error { return enqueue(tx) })
	ok(t, err)
	verdict(t, c, map[bool]hookonce.Verdict{true: hookonce.Duplicate, false: hookonce.Acquired}[persisted])
	f.takeOne(t)
}

// faultTake checks that effects whose taking was not answered are not lost: their lease runs out.
func faultTake[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	f.enqueue(t, asks("evt_1", ""), asks("evt_2", ""))
	if !f.failing(t, persisted, func() error {
		_, err := f.outbox(t).TakeEffects(t.Context(), taking(2))
		return err
	}) {
		return
	}
	token := int64(1)
	if persisted {
		f.take(t, 2, 0)
		f.clock.Advance(lease)
		token = 2
	}
	for _, e := range f.take(t, 2, 2) {
		if e.Token != token {
			t.Fatalf("token is %d, want %d", e.Token, token)
		}
	}
}

// faultOutcome checks that an outcome that was not answered can be recorded again, and is on record once.
func (f *txFixture[Tx]) faultOutcome(t testing.TB, persisted bool, state hookonce.State, end func(hookonce.QueuedEffect) error) {
	t.Helper()
	f.enqueue(t, asks("evt_1", ""))
	e := f.takeOne(t)
	if !f.failing(t, persisted, func() error { return end(e) }) {
		return
	}
	f.only(t, map[bool]hookonce.State{true: state, false: hookonce.StateProcessing}[persisted])
	ok(t, end(e))
	f.only(t, state)
}

func faultCompleteEffect[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	f.faultOutcome(t, persisted, hookonce.StateDone, ends(t, f)[hookonce.StateDone])
}

func faultFailEffect[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	f.faultOutcome(t, persisted, hookonce.StateFailed, ends(t, f)[hookonce.StateFailed])
}

func faultExtendEffect[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	f.enqueue(t, asks("evt_1", ""))
	e := f.takeOne(t)
	extend := func() error {
		_, err := f.outbox(t).ExtendEffect(t.Context(), e, time.Hour)
		return err
	}
	if !f.failing(t, persisted, extend) {
		return
	}
	want := map[bool]time.Duration{true: time.Hour, false: lease}[persisted]
	if got := f.only(t, hookonce.StateProcessing).Lease.Sub(f.clock.Now()); got != want {
		t.Fatalf("the lease ends in %v, want %v", got, want)
	}
	ok(t, extend())
}

func faultRevive[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	id := f.dead(t, "evt_1").ID
	if !f.failing(t, persisted, func() error { return f.outbox(t).ReviveEffect(t.Context(), id) }) {
		return
	}
	f.only(t, map[bool]hookonce.State{true: hookonce.StateFailed, false: hookonce.StateDead}[persisted])
}

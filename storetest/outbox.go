package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"golang.org/x/sync/errgroup"
)

// RunOutbox checks that a store keeps effects in the caller's transaction, and hands each to one relay at a
// time. The stores that cfg opens must implement [hookonce.Outbox].
func RunOutbox[Tx any](t *testing.T, cfg TxConfig[Tx]) {
	cfg.cases(t, "enqueue", enqueueCases[Tx]())
	cfg.cases(t, "take", takeCases[Tx]())
	cfg.cases(t, "effect", effectCases[Tx]())
	cfg.cases(t, "dead effect", deadEffectCases[Tx]())
	cfg.cases(t, "purge effects", purgeEffectCases[Tx]())
	cfg.cases(t, "concurrent outbox", concurrentOutboxCases[Tx]())
}

// receipt is the name that cases enqueue under, unless they are about names.
const receipt = "mail.receipt"

// asks is an effect that the event with that key asks for.
func asks(key, step string) hookonce.Effect {
	return hookonce.Effect{Ref: request(key).Ref, Name: receipt, Step: step, Payload: []byte("to: " + key)}
}

// enqueue stores effects in one transaction.
func (f *txFixture[Tx]) enqueue(t testing.TB, effects ...hookonce.Effect) {
	t.Helper()
	ok(t, f.tryEnqueue(t, effects...))
}

// enqueues stores an effect in a transaction that is open.
func (f *txFixture[Tx]) enqueues(t testing.TB, e hookonce.Effect) func(context.Context, Tx) error {
	return func(ctx context.Context, tx Tx) error { return f.outbox(t).Enqueue(ctx, tx, e) }
}

func (f *txFixture[Tx]) tryEnqueue(t testing.TB, effects ...hookonce.Effect) error {
	return f.retried(t, func(tx Tx) error {
		for _, e := range effects {
			if err := f.outbox(t).Enqueue(t.Context(), tx, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// taking asks for up to limit effects of the usual name, suspects or not.
func taking(limit int) hookonce.TakeRequest {
	return hookonce.TakeRequest{Names: []string{receipt}, Limit: limit, Suspects: limit, Lease: lease}
}

// take takes up to limit effects and checks how many there were.
func (f *txFixture[Tx]) take(t testing.TB, limit, want int) []hookonce.QueuedEffect {
	t.Helper()
	taken, err := f.outbox(t).TakeEffects(t.Context(), taking(limit))
	ok(t, err)
	if len(taken) != want {
		t.Fatalf("took %d effects, want %d: %+v", len(taken), want, taken)
	}
	return taken
}

// takeOne takes the only effect that is due.
func (f *txFixture[Tx]) takeOne(t testing.TB) hookonce.QueuedEffect {
	t.Helper()
	return f.take(t, 2, 1)[0]
}

// listed returns all effects in that state.
func (f *txFixture[Tx]) listed(t testing.TB, s hookonce.State) []hookonce.QueuedEffect {
	t.Helper()
	found, err := f.outbox(t).Effects(t.Context(), s, 0, 1000)
	ok(t, err)
	return found
}

// only returns the only effect in that state.
func (f *txFixture[Tx]) only(t testing.TB, s hookonce.State) hookonce.QueuedEffect {
	t.Helper()
	found := f.listed(t, s)
	if len(found) != 1 {
		t.Fatalf("%d effects are %s, want one: %+v", len(found), s, found)
	}
	return found[0]
}

// all returns all effects, by state.
func (f *txFixture[Tx]) all(t testing.TB) map[hookonce.State][]hookonce.QueuedEffect {
	t.Helper()
	found := map[hookonce.State][]hookonce.QueuedEffect{}
	for _, s := range everyState {
		if effects := f.listed(t, s); len(effects) > 0 {
			found[s] = effects
		}
	}
	return found
}

// untouched runs work and checks that all effects are what they were before.
func (f *txFixture[Tx]) untouched(t testing.TB, work func()) {
	t.Helper()
	before := f.all(t)
	work()
	same(t, "the outbox was changed", f.all(t), before)
}

func enqueueCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"is there when the transaction commits", enqueueCommits[Tx]},
		{"is seen by nobody before the commit", enqueueHidden[Tx]},
		{"is gone when the transaction rolls back", enqueueRollsBack[Tx]},
		{"commits with the claim", enqueueWithin[Tx]},
		{"the name is the step if there is none", enqueueStep[Tx]},
		{"a step is taken once in a transaction", enqueueTwice[Tx]},
		{"a step stays taken in whatever state", enqueueTaken[Tx]},
		{"steps, keys and sources tell effects apart", enqueueApart[Tx]},
		{"without a key nothing collapses", enqueueUnkeyed[Tx]},
		{"the payload survives byte for byte", enqueueBytes[Tx]},
		{"what cannot be stored is refused, and leaves others", enqueueInvalid[Tx]},
		{"an ended context stores nothing", enqueueCancelled[Tx]},
	}
}

func enqueueCommits[Tx any](t *testing.T, f *txFixture[Tx]) {
	e := asks("evt_1", "first")
	e.Due = f.clock.Now().Add(time.Hour)
	f.enqueue(t, e)
	got := f.only(t, hookonce.StatePending)
	if got.ID <= 0 {
		t.Fatalf("the effect has the number %d", got.ID)
	}
	same(t, "stored effect", got, hookonce.QueuedEffect{
		Effect: e, ID: got.ID, State: hookonce.StatePending, EnqueuedAt: f.clock.Now(),
	})
}

func enqueueHidden[Tx any](t *testing.T, f *txFixture[Tx]) {
	finish := f.holdTx(t, f.enqueues(t, asks("evt_1", "")))
	if found := f.all(t); len(found) != 0 {
		t.Fatalf("before the commit the outbox has %+v", found)
	}
	finish(true)
	f.takeOne(t)
}

func enqueueRollsBack[Tx any](t *testing.T, f *txFixture[Tx]) {
	finish := f.holdTx(t, f.enqueues(t, asks("evt_1", "")))
	finish(false)
	f.untouched(t, func() { f.take(t, 1, 0) })
	f.enqueue(t, asks("evt_1", ""))
	f.takeOne(t)
}

func enqueueWithin[Tx any](t *testing.T, f *txFixture[Tx]) {
	handle := func(failure error) error {
		_, err := f.Within(t.Context(), request("evt_1"), func(tx Tx, c hookonce.Claim) error {
			return errors.Join(f.outbox(t).Enqueue(t.Context(), tx, asks(c.Key, "")), failure)
		})
		return err
	}
	refuses(t, handle(errDeclined), errDeclined)
	f.take(t, 1, 0)
	ok(t, handle(nil))
	if e := f.takeOne(t); e.Ref != request("evt_1").Ref {
		t.Fatalf("the effect is asked for by %s", e.Ref)
	}
	stored(t, f, request("evt_1").Ref, hookonce.StateDone, 2)
}

func enqueueStep[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.enqueue(t, asks("evt_1", ""))
	if got := f.only(t, hookonce.StatePending); got.Step != receipt {
		t.Fatalf("the step is %q, want the name %q", got.Step, receipt)
	}
	refuses(t, f.tryEnqueue(t, asks("evt_1", receipt)), hookonce.ErrEffectExists)
	f.enqueue(t, asks("evt_1", "reminder"))
}

func enqueueTwice[Tx any](t *testing.T, f *txFixture[Tx]) {
	second := asks("evt_1", "")
	second.Payload = []byte("to: somebody else")
	refuses(t, f.tryEnqueue(t, asks("evt_1", ""), second), hookonce.ErrEffectExists)
	f.take(t, 1, 0)
}

func enqueueTaken[Tx any](t *testing.T, f *txFixture[Tx]) {
	refused := func() {
		t.Helper()
		f.untouched(t, func() { refuses(t, f.tryEnqueue(t, asks("evt_1", "")), hookonce.ErrEffectExists) })
	}
	f.enqueue(t, asks("evt_1", ""))
	refused()
	e := f.takeOne(t)
	refused()
	ok(t, f.outbox(t).FailEffect(t.Context(), e, hookonce.Failure{}, f.clock.Now()))
	refused()
	e = f.takeOne(t)
	ok(t, f.outbox(t).FailEffect(t.Context(), e, hookonce.Failure{Dead: true}, time.Time{}))
	refused()
	ok(t, f.outbox(t).RedriveEffect(t.Context(), e.ID))
	refused()
	ok(t, f.outbox(t).CompleteEffect(t.Context(), f.takeOne(t)))
	refused()
}

func enqueueApart[Tx any](t *testing.T, f *txFixture[Tx]) {
	shop := asks("evt_1", "")
	shop.Source = "shop"
	effects := []hookonce.Effect{asks("evt_1", ""), shop, asks("evt_2", "")}
	for _, name := range awkwardNames() {
		effects = append(effects, asks("evt_1", name), asks(name, name))
	}
	f.enqueue(t, effects...)
	got := f.listed(t, hookonce.StatePending)
	for i, e := range got {
		if i > 0 && e.ID <= got[i-1].ID {
			t.Fatalf("number %d follows %d", e.ID, got[i-1].ID)
		}
		want := effects[i]
		if want.Step == "" {
			want.Step = receipt
		}
		if e.Ref != want.Ref || e.Step != want.Step || !bytes.Equal(e.Payload, want.Payload) {
			t.Fatalf("effect %d is %+v, want %+v", i, e.Effect, want)
		}
	}
	if len(got) != len(effects) {
		t.Fatalf("%d of %d effects were stored", len(got), len(effects))
	}
}

func enqueueUnkeyed[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.enqueue(t, asks("", ""), asks("", ""))
	f.enqueue(t, asks("", ""))
	ids := map[int64]bool{}
	for _, e := range f.take(t, 10, 3) {
		ids[e.ID] = true
		if e.Key != "" || e.Source != "billing" {
			t.Fatalf("the effect is asked for by %s", e.Ref)
		}
		ok(t, f.outbox(t).CompleteEffect(t.Context(), e))
	}
	if len(ids) != 3 {
		t.Fatalf("three effects have %d numbers", len(ids))
	}
}

func enqueueBytes[Tx any](t *testing.T, f *txFixture[Tx]) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	payloads := [][]byte{nil, {}, every, bytes.Repeat(every, hookonce.MaxPayload/256)}
	for i, p := range payloads {
		e := asks(fmt.Sprint("evt_", i), "")
		e.Payload = p
		f.enqueue(t, e)
	}
	for i, e := range f.take(t, len(payloads), len(payloads)) {
		if !bytes.Equal(e.Payload, payloads[i]) {
			t.Fatalf("payload %d came back as %d bytes", i, len(e.Payload))
		}
	}
}

// invalidEffects cannot be stored.
func invalidEffects() map[string]hookonce.Effect {
	effects := map[string]hookonce.Effect{}
	for what, ref := range invalidRefs() {
		effects[what] = hookonce.Effect{Ref: ref, Name: receipt}
	}
	for what, name := range invalidNames() {
		effects[what+" in the name"] = hookonce.Effect{Ref: request("evt_1").Ref, Name: name}
		effects[what+" in the step"] = asks("evt_1", name)
	}
	effects["no name"] = hookonce.Effect{Ref: request("evt_1").Ref}
	large := asks("evt_1", "")
	large.Payload = []byte(strings.Repeat("x", hookonce.MaxPayload+1))
	effects["a large payload"] = large
	return effects
}

func enqueueInvalid[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.enqueue(t, asks("evt_0", ""))
	for what, e := range invalidEffects() {
		if err := f.tryEnqueue(t, asks("evt_1", "before"), e); !errors.Is(err, hookonce.ErrInvalidRef) {
			t.Fatalf("%s: error is %v, want ErrInvalidRef", what, err)
		}
	}
	f.enqueue(t, asks("evt_2", ""))
	f.take(t, 10, 2)
}

func enqueueCancelled[Tx any](t *testing.T, f *txFixture[Tx]) {
	for _, key := range []string{"evt_1", ""} {
		err := f.inside(t, func(tx Tx) error { return f.outbox(t).Enqueue(ended(t), tx, asks(key, "")) })
		refuses(t, err, context.Canceled)
	}
	f.take(t, 1, 0)
}

func concurrentOutboxCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"a step waits for another transaction that takes it", raceStepWaits[Tx]},
		{"one of many takes a step", raceStep[Tx]},
		{"relays at once take each effect once", raceRelays[Tx]},
		{"what another relay takes over meanwhile is left to it", raceLook[Tx]},
		{"an outcome and a takeover never both succeed", raceEffectTakeover[Tx]},
		{"one of many redrives", raceRedrive[Tx]},
		{"purges do not count an effect twice", racePurgeEffects[Tx]},
	}
}

// raceStepWaits checks both ways in which the first transaction may end.
func raceStepWaits[Tx any](t *testing.T, f *txFixture[Tx]) {
	for i := range rounds {
		commit, e := i%2 == 0, asks(fmt.Sprint("evt_", i), "")
		finish := f.holdTx(t, f.enqueues(t, e))
		if i < 2 {
			f.mustWait(t, f.enqueues(t, e))
		}
		second := make(chan error, 1)
		go func() { second <- f.tryEnqueue(t, e) }()
		finish(commit)
		if err := <-second; errors.Is(err, hookonce.ErrEffectExists) != commit || (err != nil) != commit {
			t.Fatalf("after another transaction took the step (committed: %v): %v", commit, err)
		}
	}
	f.take(t, 100, rounds)
}

// one has many do the same at once, and checks that one of them succeeds and the others get that error.
func one(t testing.TB, others error, work func() error) {
	t.Helper()
	var succeeded atomic.Int64
	racing(t, func(int) error {
		err := work()
		if err == nil {
			succeeded.Add(1)
		}
		if errors.Is(err, others) {
			return nil
		}
		return err
	})
	if n := succeeded.Load(); n != 1 {
		t.Fatalf("%d of %d succeeded, want one", n, racers)
	}
}

func raceStep[Tx any](t *testing.T, f *txFixture[Tx]) {
	for i := range rounds / 2 {
		one(t, hookonce.ErrEffectExists, func() error { return f.tryEnqueue(t, asks(fmt.Sprint("evt_", i), "")) })
	}
	f.take(t, 100, rounds/2)
}

// raceRelays has relays take and complete until everything is done. They begin together, so that all of them
// see the same effects first.
func raceRelays[Tx any](t *testing.T, f *txFixture[Tx]) {
	const n = 20 * racers
	var effects []hookonce.Effect
	for i := range n {
		effects = append(effects, asks(fmt.Sprint("evt_", i), ""))
	}
	f.enqueue(t, effects...)
	var open [stores]hookonce.Outbox[Tx]
	for i := range open {
		open[i] = outboxOf(t, f.another(0))
	}
	var done atomic.Int64
	var mu sync.Mutex
	taken := map[string]int{}
	racing(t, func(i int) error {
		failed := 0 // times in a row
		for done.Load() < n {
			batch, err := open[i%stores].TakeEffects(t.Context(), taking(5))
			if err != nil {
				if failed++; failed < 3 {
					continue // it did not get its turn in time, and asks again as a relay does
				}
				return err
			}
			failed = 0
			for _, e := range batch {
				mu.Lock()
				taken[e.Key]++
				mu.Unlock()
				if err := open[i%stores].CompleteEffect(t.Context(), e); err != nil {
					return err
				}
				done.Add(1)
			}
		}
		return nil
	})
	for key, times := range taken {
		if times != 1 {
			t.Errorf("%s was taken %d times", key, times)
		}
	}
	if len(taken) != n || len(f.listed(t, hookonce.StateDone)) != n {
		t.Fatalf("%d of %d were taken", len(taken), n)
	}
}

// raceLook has another relay take the effect at each of the moments when a store asks for the time:
// those that look first do so between that and the taking.
func raceLook[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.enqueue(t, asks("evt_1", ""))
	f.takeOne(t)
	for at, another := 1, true; another; at++ {
		f.clock.Advance(lease)
		asked := 0
		another = false
		s := outboxOf(t, f.db.Store(Options{Clock: func() time.Time {
			if asked++; asked == at {
				f.takeOne(t)
				another = true
			}
			return f.clock.Now()
		}}))
		taken, err := s.TakeEffects(t.Context(), taking(1))
		ok(t, err)
		if another == (len(taken) > 0) {
			t.Fatalf("another relay took it: %v, this one took %+v", another, taken)
		}
	}
}

func raceEffectTakeover[Tx any](t *testing.T, f *txFixture[Tx]) {
	for i := range rounds {
		f.enqueue(t, asks(fmt.Sprint("evt_", i), ""))
		old := f.takeOne(t)
		f.clock.Advance(lease)
		owner, other := outboxOf(t, f.another(0)), outboxOf(t, f.another(0))
		var g errgroup.Group
		var completed bool
		var taken []hookonce.QueuedEffect
		g.Go(func() error {
			err := owner.CompleteEffect(t.Context(), old)
			completed = err == nil
			if errors.Is(err, hookonce.ErrStale) {
				return nil
			}
			return err
		})
		g.Go(func() (err error) {
			taken, err = other.TakeEffects(t.Context(), taking(1))
			return err
		})
		ok(t, g.Wait())
		if completed == (len(taken) == 1) {
			t.Fatalf("completed: %v, taken over: %+v", completed, taken)
		}
		for _, e := range taken {
			ok(t, other.CompleteEffect(t.Context(), e))
		}
	}
}

func raceRedrive[Tx any](t *testing.T, f *txFixture[Tx]) {
	id := f.dead(t, "evt_1").ID
	one(t, hookonce.ErrStale, func() error { return f.outbox(t).RedriveEffect(t.Context(), id) })
}

func racePurgeEffects[Tx any](t *testing.T, f *txFixture[Tx]) {
	const n = 30
	for i := range n {
		f.carryOut(t, fmt.Sprint("evt_", i))
	}
	f.clock.Advance(lease)
	var deleted atomic.Int64
	var g errgroup.Group
	for range stores {
		o := outboxOf(t, f.another(0))
		g.Go(func() error {
			for {
				some, err := o.Purge(t.Context(), oldEffects(f.clock.Now(), 5))
				deleted.Add(int64(some))
				if some == 0 || err != nil {
					return err
				}
			}
		})
	}
	ok(t, g.Wait())
	rest, err := f.outbox(t).Purge(t.Context(), oldEffects(f.clock.Now(), n))
	ok(t, err)
	if total := int(deleted.Load()) + rest; total != n {
		t.Fatalf("%d effects were deleted, want %d", total, n)
	}
}

package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hookonce/hookonce"
	"golang.org/x/sync/errgroup"
)

func concurrentOutboxCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"a step waits for another transaction that takes it", raceStepWaits[Tx]},
		{"one of many takes a step", raceStep[Tx]},
		{"relays at once take each effect once", raceRelays[Tx]},
		{"an outcome and a takeover never both succeed", raceEffectTakeover[Tx]},
		{"one of many revives", raceRevive[Tx]},
		{"purges do not count an effect twice", racePurgeEffects[Tx]},
	}
}

// raceStepWaits checks both ways in which the first transaction may end.
func raceStepWaits[Tx any](t *testing.T, f *txFixture[Tx]) {
	for i := range rounds {
		commit, e := i%2 == 0, asks(fmt.Sprint("evt_", i), "")
		finish := f.holdTx(t, func(tx Tx) error { return f.outbox(t).Enqueue(t.Context(), tx, e) })
		if i < 2 {
			f.mustWait(t, func(ctx context.Context, tx Tx) error { return f.outbox(t).Enqueue(ctx, tx, e) })
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

func raceStep[Tx any](t *testing.T, f *txFixture[Tx]) {
	for i := range rounds / 2 {
		var stored atomic.Int64
		racing(t, func(int) error {
			err := f.tryEnqueue(t, asks(fmt.Sprint("evt_", i), ""))
			if err == nil {
				stored.Add(1)
			}
			if errors.Is(err, hookonce.ErrEffectExists) {
				return nil
			}
			return err
		})
		if n := stored.Load(); n != 1 {
			t.Fatalf("%d of %d transactions took one step", n, racers)
		}
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

func raceRevive[Tx any](t *testing.T, f *txFixture[Tx]) {
	id := f.dead(t, "evt_1").ID
	var revived atomic.Int64
	racing(t, func(int) error {
		err := f.outbox(t).ReviveEffect(t.Context(), id)
		if err == nil {
			revived.Add(1)
		}
		if errors.Is(err, hookonce.ErrStale) {
			return nil
		}
		return err
	})
	if n := revived.Load(); n != 1 {
		t.Fatalf("%d of %d revived one effect", n, racers)
	}
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

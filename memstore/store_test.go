package memstore_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/storetest"
)

// ledger counts effects.
type ledger struct {
	mu     sync.Mutex
	counts map[string]int
}

func (l *ledger) effect(_ context.Context, tx *memstore.Tx, id string) error {
	tx.OnCommit(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.counts[id]++
	})
	return nil
}

func (l *ledger) effects(context.Context) (map[string]int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.counts), nil
}

// fault makes one commit fail.
type fault struct {
	mu               sync.Mutex
	armed, persisted bool
}

func (f *fault) arm(persisted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.persisted = true, persisted
}

func (f *fault) commit(persist func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	armed := f.armed
	f.armed = false
	if !armed || f.persisted {
		persist()
	}
	if armed {
		return errors.New("connection reset by peer")
	}
	return nil
}

func open(testing.TB) storetest.Database[*memstore.Tx] {
	base, effects, fault := memstore.New(), &ledger{counts: map[string]int{}}, new(fault)
	return storetest.Database[*memstore.Tx]{
		Store: func(o storetest.Options) hookonce.TxStore[*memstore.Tx] {
			opts := []memstore.Option{memstore.WithClock(o.Clock), memstore.WithCommit(fault.commit)}
			if o.Wait != 0 {
				opts = append(opts, memstore.WithWait(o.Wait))
			}
			return base.With(opts...)
		},
		Begin:      func(context.Context) (*memstore.Tx, error) { return base.Begin(), nil },
		Commit:     func(_ context.Context, tx *memstore.Tx) error { return tx.Commit() },
		Rollback:   func(_ context.Context, tx *memstore.Tx) error { return tx.Rollback() },
		Effect:     effects.effect,
		Effects:    effects.effects,
		FailCommit: fault.arm,
	}
}

func TestConformance(t *testing.T) {
	cfg := storetest.TxConfig[*memstore.Tx]{Open: open}
	storetest.Run(t, cfg.Lease())
	storetest.RunConcurrent(t, cfg.Lease())
	storetest.RunTx(t, cfg)
	storetest.RunTxConcurrent(t, cfg)
	storetest.RunTxResponses(t, cfg)
	storetest.RunGuards(t, cfg)
	storetest.RunOutbox(t, cfg)
	storetest.RunFaults(t, cfg)
}

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, storetest.TxConfig[*memstore.Tx]{Open: open})
}

var request = hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}}

// The bounded wait runs on the clock of package time, so a test in a synctest bubble does not sit
// through it.
func TestWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, start := memstore.New(), time.Now()
		holder := store.Begin()
		if _, err := store.ClaimTx(t.Context(), holder, request); err != nil {
			t.Fatal(err)
		}
		c, err := store.Within(t.Context(), request, func(*memstore.Tx, hookonce.Claim) error { return nil })
		if !errors.Is(err, hookonce.ErrBusy) || c.Verdict != hookonce.Busy {
			t.Fatalf("Within = %#v, %v; want Busy", c, err)
		}
		if waited := time.Since(start); waited != memstore.DefaultWait {
			t.Fatalf("waited %v, want %v", waited, memstore.DefaultWait)
		}
	})
}

func TestWaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.WithWait(time.Hour))
		holder := store.Begin()
		if _, err := store.ClaimTx(t.Context(), holder, request); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := store.Within(ctx, request, func(*memstore.Tx, hookonce.Claim) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Within: %v, want the context's error", err)
		}
	})
}

// A reader never sees the claim without its effect, nor the effect without its claim.
func TestEffectsAndClaimsAppearTogether(t *testing.T) {
	store, effect := memstore.New(), false
	tx := store.Begin()
	tx.OnCommit(func() { effect = true })
	if _, err := store.ClaimTx(t.Context(), tx, request); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Lookup(t.Context(), request.Ref); effect || !errors.Is(err, hookonce.ErrNotFound) {
		t.Fatalf("before the commit: effect %v, claim %v", effect, err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Lookup(t.Context(), request.Ref); !effect || err != nil {
		t.Fatalf("after the commit: effect %v, claim %v", effect, err)
	}
}

func TestAnEndedTransactionIsRefused(t *testing.T) {
	store := memstore.New()
	for name, end := range map[string]func(*memstore.Tx) error{"commit": (*memstore.Tx).Commit, "rollback": (*memstore.Tx).Rollback} {
		tx := store.Begin()
		if err := end(tx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if tx.Commit() == nil || tx.Rollback() == nil {
			t.Errorf("a transaction ended twice after %s", name)
		}
		if _, err := store.ClaimTx(t.Context(), tx, request); err == nil {
			t.Errorf("claimed in a transaction after its %s", name)
		}
	}
}

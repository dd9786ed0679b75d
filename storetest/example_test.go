package storetest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/storetest"
)

// The tests of a store of your own that commits claims with effects. Open makes a fresh database for each
// case; memstore's is in memory.
func Example() {
	open := func(testing.TB) storetest.Database[*memstore.Tx] {
		database := memstore.New()
		return storetest.Database[*memstore.Tx]{
			Store: func(o storetest.Options) hookonce.TxStore[*memstore.Tx] {
				return database.With(memstore.WithClock(o.Clock), memstore.WithWait(o.Wait))
			},
			Begin:    func(context.Context) (*memstore.Tx, error) { return database.Begin(), nil },
			Commit:   func(_ context.Context, tx *memstore.Tx) error { return tx.Commit() },
			Rollback: func(_ context.Context, tx *memstore.Tx) error { return tx.Rollback() },
			// Effect, Effects, and FailCommit for RunFaults
		}
	}
	cfg := storetest.TxConfig[*memstore.Tx]{Open: open}
	_ = func(t *testing.T) { // TestStore
		storetest.Run(t, cfg.Lease())
		storetest.RunConcurrent(t, cfg.Lease())
		storetest.RunTx(t, cfg)
		storetest.RunTxConcurrent(t, cfg)
		storetest.RunTxResponses(t, cfg)
		storetest.RunGuards(t, cfg)
		storetest.RunOutbox(t, cfg)
		storetest.RunInspector(t, cfg) // if it lists what it holds
		storetest.RunTallier(t, cfg)   // if it keeps what processes counted
		storetest.RunHistory(t, cfg.History())
		storetest.RunFaults(t, cfg)
	}
	_ = func(b *testing.B) { // BenchmarkStore
		storetest.Bench(b, cfg)
	}
}

// The tests of a store that has leases only, by itself and behind a proxy.
func Example_lease() {
	cfg := storetest.Config{Open: func(testing.TB) func(storetest.Options) hookonce.Store {
		database := memstore.New()
		return func(o storetest.Options) hookonce.Store {
			return database.With(memstore.WithClock(o.Clock), memstore.WithWait(o.Wait))
		}
	}}
	_ = func(t *testing.T) { // TestStore
		storetest.Run(t, cfg)
		storetest.RunConcurrent(t, cfg)
		storetest.RunResponses(t, cfg)
		storetest.RunHistory(t, cfg.History())
	}
	_ = func(t *testing.T) { // TestStoreBehindAProxy
		storetest.Briefly(t)
		storetest.Run(t, cfg)
	}
	_ = func(b *testing.B) { // BenchmarkStore
		storetest.BenchLease(b, cfg)
	}
}

func ExampleNewClock() {
	clock := storetest.NewClock()
	start := clock.Now()
	clock.Advance(time.Minute)
	fmt.Println(clock.Now().Sub(start))
	// Output: 1m0s
}

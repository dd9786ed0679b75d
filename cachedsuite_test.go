package hookonce_test

import (
	"context"
	"maps"
	"sync"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/storetest"
)

// Whatever the cache does, the store keeps its promises: a cache that is never there, and one that comes
// and goes while copies and failures storm.
func TestCachedConformance(t *testing.T) {
	t.Run("without the cache", func(t *testing.T) {
		cfg := cachedConfig(func() hookonce.DoneCache { return ill(func(context.Context) error { return errCache }) })
		storetest.Run(t, cfg.Lease())
		storetest.RunTx(t, cfg)
	})
	t.Run("with the cache", func(t *testing.T) {
		cfg := cachedConfig(func() hookonce.DoneCache { return hookonce.NewMemoryCache(5) })
		storetest.RunTxConcurrent(t, cfg)
		storetest.RunFaults(t, cfg)
		history := cfg.History()
		history.NoPurge = true
		storetest.RunHistory(t, history)
	})
}

// cachedConfig opens stores in memory that share one cache, as processes share Redis.
func cachedConfig(cache func() hookonce.DoneCache) storetest.TxConfig[*memstore.Tx] {
	return storetest.TxConfig[*memstore.Tx]{Open: func(t testing.TB) storetest.Database[*memstore.Tx] {
		db, shared := openMemory(t), cache()
		plain := db.Store
		db.Store = func(o storetest.Options) hookonce.TxStore[*memstore.Tx] { return hookonce.Cached(plain(o), shared) }
		return db
	}}
}

// openMemory is a database in memory with its effects.
func openMemory(testing.TB) storetest.Database[*memstore.Tx] {
	base := memstore.New()
	var mu sync.Mutex
	effects := map[string]int{}
	var fault *bool
	commit := func(persist func()) error {
		mu.Lock()
		armed := fault
		fault = nil
		mu.Unlock()
		if armed == nil || *armed {
			persist()
		}
		if armed != nil {
			return errLost
		}
		return nil
	}
	return storetest.Database[*memstore.Tx]{
		Store: func(o storetest.Options) hookonce.TxStore[*memstore.Tx] {
			opts := []memstore.Option{memstore.WithClock(o.Clock), memstore.WithCommit(commit)}
			if o.Wait != 0 {
				opts = append(opts, memstore.WithWait(o.Wait))
			}
			return base.With(opts...)
		},
		Begin:    func(context.Context) (*memstore.Tx, error) { return base.Begin(), nil },
		Commit:   func(_ context.Context, tx *memstore.Tx) error { return tx.Commit() },
		Rollback: func(_ context.Context, tx *memstore.Tx) error { return tx.Rollback() },
		Effect: func(_ context.Context, tx *memstore.Tx, id string) error {
			tx.OnCommit(func() {
				mu.Lock()
				defer mu.Unlock()
				effects[id]++
			})
			return nil
		},
		Effects: func(context.Context) (map[string]int, error) {
			mu.Lock()
			defer mu.Unlock()
			return maps.Clone(effects), nil
		},
		FailCommit: func(persisted bool) {
			mu.Lock()
			defer mu.Unlock()
			fault = &persisted
		},
	}
}

func TestMemoryCacheForgetsTheOldest(t *testing.T) {
	m := hookonce.NewMemoryCache(2)
	ref := func(key string) hookonce.Ref { return hookonce.Ref{Source: "billing", Key: key} }
	know := func(want map[string]bool) {
		t.Helper()
		for key, known := range want {
			digest, ok, err := m.Done(t.Context(), ref(key))
			if err != nil || ok != known || ok && string(digest) != key {
				t.Errorf("%s: %q, %v, %v; want %v", key, digest, ok, err, known)
			}
		}
	}
	for _, key := range []string{"a", "b", "b"} {
		wraps(t, m.Remember(t.Context(), ref(key), []byte(key)), nil)
	}
	know(map[string]bool{"b": true})
	know(map[string]bool{"a": true}) // the latest now
	wraps(t, m.Remember(t.Context(), ref("c"), []byte("c")), nil)
	know(map[string]bool{"a": true, "b": false, "c": true})
}

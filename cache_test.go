package hookonce_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/storetest"
)

// counted is a store that counts what reaches it.
type counted struct {
	hookonce.TxStore[*memstore.Tx]
	mu    sync.Mutex
	calls int
}

func (c *counted) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(*memstore.Tx, hookonce.Claim) error) (hookonce.Claim, error) {
	c.mu.Lock()
	c.calls++
	c.mu.Unlock()
	return c.TxStore.Within(ctx, req, fn)
}

// cacheFunc is a cache of functions. Nil: nothing is known, nothing is remembered.
type cacheFunc struct {
	done     func(ctx context.Context, ref hookonce.Ref) ([]byte, bool, error)
	remember func(ctx context.Context, ref hookonce.Ref, digest []byte) error
}

func (c cacheFunc) Done(ctx context.Context, ref hookonce.Ref) ([]byte, bool, error) {
	if c.done == nil {
		return nil, false, nil
	}
	return c.done(ctx, ref)
}

func (c cacheFunc) Remember(ctx context.Context, ref hookonce.Ref, digest []byte) error {
	if c.remember == nil {
		return nil
	}
	return c.remember(ctx, ref, digest)
}

var errCache = errors.New("the cache is ill")

var cachedEvent = hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Type: "paid", Digest: []byte("one")}

func noEffect(*memstore.Tx, hookonce.Claim) error { return nil }

// runCached runs cachedEvent and returns the verdict.
func runCached(t *testing.T, s hookonce.TxStore[*memstore.Tx], fn func(*memstore.Tx, hookonce.Claim) error) hookonce.Verdict {
	t.Helper()
	c, err := s.Within(t.Context(), cachedEvent, fn)
	if err != nil {
		t.Fatal(err)
	}
	return c.Verdict
}

// remembers reports whether the cache knows the event.
func remembers(t *testing.T, c hookonce.DoneCache) bool {
	t.Helper()
	_, ok, err := c.Done(t.Context(), cachedEvent.Ref)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func TestCachedSparesTheStore(t *testing.T) {
	store := &counted{TxStore: memstore.New()}
	s := hookonce.Cached(store, hookonce.NewMemoryCache(10))
	if v := runCached(t, s, noEffect); v != hookonce.Acquired {
		t.Fatal(v)
	}
	got, err := s.Within(t.Context(), cachedEvent, func(*memstore.Tx, hookonce.Claim) error {
		t.Error("the handler ran again")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := hookonce.Claim{Ref: cachedEvent.Ref, Verdict: hookonce.Duplicate, State: hookonce.StateDone, Digest: cachedEvent.Digest}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("-got +want\n%s", d)
	}
	if store.calls != 1 {
		t.Errorf("the store was asked %d times", store.calls)
	}
}

// A copy with other content is a conflict, wherever the answer comes from.
func TestCachedSeesConflicts(t *testing.T) {
	s := hookonce.Cached(memstore.New(), hookonce.NewMemoryCache(10))
	runCached(t, s, noEffect)
	other, bare := cachedEvent, cachedEvent
	other.Digest, bare.Digest = []byte("two"), nil
	for _, req := range []hookonce.ClaimRequest{cachedEvent, other, bare} {
		c, err := s.Within(t.Context(), req, noEffect)
		if err != nil || c.Conflict != (string(req.Digest) == "two") {
			t.Errorf("digest %q: %#v, %v", req.Digest, c, err)
		}
	}
}

// cached is a store with a cache, and what it consists of.
type cached struct {
	*hookonce.CachedStore[*memstore.Tx]
	base  *memstore.Store
	cache *hookonce.MemoryCache
}

// over returns base with the cache of c in front of it.
func (c cached) over(base *memstore.Store) cached {
	c.base = base
	c.CachedStore = hookonce.Cached(base, c.cache)
	return c
}

var (
	errDeclined = errors.New("declined")
	errLost     = errors.New("connection reset by peer")
)

// Law 13: a cache remembers done work and nothing else, and of that what was done through it: a claim that is done for
// another may be opened again.
func TestCachedRemembersOnlyDone(t *testing.T) {
	fail := func(err error) func(t *testing.T, c cached) {
		return func(t *testing.T, c cached) {
			_, got := c.Within(t.Context(), cachedEvent, func(*memstore.Tx, hookonce.Claim) error { return err })
			wraps(t, got, err)
		}
	}
	unknown := func(persisted bool) func(t *testing.T, c cached) {
		return func(t *testing.T, c cached) {
			failing := c.over(c.base.With(memstore.WithCommit(func(persist func()) error {
				if persisted {
					persist()
				}
				return errLost
			})))
			_, err := failing.Within(t.Context(), cachedEvent, noEffect)
			wraps(t, err, hookonce.ErrUnknownOutcome)
		}
	}
	for _, c := range []struct {
		name string
		do   func(t *testing.T, c cached)
		want bool
	}{
		{"a handler that succeeded", func(t *testing.T, c cached) { runCached(t, c, noEffect) }, true},
		{"a duplicate that the store told of", func(t *testing.T, c cached) { runCached(t, c.base, noEffect); runCached(t, c, noEffect) }, false},
		{"a duplicate that Claim told of", func(t *testing.T, c cached) { runCached(t, c.base, noEffect); leaseCached(t, c) }, false},
		{"a lease that was completed", func(t *testing.T, c cached) { wraps(t, c.Complete(t.Context(), leaseCached(t, c)), nil) }, true},
		{"a lease", func(t *testing.T, c cached) { leaseCached(t, c) }, false},
		{"a lease that is busy", func(t *testing.T, c cached) { leaseCached(t, c); leaseCached(t, c) }, false},
		{"a lease that failed", func(t *testing.T, c cached) {
			wraps(t, c.Fail(t.Context(), leaseCached(t, c), hookonce.Failure{Err: errDeclined}), nil)
		}, false},
		{"a lease that was taken over", func(t *testing.T, c cached) {
			stale := leaseCached(t, c)
			stale.Token++
			wraps(t, c.Complete(t.Context(), stale), hookonce.ErrStale)
		}, false},
		{"a claim without its digest", func(t *testing.T, c cached) {
			held := leaseCached(t, c)
			held.Digest = nil
			wraps(t, c.Complete(t.Context(), held), nil)
		}, false},
		{"a handler that failed", fail(errDeclined), false},
		{"a handler that gave up", fail(hookonce.Permanent(errDeclined)), false},
		{"a commit of unknown outcome, not persisted", unknown(false), false},
		{"a commit of unknown outcome, persisted", unknown(true), false},
		{"a transaction of the caller's", func(t *testing.T, c cached) {
			tx := c.base.Begin()
			for range 2 { // won, and a duplicate of what is not committed
				_, err := c.ClaimTx(t.Context(), tx, cachedEvent)
				wraps(t, err, nil)
			}
			wraps(t, tx.Rollback(), nil)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := cached{cache: hookonce.NewMemoryCache(10)}.over(memstore.New())
			c.do(t, f)
			if got := remembers(t, f.cache); got != c.want {
				t.Errorf("remembered: %v, want %v", got, c.want)
			}
		})
	}
}

// leaseCached claims with a lease.
func leaseCached(t *testing.T, s hookonce.Store) hookonce.Claim {
	t.Helper()
	req := cachedEvent
	req.Lease = time.Minute
	c, err := s.Claim(t.Context(), req)
	wraps(t, err, nil)
	return c
}

// wraps checks that err wraps target, or is nil if that is.
func wraps(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error is %v, want %v", err, target)
	}
}

// While a handler runs, and before its commit, nothing is remembered.
func TestCachedRemembersAfterTheCommit(t *testing.T) {
	c := cached{cache: hookonce.NewMemoryCache(10)}
	committed := false
	c = c.over(memstore.New(memstore.WithCommit(func(persist func()) error {
		if remembers(t, c.cache) {
			t.Error("remembered before the commit")
		}
		persist()
		committed = true
		return nil
	})))
	runCached(t, c, func(*memstore.Tx, hookonce.Claim) error {
		if remembers(t, c.cache) {
			t.Error("remembered before the handler returned")
		}
		return nil
	})
	if !committed || !remembers(t, c.cache) {
		t.Error("not remembered after the commit")
	}
}

// A caller that is gone when its work commits is no reason to leave it out.
func TestCachedRemembersForWhoIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, goAway := context.WithCancel(t.Context())
		told := false
		s := hookonce.Cached(memstore.New(memstore.WithCommit(func(persist func()) error {
			persist()
			goAway()
			return nil
		})), cacheFunc{
			remember: func(ctx context.Context, _ hookonce.Ref, _ []byte) error {
				told = true
				return ctx.Err()
			},
		}, hookonce.WithCacheErrors(func(_ context.Context, err error) { t.Error(err) }))
		_, err := s.Within(ctx, cachedEvent, noEffect)
		synctest.Wait()
		if wraps(t, err, nil); !told {
			t.Error("the cache was not told")
		}
	})
}

// What has no key, or cannot be stored, is not for the cache.
func TestCachedAsksNothingWithoutAKey(t *testing.T) {
	s := hookonce.Cached(memstore.New(), cacheFunc{
		done: func(context.Context, hookonce.Ref) ([]byte, bool, error) {
			t.Error("asked")
			return nil, true, nil
		},
		remember: func(context.Context, hookonce.Ref, []byte) error {
			t.Error("told")
			return nil
		},
	})
	c, err := s.Within(t.Context(), hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing"}}, noEffect)
	if err != nil || c.Verdict != hookonce.Unkeyed {
		t.Errorf("unkeyed: %#v, %v", c, err)
	}
	_, err = s.Within(t.Context(), hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: "a\x00"}}, noEffect)
	wraps(t, err, hookonce.ErrInvalidRef)
}

// A cache that fails, panics, or does not answer and does not mind its context, costs patience at most, before the work and
// after it; its errors are reported.
func TestCachedGoesOnWithoutTheCache(t *testing.T) {
	for name, c := range map[string]struct {
		behave func(ctx context.Context) error
		costs  time.Duration // of one call
		want   error
	}{
		"fails":                      {func(context.Context) error { return errCache }, 0, errCache},
		"panics":                     {func(context.Context) error { panic(errCache) }, 0, errCache},
		"hangs":                      {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, hookonce.DefaultCachePatience, context.DeadlineExceeded},
		"hangs and minds no context": {func(context.Context) error { time.Sleep(time.Hour); return nil }, hookonce.DefaultCachePatience, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failures []error
				s := hookonce.Cached(memstore.New(), ill(c.behave),
					hookonce.WithCacheErrors(func(_ context.Context, err error) { failures = append(failures, err) }))
				for i, want := range []hookonce.Verdict{hookonce.Acquired, hookonce.Duplicate} {
					start := time.Now()
					if v := runCached(t, s, noEffect); v != want {
						t.Errorf("verdict is %v, want %v", v, want)
					}
					if took, costs := time.Since(start), time.Duration(2-i)*c.costs; took != costs {
						t.Errorf("it took %v, want %v", took, costs)
					}
				}
				time.Sleep(2 * time.Hour) // of the bubble's clock: what hangs comes to its end
				if len(failures) != 3 || !errors.Is(failures[0], c.want) {
					t.Errorf("reported %v", failures)
				}
			})
		})
	}
}

// ill is a cache that behaves badly, whatever it is asked.
func ill(behave func(context.Context) error) hookonce.DoneCache {
	return cacheFunc{
		done:     func(ctx context.Context, _ hookonce.Ref) ([]byte, bool, error) { return nil, false, behave(ctx) },
		remember: func(ctx context.Context, _ hookonce.Ref, _ []byte) error { return behave(ctx) },
	}
}

// A cache that hangs keeps a bounded number of goroutines. When it has them, nobody waits for it.
func TestCachedBoundsWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inside atomic.Int64
		s := hookonce.Cached(memstore.New(), ill(func(context.Context) error {
			inside.Add(1)
			time.Sleep(time.Hour)
			inside.Add(-1)
			return nil
		}))
		for range hookonce.MaxCacheCalls {
			runCached(t, s, noEffect)
		}
		if n := inside.Load(); n != hookonce.MaxCacheCalls {
			t.Errorf("%d calls hang, want %d", n, hookonce.MaxCacheCalls)
		}
		start := time.Now()
		runCached(t, s, noEffect)
		if took := time.Since(start); took != 0 {
			t.Errorf("waited %v for a cache that is known to hang", took)
		}
		time.Sleep(2 * time.Hour) // of the bubble's clock: what hangs comes to its end
	})
}

func TestCachedRefusesNonsense(t *testing.T) {
	store, cache := memstore.New(), hookonce.NewMemoryCache(1)
	for name, build := range map[string]func(){
		"no store":    func() { hookonce.Cached[*memstore.Tx](nil, cache) },
		"no cache":    func() { hookonce.Cached(store, nil) },
		"no patience": func() { hookonce.Cached(store, cache, hookonce.WithCachePatience(0)) },
		"no function": func() { hookonce.Cached(store, cache, hookonce.WithCacheErrors(nil)) },
		"no room":     func() { hookonce.NewMemoryCache(0) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			build()
		})
	}
}

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

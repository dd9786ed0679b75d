package hookonce

import (
	"bytes"
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"
)

// DoneCache remembers which claims are done, in front of a store: see [Cached]. It may forget anything at
// any time. Implementations are safe for concurrent use; both methods should return soon after ctx ended.
type DoneCache interface {
	// Done returns whether ref is remembered as done, and with which digest.
	Done(ctx context.Context, ref Ref) (digest []byte, ok bool, err error)
	// Remember remembers that ref is done, with the digest that is stored with the claim.
	Remember(ctx context.Context, ref Ref, digest []byte) error
}

// Defaults and limits of [Cached].
const (
	// DefaultCachePatience is how long a call waits for the cache before it goes on without it.
	DefaultCachePatience = 50 * time.Millisecond
	// MaxCacheCalls is how many calls of the cache are under way at once, at most. Further ones go on
	// without the cache.
	MaxCacheCalls = 256
)

// CachedStore is a store with a cache in front of it. See [Cached].
type CachedStore[Tx any] struct {
	store TxStore[Tx]
	cacheSettings
	cache DoneCache
	slots chan struct{}
}

type cacheSettings struct {
	patience time.Duration
	failed   func(context.Context, error)
}

// CacheOption changes a default of [Cached].
type CacheOption func(*cacheSettings)

// WithCachePatience sets how long a call waits for the cache, once before the work and once after it.
// Default [DefaultCachePatience].
func WithCachePatience(d time.Duration) CacheOption {
	return func(s *cacheSettings) { s.patience = d }
}

// WithCacheErrors has f called with every error of the cache, and with [context.DeadlineExceeded] when it
// did not answer in time: for a log or a counter. Default: nobody is told, because nothing is lost. f is
// called from many goroutines and must be quick.
func WithCacheErrors(f func(context.Context, error)) CacheOption {
	return func(s *cacheSettings) { s.failed = f }
}

// Cached returns a store that asks cache first, so that a copy of finished work costs the database
// nothing. The cache can only ever answer that work is done. Whether something is new, held or failed is
// decided by store alone, and what the cache does not know, store is asked. So nothing is lost, and
// nothing done twice, when the cache forgets, fails, hangs or is wiped: copies then cost what they cost
// without it, and 50 ms at most for a cache that does not answer.
//
// Work is remembered by whoever did it, through the returned store, when its commit has been confirmed:
// never when the outcome of the commit is unknown, and not from ClaimTx, whose transaction is the caller's
// to end. That store tells of a duplicate is not remembered: done is not final for who only reads it. A
// handler that commits by itself and then fails is run again, and its claim was done for a while. What is
// remembered stays true as long as the database keeps it. It does not when the database goes back in time,
// because a backup was restored or a standby took over that lacked commits: empty the cache then, or
// events whose effect is gone are taken for copies. The cache should forget a key no later than the
// database purges it.
//
// A duplicate that the cache recognised has a Claim with the reference, verdict Duplicate, state done, the
// digest and whether that is a conflict, and nothing else. [TxStore.Lookup] has the rest.
//
// Cached panics if store or cache is nil, or an option makes no sense.
func Cached[Tx any](store TxStore[Tx], cache DoneCache, opts ...CacheOption) *CachedStore[Tx] {
	s := &CachedStore[Tx]{
		store: store, cache: cache, slots: make(chan struct{}, MaxCacheCalls),
		cacheSettings: cacheSettings{patience: DefaultCachePatience, failed: func(context.Context, error) {}},
	}
	for _, o := range opts {
		o(&s.cacheSettings)
	}
	switch {
	case store == nil || cache == nil:
		panic("hookonce: Cached needs a store and a cache")
	case s.patience <= 0 || s.failed == nil:
		panic(fmt.Sprintf("hookonce: WithCachePatience(%v), or WithCacheErrors(nil): the cache needs time, and errors a function", s.patience))
	}
	return s
}

// Unwrap returns the store behind the cache.
func (s *CachedStore[Tx]) Unwrap() TxStore[Tx] { return s.store }

// Within implements [TxStore].
func (s *CachedStore[Tx]) Within(ctx context.Context, req ClaimRequest, fn func(tx Tx, c Claim) error) (Claim, error) {
	if c, ok := s.recall(ctx, req); ok {
		return c, nil
	}
	c, err := s.store.Within(ctx, req, fn)
	if err == nil && c.Verdict == Acquired && c.Key != "" {
		s.remember(ctx, c)
	}
	return c, err
}

// ClaimTx implements [TxStore]. Its answers are not remembered: a claim that tx made may still be
// rolled back, and looks done to tx itself.
func (s *CachedStore[Tx]) ClaimTx(ctx context.Context, tx Tx, req ClaimRequest) (Claim, error) {
	if c, ok := s.recall(ctx, req); ok {
		return c, nil
	}
	return s.store.ClaimTx(ctx, tx, req)
}

// Claim implements [Store]. Its answers are not remembered: work is done once it was completed.
func (s *CachedStore[Tx]) Claim(ctx context.Context, req ClaimRequest) (Claim, error) {
	if c, ok := s.recall(ctx, req); ok {
		return c, nil
	}
	return s.store.Claim(ctx, req)
}

// Complete implements [Store]. It is remembered if c has a digest: one that was put together by hand may
// lack it, and copies could not be compared with it.
func (s *CachedStore[Tx]) Complete(ctx context.Context, c Claim) error {
	err := s.store.Complete(ctx, c)
	if err == nil && c.Key != "" && len(c.Digest) > 0 {
		s.remember(ctx, c)
	}
	return err
}

// Fail implements [Store], without the cache.
func (s *CachedStore[Tx]) Fail(ctx context.Context, c Claim, f Failure) error {
	return s.store.Fail(ctx, c, f)
}

// Extend implements [Store], without the cache.
func (s *CachedStore[Tx]) Extend(ctx context.Context, c Claim, d time.Duration) (Claim, error) {
	return s.store.Extend(ctx, c, d)
}

// Lookup implements [Store], without the cache.
func (s *CachedStore[Tx]) Lookup(ctx context.Context, ref Ref) (Claim, error) {
	return s.store.Lookup(ctx, ref)
}

// Purge implements [Store]. The cache may remember what is purged until it forgets it by itself.
func (s *CachedStore[Tx]) Purge(ctx context.Context, req PurgeRequest) (int, error) {
	return s.store.Purge(ctx, req)
}

// recall answers req if the cache remembers that it is done.
func (s *CachedStore[Tx]) recall(ctx context.Context, req ClaimRequest) (Claim, bool) {
	if req.Key == "" || req.Validate() != nil || ctx.Err() != nil {
		return Claim{}, false
	}
	r := s.ask(ctx, func(ctx context.Context) (r recollection) {
		r.digest, r.done, r.err = s.cache.Done(ctx, req.Ref)
		return r
	})
	return Claim{
		Ref: req.Ref, Verdict: Duplicate, State: StateDone, Digest: r.digest, Conflict: req.Conflicts(r.digest),
	}, r.done
}

// remember tells the cache of work that is done. The caller's context may be at its end by now.
func (s *CachedStore[Tx]) remember(ctx context.Context, c Claim) {
	s.ask(context.WithoutCancel(ctx), func(ctx context.Context) recollection {
		return recollection{err: s.cache.Remember(ctx, c.Ref, c.Digest)}
	})
}

// recollection is an answer of the cache. The zero one is that of a cache that knows nothing.
type recollection struct {
	digest []byte
	done   bool
	err    error
}

// ask calls the cache, in a goroutine of its own, and waits for the answer no longer than the store's
// patience. A cache that hangs, and does not mind its context, keeps as many goroutines as there are slots;
// after that nobody waits for it any more.
func (s *CachedStore[Tx]) ask(ctx context.Context, call func(context.Context) recollection) recollection {
	select {
	case s.slots <- struct{}{}:
	default:
		return recollection{}
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	answer := make(chan recollection, 1)
	go func() {
		defer func() { <-s.slots }()
		answer <- unharmed(ctx, call)
	}()
	var r recollection
	select {
	case r = <-answer:
	case <-ctx.Done():
		r.err = context.Cause(ctx)
	}
	if r.err != nil {
		s.failed(ctx, r.err)
		return recollection{}
	}
	return r
}

// unharmed makes a panic of the cache one of its errors: in a goroutine of its own it would end the process.
func unharmed(ctx context.Context, call func(context.Context) recollection) (r recollection) {
	defer func() {
		if p := recover(); p != nil {
			err, ok := p.(error)
			if !ok {
				err = fmt.Errorf("%v", p)
			}
			r = recollection{err: fmt.Errorf("hookonce: the cache panicked: %w", err)}
		}
	}()
	return call(ctx)
}

// MemoryCache is a [DoneCache] in this process: it remembers the keys that were asked for last. See
// [NewMemoryCache].
type MemoryCache struct {
	mu      sync.Mutex
	limit   int
	entries map[Ref]*list.Element
	recent  list.List // of remembered, the latest first
}

type remembered struct {
	ref    Ref
	digest []byte
}

// NewMemoryCache returns a cache of up to limit keys, each of which takes about 300 bytes. It knows the
// work of this process alone, and is enough where copies follow each other closely and one process gets
// all of them. It panics if limit is not positive.
func NewMemoryCache(limit int) *MemoryCache {
	if limit <= 0 {
		panic("hookonce: NewMemoryCache needs room for a key")
	}
	return &MemoryCache{limit: limit, entries: make(map[Ref]*list.Element)}
}

// Done implements [DoneCache].
func (m *MemoryCache) Done(_ context.Context, ref Ref) (digest []byte, ok bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[ref]
	if !ok {
		return nil, false, nil
	}
	m.recent.MoveToFront(e)
	return bytes.Clone(e.Value.(remembered).digest), true, nil
}

// Remember implements [DoneCache].
func (m *MemoryCache) Remember(_ context.Context, ref Ref, digest []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries[ref]; ok {
		m.recent.Remove(e)
	}
	m.entries[ref] = m.recent.PushFront(remembered{ref, bytes.Clone(digest)})
	if m.recent.Len() > m.limit {
		oldest := m.recent.Remove(m.recent.Back()).(remembered)
		delete(m.entries, oldest.ref)
	}
	return nil
}

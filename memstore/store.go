package memstore

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
)

// DefaultWait is how long Claim and Within wait for a transaction that holds the same key.
const DefaultWait = 2 * time.Second

// Store holds claims in memory. It is safe for concurrent use.
type Store struct {
	table *table
	clock func() time.Time
	wait  time.Duration
	apply func(persist func()) error
}

var _ hookonce.TxStore[*Tx] = (*Store)(nil)

// Option changes a Store when it is made.
type Option func(*Store)

// WithClock makes the store take its time from clock. The default is [time.Now].
func WithClock(clock func() time.Time) Option { return func(s *Store) { s.clock = clock } }

// WithWait sets how long Claim and Within wait for another transaction that holds the same key before they
// answer Busy. The default is [DefaultWait].
func WithWait(d time.Duration) Option { return func(s *Store) { s.wait = d } }

// WithCommit makes every commit go through hook, so that a test can inject faults. The transaction
// takes effect when hook calls persist. An error from hook is reported as a connection lost during
// the commit ([hookonce.ErrUnknownOutcome]), whether persist was called or not.
func WithCommit(hook func(persist func()) error) Option { return func(s *Store) { s.apply = hook } }

// New returns an empty store.
func New(opts ...Option) *Store {
	s := &Store{
		table: &table{claims: map[hookonce.Ref]hookonce.Claim{}, locks: map[hookonce.Ref]chan struct{}{}},
		clock: time.Now,
		wait:  DefaultWait,
		apply: func(persist func()) error { persist(); return nil },
	}
	return s.With(opts...)
}

// With returns a store over the same claims with other options, as another process would open it.
func (s *Store) With(opts ...Option) *Store {
	other := *s
	for _, o := range opts {
		o(&other)
	}
	return &other
}

// now returns the time in the resolution that every store keeps.
func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// Claim implements [hookonce.Store].
func (s *Store) Claim(ctx context.Context, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	tx := s.Begin()
	defer tx.end()
	return s.bounded(ctx, tx, req, func(c *hookonce.Claim) {
		c.State = hookonce.StateProcessing
		if req.Lease != 0 {
			c.Lease = c.UpdatedAt.Add(req.Lease).Truncate(time.Microsecond)
		}
		s.table.put(*c)
	})
}

// Complete implements [hookonce.Store].
func (s *Store) Complete(ctx context.Context, c hookonce.Claim) error {
	_, err := s.change(ctx, c, func(stored *hookonce.Claim) error {
		switch stored.State {
		case hookonce.StateProcessing:
			stored.State, stored.Lease, stored.UpdatedAt = hookonce.StateDone, time.Time{}, s.now()
			return nil
		case hookonce.StateDone:
			return nil
		}
		return hookonce.ErrStale
	})
	return err
}

// Fail implements [hookonce.Store].
func (s *Store) Fail(ctx context.Context, c hookonce.Claim, f hookonce.Failure) error {
	_, err := s.change(ctx, c, func(stored *hookonce.Claim) error {
		switch stored.State {
		case hookonce.StateProcessing:
			stored.State, stored.Lease, stored.UpdatedAt = f.State(), time.Time{}, s.now()
			stored.LastError = f.Text()
			return nil
		case hookonce.StateFailed, hookonce.StateDead:
			return nil
		}
		return hookonce.ErrStale
	})
	return err
}

// Extend implements [hookonce.Store].
func (s *Store) Extend(ctx context.Context, c hookonce.Claim, d time.Duration) (hookonce.Claim, error) {
	if d <= 0 {
		return hookonce.Claim{}, fmt.Errorf("memstore: extend %s by %v: the duration must be positive", c.Ref, d)
	}
	return s.change(ctx, c, func(stored *hookonce.Claim) error {
		if stored.State != hookonce.StateProcessing {
			return hookonce.ErrStale
		}
		now := s.now()
		stored.Lease, stored.UpdatedAt = now.Add(d).Truncate(time.Microsecond), now
		return nil
	})
}

// change applies update to the stored claim while c's token is current, and returns c with what is
// stored now.
func (s *Store) change(ctx context.Context, c hookonce.Claim, update func(*hookonce.Claim) error) (hookonce.Claim, error) {
	if err := ctx.Err(); err != nil {
		return hookonce.Claim{}, err
	}
	if err := s.table.lock(ctx, c.Ref, nil); err != nil {
		return hookonce.Claim{}, err
	}
	defer s.table.unlock(c.Ref)
	stored, ok := s.table.get(c.Ref)
	if !ok {
		return hookonce.Claim{}, fmt.Errorf("memstore: %s: %w", c.Ref, hookonce.ErrNotFound)
	}
	if stored.Token != c.Token {
		return hookonce.Claim{}, fmt.Errorf("memstore: %s: %w", c.Ref, hookonce.ErrStale)
	}
	if err := update(&stored); err != nil {
		return hookonce.Claim{}, fmt.Errorf("memstore: %s is %s: %w", c.Ref, stored.State, err)
	}
	s.table.put(stored)
	stored.Verdict, stored.Conflict = c.Verdict, c.Conflict
	return stored, nil
}

// Lookup implements [hookonce.Store].
func (s *Store) Lookup(_ context.Context, ref hookonce.Ref) (hookonce.Claim, error) {
	c, ok := s.table.get(ref)
	if !ok {
		return hookonce.Claim{}, fmt.Errorf("memstore: %s: %w", ref, hookonce.ErrNotFound)
	}
	return c, nil
}

// Purge implements [hookonce.Store].
func (s *Store) Purge(_ context.Context, before time.Time, limit int) (int, error) {
	return s.table.purge(before, limit), nil
}

// table is what all stores over the same claims share: the committed claims, and which keys are held
// by transactions that are still open.
type table struct {
	mu     sync.Mutex
	claims map[hookonce.Ref]hookonce.Claim
	locks  map[hookonce.Ref]chan struct{} // closed when the holder lets go
}

func (t *table) get(ref hookonce.Ref) (hookonce.Claim, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.claims[ref]
	c.Digest = bytes.Clone(c.Digest)
	return c, ok
}

// put stores c. The verdict and the conflict belong to a request, not to the claim.
func (t *table) put(c hookonce.Claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.store(c)
}

func (t *table) store(c hookonce.Claim) {
	c.Verdict, c.Conflict = 0, false
	t.claims[c.Ref] = c
}

func (t *table) purge(before time.Time, limit int) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ref, c := range t.claims {
		if n < limit && c.State == hookonce.StateDone && c.UpdatedAt.Before(before) {
			delete(t.claims, ref)
			n++
		}
	}
	return n
}

// lock waits until the key is free and takes it. It returns [hookonce.ErrBusy] when timeout fires
// first, and ctx's error when ctx ends first.
func (t *table) lock(ctx context.Context, ref hookonce.Ref, timeout <-chan time.Time) error {
	for {
		released := t.tryLock(ref)
		if released == nil {
			return nil
		}
		select {
		case <-released:
		case <-timeout:
			return fmt.Errorf("memstore: %s: %w", ref, hookonce.ErrBusy)
		case <-ctx.Done():
			return fmt.Errorf("memstore: %s: %w", ref, context.Cause(ctx))
		}
	}
}

// tryLock takes the key and returns nil, or returns what is closed when its holder lets go.
func (t *table) tryLock(ref hookonce.Ref) (released chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ch, held := t.locks[ref]; held {
		return ch
	}
	t.locks[ref] = make(chan struct{})
	return nil
}

func (t *table) unlock(ref hookonce.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.locks[ref])
	delete(t.locks, ref)
}

package memstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
)

// DefaultWait is how long Claim and Within wait for a transaction that holds the same key.
const DefaultWait = 2 * time.Second

// Store holds claims in memory, and what belongs to them: responses, guards, and an outbox. It is safe for
// concurrent use.
type Store struct {
	table *table
	clock func() time.Time
	wait  time.Duration
	apply func(persist func()) error
}

var (
	_ hookonce.TxResponseStore[*Tx] = (*Store)(nil)
	_ hookonce.Guards[*Tx]          = (*Store)(nil)
	_ hookonce.Outbox[*Tx]          = (*Store)(nil)
)

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
		table: newTable(),
		clock: time.Now,
		wait:  DefaultWait,
		apply: func(persist func()) error { persist(); return nil },
	}
	return s.With(opts...)
}

// With returns a store over the same tables with other options, as another process would open it.
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
		if req.Pin {
			c.Pinned = cmp.Or(c.Pinned, c.Token)
		}
		tx.put(*c)
		tx.persist()
	})
}

// Complete implements [hookonce.Store].
func (s *Store) Complete(ctx context.Context, c hookonce.Claim) error {
	_, err := s.change(ctx, c, func(_ *Tx, stored *hookonce.Claim) error { return s.complete(stored) })
	return err
}

// complete makes processing work done. Done work stays as it is.
func (s *Store) complete(stored *hookonce.Claim) error {
	switch stored.State {
	case hookonce.StateProcessing:
		stored.State, stored.Lease, stored.UpdatedAt = hookonce.StateDone, time.Time{}, s.now()
		return nil
	case hookonce.StateDone:
		return nil
	}
	return hookonce.ErrStale
}

// Fail implements [hookonce.Store].
func (s *Store) Fail(ctx context.Context, c hookonce.Claim, f hookonce.Failure) error {
	forgets := f.Forgets(c.Token)
	_, err := s.change(ctx, c, func(tx *Tx, stored *hookonce.Claim) error {
		switch {
		case stored.State == hookonce.StateFailed, stored.State == hookonce.StateDead:
			return nil
		case stored.State != hookonce.StateProcessing:
			return hookonce.ErrStale
		case !forgets:
			s.fail(stored, f)
			return nil
		case !stored.FirstSeen.Equal(c.FirstSeen):
			return hookonce.ErrStale // this one was forgotten before, and somebody has begun anew
		}
		tx.OnCommit(func() { delete(s.table.claims, c.Ref) })
		return nil
	})
	if forgets && errors.Is(err, hookonce.ErrNotFound) {
		return nil
	}
	return err
}

// fail makes processing work failed or dead.
func (s *Store) fail(stored *hookonce.Claim, f hookonce.Failure) {
	stored.State, stored.Lease, stored.UpdatedAt = f.State(), time.Time{}, s.now()
	stored.LastError = f.Text()
	switch {
	case f.Pin:
		stored.Pinned = cmp.Or(stored.Pinned, stored.Token)
	case stored.Pinned == stored.Token:
		stored.Pinned = 0
	}
}

// Extend implements [hookonce.Store].
func (s *Store) Extend(ctx context.Context, c hookonce.Claim, d time.Duration) (hookonce.Claim, error) {
	if d <= 0 {
		return hookonce.Claim{}, fmt.Errorf("memstore: extend %s by %v: the duration must be positive", c.Ref, d)
	}
	return s.change(ctx, c, func(_ *Tx, stored *hookonce.Claim) error {
		if stored.State != hookonce.StateProcessing {
			return hookonce.ErrStale
		}
		now := s.now()
		stored.Lease, stored.UpdatedAt = now.Add(d).Truncate(time.Microsecond), now
		return nil
	})
}

// change applies update to the stored claim while c's token is current, together with what update
// stages, and returns c with what is stored now.
func (s *Store) change(ctx context.Context, c hookonce.Claim, update func(*Tx, *hookonce.Claim) error) (hookonce.Claim, error) {
	tx := s.Begin()
	defer tx.end()
	if err := tx.lock(ctx, claimRow(c.Ref), nil); err != nil {
		return hookonce.Claim{}, err
	}
	stored, ok := s.table.claim(c.Ref)
	if !ok {
		return hookonce.Claim{}, fmt.Errorf("memstore: %s: %w", c.Ref, hookonce.ErrNotFound)
	}
	if stored.Token != c.Token {
		return hookonce.Claim{}, fmt.Errorf("memstore: %s: %w", c.Ref, hookonce.ErrStale)
	}
	if err := update(tx, &stored); err != nil {
		return hookonce.Claim{}, fmt.Errorf("memstore: %s is %s: %w", c.Ref, stored.State, err)
	}
	tx.put(stored)
	tx.persist()
	stored.Verdict, stored.Conflict = c.Verdict, c.Conflict
	return stored, nil
}

// Lookup implements [hookonce.Store].
func (s *Store) Lookup(_ context.Context, ref hookonce.Ref) (hookonce.Claim, error) {
	c, ok := s.table.claim(ref)
	if !ok {
		return hookonce.Claim{}, fmt.Errorf("memstore: %s: %w", ref, hookonce.ErrNotFound)
	}
	return c, nil
}

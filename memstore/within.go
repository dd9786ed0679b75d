package memstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
)

// Within implements [hookonce.TxStore].
func (s *Store) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(tx *Tx, c hookonce.Claim) error) (hookonce.Claim, error) {
	tx := s.Begin()
	defer tx.end()
	c, err := s.bounded(ctx, tx, req, tx.stage)
	if err == nil {
		err = told(c)
	}
	if err != nil || c.Verdict == hookonce.Duplicate {
		return c, err
	}
	if err := s.attempt(ctx, tx, c, fn); err != nil {
		return c, fmt.Errorf("memstore: %s: attempt %d: %w", c.Ref, c.Token, err)
	}
	return c, nil
}

// attempt runs fn and commits, or rolls back and leaves a trace.
func (s *Store) attempt(ctx context.Context, tx *Tx, c hookonce.Claim, fn func(tx *Tx, c hookonce.Claim) error) (err error) {
	err = errors.New("the handler ended its goroutine")
	defer func() {
		p := recover()
		if p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
		if err != nil {
			tx.end()
			err = s.trace(ctx, c, err)
		}
		if p != nil {
			panic(p)
		}
	}()
	if err = fn(tx, c); err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = tx.Commit()
	}
	return err
}

// trace records that an attempt failed with cause, and returns cause. A permanent or pinned failure that has
// to give way, see [hookonce.Claim.YieldsTo], is not on record: then the error wraps [hookonce.ErrTraceLost] as well.
func (s *Store) trace(ctx context.Context, attempt hookonce.Claim, cause error) error {
	f := hookonce.FailureOf(ctx, attempt.Ref, cause)
	if attempt.Key == "" || f.Forgets(attempt.Token) {
		return cause
	}
	attempt.State, attempt.LastError, attempt.Pinned = f.State(), f.Text(), 0
	if f.Pin {
		attempt.Pinned = attempt.Token
	}
	if s.leave(attempt) || !f.Dead && !f.Pin {
		return cause
	}
	return fmt.Errorf("%w (%w: the key belongs to another attempt by now)", cause, hookonce.ErrTraceLost)
}

// leave stores the failed attempt unless it has to give way, and reports whether that state is on
// record.
func (s *Store) leave(attempt hookonce.Claim) bool {
	tx := s.Begin()
	defer tx.end()
	if tx.lock(context.Background(), claimRow(attempt.Ref), nil) != nil {
		return false
	}
	now := s.now()
	stored, exists := s.table.claim(attempt.Ref)
	if exists && !stored.YieldsTo(attempt, now) {
		return false
	}
	if exists {
		attempt.FirstSeen = stored.FirstSeen
		attempt.Pinned = cmp.Or(stored.Pinned, attempt.Pinned)
		if len(attempt.Digest) == 0 {
			attempt.Digest = stored.Digest
		}
	}
	attempt.Lease, attempt.UpdatedAt = time.Time{}, now
	tx.put(attempt)
	tx.persist()
	return true
}

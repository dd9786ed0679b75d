package memstore

import (
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
	if err != nil || c.Verdict == hookonce.Duplicate || c.Verdict == hookonce.Busy {
		return c, err
	}
	if err := s.attempt(ctx, tx, c, fn); err != nil {
		return hookonce.Claim{}, fmt.Errorf("memstore: %s: attempt %d: %w", c.Ref, c.Token, err)
	}
	return c, nil
}

// attempt runs fn and commits, or rolls back and leaves a trace.
func (s *Store) attempt(ctx context.Context, tx *Tx, c hookonce.Claim, fn func(tx *Tx, c hookonce.Claim) error) error {
	err := errors.New("the handler ended its goroutine")
	defer func() {
		p := recover()
		if p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
		if err != nil {
			tx.end()
			s.trace(c, err)
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

// trace records a failed attempt, unless the work is done, owned by somebody else, or tried again
// meanwhile.
func (s *Store) trace(attempt hookonce.Claim, err error) {
	if attempt.Key == "" {
		return
	}
	f := hookonce.Failure{Err: err, Dead: hookonce.IsPermanent(err)}
	t := s.table
	if t.lock(context.Background(), attempt.Ref, nil) != nil {
		return
	}
	defer t.unlock(attempt.Ref)
	now := s.now()
	stored, exists := t.get(attempt.Ref)
	if exists && !yields(stored, attempt.Token, now) {
		return
	}
	if exists {
		attempt.FirstSeen = stored.FirstSeen
	}
	attempt.State, attempt.Lease, attempt.UpdatedAt, attempt.LastError = f.State(), time.Time{}, now, f.Text()
	t.put(attempt)
}

// yields reports whether the stored claim may give way to the trace of the attempt with the
// given token: it is claimable, and not from a newer attempt.
func yields(stored hookonce.Claim, token int64, now time.Time) bool {
	if stored.State == hookonce.StateProcessing && stored.Token == token {
		return false
	}
	return stored.Token <= token && hookonce.Claimable(stored.State, stored.Lease, now)
}

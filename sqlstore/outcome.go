package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
)

// Complete implements [hookonce.Store].
func (s *Store) Complete(ctx context.Context, c hookonce.Claim) error {
	_, err := s.settle(ctx, c, s.now(), s.dialect.complete, nil, hookonce.StateDone)
	return err
}

// Fail implements [hookonce.Store].
func (s *Store) Fail(ctx context.Context, c hookonce.Claim, f hookonce.Failure) error {
	if f.Forgets(c.Token) {
		return s.forget(ctx, c)
	}
	_, err := s.settle(ctx, c, s.now(), s.dialect.fail, []any{string(f.State()), f.Text(), f.Pin}, hookonce.StateFailed, hookonce.StateDead)
	return err
}

// forget deletes a first attempt. Its token is the first of whoever begins anew as well, so the time tells
// them apart.
func (s *Store) forget(ctx context.Context, c hookonce.Claim) error {
	var gone int64
	err := s.insist(ctx, func() (err error) {
		gone, err = affected(run(ctx, s.db, s.dialect.forget, c.Source, c.Key, c.Token, s.dialect.time(c.FirstSeen)))
		return err
	})
	if err == nil && gone == 0 {
		err = s.settled(ctx, c, []hookonce.State{hookonce.StateFailed, hookonce.StateDead})
	}
	switch {
	case err == nil || errors.Is(err, hookonce.ErrNotFound):
		return nil
	case errors.Is(err, errOvertaken):
		err = fmt.Errorf("it was begun anew: %w", hookonce.ErrStale)
	}
	return fmt.Errorf("sqlstore: record the outcome of %s: %w", c.Ref, s.explain(ctx, s.db, err))
}

// Extend implements [hookonce.Store].
func (s *Store) Extend(ctx context.Context, c hookonce.Claim, d time.Duration) (hookonce.Claim, error) {
	if d <= 0 {
		return hookonce.Claim{}, fmt.Errorf("sqlstore: extend %s by %v: the duration must be positive", c.Ref, d)
	}
	now := s.now()
	lease := now.Add(d).Truncate(time.Microsecond)
	stored, err := s.settle(ctx, c, now, s.dialect.extend, []any{s.dialect.time(lease)})
	if err != nil {
		return hookonce.Claim{}, err
	}
	// MySQL reads the row after it was changed, and may see what others did to it since.
	if stored.Token != c.Token || stored.State != hookonce.StateProcessing {
		stored = c
	}
	stored.State, stored.Lease, stored.UpdatedAt = hookonce.StateProcessing, lease, now
	return stored, nil
}

// settle changes the row while c's token is current and the claim is processing, and returns c as it
// is stored then. A row that this token already brought to one of the states in already is left
// alone.
func (s *Store) settle(ctx context.Context, c hookonce.Claim, now time.Time, st statement, args []any, already ...hookonce.State) (hookonce.Claim, error) {
	stored, applied := hookonce.Claim{Ref: c.Ref, Verdict: c.Verdict, Conflict: c.Conflict}, false
	err := errOvertaken
	for round := 0; errors.Is(err, errOvertaken) && round < maxRounds; round++ {
		err = s.insist(ctx, func() (err error) {
			applied, err = s.dialect.change(ctx, s.db, s.outcome(c, now, st, args...), fields(&stored)...)
			return err
		})
		if err == nil && !applied {
			err = s.settled(ctx, c, already)
		}
	}
	if err != nil {
		return hookonce.Claim{}, fmt.Errorf("sqlstore: record the outcome of %s: %w", c.Ref, s.explain(ctx, s.db, err))
	}
	return stored, nil
}

// outcome is the statement's change of the row under c's token.
func (s *Store) outcome(c hookonce.Claim, now time.Time, st statement, args ...any) change {
	return change{
		statement: st, args: append([]any{c.Source, c.Key, c.Token, s.dialect.time(now)}, args...),
		read: s.dialect.lookup, readArgs: []any{c.Source, c.Key},
	}
}

// settled explains why the row under c could not be changed; nil if c's token has brought it to one
// of the states in already.
func (s *Store) settled(ctx context.Context, c hookonce.Claim, already []hookonce.State) error {
	stored, err := s.Lookup(ctx, c.Ref)
	if err != nil {
		return err
	}
	switch {
	case stored.Token != c.Token:
	case slices.Contains(already, stored.State):
		return nil
	case stored.State == hookonce.StateProcessing:
		return errOvertaken // it was purged and made anew between the statement and this look at it
	}
	return fmt.Errorf("it is %s under token %d, not %d: %w", stored.State, stored.Token, c.Token, hookonce.ErrStale)
}

package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5"
)

// change is what becomes of a claim that is processing.
type change struct {
	state hookonce.State
	lease time.Duration // while processing; see deadline
	text  *string       // the last error; nil: as it was
	// repeats are the states in which the same token has made this change before.
	repeats []hookonce.State
}

// Complete implements [hookonce.Store].
func (s *Store) Complete(ctx context.Context, c hookonce.Claim) error {
	_, err := s.change(ctx, c, change{state: hookonce.StateDone, repeats: []hookonce.State{hookonce.StateDone}})
	return wrap("complete", c.Ref, err)
}

// Fail implements [hookonce.Store].
func (s *Store) Fail(ctx context.Context, c hookonce.Claim, f hookonce.Failure) error {
	text := f.Text()
	_, err := s.change(ctx, c, change{
		state: f.State(), text: &text, repeats: []hookonce.State{hookonce.StateFailed, hookonce.StateDead},
	})
	return wrap("fail", c.Ref, err)
}

// Extend implements [hookonce.Store].
func (s *Store) Extend(ctx context.Context, c hookonce.Claim, d time.Duration) (hookonce.Claim, error) {
	if d <= 0 {
		return hookonce.Claim{}, fmt.Errorf("pgstore: extend %s by %v: the duration must be positive", c.Ref, d)
	}
	extended, err := s.change(ctx, c, change{state: hookonce.StateProcessing, lease: d})
	return extended, wrap("extend", c.Ref, err)
}

func wrap(verb string, ref hookonce.Ref, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pgstore: %s %s: %w", verb, ref, explain(err))
}

// change applies to while c's token is current and returns c as it is stored now.
func (s *Store) change(ctx context.Context, c hookonce.Claim, to change) (hookonce.Claim, error) {
	if err := c.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	var stored hookonce.Claim
	err := again(func() error {
		for range maxTries {
			applied, r, err := s.tryChange(ctx, c, to)
			stored = r.claim(c.Ref)
			switch {
			case errors.Is(err, pgx.ErrNoRows):
				return hookonce.ErrNotFound
			case err != nil || applied:
				return err
			case stored.Token == c.Token && slices.Contains(to.repeats, stored.State):
				return nil
			case stored.Token != c.Token || stored.State != hookonce.StateProcessing:
				return fmt.Errorf("it is %s under token %d, not %d: %w", stored.State, stored.Token, c.Token, hookonce.ErrStale)
			}
			// The snapshot still shows the claim as ours, but somebody changed it: look again.
		}
		return hookonce.ErrStale
	})
	if err != nil {
		return hookonce.Claim{}, err
	}
	stored.Verdict, stored.Conflict = c.Verdict, c.Conflict
	return stored, nil
}

func (s *Store) tryChange(ctx context.Context, c hookonce.Claim, to change) (applied bool, r record, err error) {
	now := s.now()
	row := s.pool.QueryRow(ctx, s.sql.change,
		c.Source, c.Key, c.Token, string(to.state), deadline(now, to.lease), to.text, now)
	err = row.Scan(append([]any{&applied}, r.fields()...)...)
	return applied, r, err
}

package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5"
)

// Complete implements [hookonce.Store].
func (s *Store) Complete(ctx context.Context, c hookonce.Claim) error {
	_, err := s.change(ctx, c, change{state: hookonce.StateDone, repeats: []hookonce.State{hookonce.StateDone}})
	return wrap("complete", c.Ref, err)
}

// Fail implements [hookonce.Store].
func (s *Store) Fail(ctx context.Context, c hookonce.Claim, f hookonce.Failure) error {
	text := f.Text()
	forgets := f.Forgets(c.Token)
	_, err := s.change(ctx, c, change{
		state: f.State(), text: &text, repeats: []hookonce.State{hookonce.StateFailed, hookonce.StateDead},
		pin: f.Pin, forget: forgets,
	})
	if forgets && errors.Is(err, hookonce.ErrNotFound) {
		return nil
	}
	return wrap("fail", c.Ref, err)
}

// Extend implements [hookonce.Store]. When handlers hold all connections of the pool for longer than a twelfth of d
// it uses one of the store's own beside them, so that no lease is lost for that. Complete, CompleteWith, Fail and
// what they are for effects do so after 100 ms. It is one per store, opened when it is needed, and closed when
// nobody needed it for 10 s, or by [Store.Close]: see max_connections.
func (s *Store) Extend(ctx context.Context, c hookonce.Claim, d time.Duration) (hookonce.Claim, error) {
	if d <= 0 {
		return hookonce.Claim{}, fmt.Errorf("pgstore: extend %s by %v: the duration must be positive", c.Ref, d)
	}
	extended, err := s.change(ctx, c, change{state: hookonce.StateProcessing, lease: d})
	return extended, wrap("extend", c.Ref, err)
}

// change is what becomes of a claim that is processing.
type change struct {
	state hookonce.State
	lease time.Duration // while processing; see deadline
	text  *string       // the last error; nil: as it was
	// repeats are the states in which the same token has made this change before.
	repeats []hookonce.State
	// response is kept if the change applies; nil: none.
	response *hookonce.Response
	pin      bool // of a failure
	forget   bool // the claim, in place of all this
}

// change applies to while c's token is current and returns c as it is stored now.
func (s *Store) change(ctx context.Context, c hookonce.Claim, to change) (hookonce.Claim, error) {
	if err := c.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	var stored hookonce.Claim
	err := s.settle(ctx, c.Token, to.repeats, func() (standing, error) {
		applied, r, err := s.tryChange(ctx, c, to)
		stored = r.claim(c.Ref)
		return standing{applied, stored.State, stored.Token}, err
	})
	if err != nil {
		return hookonce.Claim{}, err
	}
	stored.Verdict, stored.Conflict = c.Verdict, c.Conflict
	return stored, nil
}

func (s *Store) tryChange(ctx context.Context, c hookonce.Claim, to change) (applied bool, r record, err error) {
	now := s.now()
	text, args := s.sql.Complete, []any{
		c.Source, c.Key, c.Token, string(to.state), deadline(now, to.lease), to.text, now,
	}
	switch {
	case to.forget:
		text, args = s.sql.Forget, []any{c.Source, c.Key, c.Token, c.FirstSeen}
	case to.response != nil:
		text, args = s.sql.CompleteWith, append(args, kept(*to.response)...)
	case to.state == hookonce.StateProcessing:
		text = s.sql.Extend
	case to.state != hookonce.StateDone:
		text, args = s.sql.Fail, append(args, to.pin)
	}
	err = s.urgent(ctx, patience(to.lease), func(on asker) error {
		return on.QueryRow(ctx, text, args...).Scan(append([]any{&applied}, r.fields()...)...)
	})
	return applied, r, err
}

// patience is how long the pool may take to extend a lease by d; 0: to record an outcome.
func patience(d time.Duration) time.Duration {
	const part = 12 // heartbeats come at each third
	return cmp.Or(d/part, soon)
}

// standing is how a row stands after a statement that was to change it while it is processing.
type standing struct {
	applied bool
	state   hookonce.State
	token   int64
}

// settle runs try until it is certain whether its change applied under token. It did as well if the same
// token had left the row in one of the states of repeats before.
func (s *Store) settle(ctx context.Context, token int64, repeats []hookonce.State, try func() (standing, error)) error {
	return s.again(ctx, func() error {
		for range maxTries {
			row, err := try()
			switch {
			case errors.Is(err, pgx.ErrNoRows):
				return hookonce.ErrNotFound
			case err != nil || row.applied:
				return err
			case row.token == token && slices.Contains(repeats, row.state):
				return nil
			case row.token != token || row.state != hookonce.StateProcessing:
				return fmt.Errorf("it is %s under token %d, not %d: %w", row.state, row.token, token, hookonce.ErrStale)
			}
			// The snapshot still shows the row as ours, but somebody changed it: look again.
		}
		return hookonce.ErrStale
	})
}

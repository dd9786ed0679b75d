package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/pgerror"
	"github.com/jackc/pgx/v5"
)

// Complete implements [hookonce.Store].
func (s *Store) Complete(ctx context.Context, c hookonce.Claim) error {
	_, err := s.change(ctx, c, change{state: hookonce.StateDone, repeats: []hookonce.State{hookonce.StateDone}})
	return wrap("complete", c.Ref, err)
}

// CompleteWith implements [hookonce.ResponseStore] in one statement, so in one round trip.
func (s *Store) CompleteWith(ctx context.Context, c hookonce.Claim, r hookonce.Response) error {
	if err := fits(r); err != nil {
		return wrap("complete", c.Ref, err)
	}
	_, err := s.change(ctx, c, change{
		state: hookonce.StateDone, repeats: []hookonce.State{hookonce.StateDone}, response: &r,
	})
	return wrap("complete", c.Ref, oversized(err))
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
		return inTime(ctx, on.QueryRow(ctx, text, args...).Scan(append([]any{&applied}, r.fields()...)...))
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

// KeepResponse implements [hookonce.TxResponseStore]. It returns an error that wraps
// [hookonce.ErrNotFound] if there is no claim in sight of tx, or if it is not done.
func (s *Store) KeepResponse(ctx context.Context, tx pgx.Tx, ref hookonce.Ref, r hookonce.Response) error {
	if err := ref.Validate(); err != nil {
		return err
	}
	if err := fits(r); err != nil {
		return wrap("keep the response of", ref, err)
	}
	tag, err := tx.Exec(ctx, s.sql.Keep, append([]any{ref.Source, ref.Key}, kept(r)...)...)
	if err == nil && tag.RowsAffected() == 0 {
		err = hookonce.ErrNotFound
	}
	return wrap("keep the response of", ref, oversized(err))
}

// Response implements [hookonce.ResponseStore].
func (s *Store) Response(ctx context.Context, ref hookonce.Ref) (hookonce.Response, error) {
	if err := ref.Validate(); err != nil {
		return hookonce.Response{}, err
	}
	var r hookonce.Response
	var lines []byte
	err := s.pool.QueryRow(ctx, s.sql.Response, ref.Source, ref.Key).Scan(&r.Status, &lines, &r.Body)
	if errors.Is(err, pgx.ErrNoRows) {
		err = hookonce.ErrNotFound
	}
	if err != nil {
		return hookonce.Response{}, wrap("read the response of", ref, err)
	}
	r.Header = header.Decode(lines)
	return r, nil
}

// fits returns an error if r is larger than the server takes.
func fits(r hookonce.Response) error {
	if len(r.Body) > claimsql.MaxField {
		return fmt.Errorf("%w: Postgres takes at most %d bytes, and this has %d", hookonce.ErrResponseTooLarge, claimsql.MaxField, len(r.Body))
	}
	return nil
}

// oversized adds to the error of a statement with a response that this was too large, if that is what it says.
func oversized(err error) error {
	if pgerror.TooLarge(err) {
		return fmt.Errorf("%w: %w", hookonce.ErrResponseTooLarge, err)
	}
	return err
}

// kept are the values of the columns of a response.
func kept(r hookonce.Response) []any {
	return []any{r.Status, header.Encode(r.Header), claimsql.Present(r.Body)}
}

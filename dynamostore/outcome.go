package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
)

// Complete implements [hookonce.Store]. From now on the claim expires; see [WithRetention].
func (s *Store) Complete(ctx context.Context, c hookonce.Claim) error {
	return s.complete(ctx, c, nil)
}

// CompleteWith implements [hookonce.ResponseStore]. The response is a part of the claim's item, expires with it, and may have
// [MaxResponse] bytes.
func (s *Store) CompleteWith(ctx context.Context, c hookonce.Claim, r hookonce.Response) error {
	if err := fits(r); err != nil {
		return fmt.Errorf("dynamostore: complete %s: %w", c.Ref, err)
	}
	kept := item{}
	keep(kept, r)
	return s.complete(ctx, c, kept)
}

func (s *Store) complete(ctx context.Context, c hookonce.Claim, kept item) error {
	now := s.now()
	to := outcome{state: hookonce.StateDone, now: now, set: item{}, repeats: []hookonce.State{hookonce.StateDone}}
	for name, v := range kept {
		to.set[name] = v
	}
	if expiry := s.expiry(c.Source, now); expiry != 0 {
		to.set[attrExpiry] = number(expiry)
	}
	_, err := s.settle(ctx, c, func(*record) outcome { return to })
	return wrap("complete", c.Ref, err)
}

// Fail implements [hookonce.Store].
func (s *Store) Fail(ctx context.Context, c hookonce.Claim, f hookonce.Failure) error {
	if f.Forgets(c.Token) {
		return wrap("forget", c.Ref, s.forget(ctx, c))
	}
	now, words := s.now(), f.Text()
	_, err := s.settle(ctx, c, func(seen *record) outcome {
		to := outcome{
			state: f.State(), now: now, set: item{},
			repeats: []hookonce.State{hookonce.StateFailed, hookonce.StateDead},
		}
		if words != "" {
			to.set[attrError] = text(words)
		} else {
			to.remove = append(to.remove, attrError)
		}
		pinned := c.Pinned
		if seen != nil {
			pinned = seen.Pinned
		}
		switch { // a failure takes back only what its own attempt pinned
		case f.Pin:
			to.pin = true
		case pinned == 0 || pinned == c.Token:
			to.remove = append(to.remove, attrPinned)
			to.own = true
		default:
			to.others = true
		}
		return to
	})
	return wrap("fail", c.Ref, err)
}

// forget deletes a claim. One that begins anew after that has the same token, and is told apart by when it was first seen.
func (s *Store) forget(ctx context.Context, c hookonce.Claim) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if c.Key == "" {
		return nil
	}
	for range rounds {
		held := owned(c.Token)
		held.text += " AND " + attrFirst + " = :first"
		held.values[":first"] = micros(c.FirstSeen)
		err := s.delete(ctx, claimKey(c.Ref), held)
		var no *refused
		if !errors.As(err, &no) {
			return err
		}
		seen, err := no.item.record(c.Ref)
		switch {
		case err != nil:
			return err
		case seen == nil:
			return nil
		case seen.Token == c.Token && (seen.State == hookonce.StateFailed || seen.State == hookonce.StateDead):
			return nil
		case seen.Token != c.Token || seen.State != hookonce.StateProcessing || !seen.FirstSeen.Equal(c.FirstSeen):
			return stale(seen, c.Token)
		}
	}
	return errContended
}

// Extend implements [hookonce.Store].
func (s *Store) Extend(ctx context.Context, c hookonce.Claim, d time.Duration) (hookonce.Claim, error) {
	if d <= 0 {
		return hookonce.Claim{}, fmt.Errorf("dynamostore: extend %s by %v: the duration must be positive", c.Ref, d)
	}
	now := s.now()
	to := outcome{state: hookonce.StateProcessing, now: now, set: item{attrLease: micros(now.Add(d).Truncate(time.Microsecond))}}
	stored, err := s.settle(ctx, c, func(*record) outcome { return to })
	if err != nil {
		return hookonce.Claim{}, wrap("extend", c.Ref, err)
	}
	stored.Verdict, stored.Conflict = c.Verdict, c.Conflict
	return stored.Claim, nil
}

// outcome is what becomes of a claim that is processing.
type outcome struct {
	state  hookonce.State
	now    time.Time
	set    item     // attributes besides the state and the time
	remove []string // attributes
	// pin pins the claim, unless it is. The other two say what the change assumes: that nobody else has pinned it, or
	// that somebody else has.
	pin, own, others bool
	// repeats are the states in which the same token has made this change before.
	repeats []hookonce.State
}

// owned is that the claim is processing under the token.
func owned(token int64) condition {
	return condition{
		attrToken + " = :token AND " + attrState + " = :processing",
		item{":token": number(token), ":processing": text(string(hookonce.StateProcessing))},
	}
}

// expressions are the outcome's change, its values and its condition.
func (to outcome) expressions(token int64) (change string, values item, c condition) {
	c = owned(token)
	values = item{":state": text(string(to.state)), ":now": micros(to.now)}
	change = attrState + " = :state, " + attrUpdated + " = :now"
	for name, v := range to.set {
		values[":"+name] = v
		change += ", " + name + " = :" + name
	}
	remove := slices.Clone(to.remove)
	if to.state != hookonce.StateProcessing {
		remove = append(remove, attrLease)
	}
	switch {
	case to.pin:
		change += ", " + attrPinned + " = if_not_exists(" + attrPinned + ", :token)"
	case to.own:
		c.text += " AND (attribute_not_exists(" + attrPinned + ") OR " + attrPinned + " = :token)"
	case to.others:
		c.text += " AND attribute_exists(" + attrPinned + ") AND " + attrPinned + " <> :token"
	}
	for i, name := range remove {
		change += map[bool]string{true: " REMOVE ", false: ", "}[i == 0] + name
	}
	return change, values, c
}

// settle records an outcome while c's token is current and the claim is processing, and returns the claim as it is stored
// then. The outcome is asked for again with what is stored if that is not what it assumed.
func (s *Store) settle(ctx context.Context, c hookonce.Claim, of func(seen *record) outcome) (*record, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Key == "" {
		return nil, hookonce.ErrNotFound
	}
	var seen *record
	for range rounds {
		to := of(seen)
		change, values, cond := to.expressions(c.Token)
		now, err := s.update(ctx, claimKey(c.Ref), newAttempt(), change, values, cond)
		var no *refused
		if !errors.As(err, &no) {
			if err != nil {
				return nil, err
			}
			return now.record(c.Ref)
		}
		if seen, err = no.item.record(c.Ref); err != nil {
			return nil, err
		}
		switch {
		case seen == nil:
			return nil, hookonce.ErrNotFound
		case seen.Token == c.Token && slices.Contains(to.repeats, seen.State):
			return seen, nil
		case seen.Token != c.Token || seen.State != hookonce.StateProcessing:
			return nil, stale(seen, c.Token)
		}
	}
	return nil, errContended
}

func stale(seen *record, token int64) error {
	return fmt.Errorf("it is %s under token %d, not %d: %w", seen.State, seen.Token, token, hookonce.ErrStale)
}

// wrap says what was to be done; nil stays nil.
func wrap(what string, ref hookonce.Ref, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("dynamostore: %s %s: %w", what, ref, err)
}

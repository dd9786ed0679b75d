package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
)

// Complete implements [hookonce.Store]. From now on the claim expires; see [WithRetention].
func (s *Store) Complete(ctx context.Context, c hookonce.Claim) error {
	_, err := s.settle(ctx, c, completeScript, s.retentionOf(c.Source))
	return err
}

// CompleteWith implements [hookonce.ResponseStore]. The response expires with the claim.
func (s *Store) CompleteWith(ctx context.Context, c hookonce.Claim, r hookonce.Response) error {
	_, err := s.settle(ctx, c, completeScript, s.retentionOf(c.Source), r.Status, header.Encode(r.Header), r.Body)
	return err
}

// Fail implements [hookonce.Store].
func (s *Store) Fail(ctx context.Context, c hookonce.Claim, f hookonce.Failure) error {
	args := []any{string(f.State()), f.Text(), flag(f.Pin)}
	forgets := f.Forgets(c.Token)
	if forgets {
		args = append(args, formatTime(c.FirstSeen))
	}
	_, err := s.settle(ctx, c, failScript, args...)
	if forgets && errors.Is(err, hookonce.ErrNotFound) {
		return nil
	}
	return err
}

// Extend implements [hookonce.Store].
func (s *Store) Extend(ctx context.Context, c hookonce.Claim, d time.Duration) (hookonce.Claim, error) {
	if d <= 0 {
		return hookonce.Claim{}, fmt.Errorf("redisstore: extend %s by %v: the duration must be positive", c.Ref, d)
	}
	r, err := s.settle(ctx, c, extendScript, deadline(s.now(), d))
	if err != nil {
		return hookonce.Claim{}, err
	}
	stored, err := r.claim(c.Ref, 1)
	if err != nil {
		return hookonce.Claim{}, fmt.Errorf("redisstore: extend %s: %w", c.Ref, err)
	}
	stored.Verdict, stored.Conflict = c.Verdict, c.Conflict
	return stored, nil
}

// settle runs one of the scripts that begin with the fence.
func (s *Store) settle(ctx context.Context, c hookonce.Claim, sc script, args ...any) (reply, error) {
	key, err := s.known(c.Ref)
	if err != nil {
		return nil, fmt.Errorf("redisstore: record the outcome of %s: %w", c.Ref, err)
	}
	r, err := s.run(ctx, sc, key, append([]any{c.Token, formatTime(s.now())}, args...)...)
	if err == nil {
		err = r.refusal(c.Token)
	}
	if err != nil {
		return nil, fmt.Errorf("redisstore: record the outcome of %s: %w", c.Ref, err)
	}
	return r, nil
}

// refusal is why the fence let nothing happen; nil if it did.
func (r reply) refusal(token int64) error {
	switch {
	case len(r) > 0 && r.text(0) == "ok":
		return nil
	case len(r) == 3 && r.text(0) == "stale":
		return fmt.Errorf("it is %s under token %s, not %d: %w", r.text(1), r.text(2), token, hookonce.ErrStale)
	case len(r) == 1 && r.text(0) == "missing":
		return hookonce.ErrNotFound
	}
	return fmt.Errorf("the script returned %v", []any(r))
}

// Response implements [hookonce.ResponseStore]. It asks the primary, as [Store.Lookup] does.
func (s *Store) Response(ctx context.Context, ref hookonce.Ref) (hookonce.Response, error) {
	r, err := s.read(ctx, ref, []any{"status", "header", "body"})
	if err != nil {
		return hookonce.Response{}, fmt.Errorf("redisstore: response of %s: %w", ref, err)
	}
	response, err := r.response()
	if err != nil {
		return hookonce.Response{}, fmt.Errorf("redisstore: response of %s: %w", ref, err)
	}
	return response, nil
}

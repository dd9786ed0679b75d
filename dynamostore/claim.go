package dynamostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
)

// rounds bounds how often a call decides anew because somebody else was faster. Each time somebody else got on.
const rounds = 20

var errContended = fmt.Errorf("others were faster %d times: try again", rounds)

// Claim implements [hookonce.Store]. A key that was never seen, a copy of done work and a key that is held take one round
// trip; taking over what failed, or whose lease ran out, takes two. An error leaves open whether the claim was stored: then
// nobody owns it, and it is free when its lease is over; one without a deadline stays held until somebody fails it.
func (s *Store) Claim(ctx context.Context, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	if err := req.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	if req.Key == "" {
		return hookonce.Claim{Ref: req.Ref, Verdict: hookonce.Unkeyed}, nil
	}
	c, err := s.claim(ctx, req)
	if err != nil {
		return hookonce.Claim{}, fmt.Errorf("dynamostore: claim %s: %w", req.Ref, err)
	}
	return c, nil
}

// claim takes the key for one that was never seen, and learns otherwise by the refusal.
func (s *Store) claim(ctx context.Context, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	now := s.now()
	var seen *record
	for range rounds {
		next := decide(seen, req, now)
		if next.Verdict != hookonce.Acquired {
			return next.Claim, nil
		}
		next.State = hookonce.StateProcessing
		if req.Lease != 0 {
			next.Lease = now.Add(req.Lease).Truncate(time.Microsecond)
		}
		if req.Pin {
			next.Pinned = cmp.Or(next.Pinned, next.Token)
		}
		next.attempt = newAttempt()
		err := s.put(ctx, next.item(0), standing(seen))
		var no *refused
		if !errors.As(err, &no) {
			return next.Claim, err
		}
		if seen, err = no.item.record(req.Ref); err != nil {
			return hookonce.Claim{}, err
		}
	}
	return hookonce.Claim{}, errContended
}

// decide returns what is answered to a request when seen is stored, nil if nothing is: the stored claim with the verdict, or
// for Acquired the one to store, but for its state, its lease and its pin.
func decide(seen *record, req hookonce.ClaimRequest, now time.Time) *record {
	if seen == nil {
		return &record{Claim: hookonce.Claim{
			Ref: req.Ref, Verdict: hookonce.Acquired, Token: 1, Type: storable(req.Type), Digest: req.Digest, FirstSeen: now, UpdatedAt: now,
		}}
	}
	next := &record{Claim: seen.Claim}
	next.Verdict, next.Conflict = seen.VerdictFor(req, now), req.Conflicts(seen.Digest)
	if next.Verdict != hookonce.Acquired {
		return next
	}
	next.Token++
	next.Lease, next.UpdatedAt = time.Time{}, now
	next.Type = cmp.Or(storable(req.Type), next.Type)
	if len(req.Digest) > 0 {
		next.Digest = req.Digest
	}
	return next
}

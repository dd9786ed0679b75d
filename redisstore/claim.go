package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/redis/go-redis/v9"
)

// Claim implements [hookonce.Store]. An error leaves open whether the claim was stored: then nobody owns
// it, and it is free when its lease is over; one without a deadline stays held until somebody fails it.
// A server whose memory is full stores no claim; it is asked what is there, so that copies of done work
// and those of work that is held are answered as ever.
func (s *Store) Claim(ctx context.Context, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	if err := req.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	if req.Key == "" {
		return hookonce.Claim{Ref: req.Ref, Verdict: hookonce.Unkeyed}, nil
	}
	now := s.now()
	r, err := s.run(ctx, claimScript, s.key(req.Ref), formatTime(now), deadline(now, req.Lease), req.Type, req.Digest, flag(req.Pin))
	if redis.HasErrorPrefix(err, "OOM") {
		if c, err := s.Lookup(ctx, req.Ref); err == nil && c.VerdictFor(req, now) != hookonce.Acquired {
			c.Verdict, c.Conflict = c.VerdictFor(req, now), req.Conflicts(c.Digest)
			return c, nil
		}
	}
	if err != nil {
		return hookonce.Claim{}, fmt.Errorf("redisstore: claim %s: %w", req.Ref, err)
	}
	c, err := r.answer(req, now)
	if err != nil {
		return hookonce.Claim{}, fmt.Errorf("redisstore: claim %s: %w", req.Ref, err)
	}
	return c, nil
}

// deadline is when a lease of d that begins now ends. Empty: never.
func deadline(now time.Time, d time.Duration) string {
	if d == 0 {
		return ""
	}
	return formatTime(now.Add(d))
}

// flag is a yes or no for a script.
func flag(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// answer is what the claiming script's reply says to req, which was decided for the time now.
func (r reply) answer(req hookonce.ClaimRequest, now time.Time) (hookonce.Claim, error) {
	c, err := r.claim(req.Ref, 2)
	if err != nil {
		return hookonce.Claim{}, err
	}
	before := r.bytes(1)
	c.Conflict = req.Conflicts(before)
	c.Verdict = hookonce.Acquired
	if r[0] != int64(1) {
		c.Verdict = c.VerdictFor(req, now)
	}
	return c, nil
}

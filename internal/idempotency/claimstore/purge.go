package claimstore

import (
	"context"
	"errors"
	"time"

	"github.com/hookonce/hookonce"
)

// How claims are purged: so often, and so many in one transaction.
const (
	purgeInterval = 10 * time.Minute
	purgeStep     = 100
	failLease     = time.Minute
)

// forget deletes what need not be remembered any more, until ctx ends.
func (s *Store) forget(ctx context.Context) {
	ticker := time.NewTicker(purgeInterval)
	defer ticker.Stop()
	for {
		for source, age := range *s.keep.Load() {
			if err := s.Forget(ctx, source, s.opt.Now().Add(-age)); err != nil && ctx.Err() == nil {
				s.opt.Logger.Error("old answers could not be deleted; it is tried again", "source", source, "error", err)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// Forget deletes the claims of one source, with their answers, that nobody works on and that were last changed
// before the given time, in small steps. It deletes failed work as well: clients do not come back for ever. What a
// process left that died at work has failed, from now on.
func (s *Store) Forget(ctx context.Context, source string, before time.Time) error {
	for _, kind := range []hookonce.PurgeKind{hookonce.PurgeEvents, hookonce.PurgeFailed} {
		old := hookonce.PurgeRequest{Kind: kind, Source: source, Before: before, Limit: purgeStep}
		for n := purgeStep; n == purgeStep; {
			var err error
			if n, err = s.Purge(ctx, old); err != nil {
				return err
			}
		}
	}
	return s.fail(ctx, source, before)
}

// errLeft is why work has failed that no copy of its request took over.
var errLeft = errors.New("the gateway that forwarded the request died, and no copy of it came")

// fail ends the claims of one source that were last changed before the given time and whose leases have run out: no
// purge deletes work under way, and so they would stay for ever.
func (s *Store) fail(ctx context.Context, source string, before time.Time) error {
	q := hookonce.ClaimQuery{Source: source, States: []hookonce.State{hookonce.StateProcessing}, Lapsed: true, Until: before, Limit: purgeStep}
	for n := purgeStep; n == purgeStep && s.inspector != nil; {
		left, err := s.inspector.ListClaims(ctx, q)
		if err != nil {
			return err
		}
		n = 0
		for _, c := range left {
			held, err := s.Claim(ctx, hookonce.ClaimRequest{Ref: c.Ref, Type: c.Type, Digest: c.Digest, Lease: failLease})
			if err != nil {
				return err
			}
			if held.Verdict != hookonce.Acquired {
				continue // a copy came, or another process was here
			}
			if err := s.Fail(ctx, held, hookonce.Failure{Err: errLeft}); err != nil {
				return err
			}
			n++
		}
	}
	return nil
}

package claimstore

import (
	"context"
	"time"

	"github.com/hookonce/hookonce"
)

// How claims are purged: so often, and so many in one transaction.
const (
	purgeInterval = 10 * time.Minute
	purgeStep     = 100
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
// before the given time, in small steps. It deletes failed work as well: clients do not come back for ever.
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
	return nil
}

package engine

import (
	"context"

	"github.com/hookonce/hookonce/internal/journal"
)

// Replay has deliveries begin again, see [journal.Records.Replay]. This process looks for them at once, and
// like all that hear of it asks the store again what is done. It needs [Options.Records].
func (j *Engine) Replay(ctx context.Context, r journal.Replay, limit int) (journal.Replayed, error) {
	r.Ordered = j.held.inOrder()
	done, err := j.opt.Records.Replay(ctx, r, limit)
	if r.Done() && !r.DryRun {
		j.done.forget() // of an error nothing is known
	}
	if err == nil && !r.DryRun {
		j.metrics.replayed.WithLabelValues("true").Add(float64(done.Forced))
		j.metrics.replayed.WithLabelValues("false").Add(float64(done.Deliveries - done.Forced))
		j.Look()
	}
	return done, err
}

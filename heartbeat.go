package hookonce

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// KeepLease extends the lease of c at each third of its length, until ctx ends or release is called, which
// waits for that. Lease is the length that was asked for, and asked the time before the claim was asked for:
// no earlier than it plus lease has anybody else a right to the work. The context that it returns ends when
// the lease is lost: at once when somebody else has taken the claim over, and otherwise when the lease has
// run out because the store could not be reached; [context.Cause] says which. Release must be called. It
// records nothing: see [UnderLease], which does all of it. A lease of zero means that the claim has no deadline
// ([ClaimRequest]): it cannot be lost, so ctx is returned as it is, and nothing is extended.
func KeepLease(ctx context.Context, store Store, c Claim, lease time.Duration, asked time.Time) (held context.Context, release func()) {
	if lease == 0 {
		return ctx, func() {}
	}
	held, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := extend(held, store, c, lease, asked.Add(lease)); err != nil {
			cancel(fmt.Errorf("hookonce: the lease of %s was lost: %w", c.Ref, err))
		}
	}()
	return held, func() {
		cancel(context.Canceled)
		<-ended
	}
}

// minLease is the shortest lease that can be kept.
const minLease = 10 * time.Millisecond

// errLeaseOver says that there was no time, or no way, to extend a lease.
var errLeaseOver = errors.New("it ran out before it was extended")

// extend returns nil when ctx ends, and otherwise why the lease, which is held until end, was lost.
func extend(ctx context.Context, store Store, c Claim, lease time.Duration, end time.Time) error {
	third := max(lease/3, time.Millisecond)
	ticker := time.NewTicker(third)
	defer ticker.Stop()
	over := time.NewTimer(time.Until(end))
	defer over.Stop()
	for failed := errLeaseOver; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-over.C:
			return failed
		case <-ticker.C:
		}
		asked := time.Now()
		asking, cancel := context.WithTimeout(ctx, min(third, end.Sub(asked)))
		_, err := store.Extend(asking, c, lease)
		cancel()
		switch {
		case err == nil:
			end, failed = asked.Add(lease), errLeaseOver
			over.Reset(time.Until(end))
		case errors.Is(err, ErrStale), errors.Is(err, ErrNotFound):
			return err
		default:
			failed = err
		}
	}
}

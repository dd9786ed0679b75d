package hookonce

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// keepLease extends the lease of c, at each third of its length, until ctx ends or release is called, which
// waits for that. The context that it returns ends when the lease is lost: at once when somebody else has
// taken the claim over, and otherwise when the lease has run out because the store could not be reached.
func keepLease(ctx context.Context, store Store, c Claim, lease time.Duration) (held context.Context, release func()) {
	held, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := extend(held, store, c, lease); err != nil {
			cancel(fmt.Errorf("hookonce: the lease of %s was lost: %w", c.Ref, err))
		}
	}()
	return held, func() {
		cancel(context.Canceled)
		<-ended
	}
}

// extend returns nil when ctx ends, and otherwise why the lease was lost.
func extend(ctx context.Context, store Store, c Claim, lease time.Duration) error {
	third := max(lease/3, time.Millisecond)
	ticker := time.NewTicker(third)
	defer ticker.Stop()
	end := time.Now().Add(lease)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		begun := time.Now()
		asking, cancel := context.WithTimeout(ctx, third)
		_, err := store.Extend(asking, c, lease)
		cancel()
		switch {
		case err == nil:
			end = begun.Add(lease)
		case errors.Is(err, ErrStale), errors.Is(err, ErrNotFound):
			return err
		case ctx.Err() == nil && !time.Now().Before(end):
			return err
		}
	}
}

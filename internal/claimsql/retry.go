package claimsql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Pauses between tries grow from the one to the other.
const (
	firstPause = time.Millisecond
	lastPause  = 25 * time.Millisecond
)

// Retry runs try until its error is none that lost says is about a lost race: others were in the way, nothing was
// done, and the same may succeed when it is tried again. It goes on for at most wait after the first one, but for so
// many tries at least, and returns the last error, with the reason why ctx ended if it did meanwhile. Pauses are left to
// chance, so that those who race do not meet again.
func Retry(ctx context.Context, wait time.Duration, least int, lost func(error) bool, try func() error) error {
	var end time.Time
	for tries, pause := 1, firstPause; ; tries, pause = tries+1, min(2*pause, lastPause) {
		err := try()
		if err == nil || !lost(err) {
			return err
		}
		if tries == 1 {
			end = time.Now().Add(wait)
		}
		if tries >= least && !time.Now().Before(end) {
			return err
		}
		if !sleep(ctx, rand.N(pause)) {
			return fmt.Errorf("%w while %w", context.Cause(ctx), err)
		}
	}
}

// sleep waits for d and reports whether ctx still runs.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

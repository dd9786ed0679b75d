package ingest

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"golang.org/x/time/rate"
)

// throttle bounds how many requests per second one source takes. It counts them before anything of them
// is read, so that what is too much costs next to nothing.
type throttle struct{ bucket *rate.Limiter }

// newThrottle returns a throttle for so many requests per second, burst of them at once. A rate of zero
// lets all pass; a burst of zero is twice the rate.
func newThrottle(perSecond float64, burst int) throttle {
	if perSecond == 0 {
		return throttle{rate.NewLimiter(rate.Inf, 0)}
	}
	return throttle{rate.NewLimiter(rate.Limit(perSecond), cmp.Or(burst, int(math.Ceil(2*perSecond))))}
}

// keep returns the throttle that was there before, with what is left of it, if it is the same.
func (t throttle) keep(before throttle) throttle {
	if b := before.bucket; b != nil && b.Limit() == t.bucket.Limit() && b.Burst() == t.bucket.Burst() {
		return before
	}
	return t
}

// check counts a request, or says how long it should wait. One that is refused takes nothing: a reservation that is
// cancelled does not give everything back where others were made after it, and what a flood takes is missed long
// after it.
func (t throttle) check(now time.Time) error {
	if t.bucket.AllowN(now, 1) {
		return nil
	}
	lacks := 1 - t.bucket.TokensAt(now)
	return &tooFast{max(time.Millisecond, time.Duration(lacks/float64(t.bucket.Limit())*float64(time.Second)))}
}

// tooFast is a request that is more than its source takes.
type tooFast struct{ wait time.Duration }

func (e *tooFast) Error() string {
	return fmt.Sprintf("%v: the next one is taken in %v", errTooMany, e.wait)
}

func (e *tooFast) Unwrap() error { return errTooMany }

package relay

import (
	"math/rand/v2"
	"time"

	"github.com/hookonce/hookonce/internal/retry"
)

// Schedule says how long to wait after an attempt has failed, which is the given one since the effect was
// enqueued or revived, counted from 1; and whether to try again at all. It may be called concurrently.
type Schedule func(tries int) (delay time.Duration, again bool)

// Exponential returns a schedule for the given number of attempts. Its delays begin with first and grow by
// factor until they reach longest; each is made shorter by chance, by half at the most, so that what failed
// together is not tried again together.
func Exponential(first, longest time.Duration, factor float64, attempts int) Schedule {
	return jittered(retry.Schedule{Attempts: attempts, First: first, Longest: longest, Factor: factor})
}

// DefaultSchedule makes 13 attempts: after 5 seconds, 15, 45 and so on, tripling up to a day, each made
// shorter by chance. The last comes some 3.5 days after the first at the latest.
func DefaultSchedule() Schedule { return jittered(retry.Default()) }

func jittered(s retry.Schedule) Schedule {
	return func(tries int) (time.Duration, bool) { return s.Delay(tries, rand.Float64()) }
}

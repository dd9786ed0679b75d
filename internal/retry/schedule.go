// Package retry decides what follows the end of an attempt: whether the work is done, dead or tried again, and
// when. The deliveries of the gateway and the requests of relays go by it, so that a rule is added in one place:
// [Judge] has what an answer's status means, [JudgeError] what the lack of an answer means, and [Schedule] when
// the next attempt is made.
package retry

import (
	"math"
	"time"
)

// Schedule says how often work is tried, and how long it waits in between. The zero Schedule tries once.
type Schedule struct {
	// Attempts is how many attempts there are, the first one included.
	Attempts int
	// First is the wait after the first failed attempt. Each further wait is Factor times as long, and none is
	// longer than Longest.
	First, Longest time.Duration
	Factor         float64
}

// What [Default] is made of, and what settings and options have that are not given.
const (
	DefaultAttempts = 13
	DefaultFirst    = 5 * time.Second
	DefaultLongest  = 24 * time.Hour
	Factor          = 3 // of every schedule for which there is no setting for it
)

// Default makes 13 attempts: after 5 seconds, 15, 45 and so on, tripling up to a day. The last is made some
// 3.5 days after the first at the latest, long enough for a weekend, and after half of that at the earliest.
func Default() Schedule {
	return Schedule{Attempts: DefaultAttempts, First: DefaultFirst, Longest: DefaultLongest, Factor: Factor}
}

// Delay returns how long to wait after the attempt with the given number, counted from 1, and false when no
// attempt is left. The random number in [0, 1) places the delay between half of the wait and the whole:
// retries of many events spread out, and yet no attempt is wasted right after the last.
func (s Schedule) Delay(attempt int, random float64) (time.Duration, bool) {
	if max(attempt, 1) >= s.Attempts {
		return 0, false
	}
	wait := s.wait(attempt)
	return wait/2 + time.Duration(random*float64(wait-wait/2)), true
}

// Ends returns the first wait and the last one, and false when there is none.
func (s Schedule) Ends() (first, last time.Duration, ok bool) {
	if s.Attempts < 2 {
		return 0, 0, false
	}
	return s.wait(1), s.wait(s.Attempts - 1), true
}

// wait is the whole wait after an attempt.
func (s Schedule) wait(attempt int) time.Duration {
	if s.First <= 0 {
		return 0 // and not 0 times infinity
	}
	full := float64(s.First) * math.Pow(s.Factor, float64(max(attempt, 1)-1))
	if full < float64(s.Longest) {
		return time.Duration(full)
	}
	return s.Longest
}

package deliver

import "time"

// Schedule lists how long to wait after the first failed attempt, after the second, and so on. When
// it is used up, the work is dead: n delays allow n+1 attempts. The empty schedule tries once.
type Schedule []time.Duration

// Exponential returns a schedule for the given number of attempts whose delays begin with first and
// grow by factor until they reach longest.
func Exponential(first, longest time.Duration, factor float64, attempts int) Schedule {
	s := make(Schedule, 0, max(attempts-1, 0))
	delay := float64(first)
	for range cap(s) {
		s = append(s, time.Duration(min(delay, float64(longest))))
		delay *= factor
	}
	return s
}

// DefaultSchedule makes 13 attempts: after 5 seconds, 15, 45 and so on, tripling up to a day. The last
// is made some 3.5 days after the first at the latest, long enough for a weekend, and after half of
// that at the earliest.
func DefaultSchedule() Schedule { return Exponential(5*time.Second, 24*time.Hour, 3, 13) }

// Next returns how long to wait after the attempt with the given number, counted from 1, and false
// when no attempt is left. The random number in [0, 1) places the delay between half of the step and
// the whole: retries of many events spread out, and yet no attempt is wasted right after the last.
func (s Schedule) Next(attempt int, random float64) (time.Duration, bool) {
	attempt = max(attempt, 1)
	if attempt > len(s) {
		return 0, false
	}
	step := s[attempt-1]
	return step/2 + time.Duration(random*float64(step-step/2)), true
}

package deliver

import (
	"cmp"
	"fmt"
	"time"
)

// Breaker says when a destination is taken for ill, and how often it is tried while it is.
//
// Ill is a destination that cannot be connected to, does not answer in time or with nothing valid, or answers
// 429, 502, 503 or 504: Failures times in a row, or three times in a row over five seconds or more. So is one
// that took nothing for half a minute although at least Failures events were tried. Any other failure says
// something about one event.
//
// An ill destination gets a probe after each pause. What fails meanwhile is on record and costs no try. With the
// first success it recovers, and gets twice as much at once after each round of successes, up to its
// concurrency.
type Breaker struct {
	// Failures in a row make it ill. Zero means [DefaultFailures]; negative: it never is, and nothing below
	// applies.
	Failures int
	// Pause is the time from the first failed probe to the next, and doubles up to PauseMax. Zero means
	// [DefaultPause] and [DefaultPauseMax], or the first and the last delay of the destination's schedule where
	// they are shorter: who wants retries soon does not want to wait for probes.
	Pause, PauseMax time.Duration
}

// Defaults of a [Breaker].
const (
	DefaultFailures = 10
	DefaultPause    = time.Second
	DefaultPauseMax = 4 * time.Second
)

// shortestPause is the least that a short schedule makes of the defaults, and the first pause after a probe that
// was answered, though not with a success.
const shortestPause = 100 * time.Millisecond

func (b *Breaker) withDefaults(schedule Schedule) (Breaker, error) {
	if b == nil {
		b = &Breaker{}
	}
	s := *b
	s.Failures = cmp.Or(s.Failures, DefaultFailures)
	if s.Pause == 0 {
		s.Pause = DefaultPause
		if len(schedule) > 0 {
			s.Pause = max(shortestPause, min(s.Pause, schedule[0]))
		}
		if s.PauseMax > 0 {
			s.Pause = min(s.Pause, s.PauseMax)
		}
	}
	if s.PauseMax == 0 {
		s.PauseMax = DefaultPauseMax
		if n := len(schedule); n > 0 {
			s.PauseMax = min(s.PauseMax, schedule[n-1])
		}
		s.PauseMax = max(s.Pause, s.PauseMax)
	}
	if s.Pause < 0 || s.PauseMax < s.Pause {
		return s, fmt.Errorf("the breaker's first pause, %v, is negative or longer than its longest, %v", s.Pause, s.PauseMax)
	}
	return s, nil
}

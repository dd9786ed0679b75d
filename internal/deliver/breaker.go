package deliver

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Breaker are the settings of a circuit breaker. After so many failures in a row that say that the
// destination is ill (no connection, no valid answer, a timeout, 429 or 5xx) it opens: nothing is
// attempted for a while, and what waits goes back to the journal without losing an attempt. Then one
// delivery is tried. If it gets any other answer the breaker closes; if it fails, the next pause is
// twice as long. Other statuses say something about one event, and count like a success.
type Breaker struct {
	// Failures in a row open the breaker. Zero means [DefaultFailures]; negative: it never opens.
	Failures int
	// Open is the first pause, and OpenMax the longest. Zero means [DefaultOpen] and [DefaultOpenMax], or
	// the first and the last delay of the destination's schedule where they are shorter: who wants
	// retries soon does not want to wait for the breaker.
	Open, OpenMax time.Duration
}

// Defaults of a [Breaker].
const (
	DefaultFailures = 10
	DefaultOpen     = 5 * time.Second
	DefaultOpenMax  = time.Minute
)

// shortestPause is the least that a short schedule makes of the defaults.
const shortestPause = 100 * time.Millisecond

func (b *Breaker) withDefaults(schedule Schedule) (Breaker, error) {
	if b == nil {
		b = &Breaker{}
	}
	s := *b
	s.Failures = cmp.Or(s.Failures, DefaultFailures)
	if s.Open == 0 {
		s.Open = DefaultOpen
		if len(schedule) > 0 {
			s.Open = max(shortestPause, min(s.Open, schedule[0]))
		}
		if s.OpenMax > 0 {
			s.Open = min(s.Open, s.OpenMax)
		}
	}
	if s.OpenMax == 0 {
		s.OpenMax = DefaultOpenMax
		if n := len(schedule); n > 0 {
			s.OpenMax = min(s.OpenMax, schedule[n-1])
		}
		s.OpenMax = max(s.Open, s.OpenMax)
	}
	if s.Open < 0 || s.OpenMax < s.Open {
		return s, fmt.Errorf("the breaker's first pause, %v, is negative or longer than its longest, %v", s.Open, s.OpenMax)
	}
	return s, nil
}

// health is what an attempt says about its destination.
type health int

const (
	unknown health = iota // nothing was learned
	well
	ill
)

var (
	errIll     = errors.New("the destination is ill")
	errUnknown = errors.New("nothing is known")
)

// err is what the library is told.
func (h health) err() error {
	return [...]error{unknown: errUnknown, well: nil, ill: errIll}[h]
}

// breaker counts attempts and failures with the library's state machine, which also knows which
// outcomes are older than its last change. How long it stays open is kept here, because the pause grows
// and the clock is ours. Its owner's mutex guards it.
type breaker struct {
	settings Breaker
	machine  *gobreaker.TwoStepCircuitBreaker[struct{}]
	pause    time.Duration // the last one; zero after a success
	until    time.Time     // the end of the pause
}

// newBreaker returns a breaker that calls changed while a method of it runs. It is nil if the settings
// say that it never opens.
func newBreaker(s Breaker, changed func(to gobreaker.State)) *breaker {
	if s.Failures < 0 {
		return nil
	}
	return &breaker{settings: s, machine: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:       time.Nanosecond, // until decides
		ReadyToTrip:   func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= uint32(s.Failures) },
		IsExcluded:    func(err error) bool { return errors.Is(err, errUnknown) },
		OnStateChange: func(_ string, _, to gobreaker.State) { changed(to) },
	})}
}

// open reports whether nothing may be attempted at now, and until when.
func (b *breaker) open(now time.Time) (until time.Time, open bool) {
	if b == nil {
		return time.Time{}, false
	}
	return b.until, now.Before(b.until)
}

// allow asks for leave to begin an attempt, whose health must be told afterwards. It refuses while
// another one finds out whether the destination has recovered. Ask open first.
func (b *breaker) allow() (tell func(error), ok bool) {
	if b == nil {
		return func(error) {}, true
	}
	tell, err := b.machine.Allow()
	return tell, err == nil
}

// tripped makes the next pause begin.
func (b *breaker) tripped(now time.Time) (until time.Time) {
	b.pause = min(max(b.settings.Open, 2*b.pause), b.settings.OpenMax)
	b.until = now.Add(b.pause)
	return b.until
}

// closed makes the next pause a short one again.
func (b *breaker) closed() { b.pause = 0 }

package ingest

import (
	"sync"
	"time"
)

// limiter lets a number of things happen in each second, and counts the others.
type limiter struct {
	perSecond int

	mu         sync.Mutex
	since      time.Time // when the current second began
	passed     int
	suppressed int
}

// allow reports whether one more may happen at now, and if so how many were held back since the last.
func (l *limiter) allow(now time.Time) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := now.Sub(l.since); d >= time.Second || d < 0 {
		l.since, l.passed = now, 0
	}
	if l.passed == l.perSecond {
		l.suppressed++
		return 0, false
	}
	l.passed++
	suppressed, l.suppressed = l.suppressed, 0
	return suppressed, true
}

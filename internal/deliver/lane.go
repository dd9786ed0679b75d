package deliver

import (
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"github.com/hookonce/hookonce/internal/journal"
)

// lane is the queue before one destination. It decides when the next attempt begins: not while the
// breaker is open, not more at once than the destination bears, not faster than its rate. There are
// goroutines only for attempts, so a destination that hangs costs no more than those.
type lane struct {
	*Deliverer
	name string

	mu sync.Mutex
	*outfit
	breaker  *breaker // nil: never opens
	waiting  []*journal.Work
	underway int
	wake     *time.Timer // armed while the rate alone keeps work waiting
	closed   bool
	gone     bool // the destination is not configured any more
}

// turn is one delivery whose attempt may begin.
type turn struct {
	work    *journal.Work
	dest    *destination // as it was configured when the turn came
	breaker *breaker
	tell    func(error) // the breaker, how it went
}

// maxRate is the highest rate that makes sense, in attempts per second.
const maxRate = 1e6

// add takes one delivery in. It never blocks.
func (l *lane) add(w *journal.Work) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, w)
	l.advance()
}

// advance begins all attempts that may begin now. The caller holds the mutex.
func (l *lane) advance() {
	for t, ok := l.next(); ok; t, ok = l.next() {
		l.workers.Go(func() { l.run(t) })
	}
}

// run makes one attempt after the other, as long as there is one to begin.
func (l *lane) run(t turn) {
	for ok := true; ok; {
		health := l.deliver(t.dest, t.work)
		t, ok = l.ended(t, health)
	}
}

// ended notes how an attempt went, and returns the next for the same goroutine. The others that may
// begin by now, because the breaker closed, are begun.
func (l *lane) ended(t turn, h health) (next turn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underway--
	if t.breaker == l.breaker { // or the destination is another by now
		t.tell(h.err())
	}
	next, ok = l.next()
	l.advance()
	return next, ok
}

// next takes the delivery whose attempt may begin now, if there is one. The caller holds the mutex.
func (l *lane) next() (turn, bool) {
	now := l.opt.Now()
	if until, open := l.breaker.open(now); open || l.closed || l.gone || l.paused() {
		l.handBack(maxTime(now, until))
	}
	if len(l.waiting) == 0 || l.underway >= l.concurrency {
		return turn{}, false
	}
	reservation, ok := l.reserve(now)
	if !ok {
		return turn{}, false
	}
	tell, ok := l.breaker.allow()
	if !ok {
		reservation.CancelAt(now)
		return turn{}, false
	}
	w := l.waiting[0]
	l.waiting[0] = nil
	l.waiting = l.waiting[1:]
	l.underway++
	return turn{w, l.dest, l.breaker, tell}, true
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// reserve takes leave of the rate to begin at now, or arms the timer for when there will be.
func (l *lane) reserve(now time.Time) (*rate.Reservation, bool) {
	if l.limiter == nil {
		return &rate.Reservation{}, true
	}
	r := l.limiter.ReserveN(now, 1)
	delay := r.DelayFrom(now)
	if delay == 0 {
		return r, true
	}
	r.CancelAt(now)
	if l.wake == nil {
		l.wake = time.AfterFunc(delay, l.awake)
	}
	return nil, false
}

// awake continues when the rate allows it.
func (l *lane) awake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake = nil
	l.advance()
}

// handBack returns to the journal what waits, for later and without loss of an attempt. The caller
// holds the mutex.
func (l *lane) handBack(due time.Time) {
	if len(l.waiting) == 0 {
		return
	}
	for _, w := range l.waiting {
		l.opt.Journal.Finish(journal.Outcome{Held: w.Held, State: journal.Pending, Due: due})
	}
	l.metrics.postponed.WithLabelValues(l.name).Add(float64(len(l.waiting)))
	l.waiting = nil
}

// close hands back what waits, now and from now on. Attempts under way go on.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.wake != nil {
		l.wake.Stop()
	}
	l.handBack(l.opt.Now())
}

// changed follows the breaker. The caller of the breaker holds the mutex.
func (l *lane) changed(to gobreaker.State) {
	l.metrics.breaker.WithLabelValues(l.name).Set(float64(to))
	switch to {
	case gobreaker.StateOpen:
		until := l.breaker.tripped(l.opt.Now())
		l.metrics.trips.WithLabelValues(l.name).Inc()
		l.opt.Logger.Warn("deliver: the breaker of a destination opened; nothing is attempted meanwhile",
			"destination", l.name, "until", until, "waiting", len(l.waiting))
		l.opt.Journal.Suspend(l.name, until)
	case gobreaker.StateHalfOpen:
		l.opt.Logger.Debug("deliver: one delivery finds out whether a destination has recovered", "destination", l.name)
	case gobreaker.StateClosed:
		l.breaker.closed()
		l.opt.Journal.Suspend(l.name, time.Time{})
		l.opt.Logger.Info("deliver: the breaker of a destination closed", "destination", l.name)
	}
}

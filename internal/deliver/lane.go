package deliver

import (
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// lane is the queue before one destination. It decides when the next attempt begins, and of what: not more at
// once than the destination bears as it stands, not faster than its rate, and so that events that fail leave
// room to the others. There are goroutines only for attempts, so a destination that hangs costs no more than
// those.
type lane struct {
	*Deliverer
	name string

	mu sync.Mutex
	*outfit
	health   *health
	queue    queue
	underway int
	wake     *time.Timer // armed while time alone keeps work waiting
	closed   bool
	gone     bool // the destination is not configured any more
}

// turn is one delivery whose attempt may begin.
type turn struct {
	work   *journal.Work
	dest   *destination // as it was configured when the turn came
	health *health
	class  *class
	began  time.Time
	probe  bool // the destination was ill
}

// maxRate is the highest rate that makes sense, in attempts per second.
const maxRate = 1e6

// add takes one delivery in. It never blocks.
func (l *lane) add(w *journal.Work) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.relieve(l.queue.add(w))
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
		l.deliver(l, &t)
		t, ok = l.ended(&t)
	}
}

// learn follows the end of an attempt, before its outcome is recorded: a failure may cost no try.
func (l *lane) learn(t *turn, o *journal.Outcome, f finding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.opt.Now()
	t.class.learn(f.verdict, t.began, now)
	if t.health != l.health { // the destination is another by now
		return
	}
	before := l.health.state
	if l.health.learn(now, t, f, l.underway-1, o.Error) && !f.final && (o.State == journal.Failed || o.State == journal.Dead) {
		o.State, o.Spared, o.Error = journal.Failed, true, o.Error+spared
		o.Due = maxTime(l.health.until, o.Started.Add(o.Duration+f.after))
	}
	l.follow(before, now)
	l.relieve(t.class)
}

// ended returns the next attempt for the same goroutine. The others that may begin by now are begun.
func (l *lane) ended(t *turn) (next turn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underway--
	t.class.underway--
	t.class.ended = t.class.ended || t.class.last == t.work
	if t.probe {
		t.health.probes--
	}
	next, ok = l.next()
	l.advance()
	return next, ok
}

// next takes the delivery whose attempt may begin now, if there is one. The caller holds the mutex.
func (l *lane) next() (turn, bool) {
	now := l.opt.Now()
	if l.closed || l.gone || l.paused() {
		l.handBack(l.queue.drain(), now)
	}
	if l.queue.len == 0 {
		return turn{}, false
	}
	c := l.queue.next(now, func(c *class) bool { return l.bears(now, c) })
	if c == nil {
		if l.health.ill() {
			l.handBack(l.queue.drain(), l.health.back(now))
		}
		return turn{}, false
	}
	if !l.reserve(now) {
		return turn{}, false
	}
	return l.begin(now, l.queue.take(c, now), c), true
}

// begin counts an attempt. The caller holds the mutex.
func (l *lane) begin(now time.Time, w *journal.Work, c *class) turn {
	t := turn{work: w, dest: l.dest, health: l.health, class: c, began: now, probe: l.health.ill()}
	l.underway++
	c.underway++
	c.began, c.last, c.ended = now, w, false
	if t.probe {
		l.health.probes++
		l.health.probed = now
		l.metrics.probes.WithLabelValues(l.name).Inc()
	}
	return t
}

// bears reports whether an attempt of a class may begin now. One that hinders others gets another one only while
// as much as it then has is left free: one class comes to have a half, two a third each. One of which it is doubtful
// gets the second half one by one, as long as they are quick: what hangs does not fill it. The caller holds the mutex.
func (l *lane) bears(now time.Time, c *class) bool {
	if l.health.ill() {
		return l.underway < l.concurrency && l.health.probing(now, c.key.source, c.key.kind)
	}
	free := min(l.health.limit, l.concurrency) - l.underway
	if free <= 0 || c.hinders() && c.underway >= free {
		return false
	}
	if c.underway < free || !lately(c.stuck, now) {
		return true
	}
	wait := c.pending(now)
	if wait > 0 {
		l.wakeIn(wait)
	}
	return wait == 0
}

// relieve hands back what waits of a class that hinders others, but for a little. The caller holds the mutex.
func (l *lane) relieve(c *class) {
	failures := 2 * l.concurrency // or all that were under way at once say so
	if l.health.alone(c.key.source, c.key.kind) {
		failures = inARow
	}
	if excess := l.queue.excess(c, failures); len(excess) > 0 {
		now := l.opt.Now()
		l.handBack(excess, now.Add(max(soon, min(now.Sub(c.since), time.Minute))))
	}
}

// reserve takes leave of the rate to begin at now, or arms the timer for when there will be.
func (l *lane) reserve(now time.Time) bool {
	if l.limiter == nil {
		return true
	}
	r := l.limiter.ReserveN(now, 1)
	delay := r.DelayFrom(now)
	if delay == 0 {
		return true
	}
	r.CancelAt(now)
	l.wakeIn(delay)
	return false
}

// wakeIn has the lane go on after a while.
func (l *lane) wakeIn(d time.Duration) {
	if l.wake == nil && !l.closed {
		l.wake = time.AfterFunc(d, l.awake)
	}
}

// awake continues when it is time.
func (l *lane) awake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake = nil
	l.advance()
}

// handBack returns work to the journal, for later and without loss of an attempt.
func (l *lane) handBack(all []*journal.Work, due time.Time) {
	for _, w := range all {
		l.opt.Journal.Finish(journal.Outcome{Held: w.Held, State: journal.Pending, Due: due})
	}
	if len(all) > 0 {
		l.metrics.postponed.WithLabelValues(l.name).Add(float64(len(all)))
	}
}

// close hands back what waits, now and from now on. Attempts under way go on.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.wake != nil {
		l.wake.Stop()
	}
	l.handBack(l.queue.drain(), l.opt.Now())
}

// follow tells the journal, the log and the metrics how the destination stands, where that changed. The caller
// holds the mutex.
func (l *lane) follow(before State, now time.Time) {
	h := l.health
	if !h.changed {
		return
	}
	h.changed = false
	l.opt.Journal.Suspend(l.name, h.rest(now))
	if h.state == before {
		if h.ill() && now.Sub(h.logged) >= remindEach {
			h.logged = now
			l.opt.Logger.Warn("deliver: a destination still is ill", "destination", l.name, "since", h.since, "error", h.cause)
		}
		return
	}
	l.metrics.breaker.WithLabelValues(l.name).Set(h.state.number())
	switch h.state {
	case Ill:
		h.logged = now
		waiting := l.queue.drain()
		l.handBack(waiting, h.back(now))
		l.metrics.trips.WithLabelValues(l.name).Inc()
		l.opt.Logger.Warn("deliver: a destination is ill; it only gets probes until one succeeds",
			"destination", l.name, "error", h.cause, "probe", h.until, "waiting", len(waiting))
	case Recovering, Healthy:
		if before == Ill {
			l.opt.Logger.Info("deliver: a destination recovers", "destination", l.name)
		}
	}
}

// spared ends the error of an attempt that costs no try.
const spared = "; it costs no try, because the destination is ill"

package deliver

import (
	"context"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/retry"
	"github.com/hookonce/hookonce/internal/tracing"
)

// sendQueue is the queue before one destination. It decides when the next attempt begins, and of what: not more at
// once than the destination bears as it stands, not faster than its rate, and so that events that fail leave
// room to the others. There are goroutines only for attempts, so a destination that hangs costs no more than
// those.
type sendQueue struct {
	*sender
	name string

	mu       sync.Mutex
	dest     *destination // as it is configured
	health   *health
	waiting  fairQueue
	underway int
	wake     *time.Timer // armed while time alone keeps work waiting
	idle     *time.Timer // armed while the destination is ill, for when nothing was tried for a while
	closed   bool
	gone     bool // the destination is not configured any more
}

// turn is one delivery whose attempt may begin.
type turn struct {
	try
	dest   *destination // as it was configured when the turn came
	health *health
	class  *class
	trace  *tracing.Delivery
}

// add takes one delivery in. It never blocks.
func (q *sendQueue) add(w *journal.Work) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.relieve(q.waiting.add(w))
	q.advance()
}

// advance begins all attempts that may begin now. The caller holds the mutex.
func (q *sendQueue) advance() {
	for t, ok := q.next(); ok; t, ok = q.next() {
		q.workers.Go(func() { q.run(t) })
	}
}

// run makes one attempt after the other, as long as there is one to begin.
func (q *sendQueue) run(t turn) {
	for ok := true; ok; {
		q.deliver(&t)
		t, ok = q.ended(&t)
	}
}

// deliver makes one attempt, learns what it showed about the destination, and hands the outcome to the journal.
// Work whose lease ran out while it waited is somebody else's now.
func (q *sendQueue) deliver(t *turn) {
	if !q.wanted(t.dest, t.work) {
		return
	}
	if t.probe {
		// A kept connection leads to the same copy of the application each time, which may be the only one that is ill, or to where
		// the name led once.
		closeIdle(t.dest.transport)
	}
	ctx, cancel := context.WithTimeout(q.attempts, t.dest.Timeout)
	defer cancel()
	q.metrics.inFlight.Inc()
	defer q.metrics.inFlight.Dec()

	outcome, answer, verdict := q.attempt(ctx, cancel, t)
	q.learn(t, &outcome, verdict)
	q.opt.Journal.Finish(outcome)
	q.metrics.observe(t.work, outcome, t.trace)
	t.trace.End(&outcome)
	q.report(t.work, outcome)
	answer.Drain()
}

// learn follows the end of an attempt, before its outcome is recorded: a failure may cost no try.
func (q *sendQueue) learn(t *turn, o *journal.Outcome, v retry.Judgement) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.opt.Now()
	t.class.learn(v.Signal, t.began, now)
	if o.State == journal.Done {
		q.waiting.delivered(t.work)
	}
	if t.health != q.health { // the destination is another by now
		return
	}
	before := q.health.state
	if q.health.learn(now, &t.try, v, q.underway-1, o.Error) && v.Result != retry.Dead && (o.State == journal.Failed || o.State == journal.Dead) {
		o.State, o.Spared, o.Error = journal.Failed, true, o.Error+journal.SparedNote
		o.Due = maxTime(q.health.until, v.Due(o.Started.Add(o.Duration), 0))
	}
	q.follow(before, now)
	q.relieve(t.class)
}

// ended returns the next attempt for the same goroutine. The others that may begin by now are begun.
func (q *sendQueue) ended(t *turn) (next turn, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.underway--
	t.class.underway--
	if t.class.last == t.work {
		t.class.ended, t.class.last = true, nil // which would keep its body for as long as no other of the class comes
	}
	if t.probe {
		t.health.probes--
	}
	next, ok = q.next()
	q.advance()
	return next, ok
}

// next takes the delivery whose attempt may begin now, if there is one. The caller holds the mutex.
func (q *sendQueue) next() (turn, bool) {
	now := q.opt.Now()
	if q.closed || q.gone || q.paused() {
		q.handBack(q.waiting.drain(), now)
	}
	if q.waiting.len == 0 {
		return turn{}, false
	}
	c := q.waiting.next(now, func(c *class) bool { return q.bears(now, c) })
	if c == nil {
		if q.health.ill() {
			q.handBack(q.waiting.drain(), q.health.back(now))
		}
		return turn{}, false
	}
	if !q.reserve(now) {
		return turn{}, false
	}
	return q.begin(now, q.waiting.take(c, now), c), true
}

// begin counts an attempt. The caller holds the mutex.
func (q *sendQueue) begin(now time.Time, w *journal.Work, c *class) turn {
	t := turn{try: try{w, now, q.health.ill()}, dest: q.dest, health: q.health, class: c}
	q.underway++
	c.underway++
	c.began, c.last, c.ended = now, w, false
	if t.probe {
		q.health.probes++
		q.health.probed = now
		q.metrics.probes.WithLabelValues(q.name).Inc()
	}
	return t
}

// bears reports whether an attempt of a class may begin now. One that hinders others gets another one only while
// as much as it then has is left free: one class comes to have a half, two a third each. One of which it is doubtful
// gets the second half one by one, as long as they are quick: what hangs does not fill it. The caller holds the mutex.
func (q *sendQueue) bears(now time.Time, c *class) bool {
	if q.health.ill() {
		return q.underway < q.dest.Concurrency && q.health.probing(now, c.key.source, c.key.kind)
	}
	free := min(q.health.limit, q.dest.Concurrency) - q.underway
	if free <= 0 || c.hinders() && c.underway >= free {
		return false
	}
	if c.underway < free || !lately(c.stuck, now) {
		return true
	}
	wait := c.pending(now)
	if wait > 0 {
		q.wakeIn(wait)
	}
	return wait == 0
}

// relieve hands back what waits of a class that hinders others, but for a little. The caller holds the mutex.
func (q *sendQueue) relieve(c *class) {
	failures := 2 * q.dest.Concurrency // or all that were under way at once say so
	if q.health.alone(c.key.source, c.key.kind) {
		failures = inARow
	}
	if excess := q.waiting.excess(c, failures); len(excess) > 0 {
		now := q.opt.Now()
		q.handBack(excess, now.Add(max(soon, min(now.Sub(c.since), time.Minute))))
	}
}

// reserve takes leave of the rate to begin at now, or arms the timer for when there will be.
func (q *sendQueue) reserve(now time.Time) bool {
	if q.dest.limiter == nil {
		return true
	}
	r := q.dest.limiter.ReserveN(now, 1)
	delay := r.DelayFrom(now)
	if delay == 0 {
		return true
	}
	r.CancelAt(now)
	q.wakeIn(delay)
	return false
}

// wakeIn has the send queue go on after a while.
func (q *sendQueue) wakeIn(d time.Duration) {
	if q.wake == nil && !q.closed {
		q.wake = time.AfterFunc(d, q.awake)
	}
}

// awake continues when it is time.
func (q *sendQueue) awake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wake = nil
	q.advance()
}

// idleIn has the send queue look after a while whether there still is something to try at a destination that is ill.
func (q *sendQueue) idleIn(d time.Duration) {
	switch {
	case q.closed:
	case q.idle == nil:
		q.idle = time.AfterFunc(d, q.idled)
	default:
		q.idle.Reset(d)
	}
}

// idled ends an illness that nothing here will: all that waited was delivered by other gateways, or is dead. Without an
// attempt nobody would take it back, and it would be told, and explain other trouble, until the next event. Of one that is
// paused all waits, and nothing is to be tried.
func (q *sendQueue) idled() {
	q.mu.Lock()
	defer q.mu.Unlock()
	h, now := q.health, q.opt.Now()
	if !h.ill() || q.gone {
		return
	}
	wait := h.doubtIn(now)
	if wait <= 0 && (q.underway+q.waiting.len > 0 || q.paused()) {
		wait = untried
	}
	if wait > 0 {
		q.idleIn(wait)
		return
	}
	closeIdle(q.dest.transport) // what comes next is a probe in all but name
	h.doubt(now)
	q.follow(Ill, now)
}

// handBack returns work to the journal, for later and without loss of an attempt.
func (q *sendQueue) handBack(all []*journal.Work, due time.Time) {
	for _, w := range all {
		q.opt.Journal.Finish(journal.Outcome{Held: w.Held, State: journal.Pending, Due: due})
	}
	if len(all) > 0 {
		q.metrics.postponed.WithLabelValues(q.name).Add(float64(len(all)))
	}
}

// close hands back what waits, now and from now on. Attempts under way go on.
func (q *sendQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, timer := range []*time.Timer{q.wake, q.idle} {
		if timer != nil {
			timer.Stop()
		}
	}
	q.handBack(q.waiting.drain(), q.opt.Now())
}

// follow tells the journal, the log and the metrics how the destination stands, where that changed. Of one that is gone
// they are told nothing: nobody would take it back. The caller holds the mutex.
func (q *sendQueue) follow(before State, now time.Time) {
	h := q.health
	if !h.changed || q.gone {
		return
	}
	h.changed = false
	q.opt.Journal.Suspend(q.name, h.rest(now))
	if h.ill() {
		q.idleIn(h.doubtIn(now))
	}
	if h.state == before {
		if h.ill() && now.Sub(h.logged) >= remindEach {
			h.logged = now
			q.opt.Logger.Warn("deliver: a destination still is ill", "destination", q.name, "since", h.since, "error", h.cause)
		}
		return
	}
	q.metrics.breaker.WithLabelValues(q.name).Set(h.state.number())
	switch h.state {
	case Ill:
		h.logged = now
		waiting := q.waiting.drain()
		q.handBack(waiting, h.back(now))
		q.metrics.trips.WithLabelValues(q.name).Inc()
		q.opt.Logger.Warn("deliver: a destination is ill; it only gets probes until one succeeds",
			"destination", q.name, "error", h.cause, "probe", h.until, "waiting", len(waiting))
	case Recovering, Healthy:
		if before == Ill && h.lived.Before(h.since) {
			q.opt.Logger.Info("deliver: nothing was tried for a minute at a destination that was ill; the next attempt tells how it is", "destination", q.name)
		} else if before == Ill {
			q.opt.Logger.Info("deliver: a destination recovers", "destination", q.name)
		}
	}
}

// seize takes the turn of an attempt that begins now or not at all. The deliverer waits for it when it is
// stopped, until its workers are told that it is done.
func (q *sendQueue) seize(w *journal.Work) (turn, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, class := q.opt.Now(), q.waiting.class(w)
	if q.closed || q.gone || q.paused() || !q.bears(now, class) || !q.reserve(now) {
		return turn{}, false
	}
	t := q.begin(now, w, class)
	q.workers.Add(1)
	return t, true
}

// before returns the destination that a send queue has, nil if there is none.
func (q *sendQueue) before() *destination {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dest
}

// fit gives the send queue a destination, and goes on with it.
func (q *sendQueue) fit(dest *destination) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := q.dest
	q.dest = dest
	if q.gone || !before.same(dest) {
		q.health = newHealth(dest.Breaker, dest.Concurrency, q.opt.Now())
		q.metrics.begin(q.name)
		if before != nil {
			q.opt.Journal.Suspend(q.name, journal.Rest{})
		}
	}
	q.health.resize(dest.Concurrency)
	q.gone = false
	if before != nil && !before.connects(dest) {
		closeIdle(before.transport)
	}
	if q.wake != nil { // for a rate that may be another
		q.wake.Stop()
		q.wake = nil
	}
	q.advance()
}

// leave hands back what waits, now and until the send queue gets a destination again. Attempts under way go on.
func (q *sendQueue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone {
		return
	}
	q.gone = true
	q.metrics.breaker.DeleteLabelValues(q.name)
	q.handBack(q.waiting.drain(), q.opt.Now())
	closeIdle(q.dest.transport)
}

// Status is how a destination stands at the moment, in this process.
type Status struct {
	Name  string
	State State
	// Since is when the state began, Cause the error that made it ill, Until when an ill one is tried again at the
	// latest. Since is zero for a healthy one, and the others are for any that is not ill.
	Since, Until time.Time
	Cause        string
	// Limit is how many attempts may be under way at once, at the moment.
	Limit int
	// Waiting deliveries are held for their turn, Underway are being attempted.
	Waiting, Underway int
}

// status reports false for a destination that is gone.
func (q *sendQueue) status() (Status, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.health
	s := Status{Name: q.name, State: h.state, Limit: min(h.limit, q.dest.Concurrency), Waiting: q.waiting.len, Underway: q.underway}
	if h.state != Healthy {
		s.Since = h.since
	}
	if h.ill() {
		s.Cause, s.Until = h.cause, h.until
	}
	return s, !q.gone
}

// paused reports whether an operator wants nothing to begin.
func (q *sendQueue) paused() bool { return q.opt.Journal.Paused(q.name) }

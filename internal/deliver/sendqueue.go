package deliver

import (
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/retry"
)

// sendQueue is the queue before one destination. It decides when the next attempt begins, and of what: not more at
// once than the destination bears as it stands, not faster than its rate, and so that events that fail leave
// room to the others. There are goroutines only for attempts, so a destination that hangs costs no more than
// those.
type sendQueue struct {
	*Deliverer
	name string

	mu sync.Mutex
	*outfit
	health   *health
	waiting  fairQueue
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
		q.deliver(q, &t)
		t, ok = q.ended(&t)
	}
}

// learn follows the end of an attempt, before its outcome is recorded: a failure may cost no try.
func (q *sendQueue) learn(t *turn, o *journal.Outcome, v retry.Verdict) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.opt.Now()
	t.class.learn(v.Signal, t.began, now)
	if t.health != q.health { // the destination is another by now
		return
	}
	before := q.health.state
	if q.health.learn(now, t, v, q.underway-1, o.Error) && v.Result != retry.Dead && (o.State == journal.Failed || o.State == journal.Dead) {
		o.State, o.Spared, o.Error = journal.Failed, true, o.Error+spared
		o.Due = maxTime(q.health.until, o.Started.Add(o.Duration+v.After))
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
	t.class.ended = t.class.ended || t.class.last == t.work
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
	t := turn{work: w, dest: q.dest, health: q.health, class: c, began: now, probe: q.health.ill()}
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
		return q.underway < q.concurrency && q.health.probing(now, c.key.source, c.key.kind)
	}
	free := min(q.health.limit, q.concurrency) - q.underway
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
	failures := 2 * q.concurrency // or all that were under way at once say so
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
	if q.limiter == nil {
		return true
	}
	r := q.limiter.ReserveN(now, 1)
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
	if q.wake != nil {
		q.wake.Stop()
	}
	q.handBack(q.waiting.drain(), q.opt.Now())
}

// follow tells the journal, the log and the metrics how the destination stands, where that changed. The caller
// holds the mutex.
func (q *sendQueue) follow(before State, now time.Time) {
	h := q.health
	if !h.changed {
		return
	}
	h.changed = false
	q.opt.Journal.Suspend(q.name, h.rest(now))
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
		if before == Ill {
			q.opt.Logger.Info("deliver: a destination recovers", "destination", q.name)
		}
	}
}

// spared ends the error of an attempt that costs no try.
const spared = "; it costs no try, because the destination is ill"

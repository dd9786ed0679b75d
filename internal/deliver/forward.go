package deliver

import (
	"context"

	"github.com/hookonce/hookonce/internal/journal"
)

// Forward makes one attempt at a delivery that the journal cannot record now, and returns the outcome
// instead of handing it to the journal. The request is that of any attempt, under the same Idempotency-Key and
// webhook-id, with Hookonce-Unprotected: true and without a number.
//
// It waits for nothing: where the destination is paused, it is ill and not to be tried now, or as much under way as it bears,
// there is no attempt, and the outcome is [journal.Failed]. The attempt ends with ctx at the latest.
func (d *Deliverer) Forward(ctx context.Context, w *journal.Work) journal.Outcome {
	refused := journal.Outcome{Held: w.Held, State: journal.Failed, Started: d.opt.Now(), Error: "not attempted: the destination is at rest or busy"}
	l := d.lane(w.Destination)
	if l == nil {
		return refused
	}
	t, ok := l.seize(w)
	if !ok {
		return refused
	}
	defer d.workers.Done()
	attempt, cancel := context.WithTimeout(ctx, t.dest.timeout)
	defer cancel()
	defer context.AfterFunc(d.attempts, cancel)()
	d.metrics.inFlight.Inc()
	defer d.metrics.inFlight.Dec()

	o, answer, finding := d.attempt(attempt, cancel, t.dest, w)
	if ctx.Err() != nil {
		finding.verdict = unknown // it might have answered somebody with more patience
	}
	l.learn(&t, &o, finding)
	d.metrics.observe(w, o)
	answer.drain()
	if next, ok := l.ended(&t); ok {
		d.workers.Go(func() { l.run(next) })
	}
	return o
}

// seize takes the turn of an attempt that begins now or not at all. The deliverer waits for it when it is
// stopped, until its workers are told that it is done.
func (l *lane) seize(w *journal.Work) (turn, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, class := l.opt.Now(), l.queue.class(w)
	if l.closed || l.gone || l.paused() || !l.bears(now, class) || !l.reserve(now) {
		return turn{}, false
	}
	t := l.begin(now, w, class)
	l.workers.Add(1)
	return t, true
}

package deliver

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/retry"
)

// deliver makes one attempt, tells the send queue what it showed about the destination, and hands the outcome to the
// journal. Work whose lease ran out while it waited is somebody else's now.
func (d *Deliverer) deliver(q *sendQueue, t *turn) {
	dest, w := t.dest, t.work
	if !d.opt.Journal.Current(w.Held) {
		d.opt.Journal.Finish(journal.Outcome{Held: w.Held, State: journal.Pending, Due: d.opt.Now()})
		return
	}
	if w.Stale {
		d.metrics.stale.WithLabelValues(w.Source, w.Destination, string(dest.stale)).Inc()
		if dest.stale == StaleDrop && !w.Forced {
			d.drop(w)
			return
		}
	}
	ctx, cancel := context.WithTimeout(d.attempts, dest.timeout)
	defer cancel()
	d.metrics.inFlight.Inc()
	defer d.metrics.inFlight.Dec()

	outcome, answer, verdict := d.attempt(ctx, cancel, dest, w)
	q.learn(t, &outcome, verdict)
	d.opt.Journal.Finish(outcome)
	d.metrics.observe(w, outcome)
	d.report(w, outcome)
	answer.Drain()
}

// drop ends a delivery without an attempt, and leaves a record that says so.
func (d *Deliverer) drop(w *journal.Work) {
	const why = "not delivered: a newer version of the resource was"
	d.opt.Journal.Finish(journal.Outcome{Held: w.Held, State: journal.Done, Error: why, Started: d.opt.Now()})
	d.opt.Logger.Info("deliver: a stale event was dropped", "source", w.Source, "key", w.Key, "type", w.Type,
		"event", w.EventID, "destination", w.Destination, "resource", w.Resource)
}

// attempt tries once. The answer is nil if there was none.
func (d *Deliverer) attempt(ctx context.Context, cancel func(), dest *destination, w *journal.Work) (journal.Outcome, *outgoing.Answer, retry.Verdict) {
	o := journal.Outcome{Held: w.Held, Started: d.opt.Now()}
	relayed := (*d.answered.Load())[w.Source] // as it is now: a reload may change it meanwhile
	response, err := d.post(ctx, dest, w, o.Started)
	o.Duration = d.opt.Now().Sub(o.Started)
	if err != nil {
		verdict := d.unanswered(&o, dest, w, err)
		return o, nil, verdict
	}
	if relayed && response.StatusCode != http.StatusSwitchingProtocols {
		return d.relayed(o, dest, w, response)
	}
	a := outgoing.NewAnswer(response, cancel)
	verdict := d.judge(&o, dest, w, response)
	o.Excerpt = a.Head()
	return o, a, verdict
}

// errPanic is a failure that is not the destination's.
var errPanic = error(&retry.Fault{Text: "panic during the delivery", Ours: true})

// post sends the request. Whatever panics on the way is a failed attempt, not the end of a worker.
func (d *Deliverer) post(ctx context.Context, dest *destination, w *journal.Work, now time.Time) (response *http.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.opt.Logger.Error("panic during a delivery", "destination", w.Destination,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	sent := dest.passed(w, now)
	d.resign(dest, w, sent)
	return dest.transport.RoundTrip(newRequest(ctx, dest, w, sent))
}

// report logs one attempt, and shows it to whoever looks on.
func (d *Deliverer) report(w *journal.Work, o journal.Outcome) {
	if d.opt.Watcher != nil {
		d.opt.Watcher.Attempted(w, o)
	}
	level, message := slog.LevelWarn, "delivery failed"
	if o.Spared {
		level, message = slog.LevelDebug, "delivery failed while the destination is ill, which costs no try"
	}
	switch o.State {
	case journal.Done:
		level, message = slog.LevelDebug, "event delivered"
	case journal.Pending:
		level, message = slog.LevelInfo, "delivery handed back"
	case journal.Dead:
		level, message = slog.LevelError, "delivery given up"
	}
	ctx := context.Background()
	if !d.opt.Logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("source", w.Source), slog.String("key", w.Key), slog.String("type", w.Type),
		slog.Int64("event", w.EventID), slog.String("destination", w.Destination),
		slog.Int64("attempt", w.Token), slog.Duration("took", o.Duration),
	}
	if o.Error != "" {
		attrs = append(attrs, slog.String("error", o.Error))
	}
	if o.State == journal.Failed {
		attrs = append(attrs, slog.Time("due", o.Due))
	}
	d.opt.Logger.LogAttrs(ctx, level, message, attrs...)
}

// Forward makes one attempt at a delivery that the journal cannot record now, and returns the outcome
// instead of handing it to the journal. The request is that of any attempt, under the same Idempotency-Key and
// webhook-id, with Hookonce-Unprotected: true and without a number.
//
// It waits for nothing: where the destination is paused, it is ill and not to be tried now, or as much under way as it bears,
// there is no attempt, and the outcome is [journal.Failed]. The attempt ends with ctx at the latest.
func (d *Deliverer) Forward(ctx context.Context, w *journal.Work) journal.Outcome {
	refused := journal.Outcome{Held: w.Held, State: journal.Failed, Started: d.opt.Now(), Error: "not attempted: the destination is at rest or busy"}
	q := d.queue(w.Destination)
	if q == nil {
		return refused
	}
	t, ok := q.seize(w)
	if !ok {
		return refused
	}
	defer d.workers.Done()
	attempt, cancel := context.WithTimeout(ctx, t.dest.timeout)
	defer cancel()
	defer context.AfterFunc(d.attempts, cancel)()
	d.metrics.inFlight.Inc()
	defer d.metrics.inFlight.Dec()

	o, answer, verdict := d.attempt(attempt, cancel, t.dest, w)
	if ctx.Err() != nil {
		verdict.Signal = retry.NoSignal // it might have answered somebody with more patience
	}
	q.learn(&t, &o, verdict)
	d.metrics.observe(w, o)
	answer.Drain()
	if next, ok := q.ended(&t); ok {
		d.workers.Go(func() { q.run(next) })
	}
	return o
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

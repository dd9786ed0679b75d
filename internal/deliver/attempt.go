package deliver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// strangerDelay is how long work for a destination that is not ours is left alone, for somebody who
// knows it. It costs no try.
const strangerDelay = time.Minute

// deliver makes one attempt and hands the outcome to the journal, before it reads what is left of the
// answer: the status alone decides. Work whose lease ran out while it waited is somebody else's now.
func (d *Deliverer) deliver(w *journal.Work) {
	if !d.opt.Journal.Current(w.Held) {
		d.opt.Journal.Finish(journal.Outcome{Held: w.Held, State: journal.Pending, Due: d.opt.Now()})
		return
	}
	dest := d.destinations[w.Destination]
	if dest == nil {
		d.opt.Journal.Finish(journal.Outcome{Held: w.Held, State: journal.Pending, Due: d.opt.Now().Add(strangerDelay)})
		return
	}
	ctx, cancel := context.WithTimeout(d.attempts, dest.timeout)
	defer cancel()
	d.metrics.inFlight.Inc()
	defer d.metrics.inFlight.Dec()

	outcome, rest := d.attempt(ctx, dest, w)
	d.opt.Journal.Finish(outcome)
	d.metrics.observe(w, outcome)
	d.report(w, outcome)
	drain(rest)
}

// attempt tries once and says what became of it. The body is nil unless there was an answer.
func (d *Deliverer) attempt(ctx context.Context, dest *destination, w *journal.Work) (journal.Outcome, io.ReadCloser) {
	o := journal.Outcome{Held: w.Held, Started: d.opt.Now()}
	answer, err := d.post(ctx, dest, w)
	ended := d.opt.Now()
	o.Duration = ended.Sub(o.Started)
	switch {
	case err != nil && d.attempts.Err() != nil: // cancelled by us: nobody is to blame
		o.State, o.Due = journal.Pending, ended
		return o, nil
	case err != nil:
		o.Error = cause(err, dest.timeout)
		d.retry(&o, dest, w, 0)
		return o, nil
	}
	o.Status = answer.StatusCode
	if o.Status/100 == 2 {
		o.State = journal.Done
		return o, answer.Body
	}
	o.Error = statusError(o.Status)
	d.retry(&o, dest, w, retryAfter(answer, ended))
	return o, answer.Body
}

// errPanic is a failure that is not the destination's.
var errPanic = errors.New("panic during the delivery")

// post sends the request. Whatever panics on the way is a failed attempt, not the end of a worker.
func (d *Deliverer) post(ctx context.Context, dest *destination, w *journal.Work) (answer *http.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.opt.Logger.Error("panic during a delivery", "destination", w.Destination,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return d.opt.Transport.RoundTrip(newRequest(ctx, dest, w))
}

// retry makes o a failure: due again as the schedule says, but not before the destination asked for,
// or dead when no attempt is left.
func (d *Deliverer) retry(o *journal.Outcome, dest *destination, w *journal.Work, atLeast time.Duration) {
	delay, ok := dest.schedule.Next(w.Tries, d.opt.Rand())
	if !ok {
		o.State = journal.Dead
		return
	}
	o.State, o.Due = journal.Failed, o.Started.Add(o.Duration+max(delay, atLeast))
}

// maxRetryAfter bounds what a destination can ask for.
const maxRetryAfter = 24 * time.Hour

// retryAfter is how long the answer asks to be left alone, where its status says that it is busy.
func retryAfter(answer *http.Response, now time.Time) time.Duration {
	if answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	value := answer.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, min(at.Sub(now), maxRetryAfter))
	}
	return 0
}

func statusError(status int) string {
	text := "status " + strconv.Itoa(status)
	if status/100 == 3 {
		text += ": redirects are not followed"
	}
	return text
}

// maxDrained is how much of an answer is read so that its connection can be used again. A longer one
// costs the connection.
const maxDrained = 16 << 10

func drain(body io.ReadCloser) {
	if body == nil {
		return
	}
	defer body.Close()
	if _, switched := body.(io.Writer); switched {
		return // the bare connection after a 101: the attempt's deadline does not end reads of it
	}
	_, _ = io.CopyN(io.Discard, body, maxDrained)
}

// report logs one attempt.
func (d *Deliverer) report(w *journal.Work, o journal.Outcome) {
	level, message := slog.LevelWarn, "delivery failed"
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

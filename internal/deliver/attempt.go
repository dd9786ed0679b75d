package deliver

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/retry"
	"github.com/hookonce/hookonce/internal/tracing"
)

// sender makes attempts.
type sender struct {
	opt      Options
	random   func() float64 // the jitter of a retry, in [0, 1)
	metrics  *metrics
	answered atomic.Pointer[relaying]
	workers  sync.WaitGroup // those who make attempts, and the reader of work
	// attempts is the context of all attempts: it ends when a shutdown has waited long enough.
	attempts context.Context
	abort    context.CancelFunc
}

// relaying are the sources whose senders wait for the answers to their events.
type relaying struct {
	sources map[string]time.Duration // see Options.Relayed
	rest    map[string]time.Time     // until when senders of a source may wait that came before a reload
}

// has reports whether a sender of the source may be waiting.
func (r *relaying) has(source string, now time.Time) bool {
	_, is := r.sources[source]
	return is || now.Before(r.rest[source])
}

// next is what follows with a reload. Who waits since before it, also for an attempt that has not begun, was promised the
// destination's answer.
func (r *relaying) next(sources map[string]time.Duration, now time.Time) *relaying {
	rest := map[string]time.Time{}
	for source, until := range r.rest {
		if now.Before(until) {
			rest[source] = until
		}
	}
	for source, wait := range r.sources {
		if until := now.Add(wait); until.After(rest[source]) {
			rest[source] = until
		}
	}
	return &relaying{sources, rest}
}

// wanted reports whether work has to be delivered, and ends what has not.
func (s *sender) wanted(dest *destination, w *journal.Work) bool {
	if !s.opt.Journal.Current(w.Held) {
		s.opt.Journal.Finish(journal.Outcome{Held: w.Held, State: journal.Pending, Due: s.opt.Now()})
		return false
	}
	if !w.Stale || dest.Stale == StaleDeliver {
		return true
	}
	s.metrics.stale.WithLabelValues(w.Source, w.Destination, string(dest.Stale)).Inc()
	if dest.Stale == StaleDrop && !w.Forced {
		s.drop(w)
		return false
	}
	return true
}

// drop ends a delivery without an attempt, and leaves a record that says so.
func (s *sender) drop(w *journal.Work) {
	const why = "not delivered: a newer version of the resource was"
	s.opt.Journal.Finish(journal.Outcome{Held: w.Held, State: journal.Done, Error: why, Started: s.opt.Now()})
	s.opt.Logger.Info("deliver: a stale event was dropped", "source", w.Source, "key", w.Key, "type", w.Type,
		"event", journal.IDText(w.EventID), "destination", w.Destination, "resource", w.Resource)
}

// attempt tries once. The answer is nil if there was none.
func (s *sender) attempt(ctx context.Context, cancel func(), t *turn) (journal.Outcome, *outgoing.Answer, retry.Judgement) {
	dest, w := t.dest, t.work
	o := journal.Outcome{Held: w.Held, Started: s.opt.Now()}
	relayed := s.answered.Load().has(w.Source, o.Started) // as it is now: a reload may change it meanwhile
	t.trace = s.opt.Tracer.Delivery(w, o.Started)
	response, err := s.post(ctx, dest, w, t.trace, o.Started)
	o.Duration = s.opt.Now().Sub(o.Started)
	t.trace.Answered(o.Started.Add(o.Duration))
	if err != nil {
		verdict := s.unanswered(&o, dest, w, err)
		return o, nil, verdict
	}
	if relayed && response.StatusCode != http.StatusSwitchingProtocols {
		return s.relayed(o, dest, w, response)
	}
	a := outgoing.NewAnswer(response, cancel)
	verdict := s.judge(&o, dest, w, response)
	o.Excerpt = a.Head()
	return o, a, verdict
}

// errPanic is a failure that is not the destination's.
var errPanic = error(&retry.Fault{Kind: retry.Unspecified, Text: "panic during the delivery", Ours: true})

// post sends the request. Whatever panics on the way is a failed attempt, not the end of a worker.
func (s *sender) post(ctx context.Context, dest *destination, w *journal.Work, trace *tracing.Delivery, now time.Time) (response *http.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.opt.Logger.Error("panic during a delivery", "destination", w.Destination,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	sent := dest.passed(w, now)
	s.resign(dest, w, sent)
	r, err := newRequest(ctx, dest, w, sent)
	if err != nil {
		return nil, err
	}
	trace.Send(r, now)
	return outgoing.Send(r, dest.transport.RoundTrip, func() { closeIdle(dest.transport) })
}

// report logs one attempt, and shows it to whoever looks on.
func (s *sender) report(w *journal.Work, o journal.Outcome) {
	if s.opt.Watcher != nil {
		s.opt.Watcher.Attempted(w, o)
	}
	level, message := slog.LevelWarn, "delivery failed"
	if o.Spared {
		level, message = slog.LevelDebug, "delivery failed while the destination is ill, which does not count as a try"
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
	if !s.opt.Logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("source", w.Source), slog.String("key", w.Key), slog.String("type", w.Type),
		slog.String("event", journal.IDText(w.EventID)), slog.String("destination", w.Destination),
		slog.Int64("attempt", w.Token), slog.Duration("took", o.Duration),
	}
	if o.Error != "" {
		attrs = append(attrs, slog.String("error", o.Error))
	}
	if o.State == journal.Failed {
		attrs = append(attrs, slog.Time("due", o.Due))
	}
	s.opt.Logger.LogAttrs(ctx, level, message, attrs...)
}

// judge makes o what the answer's status says, and says what it shows.
func (s *sender) judge(o *journal.Outcome, dest *destination, w *journal.Work, answer *http.Response) retry.Judgement {
	o.Status = answer.StatusCode
	return s.conclude(o, dest, w, retry.Judge(answer, dest.Permanent, o.Started.Add(o.Duration)))
}

// unanswered makes o the outcome of an attempt that got no answer, or not all of one that is wanted whole, whose status
// then means nothing.
func (s *sender) unanswered(o *journal.Outcome, dest *destination, w *journal.Work, err error) retry.Judgement {
	o.Status = 0
	if s.attempts.Err() != nil { // cancelled by us: nobody is to blame
		o.State, o.Due = journal.Pending, o.Started.Add(o.Duration)
		return retry.Judgement{Result: retry.Uncounted, Reason: "the gateway is being stopped"}
	}
	return s.conclude(o, dest, w, retry.JudgeError(err, dest.Timeout))
}

// conclude makes o what the verdict says. A failure is due again as the schedule says, but not before the
// destination asked for, or dead when no attempt is left or the next would come after the time to give up. One
// that itself began after that time, redriven or replayed, has its whole schedule.
func (s *sender) conclude(o *journal.Outcome, dest *destination, w *journal.Work, v retry.Judgement) retry.Judgement {
	o.Error, o.Kind = v.Reason, journal.ErrorKind(v.Kind)
	ended := o.Started.Add(o.Duration)
	switch v.Result {
	case retry.Done:
		o.State = journal.Done
		return v
	case retry.Dead:
		o.State = journal.Dead
		return v
	case retry.Uncounted:
		o.State, o.Error, o.Kind, o.Due = journal.Pending, "", "", v.Due(ended, 0)
		s.opt.Logger.Error("deliver: an attempt failed on our side; it does not count and is made again",
			"event", journal.IDText(w.EventID), "destination", w.Destination, "error", v.Reason, "due", o.Due)
		return v
	}
	delay, again := dest.Schedule.Delay(w.Tries, s.random())
	due := v.Due(ended, delay)
	if end := w.ReceivedAt.Add(dest.GiveUp); dest.GiveUp > 0 && !o.Started.After(end) && due.After(end) {
		again = false
	}
	if !again {
		o.State = journal.Dead
		return v
	}
	o.State, o.Due = journal.Failed, due
	return v
}

// relayed ends an attempt whose answer is for the sender. A success of which not all can be passed on is
// a failure: its sender would be told something else than it is told later.
func (s *sender) relayed(o journal.Outcome, dest *destination, w *journal.Work, response *http.Response) (journal.Outcome, *outgoing.Answer, retry.Judgement) {
	body, err := readReply(response.Body)
	o.Duration = s.opt.Now().Sub(o.Started)
	v := s.judge(&o, dest, w, response)
	switch {
	case err == nil:
		o.Response = &journal.Response{Status: o.Status, Header: replyHeader(response.Header), Body: body}
	case o.State == journal.Done:
		v = s.unanswered(&o, dest, w, err)
		if err == errTooLong {
			v.Signal = retry.Declined
		}
		return o, nil, v
	}
	o.Excerpt = body[:min(len(body), outgoing.MaxHead)]
	if v.Signal == retry.Declined && o.Status < 500 {
		v.Signal = retry.Success // it is the answer that the sender asked for
	}
	return o, nil, v
}

// resign has the provider's signature made anew where the destination wants that. What cannot be signed is delivered
// as the provider sent it.
func (s *sender) resign(dest *destination, w *journal.Work, req *hookonce.Request) {
	signer := dest.Signers[w.Source]
	if signer == nil {
		return
	}
	if err := signer.Sign(req, w.Vouched); err != nil {
		s.opt.Logger.Warn("deliver: the provider's signature could not be made anew; the event is delivered with the one it came with",
			"source", w.Source, "key", w.Key, "event", journal.IDText(w.EventID), "destination", w.Destination, "error", err)
	}
}

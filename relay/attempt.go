package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/lease"
	"github.com/hookonce/hookonce/internal/retry"
)

// Handler carries out an effect. An error means that it is tried again later: as the schedule says, not
// before the time of a [hookonce.RetryAfter], never after a [hookonce.Permanent]. A panic is an error.
//
// The context ends after the relay's timeout, when the lease is lost, and when the relay stops. Requests
// that are built with it and sent through [hookonce.Transport] have keys that are made of the effect's.
// A handler is called from several goroutines.
type Handler func(ctx context.Context, e hookonce.QueuedEffect) error

// worker carries out effects that were taken from a queue.
type worker struct {
	settings
	queue    hookonce.EffectQueue
	handlers map[string]Handler
	lost     *lostTakes
	attempts context.Context // of all handlers
}

var (
	errTimeout  = errors.New("relay: the handler took too long")
	errNotBegun = errors.New("relay: not begun, because the store took longer to hand the effect over than its lease lasts")
)

// carryOut makes one attempt at an effect that was taken after the time asked. It calls free if the handler
// of a suspect goes on although its context has ended.
func (w *worker) carryOut(e hookonce.QueuedEffect, asked time.Time, free func()) {
	if time.Since(asked) >= w.lease { // somebody else may have it, whom the token protects
		w.report(e, w.record(e, outcome{err: errNotBegun}))
		return
	}
	if e.Deaths >= w.deaths && !w.lost.excuse(e, w.now().Add(-excusable)) {
		w.report(e, w.record(e, outcome{err: deadly(e)}))
		return
	}
	ctx, cancel := context.WithTimeoutCause(w.attempts, w.timeout, errTimeout)
	defer cancel()
	held, release := w.keep(ctx, e, asked)
	if suspicious(e) {
		defer w.overdue(held, free)()
	}
	start := time.Now()
	err := errors.New("relay: the handler ended its goroutine")
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("relay: the handler panicked: %v", p)
			w.log.Error("relay: a handler panicked", "effect", e.ID, "name", e.Name, "panic", p, "stack", string(debug.Stack()))
		}
		err = because(held, err)
		release()
		w.report(e, w.record(e, outcome{err: err, took: time.Since(start)}))
	}()
	work := hookonce.Ref{Source: e.Source, Key: e.IdempotencyKey()}
	err = w.handlers[e.Name](hookonce.ContextWithRef(held, work), e)
}

// keep extends the lease, which the store granted after the time asked, until release is called. The context that
// it returns ends when somebody else has the effect or could have it.
func (w *worker) keep(ctx context.Context, e hookonce.QueuedEffect, asked time.Time) (held context.Context, release func()) {
	return lease.Lease{
		Of: fmt.Sprintf("effect %d, %s,", e.ID, e.Name), Length: w.lease, Asked: asked,
		Extend: func(ctx context.Context) error {
			_, err := w.queue.ExtendEffect(ctx, e, w.lease)
			return err
		},
		Gone: overtaken,
		Failed: func(ctx context.Context, err error) {
			w.log.WarnContext(ctx, "relay: a lease could not be extended; trying again", "effect", e.ID, "name", e.Name, "error", err)
		},
	}.Keep(ctx)
}

// because adds to a handler's error why its context ended, which says more than that it did.
func because(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

const (
	// recordTime bounds how long an outcome is offered to a store that fails. After it the effect is
	// repeated under the same key.
	recordTime = 10 * time.Second
	firstPause = 50 * time.Millisecond
	// returnTime is how long handlers may take to return after their contexts have ended, and their
	// outcomes to be recorded.
	returnTime = recordTime + 5*time.Second
)

// outcome is what became of an attempt.
type outcome struct {
	status string
	meant  string // what it was to be, where that could not be recorded
	err    error
	took   time.Duration
	due    time.Time // when it is tried again
}

// record decides what the outcome means for the effect, and stores it.
func (w *worker) record(e hookonce.QueuedEffect, o outcome) outcome {
	w.judge(e, &o)
	err := insist(func(ctx context.Context) error {
		if o.status == StatusDone {
			return w.queue.CompleteEffect(ctx, e)
		}
		return w.queue.FailEffect(ctx, e, hookonce.Failure{Err: o.err, Dead: o.status == StatusDead}, o.due)
	})
	switch {
	case err == nil:
		w.lost.forget(e)
	case overtaken(err):
		o.status, o.err = StatusStale, errors.Join(err, o.err)
	default:
		o.status, o.meant, o.err = StatusUnrecorded, o.status, errors.Join(err, o.err)
	}
	return o
}

// judge decides what comes after the attempt. One that did not begin, or was interrupted because
// the relay stops, is not the handler's failure, and never the last.
func (w *worker) judge(e hookonce.QueuedEffect, o *outcome) {
	now := w.now()
	v := verdict(o.err)
	switch {
	case v.Result == retry.Done:
		o.status = StatusDone
		return
	case v.Result == retry.Dead:
		o.status = StatusDead
		return
	case w.attempts.Err() != nil, errors.Is(o.err, errNotBegun):
		o.status, o.due = StatusHandedBack, v.Due(now, 0)
		return
	}
	delay, again := w.schedule(e.Tries)
	if !again {
		o.status = StatusDead
		return
	}
	o.status, o.due = StatusFailed, v.Due(now, delay)
}

// verdict is what a handler's error means.
func verdict(err error) retry.Judgement {
	after, _ := hookonce.RetryDelay(err)
	switch {
	case err == nil:
		return retry.Judgement{Result: retry.Done}
	case hookonce.IsPermanent(err):
		return retry.Judgement{Result: retry.Dead}
	}
	return retry.Judgement{After: after}
}

// insist stores an outcome. A store that fails may have stored it: asking again is harmless, because the
// token makes it idempotent.
func insist(store func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordTime)
	defer cancel()
	for pause := firstPause; ; pause *= 2 {
		err := store(ctx)
		if err == nil || overtaken(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// overtaken reports whether the effect is somebody else's by now, or was purged.
func overtaken(err error) bool {
	return errors.Is(err, hookonce.ErrStale) || errors.Is(err, hookonce.ErrNotFound)
}

// levels of the log. What went as it should is for those who look closely.
var levels = map[string]slog.Level{
	StatusDone:       slog.LevelDebug,
	StatusFailed:     slog.LevelWarn,
	StatusDead:       slog.LevelError,
	StatusHandedBack: slog.LevelInfo,
	StatusStale:      slog.LevelWarn,
	StatusUnrecorded: slog.LevelError,
}

// tell calls the observer, whose panic changes nothing: what it is told is on record.
func (w *worker) tell(o Observation) {
	defer func() {
		if p := recover(); p != nil {
			w.log.ErrorContext(w.attempts, "the observer panicked", "name", o.Name, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	w.observe(w.attempts, o)
}

// report logs and observes an attempt.
func (w *worker) report(e hookonce.QueuedEffect, o outcome) {
	w.tell(Observation{Name: e.Name, Status: o.status, Tries: e.Tries, Deaths: e.Deaths, Err: o.err, Duration: o.took})
	level := levels[o.status]
	if !w.log.Enabled(w.attempts, level) {
		return
	}
	attrs := []slog.Attr{
		slog.Int64("effect", e.ID), slog.String("name", e.Name), slog.String("source", e.Source), slog.String("key", e.Key),
		slog.String("step", e.Step), slog.Int64("attempt", e.Token), slog.Int("deaths", e.Deaths), slog.Duration("took", o.took),
	}
	if o.meant != "" {
		attrs = append(attrs, slog.String("meant", o.meant))
	}
	if o.err != nil {
		attrs = append(attrs, slog.String("error", o.err.Error()))
	}
	if !o.due.IsZero() {
		attrs = append(attrs, slog.Time("due", o.due))
	}
	w.log.LogAttrs(w.attempts, level, "effect "+o.status, attrs...)
}

// suspected is true while a suspect runs in this process, or is being taken. It belongs to the process and not
// to a relay, because that is what dies: of two suspects at once nobody could tell whose death it was.
var suspected atomic.Bool

// suspects returns how many suspects a relay may take now, and what makes room for others afterwards, which
// may be called more than once.
func suspects() (n int, release func()) {
	if !suspected.CompareAndSwap(false, true) {
		return 0, func() {}
	}
	return 1, sync.OnceFunc(func() { suspected.Store(false) })
}

// overdue calls free when the attempt with that context goes on for too long after the end of it. A handler that
// heeds no context would otherwise keep every other suspect waiting until it returns, which may be never. The
// function that it returns ends the watch.
func (w *worker) overdue(ctx context.Context, free func()) (returned func()) {
	over := make(chan struct{})
	go func() {
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		if !within(over, min(w.lease, returnTime)) {
			free()
		}
	}()
	return func() { close(over) }
}

// excusable is how long a lost take may be among the deaths of an effect: suspects wait for their turns.
const excusable = 24 * time.Hour

// lostTakes is what a relay knows of takes that failed. One may have taken effects all the same,
// which nobody began then: their leases run out, and each counts as a death.
type lostTakes struct {
	mu      sync.Mutex
	last    time.Time      // zero: there was none
	excused map[int64]bool // effects, until it is known what came of the attempt
}

// add records that a take has failed, by now.
func (l *lostTakes) add(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = now
}

// forget records that it is known what came of an attempt at an effect.
func (l *lostTakes) forget(e hookonce.QueuedEffect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.excused, e.ID)
}

// excuse reports whether e, which has died as often as it may, may be begun once more, because lost
// takes may have been among its deaths: not what was enqueued later, nor by a take before since, which
// the deaths do not go back to. One of which it is never known what came of it is excused once.
func (l *lostTakes) excuse(e hookonce.QueuedEffect, since time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.Before(since) || e.EnqueuedAt.After(l.last) || l.excused[e.ID] {
		return false
	}
	l.excused[e.ID] = true
	return true
}

// suspicious reports whether a process died, or a lease was lost, at the last attempt at e.
func suspicious(e hookonce.QueuedEffect) bool { return e.Deaths > 0 }

// deadly says why an effect is given up that never got as far as an outcome.
func deadly(e hookonce.QueuedEffect) error {
	return hookonce.Permanent(fmt.Errorf("relay: given up without another attempt: %d in a row left no outcome, all but the first as the only suspect of their process; "+
		"the handler ends the process (exit, fatal error, out of memory) or does not heed its context, or the store was away for longer than a lease; "+
		"look at what the processes said last, mend it, and redrive effect %d", e.Deaths, e.ID))
}

func within(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

package relay

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/hookonce/hookonce"
)

// outcome is what became of an attempt.
type outcome struct {
	status string
	err    error
	took   time.Duration
	due    time.Time // when it is tried again
}

// record decides what the outcome means for the effect, and stores it.
func (r *run) record(e hookonce.QueuedEffect, o outcome) outcome {
	r.judge(e, &o)
	err := insist(func(ctx context.Context) error {
		if o.status == StatusDone {
			return r.queue.CompleteEffect(ctx, e)
		}
		return r.queue.FailEffect(ctx, e, hookonce.Failure{Err: o.err, Dead: o.status == StatusDead}, o.due)
	})
	switch {
	case err == nil:
	case overtaken(err):
		o.status, o.err = StatusStale, errors.Join(err, o.err)
	default:
		o.status, o.err = StatusUnrecorded, errors.Join(err, o.err)
	}
	return o
}

// judge decides what comes after the attempt. One that was interrupted because the relay stops is not the
// handler's failure, and never the last.
func (r *run) judge(e hookonce.QueuedEffect, o *outcome) {
	now := r.now()
	after, _ := hookonce.RetryDelay(o.err)
	switch {
	case o.err == nil:
		o.status = StatusDone
		return
	case hookonce.IsPermanent(o.err):
		o.status = StatusDead
		return
	case r.attempts.Err() != nil:
		o.status, o.due = StatusHandedBack, now.Add(max(after, 0))
		return
	}
	delay, again := r.schedule(e.Tries)
	if !again {
		o.status = StatusDead
		return
	}
	o.status, o.due = StatusFailed, now.Add(max(delay, after))
}

const (
	// recordTime bounds how long an outcome is offered to a store that fails. After it the effect is
	// repeated under the same key.
	recordTime = 10 * time.Second
	firstPause = 50 * time.Millisecond
)

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
func (r *run) tell(o Observation) {
	defer func() {
		if p := recover(); p != nil {
			r.log.ErrorContext(r.attempts, "the observer panicked", "name", o.Name, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	r.observe(r.attempts, o)
}

// report logs and observes an attempt.
func (r *run) report(e hookonce.QueuedEffect, o outcome) {
	r.tell(Observation{Name: e.Name, Status: o.status, Tries: e.Tries, Deaths: e.Deaths, Err: o.err, Duration: o.took})
	level := levels[o.status]
	if !r.log.Enabled(r.attempts, level) {
		return
	}
	attrs := []slog.Attr{
		slog.Int64("effect", e.ID), slog.String("name", e.Name), slog.String("source", e.Source), slog.String("key", e.Key),
		slog.String("step", e.Step), slog.Int64("attempt", e.Token), slog.Int("deaths", e.Deaths), slog.Duration("took", o.took),
	}
	if o.err != nil {
		attrs = append(attrs, slog.String("error", o.err.Error()))
	}
	if !o.due.IsZero() {
		attrs = append(attrs, slog.Time("due", o.due))
	}
	r.log.LogAttrs(r.attempts, level, "effect "+o.status, attrs...)
}

package relay

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/hookonce/hookonce"
)

var (
	errLost    = errors.New("relay: the lease was lost")
	errTimeout = errors.New("relay: the handler took too long")
)

// carryOut makes one attempt at an effect that was taken after the time asked. It calls free if the handler
// of a suspect goes on although its context has ended.
func (r *run) carryOut(e hookonce.QueuedEffect, asked time.Time, free func()) {
	defer func() { <-r.slots }()
	if time.Since(asked) >= r.lease {
		r.report(e, outcome{status: StatusStale, err: fmt.Errorf("%w before the handler began", errLost)})
		return
	}
	if e.Deaths >= r.deaths {
		r.report(e, r.record(e, outcome{err: deadly(e)}))
		return
	}
	ctx, cancel := context.WithTimeoutCause(r.attempts, r.timeout, errTimeout)
	defer cancel()
	ctx, lose := context.WithCancelCause(ctx)
	if suspicious(e) {
		defer r.overdue(ctx, free)()
	}
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		r.keep(ctx, e, asked, lose)
	}()
	start := time.Now()
	err := errors.New("relay: the handler ended its goroutine")
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("relay: the handler panicked: %v", p)
			r.log.Error("relay: a handler panicked", "effect", e.ID, "name", e.Name, "panic", p, "stack", string(debug.Stack()))
		}
		err = because(ctx, err)
		cancel()
		<-kept
		r.report(e, r.record(e, outcome{err: err, took: time.Since(start)}))
	}()
	work := hookonce.Ref{Source: e.Source, Key: e.IdempotencyKey()}
	err = r.handlers[e.Name](hookonce.ContextWithRef(ctx, work), e)
}

// because adds to a handler's error why its context ended, which says more than that it did.
func because(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// keep extends the lease, which the store granted after the time held, until ctx ends. It ends the attempt
// when somebody else has the effect or could have it.
func (r *run) keep(ctx context.Context, e hookonce.QueuedEffect, held time.Time, lose context.CancelCauseFunc) {
	tick := time.NewTicker(r.lease / 3)
	defer tick.Stop()
	end := time.NewTimer(r.lease - time.Since(held))
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			lose(errLost)
			return
		case <-tick.C:
		}
		asked := time.Now()
		err := r.extend(ctx, e, held)
		switch {
		case err == nil:
			held = asked
			end.Reset(r.lease - time.Since(held))
		case errors.Is(err, hookonce.ErrStale), errors.Is(err, hookonce.ErrNotFound):
			lose(errLost)
			return
		case ctx.Err() == nil:
			r.log.WarnContext(ctx, "relay: a lease could not be extended; trying again", "effect", e.ID, "name", e.Name, "error", err)
		}
	}
}

// extend extends the lease once. A store that does not answer is asked again, and at the end of the lease no
// more.
func (r *run) extend(ctx context.Context, e hookonce.QueuedEffect, held time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, min(r.lease/3, r.lease-time.Since(held)))
	defer cancel()
	_, err := r.queue.ExtendEffect(ctx, e, r.lease)
	return err
}

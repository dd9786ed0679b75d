// Package lease keeps leases: it extends one while the work under it goes on, and ends the work when the lease is
// lost.
package lease

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// MinLength is the shortest lease that can be kept.
const MinLength = 10 * time.Millisecond

// ErrOver says that there was no time, or no way, to extend a lease.
var ErrOver = errors.New("it ran out before it was extended")

// LostError says that the lease of something was lost, and why: its end came ([ErrOver], or what the last extension
// failed with), or another worker has it.
type LostError struct {
	Of  string
	Err error
}

// Error names what the lease was of.
func (e *LostError) Error() string { return fmt.Sprintf("the lease of %s was lost: %v", e.Of, e.Err) }

// Unwrap returns why it was lost.
func (e *LostError) Unwrap() error { return e.Err }

// Lease is a lease that was granted.
type Lease struct {
	// Of names what is leased, for errors.
	Of string
	// Length is what was asked for, at least [MinLength].
	Length time.Duration
	// Asked is the time before it was asked for: no earlier than it plus Length has another worker a right to the work.
	Asked time.Time
	// Extend asks for another Length from now on.
	Extend func(ctx context.Context) error
	// Gone reports whether an error of Extend says that another worker has the lease. Extend is called again after
	// other errors, as long as the lease lasts.
	Gone func(err error) bool
	// Failed is told of such other errors. It may be nil.
	Failed func(ctx context.Context, err error)
}

// Keep extends the lease at each third of its length since it was asked for, until ctx ends or release is called, which
// waits for that. The context that it returns ends when the lease is lost: at once when another worker has it, and
// otherwise when it has run out because nothing could extend it. [context.Cause] is a [*LostError] then. Release must be called.
func (l Lease) Keep(ctx context.Context) (held context.Context, release func()) {
	held, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.extend(held, func(err error) { cancel(&LostError{l.Of, err}) })
	}()
	return held, func() {
		cancel(context.Canceled)
		<-ended
	}
}

// extend returns when ctx has ended, or the lease is lost, and lost was told why. That it ran out is told in time also while
// Extend does not heed its context, as clients of Redis do unless they are set to.
func (l Lease) extend(ctx context.Context, lost func(error)) {
	third := max(l.Length/3, time.Millisecond)
	beat := time.NewTimer(time.Until(l.Asked.Add(third))) // at once, of a lease that was granted late
	defer beat.Stop()
	end := l.Asked.Add(l.Length)
	var failed atomic.Pointer[error]
	failed.Store(&ErrOver)
	over := time.AfterFunc(time.Until(end), func() { lost(*failed.Load()) })
	defer over.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
		asked := time.Now()
		if !asked.Before(end) {
			lost(*failed.Load())
			return
		}
		beat.Reset(third)
		asking, cancel := context.WithTimeout(ctx, min(third, end.Sub(asked)))
		err := l.Extend(asking)
		cancel()
		switch {
		case err == nil:
			end = asked.Add(l.Length)
			failed.Store(&ErrOver)
			over.Reset(time.Until(end))
		case l.Gone(err):
			lost(err)
			return
		default:
			failed.Store(&err)
			beat.Reset(min(third, max(time.Until(end)/3, third/10))) // of a lease granted late little is left
			if l.Failed != nil && ctx.Err() == nil {
				l.Failed(ctx, err)
			}
		}
	}
}

package hookonce

import (
	"context"
	"sync"
	"time"
)

// latches lets the copies of an event or request that arrive in one process while the first is being
// handled wait in memory: no connection, no transaction, no lock in the database. It only ever makes
// callers wait; who owns the work is decided by the store. A first copy that does not come back is given up,
// or its key would be busy in this process for ever, also after another one has done the work.
type latches[T any] struct {
	mu   sync.Mutex
	open map[Ref]*latch[T]
}

// latch is closed when the first copy's outcome is known. A waiter may trust a final outcome, which
// is durable by then.
type latch[T any] struct {
	done    chan struct{}
	until   time.Time // when it is given up
	outcome T
}

// latchGrace is how long a first copy may take beyond its handler's time: to claim, and to record what came of it.
const latchGrace = recordTimeout

// enter returns the latch under ref and whether the caller is the first, who must call leave, and is given up if it
// has not done so when it had its time to wait for others and to work, and latchGrace. To give up one that is
// still at work harms nobody: the store says who is busy.
func (l *latches[T]) enter(ref Ref, wait, work time.Duration) (*latch[T], bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if t, ok := l.open[ref]; ok && now.Before(t.until) {
		return t, false
	}
	if l.open == nil {
		l.open = make(map[Ref]*latch[T])
	}
	t := &latch[T]{done: make(chan struct{}), until: now.Add(wait).Add(work).Add(latchGrace)}
	l.open[ref] = t
	return t, true
}

// leave publishes the outcome and lets the waiters go. Later copies start anew.
func (l *latches[T]) leave(ref Ref, t *latch[T], o T) {
	t.outcome = o
	l.mu.Lock()
	if l.open[ref] == t {
		delete(l.open, ref)
	}
	l.mu.Unlock()
	close(t.done)
}

// wait returns the first copy's outcome, or false when ctx ended before it was known.
func (t *latch[T]) wait(ctx context.Context) (T, bool) {
	select {
	case <-t.done:
		return t.outcome, true
	case <-ctx.Done():
		var unknown T
		return unknown, false
	}
}

package hookonce

import (
	"context"
	"sync"
)

// latches lets the copies of an event or request that arrive in one process while the first is being
// handled wait in memory: no connection, no transaction, no lock in the database. It only ever makes
// callers wait; who owns the work is decided by the store.
type latches[T any] struct {
	mu   sync.Mutex
	open map[Ref]*latch[T]
}

// latch is closed when the first copy's outcome is known. A waiter may trust a final outcome, which
// is durable by then.
type latch[T any] struct {
	done    chan struct{}
	outcome T
}

// enter returns the latch under ref and whether the caller is the first, who must call leave.
func (l *latches[T]) enter(ref Ref) (*latch[T], bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t, ok := l.open[ref]; ok {
		return t, false
	}
	if l.open == nil {
		l.open = make(map[Ref]*latch[T])
	}
	t := &latch[T]{done: make(chan struct{})}
	l.open[ref] = t
	return t, true
}

// leave publishes the outcome and lets the waiters go. Later copies start anew.
func (l *latches[T]) leave(ref Ref, t *latch[T], o T) {
	t.outcome = o
	l.mu.Lock()
	delete(l.open, ref)
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

// Package singleflight has the callers of one key that come to one process while the first of them is at work wait for
// its outcome in memory: with no connection, no transaction and no lock in a database. It only ever makes callers
// wait. Who owns the work is decided elsewhere, and each caller may stop waiting: a singleflight that
// decides nothing.
package singleflight

import (
	"context"
	"sync"
	"time"
)

// Group has the calls that are under way, by their key. The zero value is ready. It is safe for concurrent use.
type Group[K comparable, T any] struct {
	mu    sync.Mutex
	calls map[K]*Call[T]
}

// Call is the work of the first caller under a key.
type Call[T any] struct {
	done    chan struct{} // closed when the outcome is known
	until   time.Time     // when it is given up
	outcome T
}

// Join returns the call under key, and whether the caller is the first and does the work: then it must call [Group.Finish].
// A first caller that has not come back after its life is given up, or the key would be busy in this process for ever,
// also after another process has done the work: the next caller is the first again. To give up one that is
// still at work harms nobody.
func (g *Group[K, T]) Join(key K, life time.Duration) (c *Call[T], first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if c, ok := g.calls[key]; ok && now.Before(c.until) {
		return c, false
	}
	if g.calls == nil {
		g.calls = make(map[K]*Call[T])
	}
	c = &Call[T]{done: make(chan struct{}), until: now.Add(life)}
	g.calls[key] = c
	return c, true
}

// Finish tells those who wait for c, the first call under key, what came of it. Callers that come later start anew.
func (g *Group[K, T]) Finish(key K, c *Call[T], outcome T) {
	c.outcome = outcome
	g.mu.Lock()
	if g.calls[key] == c { // it was not given up
		delete(g.calls, key)
	}
	g.mu.Unlock()
	close(c.done)
}

// Wait returns the outcome of the first call, or false when ctx ended before it was known.
func (c *Call[T]) Wait(ctx context.Context) (outcome T, known bool) {
	select {
	case <-c.done:
		return c.outcome, true
	case <-ctx.Done():
		return outcome, false
	}
}

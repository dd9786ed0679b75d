package ingest

import (
	"context"
	"slices"
	"sync"
)

// turns say which of the large batches goes on: a few at a time, and of each source one. So what has been built of them is
// bounded, and one source is never in the way of another. The source that went longest ago comes first, and among its batches
// the one that has the least left: a small one does not wait for all of a large one.
type turns struct {
	mu      sync.Mutex
	size    parts
	used    int
	count   int64 // of turns that were given
	waiting []*turn
}

// lane is what a source has of the turns. The mutex of turns guards it.
type lane struct {
	*turns
	busy bool
	last int64 // the number of its last turn
}

// turn is that of one batch, which it has or waits for. It is used by one goroutine.
type turn struct {
	of    *lane
	left  int64 // of the batch, in bytes
	has   bool
	given chan struct{}
}

// await waits until it is the batch's turn, again if it was before, and returns an error if ctx ends first. Left is how much of
// the batch is still to come.
func (t *turn) await(ctx context.Context, left int64) error {
	s := t.of.turns
	t.left, t.given = left, make(chan struct{})
	s.mu.Lock()
	s.waiting = append(s.waiting, t)
	s.release(t)
	s.mu.Unlock()
	select {
	case <-t.given:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, t); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return context.Cause(ctx)
	}
	return nil // it was given at the same moment
}

// end gives the turn back, if the batch has it.
func (t *turn) end() {
	s := t.of.turns
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(t)
}

// release takes a turn back, if it was given, and gives those that are free. The caller holds the mutex.
func (s *turns) release(t *turn) {
	if t.has {
		t.has, t.of.busy = false, false
		s.used--
	}
	s.next()
}

// fit sets how large parts are and how many there may be at once. Turns that were given stay given.
func (s *turns) fit(size parts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = size
	s.next()
}

// parts says how large parts are.
func (s *turns) parts() parts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// next gives the turns that are free. The caller holds the mutex.
func (s *turns) next() {
	for s.used < s.size.most {
		best := -1
		for i, t := range s.waiting {
			if !t.of.busy && (best < 0 || t.before(s.waiting[best])) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		t := s.waiting[best]
		s.waiting = slices.Delete(s.waiting, best, best+1)
		s.used++
		s.count++
		t.has, t.of.busy, t.of.last = true, true, s.count
		close(t.given)
	}
}

// before reports whether t comes to its turn before another one.
func (t *turn) before(other *turn) bool {
	if t.of != other.of {
		return t.of.last < other.of.last
	}
	return t.left < other.left
}

package ingest

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A request of many events is stored part after part, each in a commit of its own. Only the part that is in the
// queue is in memory, beside the body of the request.
const (
	// partEvents and partBytes are the most that a part has. It is 1/queueParts of the journal's queue, if that is less. Its
	// last event may go beyond the bytes, as far as there is room in the queue for it.
	partEvents = 256
	partBytes  = 1 << 20
	queueParts = 32
	// factsRoom is more than the facts of most events take, in bytes.
	factsRoom = 1 << 10
)

// parts says how large the parts are.
type parts struct {
	events int
	bytes  int64
}

func partsOf(o Options) parts {
	return parts{
		events: max(1, min(partEvents, o.MaxQueued/queueParts)),
		bytes:  max(1, min(partBytes, o.MaxQueuedBytes/queueParts)),
	}
}

// turns say which of the large batches goes on. One has its turn at a time, for one part, and when it is over nobody has it
// for half as long as it took: a third of the store's time is left to requests of a few events, which wait behind one part at most.
// The source that went longest ago comes first, and among its batches the one that has the least left, so that a small one does
// not wait for all of a large one.
type turns struct {
	mu      sync.Mutex
	size    parts
	taken   bool  // somebody has the turn, or it rests
	count   int64 // of turns that were given
	waiting []*turn
}

// sourceTurns is what a source has of the turns. The mutex of turns guards it.
type sourceTurns struct {
	*turns
	last int64 // the number of its last turn
}

// turn is that of one batch, which it has or waits for. It is used by one goroutine.
type turn struct {
	of    *sourceTurns
	left  int64 // of the batch, in bytes
	has   bool
	since time.Time
	given chan struct{}
}

// await waits until it is the batch's turn, again if it was before, and returns an error if ctx ends first. Left is how much of
// the batch is still to come.
func (t *turn) await(ctx context.Context, left int64) error {
	s := t.of.turns
	s.mu.Lock()
	s.release(t)
	t.left, t.given = left, make(chan struct{})
	s.waiting = append(s.waiting, t)
	s.next()
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
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.release(t)
}

// release takes a turn back, if it was given, and lets it rest. The caller holds the mutex.
func (s *turns) release(t *turn) {
	if !t.has {
		return
	}
	t.has = false
	time.AfterFunc(time.Since(t.since)/2, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken = false
		s.next()
	})
}

// next gives the turn, if it can be had and somebody waits. The caller holds the mutex.
func (s *turns) next() {
	if s.taken || len(s.waiting) == 0 {
		return
	}
	best := 0
	for i, t := range s.waiting {
		if t.before(s.waiting[best]) {
			best = i
		}
	}
	t := s.waiting[best]
	s.waiting = slices.Delete(s.waiting, best, best+1)
	s.count++
	s.taken, t.has, t.since, t.of.last = true, true, time.Now(), s.count
	close(t.given)
}

// before reports whether t comes to its turn before another one.
func (t *turn) before(other *turn) bool {
	if t.of != other.of {
		return t.of.last < other.of.last
	}
	return t.left < other.left
}

// fit sets how large parts are.
func (s *turns) fit(size parts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = size
}

// parts says how large parts are.
func (s *turns) parts() parts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

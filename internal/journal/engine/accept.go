package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// Accept records the entries of one request in one transaction and returns, after the commit, one
// result per entry in order. Nothing may be acknowledged unless err is nil and the entry's Result.Err
// is nil.
//
// Entries are owned by the journal from the call on: their contents must not change any more, because
// a fresh event's header and body go on to [Engine.Work] without being copied. Accept sets ID, Hold and
// Ordered itself. Safe for concurrent use.
//
// Errors, all of them to be answered with a retryable 503: [journal.ErrFull], [journal.ErrClosed], [journal.ErrUnavailable]
// around what the store said, and [hookonce.ErrUnknownOutcome] when ctx ended first. With the last
// two, entries may be stored all the same; the sender's retry reads the truth. Work that is queued
// does not depend on ctx.
func (j *Engine) Accept(ctx context.Context, entries []*journal.Event) ([]journal.Result, error) {
	r := j.requests.Get().(*request)
	r.reset(len(entries))
	for i, e := range entries {
		if res, ok := j.done.lookup(e); ok {
			r.results[i] = res
			continue
		}
		res, ok, err := j.detours.lookup(e)
		if err != nil {
			j.recycle(r)
			return nil, err
		}
		if ok {
			r.results[i] = res
			continue
		}
		r.slots = append(r.slots, slot{entry: e, request: r, index: i})
	}
	j.metrics.cacheHits.Add(float64(len(entries) - len(r.slots)))
	if len(r.slots) == 0 {
		results := j.recycle(r)
		j.note(entries, results)
		return results, nil
	}
	if err := j.queue.add(r); err != nil {
		j.recycle(r)
		return nil, err
	}
	select {
	case <-r.settled:
		err := r.err
		results := j.recycle(r)
		if err != nil {
			return nil, err
		}
		j.note(entries, results)
		return results, nil
	case <-ctx.Done():
		// The writer still owns r; it is left to the garbage collector.
		return nil, fmt.Errorf("journal: waiting for the commit: %w (%w)", hookonce.ErrUnknownOutcome, context.Cause(ctx))
	}
}

// request is one call of Accept on its way through the queue.
type request struct {
	slots   []slot  // the entries that need the store or a twin
	lead    []*slot // those of them that go to the store
	bytes   int64
	results []journal.Result
	settled chan struct{} // receives once when no slot is left

	mu   sync.Mutex
	left int
	err  error
}

// slot is one entry of a request. Copies of it that arrive before its commit follow it.
type slot struct {
	entry     *journal.Event
	request   *request
	index     int
	followers *slot // the first of a list linked through next
	next      *slot
}

func newRequest() any { return &request{settled: make(chan struct{}, 1)} }

// reset makes r ready for n entries. The slots must not move once they are queued, so they get their
// room here.
func (r *request) reset(n int) {
	if cap(r.slots) < n {
		r.slots = make([]slot, 0, n)
	}
	r.results = make([]journal.Result, n)
}

// recycle gives r back for reuse and returns its results.
func (j *Engine) recycle(r *request) []journal.Result {
	results := r.results
	clear(r.slots)
	clear(r.lead)
	r.slots, r.lead, r.results, r.bytes, r.left, r.err = r.slots[:0], r.lead[:0], nil, 0, 0, nil
	j.requests.Put(r)
	return results
}

// settle answers one slot and wakes the caller when it was the last. The slot must not be touched
// afterwards.
func (s *slot) settle(res journal.Result, err error) {
	r := s.request
	r.mu.Lock()
	r.results[s.index] = res
	if err != nil {
		r.err = err
	}
	r.left--
	last := r.left == 0
	r.mu.Unlock()
	if last {
		r.settled <- struct{}{}
	}
}

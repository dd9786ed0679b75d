package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/bypass"
)

// acceptor answers for events from what is known here, and queues the others for the writers.
type acceptor struct {
	*core
	queue    *queue
	done     *doneCache
	bypass   *bypass.Bypass
	receipts *receipts
	requests sync.Pool // of *request
}

// accept is [Engine.Accept].
func (a *acceptor) accept(ctx context.Context, events []*journal.Event) ([]journal.Result, error) {
	r := a.requests.Get().(*request)
	r.reset(len(events))
	for i, e := range events {
		if res, ok := a.done.lookup(e); ok {
			r.results[i] = res
			continue
		}
		res, ok, err := a.bypass.Lookup(e)
		if err != nil {
			a.recycle(r)
			return nil, err
		}
		if ok {
			r.results[i] = res
			continue
		}
		r.slots = append(r.slots, slot{event: e, request: r, index: i})
	}
	a.metrics.cacheHits.Add(float64(len(events) - len(r.slots)))
	if len(r.slots) == 0 {
		results := a.recycle(r)
		a.receipts.note(events, results)
		return results, nil
	}
	if err := a.queue.add(r); err != nil {
		a.recycle(r)
		return nil, err
	}
	select {
	case <-r.settled:
		err := r.err
		results := a.recycle(r)
		if err != nil {
			return nil, err
		}
		a.receipts.note(events, results)
		return results, nil
	case <-ctx.Done():
		a.queue.abandon(r)
		// The writer may still own r; it is left to the garbage collector.
		return nil, fmt.Errorf("journal: waiting for the commit: %w (%w)", hookonce.ErrUnknownOutcome, context.Cause(ctx))
	}
}

// recycle gives r back for reuse and returns its results.
func (a *acceptor) recycle(r *request) []journal.Result {
	results := r.results
	clear(r.slots)
	clear(r.lead)
	r.slots, r.lead, r.results, r.bytes, r.left, r.err = r.slots[:0], r.lead[:0], nil, 0, 0, nil
	a.requests.Put(r)
	return results
}

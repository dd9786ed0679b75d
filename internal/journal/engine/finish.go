package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Finish reports what became of a piece of work. Every work received from [Engine.Work] must be
// finished exactly once; one that was not begun, or whose lease is not current any more, with Pending.
//
// Finish never blocks and loses nothing: the outcome is recorded together with others, and again
// until the store took it or the token turned out not to be current. Safe for concurrent use.
func (j *Engine) Finish(o journal.Outcome) {
	if !j.held.finish(o) {
		j.metrics.stale.Inc()
		j.opt.Logger.Warn("journal: an outcome for work that is not held was ignored",
			"event", o.EventID, "destination", o.Destination, "token", o.Token, "state", o.State)
	}
}

// finish queues the outcome of a held delivery for recording. It reports false when the delivery was
// never held or is finished.
func (h *holds) finish(o journal.Outcome) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	it := h.items[o.Held]
	if it == nil || it.Held != o.Held || it.hasOutcome() {
		return false
	}
	it.outcome = o
	h.add(it.share, 0, o.Response.Size())
	h.queue(it)
	return true
}

// queue appends reported items and wakes the finisher. The caller holds the mutex.
func (h *holds) queue(items ...*item) {
	h.reported = append(h.reported, items...)
	select {
	case h.finished <- struct{}{}:
	default:
	}
}

// next appends at most limit reported items, oldest first, to items, and their outcomes under the
// current tokens to outcomes.
func (h *holds) next(items []*item, outcomes []journal.Outcome, limit int) ([]*item, []journal.Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.batch(limit)
	items = append(items, h.reported[:n]...)
	left := copy(h.reported, h.reported[n:])
	clear(h.reported[left:])
	h.reported = h.reported[:left]
	for _, it := range items {
		o := it.outcome
		o.Token = it.token
		o.Resource, o.Rank = it.lane()
		outcomes = append(outcomes, o)
	}
	return items, outcomes
}

// maxReplies bounds the replies that are recorded in one transaction, in bytes. The last may go beyond it.
const maxReplies = 4 << 20

// batch returns how many reported items go into one transaction. The caller holds the mutex.
func (h *holds) batch(limit int) (n int) {
	var replies int64
	for n < min(limit, len(h.reported)) && replies < maxReplies {
		replies += h.reported[n].outcome.Response.Size()
		n++
	}
	return n
}

// lane returns what the store needs to know about the resource of a finished delivery. One that was held
// when it was accepted is neither in a lane nor compared.
func (it *item) lane() (resource string, rank int64) {
	if it.event != nil || it.Resource == "" {
		return "", 0
	}
	if it.share.compares(it.Resource, it.Rank) {
		rank = it.Rank
	}
	return it.Resource, rank
}

// putBack queues items whose outcomes could not be recorded, behind those that wait: one that the
// store cannot take does not hold up the others.
func (h *holds) putBack(items []*item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, it := range items {
		it.retried = true
	}
	h.queue(items...)
}

// conclude drops an item whose outcome was answered by the store. It returns whether the outcome came too
// late. One that failed before and does not apply now
// may be either late or recorded the first time; it counts for neither.
//
// finished is called with the event when all of it is done now, before the item is dropped: what is done is
// held or remembered at any moment.
func (h *holds) conclude(it *item, o journal.Outcome, applied bool, finished func(*heldEvent)) (late bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !applied && it.token != o.Token {
		h.queue(it) // adopted meanwhile: record it under the new token
		return false
	}
	if applied && o.State == journal.Done && it.event != nil {
		if it.event.open--; it.event.open == 0 {
			finished(it.event)
		}
	}
	h.drop(it)
	return !applied && !it.retried
}

const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 500 * time.Millisecond // after an outage, be there before others take the work over
)

// finisher records outcomes, batch after batch. Its slices are reused.
type finisher struct {
	*Engine
	items    []*item
	outcomes []journal.Outcome
	epoch    epoch // of the record
}

// run records outcomes until the journal's context ends. After a failure it tries smaller batches,
// later, so that an outage costs little and one bad outcome is soon alone.
func (f *finisher) run() {
	limit, backoff := f.opt.MaxBatch, minBackoff
	for {
		f.items, f.outcomes = f.held.next(f.items[:0], f.outcomes[:0], limit)
		if len(f.items) == 0 {
			select {
			case <-f.held.finished:
				continue
			case <-f.ctx.Done():
				return
			}
		}
		if f.record() {
			limit, backoff = min(limit*2, f.opt.MaxBatch), minBackoff
			continue
		}
		f.held.putBack(f.items)
		if !f.pause(backoff) {
			return
		}
		limit, backoff = max(1, limit/2), min(backoff*2, maxBackoff)
	}
}

// record commits one batch of outcomes and reports whether the store answered.
func (f *finisher) record() bool {
	var applied []bool
	f.epoch = f.done.now()
	err := f.call(opFinish, f.opt.Timeout, len(f.outcomes), func(ctx context.Context) (err error) {
		applied, err = f.store.Finish(ctx, f.outcomes)
		if err == nil && len(applied) != len(f.outcomes) {
			err = fmt.Errorf("the store answered %d of %d outcomes", len(applied), len(f.outcomes))
		}
		return err
	})
	if err != nil {
		return false
	}
	for i, it := range f.items {
		f.recorded(it, f.outcomes[i], applied[i])
	}
	clear(f.items)
	return true
}

// recorded does what follows from an answered outcome.
func (f *finisher) recorded(it *item, o journal.Outcome, applied bool) {
	late := f.held.conclude(it, o, applied, func(e *heldEvent) { f.done.add(e.entry, e.id, f.epoch) })
	if applied {
		f.waits.tell(journal.DeliveryID{EventID: o.EventID, Destination: o.Destination}, journal.DeliveryStatus{State: o.State, Response: o.Response})
	}
	switch {
	case late:
		f.metrics.stale.Inc()
		f.opt.Logger.Warn("journal: an outcome came too late, somebody else has the delivery",
			"event", o.EventID, "destination", o.Destination, "token", o.Token, "state", o.State)
	case o.State == journal.Failed || o.State == journal.Pending:
		f.schedule.note(o.Due)
		f.handedBack(o)
	}
}

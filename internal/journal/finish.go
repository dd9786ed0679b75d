package journal

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
)

// Finish reports what became of a piece of work. Every work received from [Journal.Work] must be
// finished exactly once; one that was not begun, or whose lease is not current any more, with Pending.
//
// Finish never blocks and loses nothing: the outcome is recorded together with others, and again
// until the store took it or the token turned out not to be current. The error's text is cut to
// [hookonce.MaxErrorLen] and made storable. Safe for concurrent use.
func (j *Journal) Finish(o Outcome) {
	o.Error = storable(o.Error)
	switch j.held.finish(o) {
	case finishLost:
		j.metrics.stale.Inc()
	case finishUnknown:
		j.metrics.stale.Inc()
		j.opt.Logger.Warn("journal: an outcome for work that is not held was ignored",
			"event", o.EventID, "destination", o.Destination, "token", o.Token, "state", o.State)
	}
}

// storable makes text fit every store: valid UTF-8 without NUL, at most hookonce.MaxErrorLen bytes.
func storable(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= hookonce.MaxErrorLen {
		return text
	}
	cut := hookonce.MaxErrorLen
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

type finishStatus int

const (
	finishQueued  finishStatus = iota
	finishLost                 // the lease was lost before
	finishUnknown              // never held, or finished before
)

// finish queues the outcome of a held delivery for recording.
func (h *holds) finish(o Outcome) finishStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	it := h.items[o.Held]
	switch {
	case it == nil || it.finishing:
		return finishUnknown
	case it.lost:
		h.drop(it)
		return finishLost
	}
	it.finishing = true
	h.queue(o)
	return finishQueued
}

// queue appends outcomes and wakes the finisher. The caller holds the mutex.
func (h *holds) queue(outcomes ...Outcome) {
	h.outcomes = append(h.outcomes, outcomes...)
	select {
	case h.finished <- struct{}{}:
	default:
	}
}

// next moves at most limit outcomes, oldest first, to batch.
func (h *holds) next(batch []Outcome, limit int) []Outcome {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := min(limit, len(h.outcomes))
	batch = append(batch, h.outcomes[:n]...)
	left := copy(h.outcomes, h.outcomes[n:])
	clear(h.outcomes[left:])
	h.outcomes = h.outcomes[:left]
	return batch
}

// putBack queues outcomes whose recording failed, behind those that wait: one that the store can not
// take does not hold up the others.
func (h *holds) putBack(batch []Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range batch {
		h.items[o.Held].retried = true
	}
	h.queue(batch...)
}

// conclude drops a delivery whose outcome was answered by the store.
func (h *holds) conclude(o Outcome, applied bool) (done *heldEvent, stale bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	it := h.items[o.Held]
	h.drop(it)
	if applied && o.State == Done && it.event != nil {
		if it.event.open--; it.event.open == 0 {
			done = it.event
		}
	}
	return done, !applied && !it.retried
}

const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// finisher records outcomes until the journal's context ends. After a failure it tries smaller batches,
// later, so that an outage costs little and one bad outcome is soon alone.
func (j *Journal) finisher() {
	limit, backoff := j.opt.MaxBatch, minBackoff
	var batch []Outcome
	for {
		batch = j.held.next(batch[:0], limit)
		if len(batch) == 0 {
			select {
			case <-j.held.finished:
				continue
			case <-j.ctx.Done():
				return
			}
		}
		if j.record(batch) {
			limit, backoff = min(limit*2, j.opt.MaxBatch), minBackoff
			continue
		}
		j.held.putBack(batch)
		if !j.pause(backoff) {
			return
		}
		limit, backoff = max(1, limit/2), min(backoff*2, maxBackoff)
	}
}

// record commits one batch of outcomes and reports whether the store answered.
func (j *Journal) record(batch []Outcome) bool {
	var applied []bool
	err := j.call(opFinish, j.opt.Timeout, len(batch), func(ctx context.Context) (err error) {
		applied, err = j.store.Finish(ctx, batch)
		if err == nil && len(applied) != len(batch) {
			err = fmt.Errorf("the store answered %d of %d outcomes", len(applied), len(batch))
		}
		return err
	})
	if err != nil {
		return false
	}
	for i, o := range batch {
		j.recorded(o, applied[i])
	}
	return true
}

// recorded does what follows from a recorded outcome.
func (j *Journal) recorded(o Outcome, applied bool) {
	done, stale := j.held.conclude(o, applied)
	switch {
	case stale:
		j.metrics.stale.Inc()
		j.warnLost(o.Held)
	case done != nil:
		j.done.add(done.entry, done.id)
	case applied && (o.State == Failed || o.State == Pending):
		j.schedule.note(o.Due)
	}
}

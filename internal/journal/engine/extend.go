package engine

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Current reports whether a piece of work still is ours to do. It costs no call of the store; ask it
// right before beginning an attempt that had to wait. Safe for concurrent use.
func (j *Engine) Current(h journal.Held) bool {
	j.held.mu.Lock()
	defer j.held.mu.Unlock()
	it := j.held.items[h]
	return it != nil && !it.lost && !it.hasOutcome() && j.opt.Now().Before(it.until)
}

// extendBatch is how many leases one call extends.
const extendBatch = 1000

// extender keeps the leases of held work alive until the journal's context ends. It looks twice as
// often as leases need it, and tries again sooner after a failure.
func (j *Engine) extender() {
	for wait := j.opt.Lease / 6; j.pause(wait); {
		if j.extend() {
			wait = j.opt.Lease / 6
		} else {
			wait = j.opt.Lease / 30
		}
	}
}

// extend extends the leases of which a third has passed, and reports whether the store answered.
func (j *Engine) extend() bool {
	for batch := range j.held.aging(j.opt.Now().Add(j.opt.Lease * 2 / 3)) {
		lease := j.opt.Now().Add(j.opt.Lease)
		var still []bool
		err := j.call(opExtend, j.opt.Lease/3, len(batch), func(ctx context.Context) (err error) {
			still, err = j.store.Extend(ctx, batch, lease)
			if err == nil && len(still) != len(batch) {
				err = fmt.Errorf("the store answered %d of %d leases", len(still), len(batch))
			}
			return err
		})
		if err != nil {
			return false
		}
		for i, h := range batch {
			if j.held.extended(h, still[i], lease) {
				j.metrics.lost.Inc()
				j.opt.Logger.Warn("journal: a lease was lost; the delivery may be attempted twice",
					"event", h.EventID, "destination", h.Destination, "token", h.Token)
			}
		}
	}
	return true
}

// aging yields in batches what is held with a lease that ends by the given time.
func (h *holds) aging(by time.Time) iter.Seq[[]journal.Held] {
	h.mu.Lock()
	defer h.mu.Unlock()
	var aging []journal.Held
	for held, it := range h.items {
		if held == it.current() && !it.lost && !it.until.After(by) {
			aging = append(aging, held)
		}
	}
	return slices.Chunk(aging, extendBatch)
}

// extended notes the new lease of a delivery, and reports whether it was lost instead. One whose outcome
// was reported meanwhile is not: it may have been recorded.
func (h *holds) extended(held journal.Held, still bool, lease time.Time) (lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	it := h.items[held]
	if it == nil || it.token != held.Token {
		return false
	}
	if still {
		it.until = lease
	}
	it.lost = !still && !it.hasOutcome()
	return it.lost
}

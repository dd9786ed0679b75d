package engine

import (
	"context"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/inflight"
)

const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 500 * time.Millisecond // after an outage, be there before others take the work over
)

// finisher records outcomes, batch after batch. Its slices are reused.
type finisher struct {
	*core
	inflight *inflight.Set
	done     *doneCache
	waits    *waits
	schedule *schedule
	notifier *notifier

	items    []*inflight.Item
	outcomes []journal.Outcome
	epoch    epoch // of the record
}

// run records outcomes until the engine's context ends. After a failure it tries smaller batches,
// later, so that an outage costs little and one bad outcome is soon alone.
func (f *finisher) run() {
	limit, backoff := f.opt.MaxBatch, minBackoff
	for {
		f.items, f.outcomes = f.inflight.Next(f.items[:0], f.outcomes[:0], limit)
		if len(f.items) == 0 {
			select {
			case <-f.inflight.Reported():
				continue
			case <-f.ctx.Done():
				return
			}
		}
		if f.record() {
			limit, backoff = min(limit*2, f.opt.MaxBatch), minBackoff
			continue
		}
		f.inflight.PutBack(f.items)
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
		if err == nil {
			err = journal.CheckAnswers(len(applied), len(f.outcomes))
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
func (f *finisher) recorded(it *inflight.Item, o journal.Outcome, applied bool) {
	late := f.inflight.Conclude(it, o, applied, int64(f.epoch), func(e *inflight.Event, asOf int64) { f.done.add(e.Event, e.ID, epoch(asOf)) })
	if applied {
		f.waits.tell(journal.DeliveryID{EventID: o.EventID, Destination: o.Destination}, journal.DeliveryStatus{State: o.State, Response: o.Response})
	}
	switch {
	case late:
		f.metrics.stale.Inc()
		f.opt.Logger.Warn("journal: an outcome came too late, somebody else has the delivery",
			"event", journal.IDText(o.EventID), "destination", o.Destination, "token", o.Token, "state", o.State)
	case o.State == journal.Failed || o.State == journal.Pending:
		f.schedule.note(o.Due)
		if o.State == journal.Pending && !f.opt.Now().Before(o.Due) {
			f.notifier.tell() // others need not wait for what was handed back
		}
	}
}

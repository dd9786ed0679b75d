package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// reconcileEvery is how often it is tried to record what was delivered past the store.
const reconcileEvery = 500 * time.Millisecond

// reconciler records what was delivered past the store, as soon as it can, until Close begins: an attempt that
// is under way then is the last.
func (j *Engine) reconciler() {
	defer close(j.passed)
	for {
		select {
		case <-j.detours.wake:
		case <-j.stop:
			return
		}
		for done := false; !done; {
			var err error
			if done, err = j.reconcile(); err != nil && !j.pauseUntilStop(reconcileEvery) {
				return
			}
		}
	}
}

// reconcileRest makes one more attempt when Close is nearly through, after that of the reconciler if one is under way:
// the end of Close would cancel it.
func (j *Engine) reconcileRest() {
	<-j.passed
	for done, err := j.reconcile(); err == nil && !done; {
		done, err = j.reconcile()
	}
	if n := j.detours.count.Load(); n > 0 {
		j.opt.Logger.Error("journal: events that were delivered past the store are on no record; copies of them are new", "events", n)
	}
}

// reconcile records one batch, and reports whether nothing is left to record. The events are stored with
// what is still to be done, if anything, so that there is no moment in which somebody could take what was
// done. Of those that were stored all the same, what was done is ended.
func (j *Engine) reconcile() (done bool, err error) {
	if j.detours.count.Load() == 0 {
		return true, nil
	}
	if err := j.call(opReconcile, j.opt.Timeout, 0, j.store.Ping); err != nil {
		return false, err
	}
	batch := j.detours.batch(j.opt.MaxBatch)
	if len(batch) == 0 {
		return true, nil
	}
	now := j.opt.Now()
	entries := make([]*journal.Event, len(batch))
	for i, d := range batch {
		entries[i] = j.left(d)
	}
	err = j.call(opReconcile, j.opt.Timeout, len(batch), func(ctx context.Context) error {
		results, err := j.store.Accept(ctx, entries, now, now.Add(j.opt.Lease))
		if err == nil && len(results) != len(entries) {
			err = fmt.Errorf("the store answered %d of %d entries", len(results), len(entries))
		}
		if err != nil {
			return err
		}
		return j.store.RecordBypassed(ctx, j.forwarded(batch, results))
	})
	if err == nil {
		j.opt.Logger.Info("journal: events that were delivered past the store are on record", "events", len(batch))
		j.metrics.reconciled.Add(float64(len(batch)))
	}
	j.detours.recorded(batch, err == nil)
	j.schedule.note(now) // what is left to be done
	return false, err
}

// left is the event with those destinations that have not taken it.
func (j *Engine) left(d *detour) *journal.Event {
	e := *d.entry
	e.Destinations = d.missing()
	e.Hold, e.Ordered = nil, j.held.ordered(&e)
	return &e
}

// ordered returns the destinations whose deliveries of the event follow others.
func (h *holds) ordered(e *journal.Event) (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range e.Destinations {
		if s := h.share(name); s != nil && s.orders(e.Resource) {
			names = append(names, name)
		}
	}
	return names
}

// forwarded returns the outcomes of events that are stored now, under their identifiers. What was delivered
// of an event whose key belongs to another says nothing about that.
func (j *Engine) forwarded(batch []*detour, results []journal.Result) (outcomes []journal.Outcome) {
	for i, d := range batch {
		res := results[i]
		if res.Err != nil || res.Status == journal.Conflict {
			j.opt.Logger.Error("journal: an event that was delivered past the store cannot be recorded",
				"source", d.entry.Source, "key", d.entry.Key, "status", string(res.Status), "error", res.Err)
			continue
		}
		for _, o := range d.outcomes() {
			o.EventID = res.ID
			o.Resource, o.Rank = "", 0
			if j.held.compares(o.Destination, d.entry) {
				o.Resource, o.Rank = d.entry.Resource, d.entry.Rank
			}
			outcomes = append(outcomes, o)
		}
	}
	return outcomes
}

// compares reports whether a destination wants to know of events that are stale.
func (h *holds) compares(destination string, e *journal.Event) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.share(destination)
	return s != nil && s.compares(e.Resource, e.Rank)
}

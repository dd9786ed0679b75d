package bypass

import (
	"context"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// recordEvery is how often it is tried to record what was delivered past the store.
const recordEvery = 500 * time.Millisecond

// Record records what was delivered past the store, as soon as it can, until stop is closed: an attempt that is
// under way then is the last.
func (b *Bypass) Record(stop <-chan struct{}) {
	for {
		select {
		case <-b.passages.wake:
		case <-stop:
			return
		}
		for done := false; !done; {
			var err error
			if done, err = b.reconcile(); err == nil {
				continue
			}
			timer := time.NewTimer(recordEvery)
			select {
			case <-timer.C:
			case <-stop:
				timer.Stop()
				return
			}
		}
	}
}

// RecordRest records what is left, after [Bypass.Record] has returned, and tries again until all of it is on record or ctx ends: the
// store may be back before. It tries once if ctx has ended already.
func (b *Bypass) RecordRest(ctx context.Context) {
	for b.Unrecorded() > 0 {
		if done, err := b.reconcile(); err == nil && !done {
			continue
		}
		timer := time.NewTimer(recordEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			if n := b.Unrecorded(); n > 0 {
				b.opt.Logger.Error("journal: events that were delivered past the store are on no record; copies of them are new", "events", n)
			}
			return
		}
	}
}

// reconcile records one batch, and reports whether nothing is left to record. The events are stored with
// what is still to be done, if anything, so that there is no moment in which somebody could take what was
// done. Of those that were stored all the same, what was done is ended.
func (b *Bypass) reconcile() (done bool, err error) {
	if b.Unrecorded() == 0 {
		return true, nil
	}
	if err := b.opt.Call(0, b.opt.Store.Ping); err != nil {
		return false, err
	}
	batch := b.passages.batch(b.opt.MaxBatch)
	if len(batch) == 0 {
		return true, nil
	}
	now := b.opt.Now()
	records := make([]*journal.Record, len(batch))
	for i, p := range batch {
		records[i] = b.rest(p)
	}
	known := 0 // how many are on record for certain
	err = b.opt.Call(len(batch), func(ctx context.Context) error {
		results, err := b.opt.Store.Accept(ctx, records, now, now.Add(b.opt.Lease))
		if err == nil {
			err = journal.CheckAnswers(len(results), len(records))
		}
		if err != nil {
			return err
		}
		stored, outcomes := b.outcomes(batch, results)
		if err = b.opt.Store.RecordBypassed(ctx, outcomes); err == nil {
			known = stored
		}
		return err
	})
	if known > 0 {
		b.opt.Logger.Info("journal: events that were delivered past the store are on record", "events", known)
	}
	b.passages.recorded(batch, err == nil)
	b.opt.Recorded(known)
	return false, err
}

// rest is the event with those destinations that have not taken it.
func (b *Bypass) rest(p *passage) *journal.Record {
	e := *p.event
	e.Destinations = p.missing()
	e.CellMap = journal.AnyCellMap // it has happened, whoever owns it by now
	return &journal.Record{Event: &e, ID: p.id, Ordered: b.opt.InFlight.Destinations.Orders(&e), Bypassed: true}
}

// outcomes returns how many events are stored now, and their outcomes, under their identifiers. What was delivered of an event
// whose key belongs to another says nothing about that.
func (b *Bypass) outcomes(batch []*passage, results []journal.Result) (stored int, outcomes []journal.Outcome) {
	for i, p := range batch {
		res := results[i]
		if res.Err != nil || res.Status == journal.Conflict {
			b.opt.Logger.Error("journal: an event that was delivered past the store cannot be recorded",
				"source", p.event.Source, "key", p.event.Key, "status", string(res.Status), "error", res.Err)
			continue
		}
		stored++
		for _, o := range p.outcomes() {
			o.EventID = res.ID
			o.Group, o.Rank = "", hookonce.Rank{}
			if b.opt.InFlight.Destinations.Compares(o.Destination, p.event) {
				o.Group, o.Rank = p.event.Group(), p.event.Rank
			}
			outcomes = append(outcomes, o)
		}
	}
	return stored, outcomes
}

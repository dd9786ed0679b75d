package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/inflight"
	"github.com/hookonce/hookonce/internal/tally"
)

// writer commits what waits in the queue, batch after batch, when it is its turn. There are two of them that
// share one turn, so that the next batch is on its way to the store while everybody who waits for the
// former is answered. Its slices are reused.
type writer struct {
	*core
	turn     chan struct{} // has room for the one who commits; shared
	queue    *queue
	done     *doneCache
	inflight *inflight.Set
	schedule *schedule
	issue    func(*inflight.Item)

	slots   []*slot
	records []journal.Record
	batch   []*journal.Record // of records
	epoch   epoch             // of the commit

	stored map[string]*storedCounters // by source
}

// storedCounters are the tallies of what was stored of one source.
type storedCounters struct{ events, bytes *tally.Counter }

// countStored counts an event that was stored.
func (w *writer) countStored(e *journal.Event) {
	size := e.Size()
	w.metrics.stored.Inc()
	w.metrics.storedBytes.Add(float64(size))
	c := w.stored[e.Source]
	if c == nil {
		c = &storedCounters{w.opt.Tally.Counter(e.Source, "", tally.Stored), w.opt.Tally.Counter(e.Source, "", tally.StoredBytes)}
		w.stored[e.Source] = c
	}
	c.events.Inc()
	c.bytes.Add(size)
}

// run commits until the queue is closed and empty.
func (w *writer) run() {
	for w.collect() {
		now := w.opt.Now()
		lease := now.Add(w.opt.Lease)
		results, err := w.commit(now, lease)
		<-w.turn
		w.queue.leave(w.slots)
		if err != nil {
			w.fail(fmt.Errorf("%w: %w", journal.ErrUnavailable, err))
		} else {
			w.succeed(results, lease)
		}
		clear(w.slots)
		clear(w.records)
	}
}

// collect waits for its turn and for a batch. It reports false, without the turn, when the queue is
// closed and empty.
func (w *writer) collect() (open bool) {
	w.turn <- struct{}{}
	for {
		w.slots, open = w.queue.drain(w.slots[:0], w.opt.MaxBatch)
		switch {
		case !open:
			<-w.turn
			return false
		case len(w.slots) > 0:
			return true
		}
		<-w.queue.wake
	}
}

// commit stores the batch.
func (w *writer) commit(now, lease time.Time) (results []journal.Result, err error) {
	w.prepare(now)
	w.epoch = w.done.now()
	err = w.call(opAccept, w.opt.Timeout, len(w.batch), func(ctx context.Context) (err error) {
		results, err = w.store.Accept(ctx, w.batch, now, lease)
		if err == nil {
			err = journal.CheckAnswers(len(results), len(w.batch))
		}
		return err
	})
	return results, err
}

// prepare makes the records of the batch: every event gets its identifier, and its deliveries room among
// those in flight while there is some.
func (w *writer) prepare(now time.Time) {
	w.records, w.batch = w.records[:0], w.batch[:0]
	for _, s := range w.slots {
		w.records = append(w.records, journal.Record{Event: s.event, ID: w.opt.IDs.Next(now)})
	}
	for i := range w.records {
		w.inflight.Reserve(&w.records[i])
		w.batch = append(w.batch, &w.records[i])
	}
}

// fail answers everybody with err. What was stored in spite of it is found when its lease ends.
func (w *writer) fail(err error) {
	for i, s := range w.slots {
		w.inflight.Unreserve(&w.records[i])
		s.settleAll(journal.Result{}, journal.Result{}, err)
	}
}

// succeed answers everybody with their result, and hands fresh work on.
func (w *writer) succeed(results []journal.Result, lease time.Time) {
	now := w.opt.Now()
	for i, s := range w.slots {
		r, res := &w.records[i], results[i]
		s.settleAll(res, follower(r.Event, res), nil)
		w.settled(r, res, now, lease)
	}
}

// settled does what follows from a committed result, after it was answered.
func (w *writer) settled(r *journal.Record, res journal.Result, now, lease time.Time) {
	fresh := res.Err == nil && (res.Status == journal.Accepted || res.Status == journal.Unkeyed)
	if fresh {
		w.countStored(r.Event)
	}
	opened := fresh && !res.Dropped(r.Event)
	if opened && now.Before(lease) {
		w.hold(r, res, lease)
	} else {
		// Not new, refused, or committed so late that others may have taken it over already.
		w.inflight.Unreserve(r)
	}
	if opened && len(r.Hold) < len(r.Destinations) {
		w.inflight.Leave(r)
	}
	if res.Redriven {
		w.schedule.note(now)
	}
	switch {
	case errors.Is(res.Err, journal.ErrNoCells):
		w.celled.Store(true)
	case errors.Is(res.Err, journal.ErrCellMap): // it is placed anew
	case res.Err != nil:
		w.opt.Logger.Error("journal: the store refused an event",
			"source", r.Source, "key", r.Key, "type", r.Type, "error", res.Err)
	case res.Status == journal.Duplicate && res.Done, opened && len(r.Destinations) == 0:
		w.done.add(r.Event, res.ID, w.epoch)
	}
}

// hold hands those deliveries of a fresh event that are in flight to this process's workers.
func (w *writer) hold(r *journal.Record, res journal.Result, lease time.Time) {
	event := &inflight.Event{Event: r.Event, ID: res.ID, Open: len(r.Destinations)}
	header := r.Lines()
	for _, dest := range r.Hold {
		it := &inflight.Item{Event: event, Work: journal.Work{
			Held:   journal.Held{EventID: res.ID, Destination: dest, Token: 1},
			Source: r.Source, Key: r.Key, Type: r.Type, Tries: 1,
			Header: header, Body: r.Body, ReceivedAt: r.ReceivedAt, Lease: lease,
			Resource: r.Resource, Rank: r.Rank, LogicalDuplicateKey: res.LogicalDuplicateKey, Vouched: r.Vouched, Origin: r.Origin(),
		}}
		w.inflight.Add(it)
		w.issue(it)
	}
}

// follower returns what the copies of e learn that waited for its result.
func follower(e *journal.Event, res journal.Result) journal.Result {
	if res.Status == journal.Accepted {
		return journal.Result{Status: journal.Duplicate, ID: res.ID, Done: len(e.Destinations) == 0}
	}
	res.Redriven, res.LogicalDuplicateOf, res.LogicalDuplicateKey = false, 0, ""
	return res
}

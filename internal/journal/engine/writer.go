package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// writer commits what waits in the queue, batch after batch, when it is its turn. There is one more of
// them than turns, so that the next batch is on its way to the store while everybody who waits for the
// former is answered. Its slices are reused.
type writer struct {
	*Engine
	slots   []*slot
	entries []*journal.Event
	epoch   epoch // of the commit
}

// run commits until the queue is closed and empty.
func (w *writer) run() {
	for w.collect() {
		now := w.opt.Now()
		lease := now.Add(w.opt.Lease)
		results, err := w.commit(now, lease)
		<-w.turns
		w.queue.leave(w.slots)
		if err != nil {
			w.fail(fmt.Errorf("%w: %w", journal.ErrUnavailable, err))
		} else {
			w.succeed(results, lease)
		}
		clear(w.slots)
		clear(w.entries)
	}
}

// collect waits for its turn and for a batch. It reports false, without the turn, when the queue is
// closed and empty.
func (w *writer) collect() (open bool) {
	w.turns <- struct{}{}
	for {
		w.slots, open = w.queue.drain(w.slots[:0], w.opt.MaxBatch)
		switch {
		case !open:
			<-w.turns
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
	err = w.call(opAccept, w.opt.Timeout, len(w.entries), func(ctx context.Context) (err error) {
		results, err = w.store.Accept(ctx, w.entries, now, lease)
		if err == nil && len(results) != len(w.entries) {
			err = fmt.Errorf("the store answered %d of %d entries", len(results), len(w.entries))
		}
		return err
	})
	return results, err
}

// prepare gives every entry of the batch its identifier, and its deliveries room among the held while
// there is some.
func (w *writer) prepare(now time.Time) {
	w.entries = w.entries[:0]
	for _, s := range w.slots {
		e := s.entry
		e.ID = w.opt.IDs.Next(now)
		w.held.reserve(e)
		w.entries = append(w.entries, e)
	}
}

// fail answers everybody with err. What was stored in spite of it is found when its lease ends.
func (w *writer) fail(err error) {
	for i, s := range w.slots {
		w.held.unreserve(w.entries[i])
		s.settleAll(journal.Result{}, journal.Result{}, err)
	}
}

// succeed answers everybody with their result, and hands fresh work on.
func (w *writer) succeed(results []journal.Result, lease time.Time) {
	now := w.opt.Now()
	for i, s := range w.slots {
		e, res := w.entries[i], results[i]
		s.settleAll(res, follower(e, res), nil)
		w.settled(e, res, now, lease)
	}
}

// settled does what follows from a committed result, after it was answered.
func (w *writer) settled(e *journal.Event, res journal.Result, now, lease time.Time) {
	fresh := res.Err == nil && (res.Status == journal.Accepted || res.Status == journal.Unkeyed)
	if fresh {
		w.metrics.stored.Inc()
		w.metrics.storedBytes.Add(float64(e.Size()))
	}
	opened := fresh && !res.Dropped(e)
	if opened && now.Before(lease) {
		w.hold(e, res, lease)
	} else {
		// Not new, refused, or committed so late that others may have taken it over already.
		w.held.unreserve(e)
	}
	if opened && len(e.Hold) < len(e.Destinations) {
		w.held.leave(e)
	}
	if res.Redriven {
		w.schedule.note(now)
	}
	switch {
	case res.Err != nil:
		w.opt.Logger.Error("journal: the store refused an event",
			"source", e.Source, "key", e.Key, "type", e.Type, "error", res.Err)
	case res.Status == journal.Duplicate && res.Done, opened && len(e.Destinations) == 0:
		w.done.add(e, res.ID, w.epoch)
	}
}

// hold hands the held deliveries of a fresh event to this process's workers.
func (w *writer) hold(e *journal.Event, res journal.Result, lease time.Time) {
	event := &heldEvent{entry: e, id: res.ID, open: len(e.Destinations)}
	header := e.Lines()
	for _, dest := range e.Hold {
		it := &item{event: event, token: 1, until: lease, Work: journal.Work{
			Held:   journal.Held{EventID: res.ID, Destination: dest, Token: 1},
			Source: e.Source, Key: e.Key, Type: e.Type, Tries: 1,
			Header: header, Body: e.Body, ReceivedAt: e.ReceivedAt, Lease: lease,
			Resource: e.Resource, Rank: e.Rank, LogicalDuplicateKey: res.LogicalDuplicateKey, Vouched: e.Vouched,
		}}
		w.held.register(it)
		w.issue(it)
	}
}

// settleAll answers s and the copies that follow it. None may be touched afterwards.
func (s *slot) settleAll(res, followers journal.Result, err error) {
	for f := s.followers; f != nil; {
		next := f.next
		f.settle(followers, err)
		f = next
	}
	s.settle(res, err)
}

// follower returns what the copies of e learn that waited for its result.
func follower(e *journal.Event, res journal.Result) journal.Result {
	if res.Status == journal.Accepted {
		return journal.Result{Status: journal.Duplicate, ID: res.ID, Done: len(e.Destinations) == 0}
	}
	res.Redriven, res.LogicalDuplicateOf, res.LogicalDuplicateKey = false, 0, ""
	return res
}

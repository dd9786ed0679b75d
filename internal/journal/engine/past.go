package engine

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookonce/hookonce/internal/journal"
)

// forwards is how many attempts of one Bypass are under way at once.
const forwards = 8

// Bypass delivers events past the store. It is for those that [Engine.Accept] could not record because the
// store is unavailable, and that are worth more now than the certainty that they run once. Each has a key
// of its own and a destination at least.
//
// It returns results when every event was taken by all of its destinations: [journal.Unprotected], or that of a
// copy for one that was delivered so before. With an error nothing may be acknowledged; what was taken
// all the same is remembered, and not delivered again. The bounds of the queue hold for what is remembered,
// and beyond them nothing is delivered.
//
// What was delivered is recorded as soon as the store is back, and until then this process takes copies of
// it for copies and hands out no other work for its key. Other processes on the store know nothing of it, and
// if this one dies before, nobody does: then a copy is new.
//
// The entries must not be those that Accept was called with, which may still be queued.
func (j *Engine) Bypass(ctx context.Context, entries []*journal.Event, forward journal.Forward) ([]journal.Result, error) {
	if j.closing() {
		return nil, journal.ErrClosed
	}
	results := make([]journal.Result, len(entries))
	begun := make([]*detour, len(entries))
	var failed error
	for i, e := range entries {
		if begun[i], results[i], failed = j.detour(e); failed != nil {
			break
		}
	}
	if failed == nil {
		failed = forwardAll(ctx, begun, forward)
	}
	for _, d := range begun {
		if d != nil {
			j.detours.end(d)
		}
	}
	if failed != nil {
		return nil, failed
	}
	return results, nil
}

// detour begins the way of an event past the store. It returns nil and the result of a copy if the event has
// gone it before.
func (j *Engine) detour(e *journal.Event) (*detour, journal.Result, error) {
	own := *e
	own.ID, own.DropLogicalDuplicate = j.opt.IDs.Next(j.opt.Now()), false
	d, res, err := j.detours.begin(&own)
	if d == nil {
		return nil, res, err
	}
	// Whoever hands out work looks for detours after it is held, so that one of us sees the other.
	// Whoever finishes it remembers that before it is held no more.
	if j.held.holdsKey(e.Source, e.Key) {
		j.detours.end(d)
		return nil, journal.Result{}, errOnItsWay
	}
	if known, ok := j.done.lookup(e); ok {
		j.detours.end(d)
		return nil, known, nil
	}
	return d, res, nil
}

// errOnItsWay says that somebody else is delivering an event.
var errOnItsWay = fmt.Errorf("%w: and the event is being delivered already", journal.ErrUnavailable)

// forwardAll delivers events to those of their destinations that have not taken them yet.
func forwardAll(ctx context.Context, detours []*detour, forward journal.Forward) error {
	var group errgroup.Group
	group.SetLimit(forwards)
	for _, d := range detours {
		if d == nil {
			continue
		}
		for _, destination := range d.missing() {
			w := d.work(destination)
			group.Go(func() error {
				o := forward(ctx, w)
				if o.State != journal.Done {
					return fmt.Errorf("%w: and the destination %q did not take the event: %s", journal.ErrUnavailable, destination, o.Error)
				}
				d.took(o)
				return nil
			})
		}
	}
	return group.Wait()
}

// holdsKey reports whether a delivery of an event is held.
func (h *holds) holdsKey(source, key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, it := range h.items {
		if it.Source == source && it.Key == key {
			return true
		}
	}
	return false
}

// detourRest is when to look again at work for an event that was delivered past the store: it is recorded
// by then, if the store is back.
const detourRest = time.Second

// issue hands held work to the workers, unless the event is taking the way past the store.
func (j *Engine) issue(it *item) {
	if j.detours.has(it.Source, it.Key) {
		j.Finish(journal.Outcome{Held: it.Held, State: journal.Pending, Due: j.opt.Now().Add(detourRest)})
		return
	}
	j.work <- &it.Work
}

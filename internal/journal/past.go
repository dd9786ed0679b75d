package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookonce/hookonce"
)

// Forward makes one attempt at a delivery that is on no record. Its outcome is [Done] only if the
// destination took the event.
type Forward func(ctx context.Context, w *Work) Outcome

// forwards is how many attempts of one Bypass are under way at once.
const forwards = 8

// Bypass delivers events past the store. It is for those that [Journal.Accept] could not record because the
// store is unavailable, and that are worth more now than the certainty that they run once. Each has a key
// of its own and a destination at least.
//
// It returns results when every event was taken by all of its destinations: [Unprotected], or that of a
// copy for one that was delivered so before. With an error nothing may be acknowledged; what was taken
// all the same is remembered, and not delivered again. The bounds of the queue hold for what is remembered,
// and beyond them nothing is delivered.
//
// What was delivered is recorded as soon as the store is back, and until then this process takes copies of
// it for copies and hands out no other work for its key. Other processes on the store know nothing of it, and
// if this one dies before, nobody does: then a copy is new.
//
// The entries must not be those that Accept was called with, which may still be queued.
func (j *Journal) Bypass(ctx context.Context, entries []*Entry, forward Forward) ([]Result, error) {
	if j.closing() {
		return nil, ErrClosed
	}
	results := make([]Result, len(entries))
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
func (j *Journal) detour(e *Entry) (*detour, Result, error) {
	own := *e
	own.ID, own.DropTwin = j.opt.IDs.Next(j.opt.Now()), false
	d, res, err := j.detours.begin(&own)
	if d == nil {
		return nil, res, err
	}
	// Whoever hands out work looks for detours after it is held, so that one of us sees the other.
	if known, ok := j.done.lookup(e); ok {
		j.detours.end(d)
		return nil, known, nil
	}
	if j.held.holdsKey(e.Source, e.Key) {
		j.detours.end(d)
		return nil, Result{}, errOnItsWay
	}
	return d, res, nil
}

// errOnItsWay says that somebody else is delivering an event.
var errOnItsWay = fmt.Errorf("%w: and the event is being delivered already", ErrUnavailable)

// forwardAll delivers events to those of their destinations that have not taken them yet.
func forwardAll(ctx context.Context, detours []*detour, forward Forward) error {
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
				if o.State != Done {
					return fmt.Errorf("%w: and the destination %q did not take the event: %s", ErrUnavailable, destination, o.Error)
				}
				d.took(o)
				return nil
			})
		}
	}
	return group.Wait()
}

// detour is one event on its way past the store.
type detour struct {
	entry *Entry
	// The mutex of detours guards these two: it is being delivered, or recorded as far as it is done.
	underway, recording bool

	mu   sync.Mutex
	done map[string]Outcome // by destination
}

func (d *detour) took(o Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done[o.Destination] = o
}

// missing returns the destinations that have not taken the event.
func (d *detour) missing() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.entry.Destinations), func(name string) bool {
		_, done := d.done[name]
		return done
	})
}

// complete reports whether everything was delivered that was asked for. The caller holds the mutex of detours.
func (d *detour) complete() bool { return !d.underway && len(d.missing()) == 0 }

// outcomes returns what the destinations came to that have taken the event, in their order.
func (d *detour) outcomes() (all []Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(d.done)) {
		all = append(all, d.done[name])
	}
	return all
}

// work is a delivery under no token.
func (d *detour) work(destination string) *Work {
	e := d.entry
	return &Work{
		Held:   Held{EventID: e.ID, Destination: destination},
		Source: e.Source, Key: e.Key, Type: e.Type, Tries: 1, Header: e.Header, Body: e.Body,
		ReceivedAt: e.ReceivedAt, Resource: e.Resource, Rank: e.Rank, Unprotected: true,
	}
}

// copyResult is what a copy of the event learns.
func (d *detour) copyResult(e *Entry) Result {
	res := Result{Status: Duplicate, ID: d.entry.ID, Done: true}
	if !bytes.Equal(d.entry.Digest, e.Digest) {
		res.Status = Conflict
	}
	return res
}

// detours are the events that were delivered past the store and are not on record yet.
type detours struct {
	maxEntries int
	maxBytes   int64
	wake       chan struct{} // tells the reconciler that there is something to record
	count      atomic.Int64  // of what is in of: usually none, which costs nothing to know

	mu    sync.Mutex
	of    map[ref]*detour
	bytes int64
}

func newDetours(opt Options) *detours {
	return &detours{maxEntries: opt.QueueEntries, maxBytes: opt.QueueBytes, wake: make(chan struct{}, 1), of: map[ref]*detour{}}
}

// begin returns the detour of an event, which is the caller's until end, or nil and the result of a copy if
// it is complete.
func (s *detours) begin(e *Entry) (*detour, Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := ref{e.Source, e.Key}
	switch d := s.of[key]; {
	case d == nil:
	case d.complete():
		return nil, d.copyResult(e), nil
	case d.underway || d.recording:
		return nil, Result{}, errOnItsWay
	case d.copyResult(e).Status == Conflict:
		return nil, Result{}, fmt.Errorf("%w: and the event has the key of another that is not recorded yet", ErrUnavailable)
	default:
		d.underway = true
		return d, Result{Status: Unprotected, ID: d.entry.ID}, nil
	}
	weight := size(e.Header, e.Body)
	if len(s.of) >= s.maxEntries || s.bytes+weight > s.maxBytes {
		return nil, Result{}, fmt.Errorf("%w: of events that were delivered past the store", ErrFull)
	}
	d := &detour{entry: e, underway: true, done: map[string]Outcome{}}
	s.of[key] = d
	s.bytes += weight
	s.count.Add(1)
	return d, Result{Status: Unprotected, ID: e.ID}, nil
}

// end gives a detour back. If nobody took the event there is nothing to remember.
func (s *detours) end(d *detour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.underway = false; len(d.outcomes()) == 0 {
		s.forget(d)
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// forget removes a detour. The caller holds the mutex.
func (s *detours) forget(d *detour) {
	delete(s.of, ref{d.entry.Source, d.entry.Key})
	s.bytes -= size(d.entry.Header, d.entry.Body)
	s.count.Add(-1)
}

// lookup answers for a copy of an event that was delivered past the store. One whose delivery is not
// complete can be recorded neither as new nor as done.
func (s *detours) lookup(e *Entry) (res Result, known bool, err error) {
	if s.count.Load() == 0 || e.Key == "" {
		return Result{}, false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch d := s.of[ref{e.Source, e.Key}]; {
	case d == nil:
		return Result{}, false, nil
	case d.complete():
		return d.copyResult(e), true, nil
	}
	return Result{}, false, errOnItsWay
}

// has reports whether an event is on its way past the store, or was delivered so and is not on record.
func (s *detours) has(source, key string) bool {
	if s.count.Load() == 0 || key == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[ref{source, key}] != nil
}

// batch returns detours that have ended and are to be recorded, and takes them for the caller.
func (s *detours) batch(limit int) (batch []*detour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.of {
		if len(batch) == limit {
			break
		}
		if !d.underway && !d.recording {
			d.recording = true
			batch = append(batch, d)
		}
	}
	return batch
}

// recorded forgets detours that are on record, or gives them back.
func (s *detours) recorded(batch []*detour, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range batch {
		if d.recording = false; ok {
			s.forget(d)
		}
	}
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
func (j *Journal) issue(it *item) {
	if j.detours.has(it.Source, it.Key) {
		j.Finish(Outcome{Held: it.Held, State: Pending, Due: j.opt.Now().Add(detourRest)})
		return
	}
	j.work <- &it.Work
}

// reconcileEvery is how often it is tried to record what was delivered past the store.
const reconcileEvery = 500 * time.Millisecond

// reconciler records what was delivered past the store, as soon as it can, until Close begins.
func (j *Journal) reconciler() {
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

// reconcileRest makes one more attempt when Close is nearly through.
func (j *Journal) reconcileRest() {
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
func (j *Journal) reconcile() (done bool, err error) {
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
	entries := make([]*Entry, len(batch))
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
		return j.store.Forwarded(ctx, j.forwarded(batch, results))
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
func (j *Journal) left(d *detour) *Entry {
	e := *d.entry
	e.Destinations = d.missing()
	e.Hold, e.Ordered = nil, j.held.ordered(&e)
	return &e
}

// ordered returns the destinations whose deliveries of the event follow others.
func (h *holds) ordered(e *Entry) (names []string) {
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
func (j *Journal) forwarded(batch []*detour, results []Result) (outcomes []Outcome) {
	for i, d := range batch {
		res := results[i]
		if res.Err != nil || res.Status == Conflict {
			j.opt.Logger.Error("journal: an event that was delivered past the store can not be recorded",
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
func (h *holds) compares(destination string, e *Entry) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.share(destination)
	return s != nil && s.compares(e.Resource, e.Rank)
}

// IsOutage reports whether an error of [Journal.Accept] means that the store is unavailable, and not that
// the journal is full or closing.
func IsOutage(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, hookonce.ErrUnknownOutcome)
}

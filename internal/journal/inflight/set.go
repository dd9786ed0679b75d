// Package inflight knows which deliveries are leased to this process, and how many more may be.
package inflight

import (
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Options are the bounds of a [Set]. All are required but Destinations.
type Options struct {
	// MaxDeliveries bounds the deliveries in flight.
	MaxDeliveries int
	// MaxBytes bounds the same deliveries by the bytes of their headers and bodies. The last one from the
	// store may go beyond it, and what is accepted meanwhile may come on top, at most as much again.
	MaxBytes int64
	// MaxBatch is how many deliveries are asked of the store at once, at most.
	MaxBatch int
	// Destinations are those that this process delivers to, by name. Nil: all, none of them ordered.
	Destinations map[string]journal.Destination
	Now          func() time.Time
}

// Set holds the deliveries that are leased to this process. A delivery takes one slot from before it is
// committed or taken until its outcome is recorded or its token turned out stale, which is what bounds the
// work that waits, the outcomes and the memory behind them. It counts in all, and towards its destination, so
// that one that does not finish leaves room to the others. Safe for concurrent use.
type Set struct {
	// Destinations say how much of the set each of them may have.
	Destinations *Destinations
	idle         chan struct{} // closed when closing and no slot is taken

	mu    sync.Mutex
	items map[journal.Held]*Item // by the token that the worker knows, and by the current one
	// reported wait for being recorded.
	reported reports
	doubted  []*Item // done, and refused under a token that an offer which is out may change: see Conclude
	ended    bool    // idle is closed
}

// New returns an empty set. more is called, with a mutex held, whenever there is room again for what waits in
// the store; it must not block.
func New(opt Options, more func()) *Set {
	s := &Set{
		idle:     make(chan struct{}),
		items:    map[journal.Held]*Item{},
		reported: reports{wake: make(chan struct{}, 1)},
	}
	s.Destinations = newDestinations(&s.mu, &opt, more)
	return s
}

// Reserve decides which deliveries of a new event are in flight, takes their slots and names them in r.Hold.
// The others are left in the store: because there is no room, because they wait for their turn (those
// are named in r.Ordered) or have to be compared, or because their destination is at rest.
func (s *Set) Reserve(r *journal.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.Destinations
	r.Hold, r.Ordered = nil, nil
	weight := r.Size()
	for i, d := range r.Destinations {
		c := to.of(d)
		switch {
		case c == nil:
		case c.Orders(r.Resource): // also of one that is gone, for when it comes back: it was wanted when the request came
			r.Ordered = append(r.Ordered, d)
		case c.gone:
		case to.takes(c, r.Event, weight) && !c.compares(r.Resource, !r.Rank.IsZero()):
			to.add(c, 1, weight)
			if len(r.Hold) < i {
				r.Hold = append(r.Hold, d)
			} else {
				r.Hold = r.Destinations[: i+1 : i+1] // all so far: no copy
			}
		}
	}
}

// Unreserve gives back what Reserve took.
func (s *Set) Unreserve(r *journal.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range r.Hold {
		s.release(s.Destinations.of(d), r.Size())
	}
	r.Hold = nil
}

// Leave notes which deliveries of a new event were left in the store.
func (s *Set) Leave(r *journal.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range r.Destinations {
		if c := s.Destinations.of(d); c != nil && !slices.Contains(r.Hold, d) {
			c.backlog = true
			s.Destinations.feed(c)
		}
	}
}

// Add makes an item one of the set, whose slot is reserved and whose lease ends when its work says.
func (s *Set) Add(it *Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it.token, it.until = it.Work.Token, it.Lease
	it.capacity = s.Destinations.of(it.Destination)
	s.items[it.Held] = it
}

// Offer takes slots for work from the store, and says what fits. Taken has to follow.
func (s *Set) Offer() journal.Wanted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Destinations.offer()
}

// Taken ends an offer. It adds the work that was taken, and returns what of it is new to this process.
func (s *Set) Taken(offered journal.Wanted, work []*journal.Work, lease time.Time) []*Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.Destinations
	to.settle(offered, work)
	var fresh []*Item
	for _, w := range work {
		if s.adopt(w.Held, lease) {
			continue
		}
		it := &Item{Work: *w, capacity: to.of(w.Destination), token: w.Token, until: lease}
		s.items[w.Held] = it
		to.add(it.capacity, 1, w.Size())
		fresh = append(fresh, it)
	}
	if len(s.doubted) > 0 {
		s.reported.add(s.doubted...)
		s.doubted = nil
	}
	s.quiet()
	to.feed(to.turns...)
	return fresh
}

// adopt gives a delivery in flight the token under which the store has just leased it again, and reports
// whether there was one. That happens when the store was away for longer than the lease: the delivery
// still is in our workers' hands, or was done without being recorded yet, and must not begin again.
// A reported failure or hand-back is no reason: it may be recorded, and this be its next attempt.
// The caller holds the mutex.
func (s *Set) adopt(taken journal.Held, lease time.Time) bool {
	before := taken
	before.Token--
	it := s.items[before]
	if it == nil || it.hasOutcome() && it.outcome.State != journal.Done {
		return false
	}
	if before != it.Held {
		delete(s.items, before)
	}
	s.items[taken] = it
	it.token, it.until, it.lost = taken.Token, lease, false
	return true
}

// Current reports whether the lease of a delivery still is ours at now, and nothing was reported of it.
func (s *Set) Current(h journal.Held, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.items[h]
	return it != nil && !it.lost && !it.hasOutcome() && now.Before(it.until)
}

// HasFirst reports whether the first attempt at a delivery is in flight here, which is the one that most who
// wait for a delivery wait for.
func (s *Set) HasFirst(d journal.DeliveryID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.items[journal.Held{EventID: d.EventID, Destination: d.Destination, Token: 1}]
	return it != nil && !it.lost
}

// HasKey reports whether a delivery of the event with a key is in flight. It looks at all.
func (s *Set) HasKey(source, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.items {
		if it.Source == source && it.Key == key {
			return true
		}
	}
	return false
}

// Aging yields, in batches of this size, what is in flight with a lease that ends by the given time.
func (s *Set) Aging(by time.Time, batch int) iter.Seq[[]journal.Held] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var aging []journal.Held
	for held, it := range s.items {
		if held == it.current() && !it.lost && !it.until.After(by) {
			aging = append(aging, held)
		}
	}
	return slices.Chunk(aging, batch)
}

// Extended notes the new lease of a delivery, and reports whether it was lost instead. One whose outcome
// was reported meanwhile is not: it may have been recorded.
func (s *Set) Extended(held journal.Held, still bool, lease time.Time) (lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.items[held]
	if it == nil || it.token != held.Token {
		return false
	}
	if still {
		it.until = lease
	}
	it.lost = !still && !it.hasOutcome()
	return it.lost
}

// Finish queues the outcome of a delivery for recording. It reports false when the delivery was never in
// flight or is finished.
func (s *Set) Finish(o journal.Outcome) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.items[o.Held]
	if it == nil || it.Held != o.Held || it.hasOutcome() {
		return false
	}
	it.outcome = o
	s.Destinations.add(it.capacity, 0, o.Response.Size())
	s.reported.add(it)
	return true
}

// Reported receives when outcomes wait for being recorded.
func (s *Set) Reported() <-chan struct{} { return s.reported.wake }

// Next appends at most limit finished items, oldest first, to items, and their outcomes under the
// current tokens to outcomes.
func (s *Set) Next(items []*Item, outcomes []journal.Outcome, limit int) ([]*Item, []journal.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(items)
	items = s.reported.next(items, limit)
	for _, it := range items[before:] {
		outcomes = append(outcomes, it.recorded())
	}
	return items, outcomes
}

// PutBack queues items whose outcomes could not be recorded, behind those that wait: one that the
// store cannot take does not hold up the others.
func (s *Set) PutBack(items []*Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range items {
		it.retried = true
	}
	s.reported.add(items...)
}

// Conclude drops an item whose outcome was answered by the store. It returns whether the outcome came too
// late. One that failed before and does not apply now may be either late or recorded the first time; it counts
// for neither.
//
// finished is called with the event when all of it is done now, before the item is dropped: what is done is
// in flight or remembered at any moment. With it comes the moment as of which that is known: the one given when the first
// delivery of the event was recorded done, because what was done may begin again while others of the event still are under way.
func (s *Set) Conclude(it *Item, o journal.Outcome, applied bool, asOf int64, finished func(e *Event, asOf int64)) (late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !applied && it.token != o.Token {
		s.reported.add(it) // adopted meanwhile: record it under the new token
		return false
	}
	if !applied && o.State == journal.Done && !it.doubted && s.Destinations.all.offered > 0 {
		// The store may have leased it to us again, and we not have heard of it yet. Once that offer has ended it is recorded
		// again: under the new token, or in vain.
		it.doubted = true
		s.doubted = append(s.doubted, it)
		return false
	}
	if applied && o.State == journal.Done && it.Event != nil {
		e := it.Event
		if !e.began {
			e.began, e.known = true, asOf
		}
		if e.Open--; e.Open == 0 {
			finished(e, e.known)
		}
	}
	s.drop(it)
	return !applied && !it.retried
}

// Close makes the set take nothing more, and returns a channel that is closed when nothing is in flight.
func (s *Set) Close() (idle <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Destinations.closing = true
	s.quiet()
	return s.idle
}

// Count returns how many slots are taken.
func (s *Set) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Destinations.all.slots
}

// Remembered returns how many items there are under any token. It is for tests that look for leaks.
func (s *Set) Remembered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}

// drop forgets an item and frees its slot. The caller holds the mutex, here and below.
func (s *Set) drop(it *Item) {
	delete(s.items, it.Held)
	delete(s.items, it.current())
	if it.Ordered {
		it.capacity.backlog = true // the next of its resource waited for it
	}
	s.release(it.capacity, it.Size()+it.outcome.Response.Size())
}

// release frees a slot.
func (s *Set) release(c *capacity, bytes int64) {
	s.Destinations.add(c, -1, -bytes)
	s.quiet()
	s.Destinations.feed(c)
}

// quiet closes idle when the last slot is free and none is taken any more.
func (s *Set) quiet() {
	if s.Destinations.closing && s.Destinations.all.slots == 0 && !s.ended {
		s.ended = true
		close(s.idle)
	}
}

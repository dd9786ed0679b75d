package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// holds are the deliveries leased to this process. A delivery takes one slot from before it is
// committed or taken until its outcome is recorded or its token turned out stale, which is what
// bounds Work, the outcomes and the memory behind them. It counts in all, and in its destination's
// share, so that a destination that does not finish leaves room to the others.
type holds struct {
	opt  Options
	more func() // tells the poller that there is room for a backlog
	now  func() time.Time

	finished chan struct{} // tells the finisher that outcomes wait
	idle     chan struct{} // closed when closing and no slot is taken

	mu       sync.Mutex
	items    map[journal.Held]*item // by the token that the worker knows, and by the current one
	reported []*item                // with an outcome to record, in order
	all      *share                 // what everybody holds together; its backlog found no room here
	shares   map[string]*share      // those that are gone as well: some of theirs may still be held
	turns    []*share               // the others in the order in which they are offered room; begins elsewhere each time
	common   *share                 // of every destination, when the options name none
	closing  bool
	ended    bool // idle is closed
}

// item is one held delivery.
type item struct {
	journal.Work
	share   *share
	token   int64           // the current one: higher than the worker's after an adoption
	until   time.Time       // the end of the lease as last extended
	event   *heldEvent      // nil when it was taken from the store
	outcome journal.Outcome // zero until the worker reported it
	retried bool            // recording the outcome failed before, so it may be recorded
	lost    bool            // somebody else has the delivery now
}

// current names the delivery under the token by which the store knows it.
func (it *item) current() journal.Held {
	return journal.Held{EventID: it.EventID, Destination: it.Destination, Token: it.token}
}

// hasOutcome reports whether the worker has reported.
func (it *item) hasOutcome() bool { return it.outcome.State != "" }

// heldEvent counts down the deliveries of one fresh event, to know when all of it is done.
type heldEvent struct {
	entry *journal.Event
	id    int64
	open  int
}

func newHolds(opt Options, more func()) *holds {
	h := &holds{
		opt:      opt,
		more:     more,
		now:      opt.Now,
		finished: make(chan struct{}, 1),
		idle:     make(chan struct{}),
		items:    map[journal.Held]*item{},
		all:      newShare("", opt),
	}
	if opt.Destinations == nil {
		h.common = newShare("", opt)
		h.turns = []*share{h.common}
		return h
	}
	h.shares = map[string]*share{}
	h.direct(opt.Destinations, nil)
	return h
}

// share returns the share of a destination, nil if this process never delivered to it. The caller holds the
// mutex.
func (h *holds) share(destination string) *share {
	if h.common != nil {
		return h.common
	}
	return h.shares[destination]
}

// reserve decides which deliveries of a new event are held, takes their slots and names them in e.Hold.
// The others are left in the store: because there is no room, because they wait for their turn (those
// are named in e.Ordered) or have to be compared, or because their destination is at rest.
func (h *holds) reserve(e *journal.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.Hold, e.Ordered = nil, nil
	weight := e.Size()
	for i, d := range e.Destinations {
		s := h.share(d)
		switch {
		case s == nil || s.gone:
		case s.orders(e.Resource):
			e.Ordered = append(e.Ordered, d)
		case h.takes(s, e, weight) && !s.compares(e.Resource, e.Rank):
			h.add(s, 1, weight)
			if len(e.Hold) < i {
				e.Hold = append(e.Hold, d)
			} else {
				e.Hold = e.Destinations[: i+1 : i+1] // all so far: no copy
			}
		}
	}
}

// takes reports whether fresh work of this weight may be held. The caller holds the mutex.
func (h *holds) takes(s *share, e *journal.Event, weight int64) bool {
	stranger := s.stranger(e)
	return !h.closing && s.takes(weight, stranger) && h.all.takes(weight, false) && !s.gone && !s.paused && (stranger || !s.rests(h.now))
}

// unreserve gives back what reserve took.
func (h *holds) unreserve(e *journal.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range e.Hold {
		h.release(h.share(d), e.Size())
	}
	e.Hold = nil
}

// add takes slots. The caller holds the mutex.
func (h *holds) add(s *share, slots int, bytes int64) {
	s.add(slots, bytes)
	h.all.add(slots, bytes)
}

// release frees a slot. The caller holds the mutex.
func (h *holds) release(s *share, bytes int64) {
	h.add(s, -1, -bytes)
	h.quiet()
	h.feed(s)
}

// quiet closes idle when the last slot is free and none is taken any more. The caller holds the mutex.
func (h *holds) quiet() {
	if h.closing && h.all.slots == 0 && !h.ended {
		h.ended = true
		close(h.idle)
	}
}

// feed has the poller look for backlog, of these shares or of anybody, if there is room for it. The
// caller holds the mutex.
func (h *holds) feed(shares ...*share) {
	if h.closing {
		return
	}
	if h.all.backlog && h.all.worth() || slices.ContainsFunc(shares, func(s *share) bool {
		return s.backlog && s.worth() && !s.suspended(h.now)
	}) {
		h.more()
	}
}

// leave notes which deliveries of a new event were left in the store.
func (h *holds) leave(e *journal.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range e.Destinations {
		if s := h.share(d); s != nil && !slices.Contains(e.Hold, d) {
			s.backlog = true
			h.feed(s)
		}
	}
}

// register remembers an item whose slot is reserved.
func (h *holds) register(it *item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	it.share = h.share(it.Destination)
	h.items[it.Held] = it
}

// drop forgets an item and frees its slot. The caller holds the mutex.
func (h *holds) drop(it *item) {
	delete(h.items, it.Held)
	delete(h.items, it.current())
	if it.share.lanes && it.Resource != "" {
		it.share.backlog = true // the next of its resource waited for it
	}
	h.release(it.share, it.Size()+it.outcome.Response.Size())
}

// close makes holds take nothing more. idle is closed when the last slot is free.
func (h *holds) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closing = true
	h.quiet()
}

// count returns how many slots are taken.
func (h *holds) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.slots
}

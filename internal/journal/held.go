package journal

import (
	"sync"
	"time"
)

// holds are the deliveries leased to this process. A delivery takes one slot from before it is
// committed or taken until its outcome is recorded or its token turned out stale, which is what
// bounds Work, the outcomes and the memory behind them.
type holds struct {
	maxSlots int
	maxBytes int64
	step     int    // the room at which it is worth asking the store for more
	more     func() // tells the poller that there is room for a backlog

	finished chan struct{} // tells the finisher that outcomes wait
	idle     chan struct{} // closed when closing and no slot is taken

	mu       sync.Mutex
	items    map[Held]*item // by the token that the worker knows, and by the current one
	reported []*item        // with an outcome to record, in order
	slots    int
	bytes    int64
	backlog  bool // the store has, or may have, due work that found no room here
	closing  bool

	suspended map[string]time.Time // until when
}

// item is one held delivery.
type item struct {
	Work
	token   int64      // the current one: higher than the worker's after an adoption
	until   time.Time  // the end of the lease as last extended
	event   *heldEvent // nil when it was taken from the store
	outcome Outcome    // zero until the worker reported it
	retried bool       // recording the outcome failed before, so it may be recorded
	lost    bool       // somebody else has the delivery now
}

// current names the delivery under the token by which the store knows it.
func (it *item) current() Held {
	return Held{EventID: it.EventID, Destination: it.Destination, Token: it.token}
}

// hasOutcome reports whether the worker has reported.
func (it *item) hasOutcome() bool { return it.outcome.State != "" }

// heldEvent counts down the deliveries of one fresh event, to know when all of it is done.
type heldEvent struct {
	entry *Entry
	id    int64
	open  int
}

func newHolds(opt Options, more func()) *holds {
	return &holds{
		more:     more,
		maxSlots: opt.MaxHeld,
		maxBytes: opt.HeldBytes,
		step:     max(1, min(opt.MaxBatch, opt.MaxHeld/4)),
		finished: make(chan struct{}, 1),
		idle:     make(chan struct{}),
		items:    map[Held]*item{},

		suspended: map[string]time.Time{},
	}
}

// reserve takes the slots for all deliveries of a new event, if there is room. While older work waits
// in the store, half of the room is left to it.
func (h *holds) reserve(e *Entry, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	room, n := h.maxSlots, len(e.Destinations)
	if h.backlog {
		room /= 2
	}
	for _, d := range e.Destinations {
		if now.Before(h.suspended[d]) {
			return false
		}
	}
	weight := size(e.Header, e.Body) * int64(n)
	if h.closing || h.slots+n > room || h.bytes+weight > h.maxBytes {
		return false
	}
	h.slots += n
	h.bytes += weight
	return true
}

// unreserve gives back what reserve took.
func (h *holds) unreserve(e *Entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(e.Destinations)
	h.release(n, size(e.Header, e.Body)*int64(n))
}

// release frees slots. The caller holds the mutex.
func (h *holds) release(slots int, bytes int64) {
	h.slots -= slots
	h.bytes -= bytes
	if h.closing && h.slots == 0 && slots > 0 {
		close(h.idle)
	}
	h.feed()
}

// feed has the poller look for backlog if there is room for it. The caller holds the mutex.
func (h *holds) feed() {
	if h.backlog && h.hasRoom() {
		h.more()
	}
}

// hasRoom reports whether it is worth asking the store for work. The caller holds the mutex.
func (h *holds) hasRoom() bool {
	return !h.closing && h.maxSlots-h.slots >= h.step && h.bytes < h.maxBytes
}

// overflow notes that new work was left in the store.
func (h *holds) overflow() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.backlog = true
	h.feed()
}

// room takes slots for work from the store, at most limit, and returns what fits. When nothing does,
// what is due in the store counts as backlog.
func (h *holds) room(limit int) Wanted {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing || h.slots >= h.maxSlots || h.bytes >= h.maxBytes {
		h.backlog = true
		return Wanted{}
	}
	n := min(limit, h.maxSlots-h.slots)
	h.slots += n
	h.backlog = false
	return Wanted{Deliveries: n, Bytes: h.maxBytes - h.bytes}
}

// took registers work that was taken into room, and returns what of it is new to this process. Full
// room means that there may be more.
func (h *holds) took(room Wanted, work []*Work, lease time.Time) []*item {
	h.mu.Lock()
	defer h.mu.Unlock()
	var fresh []*item
	var bytes int64
	for _, w := range work {
		weight := size(w.Header, w.Body)
		bytes += weight
		if h.adopt(w.Held, lease) {
			continue
		}
		it := &item{Work: *w, token: w.Token, until: lease}
		h.items[w.Held] = it
		h.bytes += weight
		fresh = append(fresh, it)
	}
	if room.full(len(work), bytes) {
		h.backlog = true
	}
	h.release(room.Deliveries-len(fresh), 0)
	return fresh
}

// adopt gives a held delivery the token under which the store has just leased it again, and reports
// whether there was one. That happens when the store was away for longer than the lease: the delivery
// still is in our workers' hands, or was done without being recorded yet, and must not begin again.
// A reported failure or hand-back is no reason: it may be recorded, and this be its next attempt.
func (h *holds) adopt(taken Held, lease time.Time) bool {
	before := taken
	before.Token--
	it := h.items[before]
	if it == nil || it.hasOutcome() && it.outcome.State != Done {
		return false
	}
	if before != it.Held {
		delete(h.items, before)
	}
	h.items[taken] = it
	it.token, it.until, it.lost = taken.Token, lease, false
	return true
}

// add registers an item whose slot is reserved.
func (h *holds) add(it *item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.items[it.Held] = it
}

// drop forgets an item and frees its slot. The caller holds the mutex.
func (h *holds) drop(it *item) {
	delete(h.items, it.Held)
	delete(h.items, it.current())
	h.release(1, size(it.Header, it.Body))
}

// close makes holds take nothing more. idle is closed when the last slot is free.
func (h *holds) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closing = true
	if h.slots == 0 {
		close(h.idle)
	}
}

// count returns how many slots are taken.
func (h *holds) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.slots
}

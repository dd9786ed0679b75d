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
	items    map[Held]*item
	outcomes []Outcome // waiting to be recorded, in order
	slots    int
	bytes    int64
	sizes    int64 // moving average of what one taken delivery weighs
	backlog  bool  // the store has, or may have, due work that found no room here
	closing  bool
}

// item is one held delivery.
type item struct {
	Work
	until     time.Time  // the end of the lease as last extended; Work.Lease belongs to the worker
	event     *heldEvent // nil when it was taken from the store
	finishing bool       // an outcome was reported
	retried   bool       // recording it failed at least once, so it may be recorded
	lost      bool       // somebody else has the delivery now
}

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
	}
}

// reserve takes the slots for all deliveries of a new event, if there is room. While older work waits
// in the store, half of the room is left to it.
func (h *holds) reserve(e *Entry) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	room, n := h.maxSlots, len(e.Destinations)
	if h.backlog {
		room /= 2
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

// room takes slots for work from the store and returns how many, at most limit. When there are none,
// what is due in the store counts as backlog.
func (h *holds) room(limit int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing || h.slots >= h.maxSlots || h.bytes >= h.maxBytes {
		h.backlog = true
		return 0
	}
	fits := (h.maxBytes - h.bytes) / max(1, h.sizes)
	n := min(limit, h.maxSlots-h.slots, int(max(1, fits)))
	h.slots += n
	h.backlog = false
	return n
}

// took registers work that was taken into the room of n slots. Full room means that there may be more.
func (h *holds) took(n int, work []*item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, it := range work {
		weight := size(it.Header, it.Body)
		h.sizes += (weight - h.sizes) / 8
		h.bytes += weight
		h.items[it.Held] = it
	}
	if len(work) == n {
		h.backlog = true
	}
	h.release(n-len(work), 0)
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

package engine

import (
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/quota"
)

// room takes slots for work from the store, and says what fits. What is due in the store counts as the
// backlog of those who have no room.
func (h *holds) room() journal.Wanted {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, bytes := h.all.free()
	if len(h.turns) > 1 { // several may come to hold more at the same time: something is left then, too
		n, bytes = min(n, int(quota.More(0, int64(h.all.maxSlots-h.all.slots)))), quota.More(0, bytes)
	}
	if h.all.backlog = n == 0; n == 0 || h.closing {
		return journal.Wanted{}
	}
	wants := h.wants()
	if len(wants) == 0 {
		return journal.Wanted{}
	}
	h.all.offer(n)
	want := journal.Wanted{Deliveries: n, Bytes: bytes}
	if h.common == nil {
		want.Destinations = wants
	}
	return want
}

// wants takes slots in the shares that have some, beginning with another one each time. The caller holds
// the mutex.
func (h *holds) wants() []journal.Want {
	wants := make([]journal.Want, 0, len(h.turns))
	for _, s := range h.turns {
		n, bytes := s.free()
		if s.backlog = n == 0; n == 0 || s.suspended(h.now) {
			continue
		}
		s.offer(n)
		wants = append(wants, journal.Want{Destination: s.name, Deliveries: n, Bytes: bytes, Stale: s.Stale, Pick: s.rest.Pick, Avoid: s.rest.Avoid})
	}
	if len(h.turns) > 0 {
		h.turns = append(h.turns[1:], h.turns[0])
	}
	return wants
}

// took registers work that was taken into room, and returns what of it is new to this process.
func (h *holds) took(room journal.Wanted, work []*journal.Work, lease time.Time) []*item {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.withdraw(room, work)
	var fresh []*item
	for _, w := range work {
		if h.adopt(w.Held, lease) {
			continue
		}
		it := &item{Work: *w, share: h.share(w.Destination), token: w.Token, until: lease}
		h.items[w.Held] = it
		h.add(it.share, 1, w.Size())
		fresh = append(fresh, it)
	}
	h.quiet()
	h.feed(h.turns...)
	return fresh
}

// withdraw frees the slots that room took. Whose room was used up may have a backlog, and all may when that
// of all was. The caller holds the mutex.
func (h *holds) withdraw(room journal.Wanted, work []*journal.Work) {
	h.all.settle()
	for _, s := range h.turns {
		s.settle()
	}
	for _, s := range h.shares { // of which some may have gone since
		s.settle()
	}
	count, weight := map[string]int{}, map[string]int64{}
	var total int64
	for _, w := range work {
		count[w.Destination]++
		weight[w.Destination] += w.Size()
		total += w.Size()
	}
	if full(room.Deliveries, room.Bytes, len(work), total) {
		h.all.backlog = true
	}
	for _, w := range room.Destinations {
		if h.all.backlog || full(w.Deliveries, w.Bytes, count[w.Destination], weight[w.Destination]) {
			h.shares[w.Destination].backlog = true
		}
	}
}

// full reports whether so many deliveries of so many bytes leave nothing of a bound, of which zero bytes
// are none.
func full(maxDeliveries int, maxBytes int64, deliveries int, bytes int64) bool {
	return deliveries >= maxDeliveries || maxBytes > 0 && bytes >= maxBytes
}

// adopt gives a held delivery the token under which the store has just leased it again, and reports
// whether there was one. That happens when the store was away for longer than the lease: the delivery
// still is in our workers' hands, or was done without being recorded yet, and must not begin again.
// A reported failure or hand-back is no reason: it may be recorded, and this be its next attempt.
func (h *holds) adopt(taken journal.Held, lease time.Time) bool {
	before := taken
	before.Token--
	it := h.items[before]
	if it == nil || it.hasOutcome() && it.outcome.State != journal.Done {
		return false
	}
	if before != it.Held {
		delete(h.items, before)
	}
	h.items[taken] = it
	it.token, it.until, it.lost = taken.Token, lease, false
	return true
}

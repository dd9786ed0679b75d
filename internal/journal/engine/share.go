package engine

import (
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/quota"
)

// share is what one destination may hold, and holds. The fields are guarded by the mutex of [holds].
type share struct {
	journal.Destination
	name     string
	maxSlots int
	maxBytes int64
	step     int    // how many come from the store at a time: the room that is left to it, too
	all      *share // what is shared with others; nil: with nobody

	slots   int // offered ones included
	offered int // reserved for the take that is under way
	bytes   int64
	backlog bool         // the store has, or may have, due work that found no room in this share
	rest    journal.Rest // by whoever delivers
	paused  bool         // by an operator
	gone    bool         // the destination is not one of ours any more
	lanes   bool         // it is, or was once, Ordered: some of what is in the store may follow others
}

// minShare is how many deliveries a destination may hold however many destinations there are.
const minShare = 128

// bound gives the share of one of so many destinations its bounds. What those of all add up to may be more
// than all is.
//
// So several divide all by the rule of package quota, and however many finish nothing, there is something
// left for the next one.
func (s *share) bound(d journal.Destination, count int, opt Options, all *share) {
	s.Destination = d
	s.lanes = s.lanes || d.Ordered
	s.maxSlots = max(minShare, opt.MaxHeld/count)
	if d.MaxHeld > 0 {
		s.maxSlots = d.MaxHeld
	}
	s.maxSlots = min(s.maxSlots, opt.MaxHeld)
	s.step = stepOf(s.maxSlots, opt.MaxBatch)
	s.all = nil
	if count > 1 {
		s.all = all
	}
}

// newShare returns one that has everything.
func newShare(name string, opt Options) *share {
	return &share{name: name, maxSlots: opt.MaxHeld, maxBytes: opt.HeldBytes, step: stepOf(opt.MaxHeld, opt.MaxBatch)}
}

// stepOf is a quarter of the slots: fresh work leaves them to what waits in the store.
func stepOf(slots, batch int) int { return max(1, min(batch, slots/4)) }

// most is how many deliveries may be held: few, while it is not known whether the destination recovered.
func (s *share) most() int {
	if s.rest.Most == 0 {
		return s.maxSlots
	}
	return min(s.rest.Most, s.maxSlots)
}

// spare returns how many slots and bytes may be added. What is offered counts as taken in all, and not as
// the destination's own.
func (s *share) spare() (slots int, bytes int64) { return s.spareOf(s.most()) }

func (s *share) spareOf(most int) (slots int, bytes int64) {
	slots, bytes = max(0, most-s.slots), max(0, s.maxBytes-s.bytes)
	if s.all != nil {
		slots = min(slots, int(quota.More(int64(s.slots-s.offered), int64(s.all.maxSlots-s.all.slots))))
		bytes = min(bytes, quota.More(s.bytes, s.all.maxBytes-s.all.bytes))
	}
	return slots, bytes
}

// takes reports whether fresh work of this weight may be held. The first may weigh as much as is free. There
// is more room for a stranger.
func (s *share) takes(weight int64, stranger bool) bool {
	most := s.most()
	if stranger {
		most = min(most+strangers, s.maxSlots)
	}
	slots, bytes := s.spareOf(most)
	if s.bytes == 0 {
		bytes = s.maxBytes
	}
	return slots > 0 && s.slots-s.offered < most-most/4 && weight <= bytes
}

// free returns how many slots can be offered to the store, and for how many bytes. There are both or none.
func (s *share) free() (slots int, bytes int64) {
	if slots, bytes = s.spare(); slots == 0 || bytes == 0 {
		return 0, 0
	}
	return min(s.step, slots), bytes
}

// worth reports whether there is room enough for asking the store: a quarter of what could be held.
func (s *share) worth() bool {
	slots, bytes := s.spare()
	return slots >= max(1, min(s.step, (s.slots+slots)/4)) && bytes > 0
}

func (s *share) add(slots int, bytes int64) {
	s.slots += slots
	s.bytes += bytes
}

func (s *share) offer(slots int) {
	s.slots += slots
	s.offered += slots
}

// settle ends an offer.
func (s *share) settle() {
	s.slots -= s.offered
	s.offered = 0
}

// suspended reports whether the destination is at rest, or gone.
func (s *share) suspended(now func() time.Time) bool {
	return s.gone || s.paused || s.rests(now)
}

// rests reports whether whoever delivers wants nothing from the store.
func (s *share) rests(now func() time.Time) bool {
	return !s.rest.Until.IsZero() && now().Before(s.rest.Until)
}

// stranger reports whether fresh work is of another kind than what failed at a destination that is not well.
func (s *share) stranger(e *journal.Event) bool {
	return s.rest.Most > 0 && !s.rest.Strict && !s.rest.Avoids(e.Source, e.Type)
}

// orders reports whether deliveries of this resource wait for each other.
func (s *share) orders(resource string) bool { return s.Ordered && resource != "" }

// compares reports whether a delivery may turn out to be stale, which the store has to say.
func (s *share) compares(resource string, rank int64) bool {
	return s.Stale && resource != "" && rank != 0
}

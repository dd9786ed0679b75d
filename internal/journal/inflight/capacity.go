package inflight

import (
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/quota"
)

// capacity is what one destination may have in flight, and has. Its fields are guarded by the mutex of [Set].
type capacity struct {
	journal.Destination
	name     string
	maxSlots int
	maxBytes int64
	step     int       // how many come from the store at a time: the room that is left to it, too
	all      *capacity // what is divided with others; nil: with nobody

	slots   int // offered ones included
	offered int // reserved for the take that is under way
	bytes   int64
	backlog bool         // the store has, or may have, due work that found no room in this capacity
	rest    journal.Rest // by whoever delivers
	paused  bool         // by an operator
	gone    bool         // the destination is not one of ours any more
}

const (
	// minSlots is how many deliveries a destination may have in flight however many destinations there are.
	minSlots = 128
	// maxProbes bounds the deliveries of fresh events that are in flight in addition to [journal.Rest.Most].
	maxProbes = 3
)

// newCapacity returns one that has everything.
func newCapacity(name string, opt *Options) *capacity {
	return &capacity{name: name, maxSlots: opt.MaxDeliveries, maxBytes: opt.MaxBytes, step: stepOf(opt.MaxDeliveries, opt.MaxBatch)}
}

// stepOf is a quarter of the slots: fresh work leaves them to what waits in the store.
func stepOf(slots, batch int) int { return max(1, min(batch, slots/4)) }

// bound gives the capacity of one of so many destinations its bounds. What those of all add up to may be more
// than all is.
//
// So several divide all by the rule of package quota, and however many finish nothing, there is something
// left for the next one.
func (c *capacity) bound(d journal.Destination, count int, opt *Options, all *capacity) {
	c.Destination = d
	c.maxSlots = min(max(minSlots, opt.MaxDeliveries/count), opt.MaxDeliveries)
	c.step = stepOf(c.maxSlots, opt.MaxBatch)
	c.all = nil
	if count > 1 {
		c.all = all
	}
}

// most is how many deliveries may be in flight: few, while it is not known whether the destination recovered.
func (c *capacity) most() int {
	if c.rest.Most == 0 {
		return c.maxSlots
	}
	return min(c.rest.Most, c.maxSlots)
}

// spare returns how many slots, of most at all, and how many bytes may be added. What is offered counts as
// taken in all, and not as the destination's own.
func (c *capacity) spare(most int) (slots int, bytes int64) {
	slots, bytes = max(0, most-c.slots), max(0, c.maxBytes-c.bytes)
	if c.all != nil {
		slots = min(slots, int(quota.More(int64(c.slots-c.offered), int64(c.all.maxSlots-c.all.slots))))
		bytes = min(bytes, quota.More(c.bytes, c.all.maxBytes-c.all.bytes))
	}
	return slots, bytes
}

// takes reports whether fresh work of this weight may be in flight. The first may weigh as much as is free.
// There is more room for a probe.
func (c *capacity) takes(weight int64, probe bool) bool {
	most := c.most()
	if probe {
		most = min(most+maxProbes, c.maxSlots)
	}
	slots, bytes := c.spare(most)
	if c.bytes == 0 {
		bytes = c.maxBytes
	}
	return slots > 0 && c.slots-c.offered < most-most/4 && weight <= bytes
}

// free returns how many slots can be offered to the store, and for how many bytes. There are both or none.
func (c *capacity) free() (slots int, bytes int64) {
	if slots, bytes = c.spare(c.most()); slots == 0 || bytes == 0 {
		return 0, 0
	}
	return min(c.step, slots), bytes
}

// worth reports whether there is room enough for asking the store: a quarter of what could be in flight.
func (c *capacity) worth() bool {
	slots, bytes := c.spare(c.most())
	return slots >= max(1, min(c.step, (c.slots+slots)/4)) && bytes > 0
}

func (c *capacity) add(slots int, bytes int64) {
	c.slots += slots
	c.bytes += bytes
}

// offer takes slots for work that the store may have, until settle.
func (c *capacity) offer(slots int) {
	c.slots += slots
	c.offered += slots
}

// settle ends an offer.
func (c *capacity) settle() {
	c.slots -= c.offered
	c.offered = 0
}

// suspended reports whether nothing is to be taken from the store: by whoever delivers, by an operator, or
// because the destination is gone.
func (c *capacity) suspended(now func() time.Time) bool { return c.gone || c.paused || c.rests(now) }

// rests reports whether whoever delivers wants nothing from the store.
func (c *capacity) rests(now func() time.Time) bool {
	return !c.rest.Until.IsZero() && now().Before(c.rest.Until)
}

// probe reports whether fresh work is of another kind than what failed at a destination that is not well, so
// that it shows whether that has recovered.
func (c *capacity) probe(e *journal.Event) bool {
	return c.rest.Most > 0 && !c.rest.Strict && !c.rest.Avoids(e.Source, e.Type)
}

// compares reports whether a delivery may turn out to be stale, which the store has to say.
func (c *capacity) compares(resource string, ranked bool) bool {
	return c.Stale && resource != "" && ranked
}

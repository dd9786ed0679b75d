package inflight

import (
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/quota"
)

// offer takes slots for work from the store, and says what fits. What is due in the store counts as the
// backlog of those who have no room.
func (d *Destinations) offer() journal.Wanted {
	n, bytes := d.all.free()
	if len(d.turns) > 1 { // several may come to have more at the same time: something is left then, too
		n, bytes = min(n, int(quota.More(0, int64(d.all.maxSlots-d.all.slots)))), quota.More(0, bytes)
	}
	if d.all.backlog = n == 0; n == 0 || d.closing {
		return journal.Wanted{}
	}
	wants := d.wants()
	if len(wants) == 0 {
		return journal.Wanted{}
	}
	d.all.offer(n)
	want := journal.Wanted{Deliveries: n, Bytes: bytes}
	if d.common == nil {
		want.Destinations = wants
	}
	return want
}

// wants takes slots of the destinations that have some, beginning with another one each time.
func (d *Destinations) wants() []journal.Want {
	wants := make([]journal.Want, 0, len(d.turns))
	for _, c := range d.turns {
		n, bytes := c.free()
		if c.backlog = n == 0; n == 0 || c.suspended(d.now) {
			continue
		}
		c.offer(n)
		wants = append(wants, journal.Want{Destination: c.name, Deliveries: n, Bytes: bytes, Stale: c.Stale, Pick: c.rest.Pick, Avoid: c.rest.Avoid})
	}
	if len(d.turns) > 0 {
		d.turns = append(d.turns[1:], d.turns[0])
	}
	return wants
}

// settle frees the slots that offer took. Whose room was used up may have a backlog, and all may when that of
// all was.
func (d *Destinations) settle(room journal.Wanted, work []*journal.Work) {
	d.all.settle()
	for _, c := range d.turns {
		c.settle()
	}
	for _, c := range d.named { // of which some may have gone since
		c.settle()
	}
	count, weight := map[string]int{}, map[string]int64{}
	var total int64
	for _, w := range work {
		count[w.Destination]++
		weight[w.Destination] += w.Size()
		total += w.Size()
	}
	if full(room.Deliveries, room.Bytes, len(work), total) {
		d.all.backlog = true
	}
	for _, w := range room.Destinations {
		if d.all.backlog || full(w.Deliveries, w.Bytes, count[w.Destination], weight[w.Destination]) {
			d.named[w.Destination].backlog = true
		}
	}
}

// full reports whether so many deliveries of so many bytes leave nothing of a bound, of which zero bytes
// are none.
func full(maxDeliveries int, maxBytes int64, deliveries int, bytes int64) bool {
	return deliveries >= maxDeliveries || maxBytes > 0 && bytes >= maxBytes
}

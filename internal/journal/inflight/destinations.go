package inflight

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Destinations are those that this process delivers to, with the capacity of each. Their mutex is that of
// the [Set] that they belong to. All methods that begin with a capital letter are safe for concurrent use;
// of the others the caller holds the mutex.
type Destinations struct {
	mu   *sync.Mutex
	opt  *Options
	now  func() time.Time
	more func() // tells the poller that there is room for a backlog

	closing bool
	all     *capacity            // what everybody has together; its backlog found no room here
	named   map[string]*capacity // those that are gone as well: some of theirs may still be in flight
	turns   []*capacity          // the others in the order in which they are offered room; begins elsewhere each time
	common  *capacity            // of every destination, when the options name none
}

func newDestinations(mu *sync.Mutex, opt *Options, more func()) *Destinations {
	d := &Destinations{mu: mu, opt: opt, now: opt.Now, more: more, all: newCapacity("", opt)}
	if opt.Destinations == nil {
		d.common = newCapacity("", opt)
		d.turns = []*capacity{d.common}
		return d
	}
	d.named = map[string]*capacity{}
	d.Reload(opt.Destinations, nil)
	return d
}

// Reload makes these the destinations, of which some may be paused. One that was not there before, or not
// any more, is not suspended.
func (d *Destinations) Reload(to map[string]journal.Destination, paused map[string]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, settings := range to {
		c := d.named[name]
		if c == nil {
			c = newCapacity(name, d.opt)
			c.gone, d.named[name] = true, c
		}
		if c.gone {
			c.gone, c.rest, c.paused = false, journal.Rest{}, paused[name]
		}
		c.bound(settings, len(to), d.opt, d.all)
	}
	for name, c := range d.named {
		if _, stays := to[name]; !stays {
			c.gone = true
		}
	}
	d.turns = slices.DeleteFunc(slices.Collect(maps.Values(d.named)), func(c *capacity) bool { return c.gone })
	slices.SortFunc(d.turns, func(a, b *capacity) int { return strings.Compare(a.name, b.name) })
}

// Suspend has little taken for a destination, or nothing, see [journal.Rest]. Those that the options do not
// name cannot be suspended.
func (d *Destinations) Suspend(destination string, r journal.Rest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.named[destination]; c != nil {
		c.rest = r
	}
}

// Pause has nothing taken for these destinations and no others. It reports whether one may begin again.
func (d *Destinations) Pause(paused map[string]bool) (resumed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, c := range d.named {
		resumed = resumed || c.paused && !paused[name]
		c.paused = paused[name]
	}
	return resumed
}

// Suspended reports whether nothing is taken for a destination at the moment.
func (d *Destinations) Suspended(destination string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.of(destination)
	return d.closing || c == nil || c.suspended(d.now)
}

// InOrder returns the destinations that deliver in order.
func (d *Destinations) InOrder() (names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, c := range d.named {
		if c.Ordered && !c.gone {
			names = append(names, name)
		}
	}
	return names
}

// Orders returns those of an event's destinations whose deliveries of it follow others.
func (d *Destinations) Orders(e *journal.Event) (names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range e.Destinations {
		if c := d.of(name); c != nil && c.Orders(e.Resource) {
			names = append(names, name)
		}
	}
	return names
}

// Compares reports whether a destination wants to know of an event whether it is stale.
func (d *Destinations) Compares(destination string, e *journal.Event) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.of(destination)
	return c != nil && c.compares(e.Resource, !e.Rank.IsZero())
}

// of returns the capacity of a destination, nil if this process never delivered to it.
func (d *Destinations) of(destination string) *capacity {
	if d.common != nil {
		return d.common
	}
	return d.named[destination]
}

// takes reports whether fresh work of this weight may be in flight.
func (d *Destinations) takes(c *capacity, e *journal.Event, weight int64) bool {
	probe := c.probe(e)
	return !d.closing && c.takes(weight, probe) && d.all.takes(weight, false) && !c.gone && !c.paused && (probe || !c.rests(d.now))
}

// add takes slots.
func (d *Destinations) add(c *capacity, slots int, bytes int64) {
	c.add(slots, bytes)
	d.all.add(slots, bytes)
}

// feed has the poller look for backlog, of these destinations or of anybody, if there is room for it.
func (d *Destinations) feed(of ...*capacity) {
	if d.closing {
		return
	}
	if d.all.backlog && d.all.worth() || slices.ContainsFunc(of, func(c *capacity) bool {
		return c.backlog && c.worth() && !c.suspended(d.now)
	}) {
		d.more()
	}
}

package journaltest

import (
	"context"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

func (c *recordSuite) sighted(seen ...journal.Sighting) {
	c.Helper()
	if err := c.records.Sighted(c.Context(), seen); err != nil {
		c.Fatalf("Sighted: %v", err)
	}
}

// sighting is one copy of an event, now.
func (c *recordSuite) sighting(id int64, kind journal.Sight) journal.Sighting {
	return journal.Sighting{EventID: id, Kind: kind, First: c.now, Last: c.now, Copies: 1}
}

var sightedCases = []recordCase{
	{"copies are recorded with their times, oldest first", func(c *recordSuite) {
		e := c.entry("evt_1")
		c.fresh(e, c.entry("evt_2"))
		first := c.sighting(e.ID, journal.SeenDuplicate)
		first.Last, first.Copies = c.now.Add(time.Second), 7
		c.sighted(first)
		c.pass(time.Minute)
		second, third := c.sighting(e.ID, journal.SeenConflict), c.sighting(e.ID, journal.SeenDuplicate)
		c.sighted(second, third)
		c.same("sightings", c.history(e.ID).Sightings, []journal.Sighting{first, second, third})
	}},
	{"copies of what is not there are left out", func(c *recordSuite) {
		e := c.entry("evt_1")
		c.fresh(e)
		c.sighted(c.sighting(e.ID-1, journal.SeenDuplicate), c.sighting(e.ID, journal.SeenDuplicate))
		c.same("sightings", c.history(e.ID).Sightings, []journal.Sighting{c.sighting(e.ID, journal.SeenDuplicate)})
		c.sighted()
	}},
	{"the last of the rows of a kind sums up what comes later", func(c *recordSuite) {
		e := c.entry("evt_1")
		c.fresh(e)
		c.sighted(c.sighting(e.ID, journal.SeenRedriven))
		for range journal.MaxSightings + 5 {
			c.sighted(c.sighting(e.ID, journal.SeenDuplicate))
			c.pass(time.Second)
		}
		seen := c.history(e.ID).Sightings
		if len(seen) != 1+journal.MaxSightings {
			c.Fatalf("%d sightings are kept", len(seen))
		}
		c.same("last", seen[len(seen)-1], journal.Sighting{EventID: e.ID, Kind: journal.SeenDuplicate, Copies: 6,
			First: start.Add((journal.MaxSightings - 1) * time.Second), Last: start.Add((journal.MaxSightings + 4) * time.Second)})
	}},
	{"they stay as long as the key and go with it", func(c *recordSuite) {
		e := c.done("evt_1")
		c.sighted(c.sighting(e.ID, journal.SeenDuplicate))
		c.pass(time.Hour)
		c.purge(journal.KindBodies, 1)
		if n := len(c.history(e.ID).Sightings); n != 1 {
			c.Fatalf("%d sightings after the body went", n)
		}
		c.purge(journal.KindIDs, 1)
		again := c.entry("evt_1", func(n *journal.Entry) { n.ID = e.ID })
		c.fresh(again)
		if n := len(c.history(e.ID).Sightings); n != 0 {
			c.Errorf("%d sightings of an event that went", n)
		}
	}},
	{"none is lost when several processes record at once", func(c *recordSuite) {
		a, b := c.entry("a"), c.entry("b")
		c.fresh(a, b)
		const writers, rounds = 4, 15
		stores := []journal.Records{c.records}
		for c.f.Shared && len(stores) < writers {
			stores = append(stores, c.f.Open(c).(journal.Records))
		}
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				for range rounds {
					batch := []journal.Sighting{c.sighting(a.ID, journal.SeenDuplicate), c.sighting(b.ID, journal.SeenDuplicate)}
					if err := stores[i%len(stores)].Sighted(context.WithoutCancel(c.Context()), batch); err != nil {
						c.Error(err)
					}
				}
			})
		}
		all.Wait()
		for _, id := range []int64{a.ID, b.ID} {
			seen, copies := c.history(id).Sightings, 0
			for _, s := range seen {
				copies += s.Copies
			}
			if copies != writers*rounds || len(seen) > journal.MaxSightings {
				c.Errorf("%d copies in %d rows, want %d in at most %d", copies, len(seen), writers*rounds, journal.MaxSightings)
			}
		}
	}},
}

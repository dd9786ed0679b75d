package journaltest

import (
	"fmt"
	"math"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// wanted asks for plenty to some destinations.
func wanted(destinations ...string) journal.Wanted {
	w := journal.Wanted{Deliveries: 100, Destinations: []journal.Want{}}
	for _, d := range destinations {
		w.Destinations = append(w.Destinations, journal.Want{Destination: d, Deliveries: 100})
	}
	return w
}

var takeCases = []testCase{
	{"at most limit, oldest due first", func(c *suite) {
		for _, key := range []string{"a", "b", "c", "d"} {
			c.fresh(c.entry(key))
			c.pass(time.Millisecond)
		}
		c.takeKeys(0)
		c.takeKeys(3, "a", "b", "c")
		c.takeKeys(3, "d")
		c.takeKeys(3)
	}},
	{"who vouched is kept, in an ordering group and out of it", func(c *suite) {
		vouched := func(n int16, edit ...func(*journal.Record)) *journal.Record {
			return c.entry(fmt.Sprint(n), append(edit, func(e *journal.Record) { e.Vouched = n })...)
		}
		batches := [][]*journal.Record{{vouched(0), vouched(1), vouched(math.MaxInt16)}, {vouched(2), vouched(3, of("invoice_1"))}}
		for _, batch := range batches {
			c.fresh(batch...)
			for _, w := range c.take(10) {
				if fmt.Sprint(w.Vouched) != w.Key {
					c.Errorf("took %s as vouched for by %d", w.Key, w.Vouched)
				}
				c.finish1(c.outcome(w, journal.Done), true)
			}
		}
		c.open(nil)
	}},
	{"nothing more once there are bytes enough", func(c *suite) {
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			c.fresh(c.entry(key, func(e *journal.Record) {
				e.Header, e.Facts, e.Body = make([]byte, 60), make([]byte, 40), make([]byte, 900)
			}))
		}
		c.takeWanted(journal.Wanted{Deliveries: 10, Bytes: 1}, "a")
		c.takeWanted(journal.Wanted{Deliveries: 10, Bytes: 1001}, "b", "c")
		c.takeWanted(journal.Wanted{Deliveries: 1, Bytes: 5000}, "d")
		c.open(map[journal.State]int64{journal.Processing: 4, journal.Pending: 1})
		c.takeWanted(journal.Wanted{Deliveries: 10, Bytes: 1000}, "e")
	}},
	{"only for the wanted destinations", func(c *suite) {
		c.fresh(c.entry("a", to("app")), c.entry("b", to("audit")), c.entry("c", to("app", "audit")), c.entry("d", to(`a"p'p`)))
		c.takeWanted(journal.Wanted{Deliveries: 10, Destinations: []journal.Want{}})
		c.takeWanted(wanted("other"))
		c.takeWanted(wanted("audit", "other"), "b", "c")
		c.takeWanted(wanted(`a"p'p`, "other"), "d")
		c.open(map[journal.State]int64{journal.Processing: 3, journal.Pending: 2})
		c.takeWanted(journal.Wanted{Deliveries: 10}, "a", "c")
	}},
	{"of each destination as much as is wanted of it", func(c *suite) {
		for i := range 5 {
			c.fresh(c.entry(fmt.Sprintf("a%d", i), to("a")), c.entry(fmt.Sprintf("b%d", i), to("b")), c.entry(fmt.Sprintf("c%d", i), to("c")))
			c.pass(time.Millisecond)
		}
		w := wanted("b", "a")
		w.Destinations[0].Deliveries, w.Destinations[1].Deliveries = 2, 1
		c.takeAll(w, "a0", "b0", "b1")
		w.Deliveries = 1
		c.takeAll(w, "b2")
		w.Deliveries = 10
		w.Destinations[1] = journal.Want{Destination: "a", Deliveries: 10, Bytes: 1}
		c.takeAll(w, "a1", "b3", "b4")
		w.Bytes = 1
		c.takeAll(w, "a2")
		c.takeAll(wanted("c"), "c0", "c1", "c2", "c3", "c4")
		c.open(map[journal.State]int64{journal.Processing: 13, journal.Pending: 2})
	}},
	{"a retry takes its place by its due time", func(c *suite) {
		c.fresh(c.entry("retry"))
		o := c.outcome(c.take1("retry"), journal.Failed)
		o.Due = c.now.Add(2 * time.Millisecond)
		c.finish1(o, true)
		c.pass(time.Millisecond)
		c.fresh(c.entry("before"))
		c.pass(2 * time.Millisecond)
		c.fresh(c.entry("after"))
		c.takeKeys(10, "before", "retry", "after")
	}},
	{"what is not due yet stays", func(c *suite) {
		c.fresh(c.entry("evt_1"))
		c.now = c.now.Add(-time.Millisecond)
		c.takeKeys(10)
		c.now = c.now.Add(time.Millisecond)
		c.takeKeys(10, "evt_1")
	}},
	{"work whose lease ran out is taken over under the next token", func(c *suite) {
		e := c.stored("evt_1")
		stale := c.take1("evt_1")
		for i := range 3 {
			c.pass(lease - time.Millisecond)
			c.takeKeys(10)
			c.pass(time.Millisecond)
			c.matches(c.take1("evt_1"), e, journal.Held{EventID: e.ID, Destination: "app", Token: int64(i) + 2}, 1)
		}
		c.finish1(c.outcome(stale, journal.Done), false)
		c.open(map[journal.State]int64{journal.Processing: 1})
	}},
	{"takes whose answers are lost cost no tries", func(c *suite) {
		c.fresh(c.entry("plain"), c.entry("grouped", of("a")))
		again := func(token int64, tries int, s journal.State) {
			for range 13 {
				c.takeAll(wanted("app"), "grouped", "plain") // nobody hears of it
				c.pass(lease)
			}
			for _, w := range c.takeAll(wanted("app"), "grouped", "plain") {
				if w.Token != token || w.Tries != tries {
					c.Errorf("%s has token %d, try %d; want %d, %d", w.Key, w.Token, w.Tries, token, tries)
				}
				c.finish1(c.outcome(w, s), true)
			}
			c.pass(time.Minute)
		}
		again(14, 1, journal.Failed)
		again(28, 2, journal.Pending) // which takes back what was counted, and no more
		again(42, 2, journal.Dead)
	}},
	{"failed work comes back when it is due", func(c *suite) {
		e := c.stored("evt_1")
		c.finish1(c.outcome(c.take1("evt_1"), journal.Failed), true)
		c.pass(time.Minute - time.Millisecond)
		c.takeKeys(10)
		c.pass(time.Millisecond)
		c.matches(c.take1("evt_1"), e, journal.Held{EventID: e.ID, Destination: "app", Token: 2}, 2)
	}},
	{"dead work does not come back", func(c *suite) {
		c.fresh(c.entry("evt_1"))
		c.finish1(c.outcome(c.take1("evt_1"), journal.Dead), true)
		c.pass(1000 * time.Hour)
		c.takeKeys(10)
		c.open(map[journal.State]int64{journal.Dead: 1})
	}},
	{"each destination is leased by itself", func(c *suite) {
		c.fresh(c.entry("evt_1", to("a", "b")))
		first, second := c.take1("evt_1"), c.take1("evt_1")
		if first.Destination == second.Destination {
			c.Fatalf("took the delivery to %s twice", first.Destination)
		}
		c.finish1(c.outcome(first, journal.Done), true)
		c.open(map[journal.State]int64{journal.Processing: 1})
	}},
	{"work without a body becomes dead and is not returned", func(c *suite) {
		lost, kept := c.entry("lost"), c.entry("kept")
		c.fresh(lost, kept)
		c.f.DropBody(c, lost.ID)
		c.takeKeys(10, "kept")
		c.open(map[journal.State]int64{journal.Processing: 1, journal.Dead: 1})
		c.takeKeys(10)
	}},
	{"an unkeyed event is delivered without a key", func(c *suite) {
		e := c.stored("")
		c.matches(c.take1(""), e, journal.Held{EventID: e.ID, Destination: "app", Token: 1}, 1)
	}},
	{"many are taken in many bites, each once", func(c *suite) {
		c.storedMany(250)
		seen := map[journal.Held]bool{}
		for work := c.take(40); len(work) > 0; work = c.take(40) {
			for _, w := range work {
				if seen[w.Held] {
					c.Fatalf("took %+v twice", w.Held)
				}
				seen[w.Held] = true
			}
		}
		if len(seen) != 250 {
			c.Fatalf("took %d deliveries of 250", len(seen))
		}
	}},
}

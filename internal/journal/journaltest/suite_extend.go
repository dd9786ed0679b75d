package journaltest

import (
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

func (c *suite) extend(lease time.Time, held ...journal.Held) []bool {
	c.Helper()
	still, err := c.store.Extend(c.Context(), held, lease)
	c.ok("Extend", err)
	return still
}

var extendCases = []testCase{
	{"an extended lease keeps others away", func(c *suite) {
		c.fresh(c.entry("evt_1"))
		w := c.take1("evt_1")
		c.pass(lease / 2)
		c.same("Extend", c.extend(c.now.Add(lease), w.Held), []bool{true})
		c.pass(lease - time.Millisecond)
		c.takeKeys(10)
		c.pass(time.Millisecond)
		c.takeKeys(10, "evt_1")
	}},
	{"a lease that ran out is extended while nobody took the work over", func(c *suite) {
		c.fresh(c.entry("evt_1"))
		w := c.take1("evt_1")
		c.pass(2 * lease)
		if still := c.extend(c.now.Add(lease), w.Held); !still[0] {
			c.Fatal("the work is not held any more although nobody took it")
		}
		c.takeKeys(10)
	}},
	{"a lease can be made shorter", func(c *suite) {
		c.fresh(c.entry("evt_1"))
		c.extend(c.now.Add(time.Second), c.take1("evt_1").Held)
		c.pass(time.Second)
		c.takeKeys(10, "evt_1")
	}},
	{"stale, finished, waiting and unknown work is not held", func(c *suite) {
		stale, finished, failed, current := c.entry("stale"), c.entry("finished"), c.entry("failed"), c.entry("current")
		c.fresh(stale, finished, failed, current)
		works := map[string]*journal.Work{}
		for _, w := range c.take(10) {
			works[w.Key] = w
		}
		c.finish(c.outcome(works["finished"], journal.Done), c.outcome(works["failed"], journal.Failed))
		held := works["current"].Held
		other := held
		other.Destination = "elsewhere"
		old := works["stale"].Held
		old.Token--
		still := c.extend(c.now.Add(2*lease), old, works["finished"].Held, works["failed"].Held, held,
			other, journal.Held{EventID: 1, Destination: "app", Token: 1}, held)
		c.same("Extend", still, []bool{false, false, false, true, false, false, true})
		c.pass(lease)
		c.takeKeys(10, "stale")
	}},
	{"nothing to extend is nothing", func(c *suite) {
		if still := c.extend(c.now); len(still) != 0 {
			c.Fatalf("Extend = %v", still)
		}
	}},
}

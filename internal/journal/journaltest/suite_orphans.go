package journaltest

import (
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

func (c *suite) orphans(want int) {
	c.Helper()
	n, err := c.store.Orphans(c.Context(), c.now)
	if err != nil || n != want {
		c.Fatalf("Orphans = %d, %v; want %d", n, err, want)
	}
}

var orphanCases = []testCase{
	{"processing work of a dead process is due at once, if the store can know", func(c *suite) {
		e := c.entry("held", hold)
		c.fresh(e, c.entry("waiting"), c.entry("failed"))
		for _, w := range c.takeKeys(10, "waiting", "failed") {
			c.finish1(c.outcome(w, map[string]journal.State{"waiting": journal.Pending, "failed": journal.Failed}[w.Key]), true)
		}
		c.store = c.f.Open(c)
		c.pass(time.Second)
		if c.f.Shared {
			c.orphans(0)
			c.takeKeys(10)
			return
		}
		c.orphans(1)
		c.matches(c.takeKeys(10, "held")[0], e, journal.Held{EventID: e.ID, Destination: "app", Token: 2}, 1)
	}},
	{"an empty journal has no orphans", func(c *suite) { c.orphans(0) }},
}

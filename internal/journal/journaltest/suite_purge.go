package journaltest

import (
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// never is older than every event: nothing is purged.
var never time.Time

func (c *suite) purge(bodies, events time.Time, limit int) journal.Purged {
	c.Helper()
	p, err := c.store.Purge(c.Context(), bodies, events, limit)
	if err != nil {
		c.Fatalf("Purge: %v", err)
	}
	if p.Bodies > limit || p.Events > limit {
		c.Fatalf("Purge deleted %+v, the limit is %d", p, limit)
	}
	return p
}

// done stores an event and finishes it.
func (c *suite) done(key string) *journal.Entry {
	c.Helper()
	e := c.entry(key)
	c.fresh(e)
	c.finish1(c.outcome(c.take1(key), journal.Done), true)
	return e
}

var purgeCases = []testCase{
	{"bodies go with their attempts and the key stays", func(c *suite) {
		e := c.done("evt_1")
		c.pass(time.Hour)
		if p := c.purge(c.now, never, 10); p != (journal.Purged{Bodies: 1}) {
			c.Fatalf("Purge = %+v", p)
		}
		c.attempts(e)
		c.accept1(c.entry("evt_1"), journal.Result{Status: journal.Duplicate, ID: e.ID, Done: true})
		if p := c.purge(c.now, never, 10); p != (journal.Purged{}) {
			c.Fatalf("a second Purge = %+v", p)
		}
	}},
	{"events go and their keys are new again", func(c *suite) {
		c.done("evt_1")
		c.pass(time.Hour)
		c.purge(c.now, never, 10)
		if p := c.purge(c.now, c.now, 10); p.Events != 1 {
			c.Fatalf("Purge = %+v", p)
		}
		c.fresh(c.entry("evt_1"))
	}},
	{"an event takes its body and attempts along", func(c *suite) {
		e := c.done("evt_1")
		c.pass(time.Hour)
		if p := c.purge(c.now, c.now, 10); p.Events != 1 {
			c.Fatalf("Purge = %+v", p)
		}
		c.attempts(e)
		again := c.entry("evt_1", func(n *journal.Entry) { n.ID = e.ID })
		c.fresh(again)
		c.matches(c.take1("evt_1"), again, journal.Held{EventID: e.ID, Destination: "app", Token: 1}, 1)
	}},
	{"what is younger stays", func(c *suite) {
		c.done("old")
		c.pass(time.Hour)
		limit := c.now
		young := c.done("young")
		if p := c.purge(limit, limit, 10); p.Events != 1 {
			c.Fatalf("Purge = %+v", p)
		}
		c.fresh(c.entry("old"))
		c.accept1(c.entry("young"), journal.Result{Status: journal.Duplicate, ID: young.ID, Done: true})
		c.attempts(young, journal.Outcome{Held: journal.Held{EventID: young.ID, Destination: "app", Token: 1},
			State: journal.Done, Status: 204, Started: young.ReceivedAt, Duration: 1500 * time.Microsecond})
	}},
	{"events with an open delivery stay whole", purgeOpen},
	{"at most limit rows in a call, and all of them in the end", func(c *suite) {
		for i := range 7 {
			c.done(fmt.Sprintf("evt_%d", i))
		}
		c.pass(time.Hour)
		c.drain(func() int { return c.purge(c.now, never, 3).Bodies }, 3, 3, 1, 0)
		c.drain(func() int { return c.purge(never, c.now, 2).Events }, 2, 2, 2, 1, 0)
	}},
}

// drain expects these numbers from successive calls.
func (c *suite) drain(call func() int, want ...int) {
	c.Helper()
	for i, w := range want {
		if got := call(); got != w {
			c.Fatalf("call %d deleted %d rows, want %d", i, got, w)
		}
	}
}

// purgeOpen purges beside one event in each open state, and one of two destinations.
func purgeOpen(c *suite) {
	entries := map[string]*journal.Entry{}
	for _, key := range []string{"processing", "failed", "dead", "half"} {
		entries[key] = c.entry(key)
		if key == "half" {
			entries[key].Destinations = []string{"a", "b"}
		}
		c.fresh(entries[key])
	}
	for _, w := range c.take(10) {
		switch {
		case w.Key == "failed", w.Key == "dead":
			c.finish1(c.outcome(w, journal.State(w.Key)), true)
		case w.Key == "half" && w.Destination == "a":
			c.finish1(c.outcome(w, journal.Done), true)
		}
	}
	entries["pending"] = c.entry("pending")
	c.fresh(entries["pending"])
	c.pass(time.Hour)
	if p := c.purge(c.now, c.now, 100); p != (journal.Purged{}) {
		c.Fatalf("Purge = %+v", p)
	}
	c.accept(c.entry("dead"))
	if got := len(c.take(10)); got != 5 {
		c.Fatalf("%d deliveries can be taken, want 5 with their bodies", got)
	}
	c.open(map[journal.State]int64{journal.Processing: 5})
}

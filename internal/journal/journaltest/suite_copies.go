package journaltest

import (
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

var copyCases = []testCase{
	{"a copy changes nothing", func(c *suite) {
		e := c.stored("evt_1")
		c.pass(time.Second)
		c.accept1(c.entry("evt_1", to("app", "other"), hold), journal.Result{Status: journal.Duplicate, ID: e.ID})
		c.matches(c.takeKeys(10, "evt_1")[0], e, journal.Held{EventID: e.ID, Destination: "app", Token: 1}, 1)
	}},
	{"a copy with another digest is a conflict and the first stands", func(c *suite) {
		e := c.stored("evt_1")
		c.accept1(c.entry("evt_1", otherContent), journal.Result{Status: journal.Conflict, ID: e.ID})
		c.accept1(c.entry("evt_1", func(e *journal.Record) { e.Digest = nil }), journal.Result{Status: journal.Conflict, ID: e.ID})
		c.matches(c.takeKeys(10, "evt_1")[0], e, journal.Held{EventID: e.ID, Destination: "app", Token: 1}, 1)
	}},
	{"a copy of processing work does not disturb it", func(c *suite) {
		e := c.stored("evt_1", hold)
		c.accept1(c.entry("evt_1"), journal.Result{Status: journal.Duplicate, ID: e.ID})
		c.takeKeys(10)
		c.finish1(journal.Outcome{Held: journal.Held{EventID: e.ID, Destination: "app", Token: 1}, State: journal.Done, Started: c.now}, true)
	}},
	{"a copy of done work says so", func(c *suite) {
		e := c.stored("evt_1")
		c.finish1(c.outcome(c.take1("evt_1"), journal.Done), true)
		c.accept1(c.entry("evt_1"), journal.Result{Status: journal.Duplicate, ID: e.ID, Done: true})
		c.takeKeys(10)
	}},
	{"what the tries follow is known with each", func(c *suite) {
		c.fresh(c.entry("evt_1"))
		expect := func(want journal.Origin) *journal.Work {
			c.Helper()
			w := c.take1("evt_1")
			if w.Origin != want {
				c.Errorf("try %d under token %d is %v, want %v", w.Tries, w.Token, w.Origin, want)
			}
			return w
		}
		c.finish1(c.outcome(expect(journal.OriginFresh), journal.Pending), true)
		c.pass(time.Minute)
		c.finish1(c.outcome(expect(journal.OriginFresh), journal.Failed), true)
		c.pass(time.Minute)
		c.finish1(c.outcome(expect(journal.OriginFresh), journal.Failed), true)
		c.accept(c.entry("evt_1"))
		c.finish1(c.outcome(expect(journal.OriginRedriven), journal.Dead), true)
		c.replays(c.asked(journal.Filter{}), journal.Replayed{Events: 1, Deliveries: 1})
		c.finish1(c.outcome(expect(journal.OriginReplayed), journal.Dead), true)
		c.accept(c.entry("evt_1"))
		c.finish1(c.outcome(expect(journal.OriginRedriven), journal.Done), true)
		c.replays(c.asked(journal.Filter{}, force), journal.Replayed{Events: 1, Deliveries: 1, Forced: 1})
		expect(journal.OriginReplayed)
	}},
	{"a copy re-drives failed work at once", func(c *suite) { redrive(c, journal.Failed) }},
	{"a copy re-drives dead work at once", func(c *suite) { redrive(c, journal.Dead) }},
	{"a conflicting copy re-drives too", func(c *suite) {
		e := c.stored("evt_1")
		c.finish1(c.outcome(c.take1("evt_1"), journal.Dead), true)
		c.accept1(c.entry("evt_1", func(e *journal.Record) { e.Digest = []byte("x") }),
			journal.Result{Status: journal.Conflict, ID: e.ID, Redriven: true})
		c.matches(c.take1("evt_1"), e, journal.Held{EventID: e.ID, Destination: "app", Token: 2}, 1)
	}},
	{"a copy re-drives only the destinations that failed", func(c *suite) {
		e := c.stored("evt_1", to("bad", "good", "slow"))
		for _, w := range c.take(10) {
			switch w.Destination {
			case "bad":
				c.finish1(c.outcome(w, journal.Failed), true)
			case "good":
				c.finish1(c.outcome(w, journal.Done), true)
			}
		}
		c.accept1(c.entry("evt_1"), journal.Result{Status: journal.Duplicate, ID: e.ID, Redriven: true})
		c.open(map[journal.State]int64{journal.Pending: 1, journal.Processing: 1})
		if w := c.take1("evt_1"); w.Destination != "bad" {
			c.Fatalf("took the delivery to %s", w.Destination)
		}
	}},
	{"the same key twice in a batch is new once", func(c *suite) {
		e := c.entry("evt_1")
		other := c.entry("evt_1", func(e *journal.Record) { e.Digest = []byte("x") })
		done := c.entry("evt_2", to())
		c.same("results", c.accept(e, c.entry("evt_1"), other, done, c.entry("evt_2")), []journal.Result{
			{Status: journal.Accepted, ID: e.ID},
			{Status: journal.Duplicate, ID: e.ID},
			{Status: journal.Conflict, ID: e.ID},
			{Status: journal.Accepted, ID: done.ID},
			{Status: journal.Duplicate, ID: done.ID, Done: true},
		})
		c.takeKeys(10, "evt_1")
	}},
	{"two copies in a batch compare with what is stored and re-drive once", func(c *suite) {
		e := c.stored("evt_1")
		c.finish1(c.outcome(c.take1("evt_1"), journal.Failed), true)
		other := c.entry("evt_1", func(e *journal.Record) { e.Digest = []byte("x") })
		c.same("results", c.accept(other, c.entry("evt_1")), []journal.Result{
			{Status: journal.Conflict, ID: e.ID, Redriven: true},
			{Status: journal.Duplicate, ID: e.ID},
		})
	}},
	{"new entries and copies share a batch", func(c *suite) {
		c.stored("old")
		a, b := c.entry("a"), c.entry("z")
		results := c.accept(a, c.entry("old"), b, c.entry(""))
		for i, want := range []journal.Status{journal.Accepted, journal.Duplicate, journal.Accepted, journal.Unkeyed} {
			if results[i].Status != want {
				c.Errorf("entry %d: %+v, want it to be %s", i, results[i], want)
			}
		}
		c.open(map[journal.State]int64{journal.Pending: 4})
	}},
}

// redrive checks that a copy makes work due that ended in state s, with its tries counted anew and
// the fence raised.
func redrive(c *suite, s journal.State) {
	e := c.stored("evt_1")
	w := c.take1("evt_1")
	c.finish1(c.outcome(w, s), true)
	c.open(map[journal.State]int64{s: 1})
	c.takeKeys(10)
	c.pass(time.Second)
	c.accept1(c.entry("evt_1"), journal.Result{Status: journal.Duplicate, ID: e.ID, Redriven: true})
	c.open(map[journal.State]int64{journal.Pending: 1})
	c.accept1(c.entry("evt_1"), journal.Result{Status: journal.Duplicate, ID: e.ID})
	c.matches(c.take1("evt_1"), e, journal.Held{EventID: e.ID, Destination: "app", Token: 2}, 1)
	c.finish1(c.outcome(w, journal.Done), false)
}

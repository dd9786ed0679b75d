package journaltest

import (
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// ranked makes an entry one about a resource in one of its versions.
func ranked(resource string, rank int64) func(*journal.Record) {
	return func(e *journal.Record) { e.Resource, e.Rank = resource, hookonce.Version(rank) }
}

// compared takes one delivery of a key to app, and expects it to be stale or not.
func (c *suite) compared(key string, stale bool) *journal.Work {
	c.Helper()
	w := c.takeAll(journal.Wanted{Deliveries: 1, Destinations: []journal.Want{{Destination: "app", Deliveries: 1, Stale: true}}}, key)[0]
	if w.Stale != stale {
		c.Errorf("%s of %v is stale: %v, want %v", key, w.Rank, w.Stale, stale)
	}
	return w
}

// raise records that a delivery is done, and its rank.
func (c *suite) raise(w *journal.Work) {
	c.Helper()
	o := c.outcome(w, journal.Done)
	o.Group, o.Rank = w.Group(), w.Rank
	c.finish1(o, true)
}

var staleCases = []testCase{
	{"resource and rank are kept", func(c *suite) {
		e := c.entry("v", ranked("a", -7))
		c.fresh(e, c.entry("none"))
		for i, w := range c.takeKeys(10, "v", "none") {
			if want := []*journal.Event{e.Event, {}}[i]; w.Resource != want.Resource || w.Rank != want.Rank || w.Stale || w.LogicalDuplicateKey != "" || w.Forced {
				c.Errorf("took %+v", w)
			}
		}
	}},
	{"stale is what has a lower rank than the newest that was delivered", func(c *suite) {
		c.fresh(c.entry("v2", ranked("a", 2)))
		c.raise(c.compared("v2", false))
		for _, v := range []struct {
			key   string
			rank  hookonce.Rank
			stale bool
		}{
			{"v1", hookonce.Version(1), true}, {"v2 again", hookonce.Version(2), false}, {"unknown", hookonce.Rank{}, false},
			{"v3", hookonce.Version(3), false}, {"v2 late", hookonce.Version(2), true}, {"v2 last", hookonce.Version(2), true},
			{"v0", hookonce.Version(0), true}, {"before", hookonce.Version(-1), true},
		} {
			c.fresh(c.entry(v.key, func(e *journal.Record) { e.Resource, e.Rank = "a", v.rank }))
			c.raise(c.compared(v.key, v.stale))
		}
	}},
	{"resources and destinations have ranks of their own", func(c *suite) {
		c.fresh(c.entry("v9", ranked("a", 9)))
		c.raise(c.compared("v9", false))
		c.fresh(c.entry("v1", ranked("b", 1)))
		c.raise(c.compared("v1", false))
		c.fresh(c.entry("v8", to("audit"), ranked("a", 8)))
		w := journal.Wanted{Deliveries: 1, Destinations: []journal.Want{{Destination: "audit", Deliveries: 1, Stale: true}}}
		if c.takeAll(w, "v8")[0].Stale {
			c.Error("what one destination got makes stale what another gets")
		}
	}},
	{"sources have ranks of their own", func(c *suite) {
		shop := func(e *journal.Record) { e.Source = "shop" }
		c.fresh(c.entry("v9", ranked("a", 9)))
		c.raise(c.compared("v9", false))
		c.fresh(c.entry("shop v1", ranked("a", 1), shop))
		c.raise(c.compared("shop v1", false))
		c.fresh(c.entry("v8", ranked("a", 8)), c.entry("shop v0", ranked("a", -1), shop))
		c.compared("v8", true)
		c.compared("shop v0", true)
	}},
	{"a rank of another kind is not compared, and takes the place of the newest", func(c *suite) {
		at := func(n int64) func(*journal.Record) {
			return func(e *journal.Record) { e.Resource, e.Rank = "a", hookonce.Timestamp(time.UnixMicro(n)) }
		}
		c.fresh(c.entry("at 900", at(900)))
		c.raise(c.compared("at 900", false))
		c.fresh(c.entry("v12", ranked("a", 12)))
		c.raise(c.compared("v12", false))
		c.fresh(c.entry("v11", ranked("a", 11)), c.entry("at 10", at(10)))
		c.compared("v11", true)
		c.raise(c.compared("at 10", false))
		c.fresh(c.entry("at 9", at(9)), c.entry("v1", ranked("a", 1)))
		c.compared("at 9", true)
		c.compared("v1", false)
	}},
	{"what older programs recorded counts for the source and the resource of its event", func(c *suite) {
		shop := func(e *journal.Record) { e.Source = "shop" }
		c.fresh(c.entry("v9", ranked("a", 9)))
		c.raise(c.compared("v9", false))
		c.fresh(c.entry("v8", ranked("a", 8))) // waits since then, too
		c.f.RanksOfOlder(c)
		c.compared("v8", true)
		for _, e := range []struct {
			*journal.Record
			stale bool
		}{
			{c.entry("v7", ranked("a", 7)), true}, {c.entry("v9 again", ranked("a", 9)), false},
			{c.entry("shop v1", ranked("a", 1), shop), false}, {c.entry("b v1", ranked("billing/a", 1)), false},
		} {
			c.fresh(e.Record)
			c.compared(e.Key, e.stale)
		}
	}},
	{"only what is done counts, and only under a current token", func(c *suite) {
		c.fresh(c.entry("v9", ranked("a", 9)))
		w := c.take1("v9")
		for _, s := range []journal.State{journal.Failed, journal.Dead, journal.Pending, journal.Done} {
			o := c.outcome(w, s)
			o.Group, o.Rank = w.Group(), w.Rank
			o.Token += map[bool]int64{true: 1}[s == journal.Done] // not current
			c.finish1(o, s == journal.Failed)
		}
		c.fresh(c.entry("v1", ranked("a", 1)))
		c.compared("v1", false)
	}},
	{"nobody is told who did not ask", func(c *suite) {
		c.fresh(c.entry("v2", ranked("a", 2)))
		c.raise(c.compared("v2", false))
		c.fresh(c.entry("v1", ranked("a", 1)))
		if c.take1("v1").Stale {
			c.Error("compared for a destination that did not ask for it")
		}
	}},
	{"several of one resource in one call leave the highest", func(c *suite) {
		c.fresh(c.entry("v2", ranked("a", 2)), c.entry("v9", ranked("a", 9)), c.entry("v5", ranked("a", 5)))
		var outcomes []journal.Outcome
		for _, w := range c.takeKeys(10, "v2", "v9", "v5") {
			o := c.outcome(w, journal.Done)
			o.Group, o.Rank = w.Group(), w.Rank
			outcomes = append(outcomes, o)
		}
		c.finish(outcomes...)
		c.fresh(c.entry("v8", ranked("a", 8)))
		c.compared("v8", true)
	}},
	{"a rank is forgotten with the event that had it", func(c *suite) {
		c.fresh(c.entry("v9", ranked("a", 9)))
		c.raise(c.compared("v9", false))
		c.pass(time.Hour)
		c.purge(journal.KindRanks, 1)
		c.fresh(c.entry("v1", ranked("a", 1)))
		c.compared("v1", false)
	}},
	{"ranks that were numbered by a clock that was ahead are forgotten when they are old", func(c *suite) {
		c.pass(5 * 365 * 24 * time.Hour)
		c.entry("ahead")
		c.pass(-5 * 365 * 24 * time.Hour)
		c.fresh(c.entry("v9", ranked("a", 9)))
		c.raise(c.compared("v9", false))
		for _, want := range []int{0, 1} { // as old as what is to stay, and older
			p := everyone(journal.KindRanks, c.now, 10)
			p.Ahead, p.Now = true, c.now
			if got := c.purgeStep(p); got.Deleted != want {
				c.Fatalf("%+v, want %d", got, want)
			}
			c.pass(time.Hour)
			c.purge(journal.KindRanks, 0) // by identifier none is
		}
		c.fresh(c.entry("v1", ranked("a", 1)))
		c.compared("v1", false)
	}},
	{"ordering groups compare as well", func(c *suite) {
		c.fresh(c.entry("v2", ranked("a", 2), of("a")), c.entry("v1", ranked("a", 1), of("a")))
		c.raise(c.compared("v2", false))
		c.compared("v1", true)
	}},
}

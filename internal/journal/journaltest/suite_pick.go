package journaltest

import (
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// picks takes at most n that are preferred, and expects these keys, the order aside.
func (c *suite) picks(n int, avoid []journal.Class, want ...string) []*journal.Work {
	c.Helper()
	return c.takeAll(journal.Wanted{Deliveries: n, Destinations: []journal.Want{{Destination: "app", Deliveries: n, Pick: true, Avoid: avoid}}}, want...)
}

// kind gives an entry a source, a type and a resource.
func kind(source, kind, resource string) func(*journal.Record) {
	return func(e *journal.Record) { e.Source, e.Type, e.Resource = source, kind, resource }
}

// fail fails a delivery, which is due again in a millisecond.
func (c *suite) fail(w *journal.Work, spared bool) {
	c.Helper()
	o := c.outcome(w, journal.Failed)
	o.Due, o.Spared = c.now.Add(time.Millisecond), spared
	c.finish1(o, true)
	c.pass(time.Millisecond)
}

var pickCases = []testCase{
	{"a spared failure is on record, and costs no try", func(c *suite) {
		e := c.stored("evt_1")
		o := c.outcome(c.take1("evt_1"), journal.Failed)
		o.Spared, o.Error, o.Status = true, "status 503", 503
		c.finish1(o, true)
		c.open(map[journal.State]int64{journal.Failed: 1})
		o.Spared = false // which is what is recorded of it
		c.attempts(e, o)
		c.pass(time.Hour)
		c.matches(c.take1("evt_1"), e, journal.Held{EventID: e.ID, Destination: "app", Token: 2}, 1)
	}},
	{"of several outcomes those that are spared are", func(c *suite) {
		for _, key := range []string{"a", "b", "c"} {
			c.fresh(c.entry(key))
		}
		var outcomes []journal.Outcome
		for i, w := range c.take(10) {
			o := c.outcome(w, journal.Failed)
			o.Spared = i == 1
			outcomes = append(outcomes, o)
		}
		c.finish(outcomes...)
		c.pass(time.Hour)
		for _, w := range c.take(10) {
			want := 2
			if w.EventID == outcomes[1].EventID {
				want = 1
			}
			if w.Tries != want {
				c.Errorf("%s is at its try %d, want %d", w.Key, w.Tries, want)
			}
		}
	}},
	{"picked is what was never tried before what was, the newest first", func(c *suite) {
		c.fresh(c.entry("tried"))
		c.fail(c.take1("tried"), false)
		c.fresh(c.entry("spared"))
		c.picks(0, nil)
		c.fail(c.picks(1, nil, "spared")[0], true)
		c.fresh(c.entry("old"), c.entry("new"))
		c.pass(time.Millisecond)
		c.picks(1, nil, "new")
		c.picks(2, nil, "old", "spared")
		c.picks(10, nil, "tried")
		c.picks(10, nil)
	}},
	{"picked is another type, source and resource than what failed", func(c *suite) {
		failed := []journal.Class{{Source: "billing", Type: "a", Resource: "1"}, {Source: "billing", Type: "b", Resource: "2"}}
		c.fresh(c.entry("other source", kind("shop", "a", "")))
		c.fresh(c.entry("other type", kind("billing", "c", "1")))
		c.fresh(c.entry("other resource", kind("billing", "b", "3")))
		c.fresh(c.entry("all the same", kind("billing", "a", "1")), c.entry("without", kind("billing", "b", "")))
		c.picks(1, failed, "other source")
		c.picks(1, failed, "other type")
		c.picks(2, failed, "other resource", "without")
		c.picks(1, failed, "all the same")
	}},
	{"of an ordering group only the head is picked", func(c *suite) {
		c.fresh(c.entry("first", of("r")), c.entry("second", of("r")), c.entry("other", of("s")))
		c.fail(c.picks(1, nil, "other")[0], true)
		head := c.picks(1, nil, "first")[0]
		c.picks(10, nil, "other")
		c.fail(head, true)
		c.finish1(c.outcome(c.picks(10, nil, "first")[0], journal.Done), true)
		c.picks(10, nil, "second")
	}},
	{"a head that is not due yet is not picked, and not what is behind it", func(c *suite) {
		c.fresh(c.entry("first", of("r")), c.entry("second", of("r")), c.entry("free"))
		o := c.outcome(c.picks(1, []journal.Class{{Source: "none"}}, "free")[0], journal.Done)
		c.finish1(o, true)
		o = c.outcome(c.picks(1, nil, "first")[0], journal.Failed)
		o.Due = c.now.Add(time.Second)
		c.finish1(o, true)
		c.picks(10, nil)
		c.pass(time.Second)
		c.takeKeys(10, "first")
	}},
	{"work whose lease ran out is picked", func(c *suite) {
		c.fresh(c.entry("free", hold), c.entry("queued", of("r")))
		c.picks(10, nil, "queued")
		c.picks(10, nil)
		c.pass(lease)
		c.picks(10, nil, "free", "queued")
	}},
	{"picked work without a body becomes dead", func(c *suite) {
		lost := c.entry("lost")
		c.fresh(c.entry("kept"), lost)
		c.f.DropBody(c, lost.ID)
		c.picks(10, nil, "kept")
		c.open(map[journal.State]int64{journal.Processing: 1, journal.Dead: 1})
	}},
	{"something is found among a thousand that failed", func(c *suite) {
		c.storedMany(1000)
		var outcomes []journal.Outcome
		for _, w := range c.take(1000) {
			o := c.outcome(w, journal.Failed)
			o.Due = c.now.Add(time.Duration(len(outcomes)) * time.Millisecond)
			outcomes = append(outcomes, o)
		}
		c.finish(outcomes...)
		c.pass(2 * time.Second)
		c.fresh(c.entry("healthy"))
		c.picks(1, []journal.Class{{Source: "billing", Type: "invoice.paid"}}, "healthy")
	}},
	{"destinations of which it is picked and others are taken in one call", func(c *suite) {
		c.fresh(c.entry("a1"), c.entry("a2"), c.entry("b1", to("b")), c.entry("b2", to("b")), c.entry("c1", to("c")))
		w := wanted("b", "app", "c")
		w.Destinations[1].Pick, w.Destinations[1].Deliveries = true, 1
		c.takeAll(w, "a2", "b1", "b2", "c1")
		w.Deliveries = 0
		c.takeAll(w)
	}},
	{"what is picked shares the bytes of the call, and those of its destination", func(c *suite) {
		c.fresh(c.entry("a", to("a")), c.entry("b", to("b")), c.entry("c", to("c")), c.entry("free"), c.entry("in a group", of("r")))
		w := wanted("a", "b", "c", "app")
		for i := range w.Destinations {
			w.Destinations[i].Pick = i > 0
		}
		w.Destinations[3].Bytes = 1
		for _, key := range []string{"a", "b", "c", "in a group", "free"} {
			w.Bytes = 1
			c.takeAll(w, key)
		}
		c.takeAll(w)
		w.Bytes = 1 << 20
		c.pass(lease)
		c.takeAll(w, "a", "b", "c", "in a group")
	}},
	{"the bytes of a call are used up in the order that is wanted, picked or not", func(c *suite) {
		c.fresh(c.entry("a", to("a")), c.entry("b", to("b")), c.entry("c", to("c")))
		w := wanted("a", "b", "c")
		for i := range w.Destinations {
			w.Destinations[i].Pick = i != 1
		}
		for _, key := range []string{"a", "b", "c"} {
			w.Bytes = 1
			c.takeAll(w, key)
		}
	}},
}

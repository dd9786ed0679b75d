package journaltest

import (
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// of makes an entry one about a resource whose deliveries follow each other.
func of(resource string) func(*journal.Record) {
	return func(e *journal.Record) { e.Resource, e.Ordered = resource, e.Destinations }
}

// succeed finishes work well.
func (c *suite) succeed(w *journal.Work) {
	c.Helper()
	c.finish1(c.outcome(w, journal.Done), true)
}

var orderCases = []testCase{
	{"the deliveries of a resource follow each other, oldest first", func(c *suite) {
		c.fresh(c.entry("a1", of("a")), c.entry("a2", of("a")))
		c.pass(time.Millisecond)
		c.fresh(c.entry("a3", of("a")))
		for _, key := range []string{"a1", "a2", "a3"} {
			w := c.takeKeys(10, key)[0]
			if w.Resource != "a" || !w.Ordered {
				c.Errorf("%s: resource %q, ordered %t", key, w.Resource, w.Ordered)
			}
			c.takeKeys(10)
			c.succeed(w)
		}
		c.open(nil)
	}},
	{"other resources, other destinations and events without a resource are not held up", func(c *suite) {
		c.fresh(c.entry("a1", of("a")))
		c.takeKeys(10, "a1")
		c.fresh(c.entry("a2", of("a")), c.entry("b1", of("b")), c.entry("none"),
			c.entry("elsewhere", to("audit"), of("a")), c.entry("unordered", func(e *journal.Record) { e.Resource = "a" }))
		for _, w := range c.takeAll(wanted("app", "audit"), "b1", "elsewhere", "none", "unordered") {
			if w.Ordered != (w.Key == "b1" || w.Key == "elsewhere") {
				c.Errorf("%s: ordered %t", w.Key, w.Ordered)
			}
		}
		c.takeAll(wanted("app", "audit"))
	}},
	{"sources have ordering groups of their own", func(c *suite) {
		shop := func(e *journal.Record) { e.Source = "shop" }
		c.fresh(c.entry("a1", of("a")), c.entry("shop a1", of("a"), shop))
		first := c.takeKeys(10, "a1", "shop a1")[0]
		c.fresh(c.entry("a2", of("a")), c.entry("shop a2", of("a"), shop))
		c.takeKeys(10)
		c.succeed(first)
		c.takeKeys(10, "a2")
	}},
	{"the same resource of several destinations is delivered to each by itself", func(c *suite) {
		c.fresh(c.entry("a1", to("x", "y"), of("a")), c.entry("a2", to("x", "y"), of("a")))
		first := c.takeAll(wanted("x", "y"), "a1", "a1")
		c.succeed(first[0])
		second := c.takeAll(wanted("x", "y"), "a2")
		if second[0].Destination != first[0].Destination {
			c.Errorf("took a2 to %s, where a1 is under way", second[0].Destination)
		}
	}},
	{"an event may be ordered for one destination and held for another", func(c *suite) {
		c.fresh(c.entry("a1", to("app", "audit"), func(e *journal.Record) {
			e.Resource, e.Ordered, e.Hold = "a", []string{"app"}, []string{"audit"}
		}))
		c.open(map[journal.State]int64{journal.Processing: 1, journal.Pending: 1})
		if w := c.take1("a1"); w.Destination != "app" || w.Token != 1 {
			c.Errorf("took %+v", w.Held)
		}
	}},
	{"what failed blocks its resource until it is done", func(c *suite) {
		c.fresh(c.entry("a1", of("a")), c.entry("a2", of("a")))
		c.finish1(c.outcome(c.take1("a1"), journal.Failed), true)
		c.takeKeys(10)
		c.fresh(c.entry("a3", of("a")))
		c.pass(time.Minute - time.Millisecond)
		c.takeKeys(10)
		c.pass(time.Millisecond)
		w := c.takeKeys(10, "a1")[0]
		if w.Token != 2 || w.Tries != 2 {
			c.Errorf("token %d, try %d; want 2, 2", w.Token, w.Tries)
		}
		c.succeed(w)
		c.takeKeys(10, "a2")
	}},
	{"what is dead blocks nothing", func(c *suite) {
		c.fresh(c.entry("a1", of("a")), c.entry("a2", of("a")))
		c.finish1(c.outcome(c.take1("a1"), journal.Dead), true)
		c.succeed(c.take1("a2"))
		c.open(map[journal.State]int64{journal.Dead: 1})
		c.takeKeys(10)
		c.fresh(c.entry("a3", of("a")))
		c.succeed(c.take1("a3"))
	}},
	{"what was handed back keeps its turn", func(c *suite) {
		c.fresh(c.entry("a1", of("a")), c.entry("a2", of("a")))
		o := c.outcome(c.take1("a1"), journal.Pending)
		o.Started, o.Due = time.Time{}, c.now.Add(time.Second)
		c.finish1(o, true)
		c.takeKeys(10)
		c.pass(time.Second)
		c.takeKeys(10, "a1")
	}},
	{"work whose lease ran out is taken over before anything else", func(c *suite) {
		c.fresh(c.entry("a1", of("a")), c.entry("a2", of("a")))
		stale := c.take1("a1")
		c.pass(lease)
		w := c.takeKeys(10, "a1")[0]
		c.finish1(c.outcome(stale, journal.Done), false)
		c.takeKeys(10)
		c.succeed(w)
		c.takeKeys(10, "a2")
	}},
	{"work that is extended keeps its turn", func(c *suite) {
		c.fresh(c.entry("a1", of("a")), c.entry("a2", of("a")))
		w := c.take1("a1")
		for range 5 {
			c.pass(lease / 2)
			if still, err := c.store.Extend(c.Context(), []journal.Held{w.Held}, c.now.Add(lease)); err != nil || !still[0] {
				c.Fatal(still, err)
			}
			c.takeKeys(10)
		}
		c.succeed(w)
		c.takeKeys(10, "a2")
	}},
	{"an older event that is stored later waits for the one under way", func(c *suite) {
		older, younger := c.entry("older", of("a")), c.entry("younger", of("a"))
		c.fresh(younger)
		c.take1("younger")
		c.fresh(older)
		c.takeKeys(10)
		c.pass(lease)
		c.succeed(c.takeKeys(10, "younger")[0]) // it may still be under way
		c.takeKeys(10, "older")
	}},
	{"an older event that is stored later comes before what failed", func(c *suite) {
		first, older, younger := c.entry("first", of("a")), c.entry("older", of("a")), c.entry("younger", of("a"))
		c.fresh(younger)
		w := c.take1("younger")
		c.fresh(older)
		c.finish1(c.outcome(w, journal.Failed), true)
		c.finish1(c.outcome(c.takeKeys(10, "older")[0], journal.Failed), true)
		c.takeKeys(10)
		c.fresh(first)
		c.succeed(c.takeKeys(10, "first")[0])
		c.takeKeys(10)
		c.pass(time.Hour)
		c.takeKeys(10, "older")
	}},
	{"what is re-driven waits for what is under way", func(c *suite) {
		c.fresh(c.entry("a1", of("a")), c.entry("a2", of("a")), c.entry("a3", of("a")))
		c.finish1(c.outcome(c.take1("a1"), journal.Dead), true)
		w := c.take1("a2")
		if res := c.accept(c.entry("a1"))[0]; !res.Redriven {
			c.Fatalf("%+v, want it re-driven", res)
		}
		c.takeKeys(10)
		c.succeed(w)
		c.succeed(c.takeKeys(10, "a1")[0])
		c.succeed(c.takeKeys(10, "a3")[0])
	}},
	{"the last of a resource is re-driven when all of it was dead", func(c *suite) {
		c.fresh(c.entry("a1", of("a")))
		c.finish1(c.outcome(c.take1("a1"), journal.Dead), true)
		c.takeAll(wanted("app"))
		c.accept(c.entry("a1"))
		c.takeAll(wanted("app"), "a1")
	}},
	{"a delivery whose body is gone does not block", func(c *suite) {
		e := c.entry("a1", of("a"))
		c.fresh(e, c.entry("a2", of("a")))
		c.f.DropBody(c, e.ID)
		c.takeKeys(10)
		c.takeKeys(10, "a2")
		c.open(map[journal.State]int64{journal.Dead: 1, journal.Processing: 1})
	}},
	{"only for the wanted destinations, and as much as is wanted", func(c *suite) {
		for i := range 4 {
			c.fresh(c.entry(fmt.Sprintf("a%d", i), of(fmt.Sprintf("r%d", i))))
			c.pass(time.Millisecond)
		}
		c.takeAll(wanted("audit"))
		w := wanted("app")
		w.Destinations[0].Deliveries = 1
		c.takeAll(w, "a0")
		w.Destinations[0] = journal.Want{Destination: "app", Deliveries: 10, Bytes: 1}
		c.takeAll(w, "a1")
		w.Destinations[0].Bytes, w.Bytes = 0, 1
		c.takeAll(w, "a2")
		c.takeAll(wanted("app"), "a3")
	}},
	{"neither ordering groups nor what is in none starves the other", func(c *suite) {
		for i := range 20 {
			c.fresh(c.entry(fmt.Sprintf("group%d", i), of(fmt.Sprintf("r%d", i))), c.entry(fmt.Sprintf("free%d", i)))
		}
		w := wanted("app")
		w.Destinations[0].Deliveries = 10
		seen := map[bool]int{}
		for _, w := range c.takeSome(w) {
			seen[w.Resource != ""]++
		}
		if seen[true] != 5 || seen[false] != 5 {
			c.Errorf("took %d from ordering groups, %d others; want 5 each", seen[true], seen[false])
		}
	}},
	{"orphans in ordering groups are due at once, if the store can know", func(c *suite) {
		c.fresh(c.entry("a1", of("a")), c.entry("a2", of("a")))
		c.take1("a1")
		c.store = c.f.Open(c)
		c.pass(time.Second)
		if c.f.Shared {
			return
		}
		c.orphans(1)
		c.takeKeys(10, "a1")
	}},
	{"a backlog drains in order", drain},
}

// drain takes 40 resources of up to 8 events in small bites, with failures, and expects each resource in
// its order.
func drain(c *suite) {
	var want []string
	for i := range 8 {
		var batch []*journal.Record
		for r := range 40 {
			if i <= r%8 {
				batch = append(batch, c.entry(fmt.Sprintf("r%02d_%d", r, i), of(fmt.Sprintf("r%02d", r))))
			}
		}
		c.fresh(batch...)
		c.pass(time.Millisecond)
		for _, e := range batch {
			want = append(want, e.Key)
		}
	}
	slices.Sort(want)
	var got []string
	for round := 0; len(got) < len(want); round++ {
		work := c.take(7)
		if len(work) == 0 {
			c.pass(time.Minute)
		}
		if round > 10*len(want) {
			c.Fatalf("after %d rounds %d of %d are done", round, len(got), len(want))
		}
		for i, w := range work {
			if (round+i)%5 == 0 {
				c.finish1(c.outcome(w, journal.Failed), true)
				continue
			}
			c.succeed(w)
			got = append(got, w.Key)
		}
	}
	slices.SortStableFunc(got, func(a, b string) int { return slices.Compare([]byte(a[:3]), []byte(b[:3])) })
	if !slices.Equal(got, want) {
		c.Errorf("delivered %q", got)
	}
	c.open(nil)
}

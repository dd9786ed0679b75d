package journaltest

import (
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// orderingGroupCases replay what is in ordering groups. They take for the destination by name, as gateways do: only then are
// ordering groups looked at in which nothing waits, and forgotten, so that a replay must open them again.
var orderingGroupCases = []testCase{
	{"what is replayed by force keeps its place in its ordering group", func(c *suite) {
		c.fresh(c.entry("old", of("cus_1")))
		c.finish1(c.outcome(c.takeApp("old")[0], journal.Done), true)
		c.fresh(c.entry("young", of("cus_1")))
		c.replays(c.asked(journal.Filter{}, force, inOrder), journal.Replayed{Events: 2, Deliveries: 1, Forced: 1, Open: 1})
		c.finish1(c.outcome(c.takeApp("old")[0], journal.Done), true)
		c.takeApp("young")
	}},
	{"what is replayed by force opens its ordering group again", func(c *suite) {
		c.fresh(c.entry("evt_1", of("cus_1")))
		c.finish1(c.outcome(c.takeApp("evt_1")[0], journal.Done), true)
		c.takeApp()
		c.replays(c.asked(journal.Filter{}, force, inOrder), journal.Replayed{Events: 1, Deliveries: 1, Forced: 1})
		c.takeApp("evt_1")
	}},
	{"dead ones of an ordering group take their turn again", func(c *suite) {
		c.fresh(c.entry("old", of("cus_1")), c.entry("young", of("cus_1")))
		c.finish1(c.outcome(c.takeApp("old")[0], journal.Dead), true)
		c.finish1(c.outcome(c.takeApp("young")[0], journal.Dead), true)
		c.takeApp()
		c.replays(c.asked(journal.Filter{}), journal.Replayed{Events: 2, Deliveries: 2})
		c.finish1(c.outcome(c.takeApp("old")[0], journal.Done), true)
		c.takeApp("young")
	}},
	{"a failed one of an ordering group does not wait for its time", func(c *suite) {
		c.fresh(c.entry("evt_1", of("cus_1")))
		c.finish1(c.outcome(c.takeApp("evt_1")[0], journal.Failed), true)
		c.takeApp()
		c.replays(c.asked(journal.Filter{}), journal.Replayed{Events: 1, Deliveries: 1})
		c.takeApp("evt_1")
	}},
	{"a rate holds up no resource", func(c *suite) {
		c.fresh(c.entry("a1", of("a")), c.entry("b1", of("b")), c.entry("c1"), c.entry("d1", of("d")))
		for _, w := range c.takeAll(wanted("app"), "a1", "b1", "c1", "d1") {
			state := journal.Dead
			if w.Key == "d1" {
				state = journal.Done
			}
			c.finish1(c.outcome(w, state), true)
		}
		c.fresh(c.entry("b2", of("b")), c.entry("d2", of("d")))
		c.replays(c.asked(journal.Filter{}, force, inOrder, func(r *journal.Replay) { r.Rate = 0.01 }),
			journal.Replayed{Events: 6, Deliveries: 4, Forced: 1, Open: 2})
		c.finishAll(c.takeAll(wanted("app"), "a1", "b1", "d1"), journal.Done)
		c.finishAll(c.takeAll(wanted("app"), "b2", "d2"), journal.Done)
		c.pass(200*time.Second - time.Microsecond)
		c.takeAll(wanted("app"))
		c.pass(time.Microsecond)
		c.takeAll(wanted("app"), "c1")
	}},
}

// inOrder has the destination app deliver in order.
func inOrder(r *journal.Replay) { r.Ordered = []string{"app"} }

// takeApp takes plenty for the destination app and expects deliveries of these keys, in order.
func (c *suite) takeApp(want ...string) []*journal.Work {
	c.Helper()
	return c.takeWanted(wanted("app"), want...)
}

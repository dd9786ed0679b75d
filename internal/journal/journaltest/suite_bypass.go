package journaltest

import (
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

func (c *suite) recordBypassed(outcomes ...journal.Outcome) {
	c.Helper()
	c.ok("RecordBypassed", c.store.RecordBypassed(c.Context(), outcomes))
}

// bypassed is the outcome of a delivery that was made past the store.
func (c *suite) bypassed(e *journal.Record, destination string) journal.Outcome {
	return journal.Outcome{
		Held: journal.Held{EventID: e.ID, Destination: destination}, State: journal.Done,
		Status: 202, Started: c.now, Duration: 1500 * time.Microsecond,
	}
}

// under is an outcome under a token, as it is recorded.
func under(token int64, o journal.Outcome) journal.Outcome {
	o.Token = token
	return o
}

var bypassCases = []testCase{
	{"what was delivered past the store leaves an attempt, once", func(c *suite) {
		e := c.stored("evt_1", to())
		o := c.bypassed(e, "app")
		c.recordBypassed(o)
		c.recordBypassed(o)
		c.open(nil)
		c.attempts(e, under(1, o))
	}},
	{"what was delivered past the store and done before has an attempt more, once", func(c *suite) {
		e := c.stored("evt_1")
		failed := c.outcome(c.take1("evt_1"), journal.Failed)
		c.finish1(failed, true)
		c.pass(time.Minute)
		done := c.outcome(c.take1("evt_1"), journal.Done)
		c.finish1(done, true)
		c.pass(time.Minute)
		first := c.bypassed(e, "app")
		c.pass(time.Minute)
		second := c.bypassed(e, "app") // by another process
		c.recordBypassed(first)
		c.recordBypassed(second)
		c.recordBypassed(first)
		c.open(nil)
		c.attempts(e, failed, done, under(3, first), under(4, second))
		c.replays(c.asked(journal.Filter{}, force), journal.Replayed{Events: 1, Deliveries: 1, Forced: 1})
		again := c.outcome(c.take1("evt_1"), journal.Done)
		c.finish1(again, true)
		c.attempts(e, failed, done, under(3, first), under(4, second), under(6, again))
	}},
	{"an open delivery ends, whatever its state", func(c *suite) {
		for _, state := range []journal.State{journal.Pending, journal.Processing, journal.Failed, journal.Dead} {
			e := c.stored("evt_" + string(state))
			var w *journal.Work
			var before []journal.Outcome
			if state != journal.Pending {
				w = c.take1(e.Key)
			}
			if state == journal.Failed || state == journal.Dead {
				before = append(before, c.outcome(w, state))
				c.finish1(before[0], true)
			}
			o := c.bypassed(e, "app")
			c.recordBypassed(o)
			c.open(nil)
			c.recordBypassed(o)
			if w == nil {
				c.attempts(e, under(1, o))
				continue
			}
			c.finish1(c.outcome(w, journal.Done), false)
			c.attempts(e, append(before, under(2, o))...)
		}
		c.pass(24 * time.Hour)
		c.takeKeys(10)
	}},
	{"a copy that went past the store makes nothing due", func(c *suite) {
		bypassed := func(e *journal.Record) { e.Bypassed = true }
		for _, state := range []journal.State{journal.Failed, journal.Dead} {
			key := "evt_" + string(state)
			e := c.stored(key, to("app", "other"))
			c.finishAll(c.takeKeys(10, key, key), state)
			c.accept1(c.entry(key, to("other"), bypassed), journal.Result{Status: journal.Duplicate, ID: e.ID})
			c.accept1(c.entry(key, to(), bypassed, otherContent), journal.Result{Status: journal.Conflict, ID: e.ID})
			c.open(map[journal.State]int64{state: 2})
			c.takeKeys(10)
			c.recordBypassed(c.bypassed(e, "app"))
			c.same("results", c.accept(c.entry(key, to(), bypassed), c.entry(key)), []journal.Result{
				{Status: journal.Duplicate, ID: e.ID},
				{Status: journal.Duplicate, ID: e.ID, Redriven: true},
			})
			w := c.take1(key)
			if w.Destination != "other" {
				c.Fatalf("took the delivery to %s", w.Destination)
			}
			c.finish1(c.outcome(w, journal.Done), true)
		}
	}},
	{"a copy that went past the store makes nothing due of the logical duplicate that stands for it", func(c *suite) {
		first, second := c.entry("first", saying("paid")), c.entry("second", saying("paid"), orDrop)
		c.fresh(first)
		c.finish1(c.outcome(c.take1("first"), journal.Dead), true)
		second.Bypassed = true
		c.logicalDuplicateOf(first, second)
		again := c.entry("second", saying("paid"), orDrop)
		again.Bypassed = true
		c.accept1(again, journal.Result{Status: journal.Duplicate, ID: second.ID})
		c.takeKeys(10)
	}},
	{"a copy that went past the store supplies the digest of an event from a list", func(c *suite) {
		e := c.stored("evt_1", listed)
		c.finish1(c.outcome(c.take1("evt_1"), journal.Dead), true)
		bypassed := c.entry("evt_1", content("a"), to())
		bypassed.Bypassed = true
		c.accept1(bypassed, journal.Result{Status: journal.Duplicate, ID: e.ID})
		c.takeKeys(10)
		c.recordBypassed(c.bypassed(e, "app"))
		c.accept1(c.entry("evt_1", content("b")), journal.Result{Status: journal.Conflict, ID: e.ID, Done: true})
	}},
	{"other destinations of the event are left alone", func(c *suite) {
		e := c.stored("evt_1", to("app", "other"))
		c.recordBypassed(c.bypassed(e, "app"))
		if w := c.take(10); len(w) != 1 || w[0].Destination != "other" {
			c.Fatalf("took %v", w)
		}
	}},
	{"the next of the resource has its turn", func(c *suite) {
		first, second := c.entry("first", of("invoice_1")), c.entry("second", of("invoice_1"))
		c.fresh(first, second)
		c.takeKeys(10, "first")
		c.takeKeys(10)
		c.recordBypassed(c.bypassed(first, "app"))
		c.takeKeys(10, "second")
	}},
	{"whoever has the turn keeps it", func(c *suite) {
		first, second, third := c.entry("first", of("invoice_1")), c.entry("second", of("invoice_1")), c.entry("third", of("invoice_1"))
		c.fresh(first, second, third)
		c.finish1(c.outcome(c.take1("first"), journal.Dead), true)
		turn := c.take1("second")
		c.accept(c.entry("first", of("invoice_1"))) // begins again, after the second
		c.recordBypassed(c.bypassed(first, "app"))
		c.takeKeys(10)
		c.finish1(c.outcome(turn, journal.Done), true)
		c.takeKeys(10, "third")
	}},
	{"the next does not wait for what was to be tried again", func(c *suite) {
		first, second := c.entry("first", of("invoice_1")), c.entry("second", of("invoice_1"))
		c.fresh(first, second)
		c.finish1(c.outcome(c.take1("first"), journal.Failed), true)
		c.takeKeys(10)
		c.recordBypassed(c.bypassed(first, "app"))
		c.takeKeys(10, "second")
	}},
	{"its rank is the newest", func(c *suite) {
		e := c.stored("new", ranked("invoice_1", 2), to())
		o := c.bypassed(e, "app")
		o.Group, o.Rank = e.Group(), e.Rank
		c.recordBypassed(o)
		c.fresh(c.entry("old", ranked("invoice_1", 1)))
		w := c.takeSome(journal.Wanted{Deliveries: 1, Destinations: []journal.Want{{Destination: "app", Deliveries: 1, Stale: true}}})
		if len(w) != 1 || !w[0].Stale {
			c.Fatalf("took %+v, want it to be stale", w)
		}
	}},
}

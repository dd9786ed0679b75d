package journaltest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// saying gives an entry a logical key.
func saying(logical string) func(*journal.Record) {
	return func(e *journal.Record) { e.LogicalKey = logical }
}

// orDrop has an entry dropped if it is a logical duplicate.
func orDrop(e *journal.Record) { e.DropLogicalDuplicate = true }

// logicalDuplicateOf accepts an entry, and expects it to be the logical duplicate of first.
func (c *suite) logicalDuplicateOf(first, e *journal.Record) {
	c.Helper()
	c.accept1(e, journal.Result{Status: journal.Accepted, ID: e.ID, LogicalDuplicateOf: first.ID, LogicalDuplicateKey: first.Key})
}

var logicalDuplicateCases = []testCase{
	{"a later event with the same logical key is a logical duplicate of the first, and delivered as such", func(c *suite) {
		first := c.stored("evt_1", saying("paid"))
		c.logicalDuplicateOf(first, c.entry("evt_2", saying("paid")))
		c.logicalDuplicateOf(first, c.entry("evt_3", saying("paid"), hold))
		for i, w := range c.takeKeys(10, "evt_1", "evt_2") {
			if want := []string{"", "evt_1"}[i]; w.LogicalDuplicateKey != want {
				c.Errorf("%s is a logical duplicate of %q, want %q", w.Key, w.LogicalDuplicateKey, want)
			}
		}
		c.open(map[journal.State]int64{journal.Processing: 3})
	}},
	{"copies are not logical duplicates", func(c *suite) {
		first, second := c.entry("evt_1", saying("paid")), c.entry("evt_2", saying("paid"))
		c.fresh(first)
		c.logicalDuplicateOf(first, second)
		c.accept1(c.entry("evt_1", saying("paid")), journal.Result{Status: journal.Duplicate, ID: first.ID})
		c.accept1(c.entry("evt_2", saying("paid")), journal.Result{Status: journal.Duplicate, ID: second.ID})
	}},
	{"logical keys are scoped by source, and none is no logical key", func(c *suite) {
		c.fresh(c.entry("evt_1", saying("paid")), c.entry("evt_2", saying("PAID")), c.entry("evt_3"), c.entry("evt_4"),
			c.entry("evt_5", saying("paid"), func(e *journal.Record) { e.Source = "shop" }))
	}},
	{"without a key of its own an event is no logical duplicate and has none", func(c *suite) {
		c.fresh(c.entry("", saying("paid")), c.entry("", saying("paid"), orDrop), c.entry("evt_1", saying("paid")),
			c.entry("", saying("paid"), orDrop), c.changed(saying("paid"), orDrop))
		c.open(map[journal.State]int64{journal.Pending: 5})
	}},
	{"logical duplicates in one batch", func(c *suite) {
		e := []*journal.Record{c.entry("evt_3", saying("paid")), c.entry("evt_1", saying("paid")),
			c.entry("evt_2", saying("paid"), orDrop), c.entry("evt_2", saying("paid"), orDrop)}
		want := []journal.Result{
			{Status: journal.Accepted, ID: e[0].ID},
			{Status: journal.Accepted, ID: e[1].ID, LogicalDuplicateOf: e[0].ID, LogicalDuplicateKey: "evt_3"},
			{Status: journal.Accepted, ID: e[2].ID, LogicalDuplicateOf: e[0].ID, LogicalDuplicateKey: "evt_3"},
			{Status: journal.Duplicate, ID: e[2].ID},
		}
		for i, got := range c.accept(e...) {
			if got != want[i] {
				c.Errorf("entry %d: %+v, want %+v", i, got, want[i])
			}
		}
		c.takeAll(wanted("app"), "evt_1", "evt_3")
	}},
	{"a dropped logical duplicate is stored without deliveries", func(c *suite) {
		first, second := c.entry("evt_1", saying("paid")), c.entry("evt_2", saying("paid"), orDrop, hold)
		c.fresh(first)
		c.logicalDuplicateOf(first, second)
		c.open(map[journal.State]int64{journal.Pending: 1})
		c.accept1(c.entry("evt_2"), journal.Result{Status: journal.Duplicate, ID: second.ID})
		c.succeed(c.takeKeys(10, "evt_1")[0])
		c.accept1(c.entry("evt_2"), journal.Result{Status: journal.Duplicate, ID: second.ID, Done: true})
		c.open(nil)
	}},
	{"a dropped logical duplicate re-drives what failed of the first", func(c *suite) { logicalDuplicateRedrives(c, journal.Failed) }},
	{"a dropped logical duplicate re-drives what is dead of the first", func(c *suite) { logicalDuplicateRedrives(c, journal.Dead) }},
	{"a flagged logical duplicate leaves the first alone", func(c *suite) {
		first, second := c.entry("evt_1", saying("paid")), c.entry("evt_2", saying("paid"))
		c.fresh(first)
		c.finish1(c.outcome(c.take1("evt_1"), journal.Dead), true)
		c.logicalDuplicateOf(first, second)
		c.succeed(c.takeKeys(10, "evt_2")[0])
		c.accept1(c.entry("evt_2"), journal.Result{Status: journal.Duplicate, ID: second.ID, Done: true})
		c.open(map[journal.State]int64{journal.Dead: 1})
	}},
	{"an event that was refused owns nothing", func(c *suite) {
		c.f.Refuse(c, "poison")
		second := c.entry("evt_2", saying("paid"), orDrop)
		results := c.accept(c.entry("poison", saying("paid")), second)
		if results[0].Err == nil || results[1] != (journal.Result{Status: journal.Accepted, ID: second.ID}) {
			c.Errorf("%+v", results)
		}
		c.takeKeys(10, "evt_2")
	}},
	{"a logical key is free when its event is purged", func(c *suite) {
		c.fresh(c.entry("evt_1", saying("paid")))
		c.succeed(c.take1("evt_1"))
		c.pass(time.Hour)
		c.purge(journal.KindIDs, 1)
		second := c.stored("evt_2", saying("paid"))
		c.logicalDuplicateOf(second, c.entry("evt_3", saying("paid")))
	}},
	{"the first may have nothing to deliver", func(c *suite) {
		first := c.stored("evt_1", saying("paid"), to())
		second := c.entry("evt_2", saying("paid"), orDrop)
		c.logicalDuplicateOf(first, second)
		c.accept1(c.entry("evt_2"), journal.Result{Status: journal.Duplicate, ID: second.ID, Done: true})
	}},
}

// logicalDuplicateRedrives lets the delivery of the first end in s, and logical duplicates and their copies come after that.
func logicalDuplicateRedrives(c *suite, s journal.State) {
	first, second := c.entry("evt_1", saying("paid")), c.entry("evt_2", saying("paid"), orDrop)
	c.fresh(first)
	c.finish1(c.outcome(c.take1("evt_1"), s), true)
	c.accept1(second, journal.Result{Status: journal.Accepted, ID: second.ID, LogicalDuplicateOf: first.ID, LogicalDuplicateKey: "evt_1", Redriven: true})
	c.finish1(c.outcome(c.take1("evt_1"), s), true)
	c.accept1(c.entry("evt_2"), journal.Result{Status: journal.Duplicate, ID: second.ID, Redriven: true})
	c.succeed(c.take1("evt_1"))
	c.accept1(c.entry("evt_2"), journal.Result{Status: journal.Duplicate, ID: second.ID, Done: true})
}

// logicalDuplicateStorm has all workers accept events that say the same in pairs of another order: each logical key
// has one owner, and everybody else is its logical duplicate.
func logicalDuplicateStorm(c *suite) {
	const logical = 100
	var mu sync.Mutex
	owner, later := map[string]int64{}, map[string][]int64{}
	parallel(func(worker int) {
		for _, some := range [][]int{rand.Perm(logical), rand.Perm(logical)} {
			var batch []*journal.Record
			for i, k := range some {
				batch = append(batch, c.entry(fmt.Sprintf("evt_%d_%d_%d", worker, k, rand.Int()), saying(fmt.Sprintf("says_%d", k))))
				batch[i].DropLogicalDuplicate = k%2 == 0
			}
			results, err := c.store.Accept(c.Context(), batch, c.now, c.now.Add(lease))
			if err != nil {
				c.Errorf("Accept: %v", err)
				return
			}
			mu.Lock()
			for i, r := range results {
				if says := batch[i].LogicalKey; r.LogicalDuplicateOf != 0 {
					later[says] = append(later[says], r.LogicalDuplicateOf)
				} else if owner[says] != 0 {
					c.Errorf("%s has two owners", says)
				} else {
					owner[says] = r.ID
				}
			}
			mu.Unlock()
		}
	})
	for says, all := range later {
		for _, id := range all {
			if id != owner[says] {
				c.Errorf("%s: a logical duplicate of %d, but %d owns it", says, id, owner[says])
			}
		}
	}
	// Half of them are delivered once, the others by every worker in both rounds.
	c.open(map[journal.State]int64{journal.Pending: logical/2 + logical/2*2*workers})
}

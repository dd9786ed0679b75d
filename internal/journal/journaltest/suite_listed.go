package journaltest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// listed makes an entry one from the provider's list.
func listed(e *journal.Record) {
	e.Listed, e.Digest, e.Header, e.Body = true, nil, nil, []byte(`{"listed":true}`)
}

// content gives an entry a digest of its own.
func content(digest string) func(*journal.Record) {
	return func(e *journal.Record) { e.Digest = []byte(digest) }
}

// duplicate expects an entry to be a copy of a stored one, which has open deliveries.
func (c *suite) duplicate(e, first *journal.Record) {
	c.Helper()
	c.accept1(e, journal.Result{Status: journal.Duplicate, ID: first.ID})
}

var listedCases = []testCase{
	{"a new key from a list is stored whole, due at once, and said to be from there", func(c *suite) {
		e := c.stored("evt_1", listed)
		w := c.take1("evt_1")
		c.matches(w, e, journal.Held{EventID: e.ID, Destination: "app", Token: 1}, 1)
		if w.Origin != journal.OriginReconciled || w.Vouched != 0 {
			c.Errorf("the delivery follows %v, vouched %d", w.Origin, w.Vouched)
		}
		other := c.stored("evt_2")
		if h, o := c.history(e.ID), c.history(other.ID); !h.Listed || o.Listed {
			c.Errorf("listed: %t and %t", h.Listed, o.Listed)
		}
	}},
	{"held and ordered deliveries from a list are like all others", func(c *suite) {
		first, second := c.entry("evt_1", of("acct_1")), c.entry("evt_2", listed, of("acct_1"))
		held := c.entry("evt_3", listed, hold)
		c.fresh(first, second, held)
		c.finish1(c.outcome(c.takeKeys(10, "evt_1")[0], journal.Done), true)
		w := c.takeKeys(10, "evt_2")[0]
		c.finish1(journal.Outcome{Held: journal.Held{EventID: held.ID, Destination: "app", Token: 1}, State: journal.Done, Started: c.now}, true)
		c.finish1(c.outcome(w, journal.Done), true)
		if w.Origin != journal.OriginReconciled {
			c.Errorf("the delivery in order follows %v", w.Origin)
		}
		c.open(nil)
	}},
	{"what comes from a list has a key of its own and no digest", func(c *suite) {
		for name, e := range map[string]*journal.Record{
			"no key": c.entry("", listed), "one that coalesces": c.changed(listed), "a digest": c.entry("evt_1", listed, content("x")),
		} {
			if r := c.accept(e)[0]; !errors.Is(r.Err, hookonce.ErrInvalidRef) {
				c.Errorf("%s: %+v", name, r)
			}
		}
		c.open(nil)
	}},
	{"a key that is known changes nothing, and nothing begins again", func(c *suite) {
		for _, state := range []journal.State{journal.Failed, journal.Dead} {
			e := c.stored("evt_" + string(state))
			c.finish1(c.outcome(c.take1(e.Key), state), true)
			for range 2 {
				c.duplicate(c.entry(e.Key, listed, to("app", "other"), hold), e)
			}
			c.accept1(c.entry(e.Key, otherContent), journal.Result{Status: journal.Conflict, ID: e.ID, Redriven: true})
			c.finish1(c.outcome(c.take1(e.Key), journal.Done), true)
			c.accept1(c.entry(e.Key, listed), journal.Result{Status: journal.Duplicate, ID: e.ID, Done: true})
			if h := c.history(e.ID); h.Listed {
				c.Error("an event that a webhook brought is listed")
			}
		}
		c.open(nil)
	}},
	{"a key that came from a list is known to the next one", func(c *suite) {
		e := c.stored("evt_1", listed)
		c.duplicate(c.entry("evt_1", listed), e)
		c.finish1(c.outcome(c.take1("evt_1"), journal.Dead), true)
		c.duplicate(c.entry("evt_1", listed), e)
		c.open(map[journal.State]int64{journal.Dead: 1})
	}},
	{"the first webhook after a list is a duplicate and supplies the digest", func(c *suite) {
		e := c.stored("evt_1", listed)
		c.duplicate(c.entry("evt_1", content("a")), e)
		c.duplicate(c.entry("evt_1", content("a")), e)
		c.accept1(c.entry("evt_1", content("b")), journal.Result{Status: journal.Conflict, ID: e.ID})
		c.duplicate(c.entry("evt_1", listed), e)
		c.duplicate(c.entry("evt_1", content("a")), e)
		c.matches(c.takeKeys(10, "evt_1")[0], e, journal.Held{EventID: e.ID, Destination: "app", Token: 1}, 1)
	}},
	{"an empty digest is none", func(c *suite) {
		e := c.stored("evt_1", listed, content(""))
		c.duplicate(c.entry("evt_1", content("a")), e)
		c.accept1(c.entry("evt_1", content("b")), journal.Result{Status: journal.Conflict, ID: e.ID})
	}},
	{"a webhook without a digest supplies that there is none", func(c *suite) {
		e := c.stored("evt_1", listed)
		c.duplicate(c.entry("evt_1", func(e *journal.Record) { e.Digest = nil }), e)
		c.duplicate(c.entry("evt_1", func(e *journal.Record) { e.Digest = nil }), e)
		c.accept1(c.entry("evt_1", content("b")), journal.Result{Status: journal.Conflict, ID: e.ID})
	}},
	{"the first webhook re-drives what failed", func(c *suite) {
		for _, state := range []journal.State{journal.Failed, journal.Dead} {
			e := c.stored("evt_"+string(state), listed)
			c.finish1(c.outcome(c.take1(e.Key), state), true)
			c.accept1(c.entry(e.Key), journal.Result{Status: journal.Duplicate, ID: e.ID, Redriven: true})
			w := c.take1(e.Key)
			if w.Origin != journal.OriginRedriven || w.Token != 2 || w.Tries != 1 {
				c.Errorf("it begins again as %+v", w)
			}
			c.finish1(c.outcome(w, journal.Done), true)
			c.accept1(c.entry(e.Key, otherContent), journal.Result{Status: journal.Conflict, ID: e.ID, Done: true})
		}
	}},
	{"a webhook after the work is done says so", func(c *suite) {
		e := c.done("evt_1", listed)
		c.accept1(c.entry("evt_1"), journal.Result{Status: journal.Duplicate, ID: e.ID, Done: true})
		c.accept1(c.entry("evt_1", otherContent), journal.Result{Status: journal.Conflict, ID: e.ID, Done: true})
		c.takeKeys(10)
	}},
	{"list and webhook in one batch, the list first", func(c *suite) {
		e := c.entry("evt_1", listed)
		c.same("results", c.accept(e, c.entry("evt_1", content("a")), c.entry("evt_1", listed), c.entry("evt_1", content("b")), c.entry("evt_1", content("a"))),
			[]journal.Result{
				{Status: journal.Accepted, ID: e.ID}, {Status: journal.Duplicate, ID: e.ID}, {Status: journal.Duplicate, ID: e.ID},
				{Status: journal.Conflict, ID: e.ID}, {Status: journal.Duplicate, ID: e.ID},
			})
		c.takeKeys(10, "evt_1")
	}},
	{"list and webhook in one batch, the webhook first", func(c *suite) {
		e := c.entry("evt_1", content("a"))
		done := c.entry("evt_2", to())
		c.same("results", c.accept(e, c.entry("evt_1", listed), c.entry("evt_1", content("b")), done, c.entry("evt_2", listed)), []journal.Result{
			{Status: journal.Accepted, ID: e.ID}, {Status: journal.Duplicate, ID: e.ID}, {Status: journal.Conflict, ID: e.ID},
			{Status: journal.Accepted, ID: done.ID}, {Status: journal.Duplicate, ID: done.ID, Done: true},
		})
		if h := c.history(e.ID); h.Listed {
			c.Error("an event that a webhook brought is listed")
		}
		if w := c.take1("evt_1"); w.Origin != journal.OriginFresh {
			c.Errorf("the delivery follows %v", w.Origin)
		}
	}},
	{"list and webhook in one batch over what failed: the webhook re-drives", func(c *suite) {
		var failed [2]*journal.Record
		for i, key := range []string{"evt_1", "evt_2"} {
			failed[i] = c.stored(key)
			c.finish1(c.outcome(c.take1(key), journal.Dead), true)
		}
		c.same("results", c.accept(c.entry("evt_1", listed), c.entry("evt_1"), c.entry("evt_2"), c.entry("evt_2", listed)), []journal.Result{
			{Status: journal.Duplicate, ID: failed[0].ID}, {Status: journal.Duplicate, ID: failed[0].ID, Redriven: true},
			{Status: journal.Duplicate, ID: failed[1].ID, Redriven: true}, {Status: journal.Duplicate, ID: failed[1].ID},
		})
		c.open(map[journal.State]int64{journal.Pending: 2})
	}},
	{"from a list, a webhook and neither in one batch", func(c *suite) {
		known := c.stored("known", listed)
		a, b, d := c.entry("a", listed), c.entry("b"), c.entry("")
		c.same("results", c.accept(a, c.entry("known"), b, d), []journal.Result{
			{Status: journal.Accepted, ID: a.ID}, {Status: journal.Duplicate, ID: known.ID},
			{Status: journal.Accepted, ID: b.ID}, {Status: journal.Unkeyed, ID: d.ID},
		})
		for _, w := range c.takeAll(wanted("app"), "", "a", "b", "known") {
			if want := w.Key == "a" || w.Key == "known"; want != (w.Origin == journal.OriginReconciled) {
				c.Errorf("%q follows %v", w.Key, w.Origin)
			}
		}
	}},
	{"a row that the database refuses leaves those from a list", func(c *suite) {
		c.f.Refuse(c, "poison")
		a, b := c.entry("a", listed), c.entry("b")
		results := c.accept(a, c.entry("poison", listed), b, c.entry("poison"))
		if results[1].Err == nil || results[3].Err == nil || results[0] != (journal.Result{Status: journal.Accepted, ID: a.ID}) ||
			results[2] != (journal.Result{Status: journal.Accepted, ID: b.ID}) {
			c.Errorf("results %+v", results)
		}
		c.duplicate(c.entry("a", content("x")), a)
	}},
	{"from a list without a route it is done", func(c *suite) {
		e := c.stored("evt_1", listed, to())
		c.accept1(c.entry("evt_1"), journal.Result{Status: journal.Duplicate, ID: e.ID, Done: true})
		if h := c.history(e.ID); !h.Unrouted || !h.Listed {
			c.Errorf("unrouted %t, listed %t", h.Unrouted, h.Listed)
		}
	}},
	{"logical duplicates from a list are found, and re-drive nothing", func(c *suite) {
		first := c.stored("evt_1", saying("paid"))
		c.logicalDuplicateOf(first, c.entry("evt_2", listed, saying("paid")))
		c.finishAll(c.takeAll(wanted("app"), "evt_1", "evt_2"), journal.Dead)
		dropped := c.entry("evt_3", listed, saying("paid"), orDrop)
		c.logicalDuplicateOf(first, dropped)
		c.duplicate(c.entry("evt_3", listed), dropped)
		c.open(map[journal.State]int64{journal.Dead: 2})
		c.accept1(c.entry("evt_3", content("a")), journal.Result{Status: journal.Duplicate, ID: dropped.ID, Redriven: true})
		c.accept1(c.entry("evt_3", content("b")), journal.Result{Status: journal.Conflict, ID: dropped.ID})
		c.open(map[journal.State]int64{journal.Dead: 1, journal.Pending: 1})
	}},
	{"the rank of what comes from a list is compared", func(c *suite) {
		newer, older := c.entry("v2", ranked("a", 2)), c.entry("v1", listed, ranked("a", 1))
		c.fresh(newer)
		c.raise(c.compared("v2", false))
		c.fresh(older)
		c.compared("v1", true)
	}},
	{"a replay of what came from a list is a replay", func(c *suite) {
		e := c.stored("evt_1", listed)
		c.finish1(c.outcome(c.take1("evt_1"), journal.Dead), true)
		c.replays(c.asked(journal.Filter{}), journal.Replayed{Events: 1, Deliveries: 1})
		w := c.take1("evt_1")
		if w.Origin != journal.OriginReplayed {
			c.Errorf("it begins again as %+v", w)
		}
		c.finish1(c.outcome(w, journal.Done), true)
		c.replays(c.asked(journal.Filter{}, force), journal.Replayed{Events: 1, Deliveries: 1, Forced: 1})
		c.duplicate(c.entry("evt_1"), e)
	}},
	{"what was purged is new, from a list and from a webhook", func(c *suite) {
		c.done("evt_1", listed)
		c.done("evt_2")
		c.pass(time.Hour)
		c.purge(journal.KindIDs, 2)
		c.fresh(c.entry("evt_1"), c.entry("evt_2", listed))
	}},
	{"a delivery past the store ends that of an event from a list", func(c *suite) {
		e := c.stored("evt_1", listed)
		c.accept1(c.entry("evt_1", content("a"), to()), journal.Result{Status: journal.Duplicate, ID: e.ID})
		c.recordBypassed(c.bypassed(e, "app"))
		c.accept1(c.entry("evt_1", content("a")), journal.Result{Status: journal.Duplicate, ID: e.ID, Done: true})
		c.accept1(c.entry("evt_1", content("b")), journal.Result{Status: journal.Conflict, ID: e.ID, Done: true})
	}},
	{"a digest whose supply failed is supplied once", func(c *suite) { c.faulty(OpAccept, supplyAgain) }},
	{"what was supplied is there after reopening", func(c *suite) {
		e := c.stored("evt_1", listed)
		c.duplicate(c.entry("evt_1", content("a")), e)
		c.store = c.f.Open(c)
		c.accept1(c.entry("evt_1", content("b")), journal.Result{Status: journal.Conflict, ID: e.ID})
	}},
}

// supplyAgain has the first webhook after a list fail in both ways.
func supplyAgain(c *suite, m Mode) {
	key := fmt.Sprint("evt_", m)
	f := c.store.(*Faulty)
	f.Fail(OpAccept, 0, m)
	e := c.stored(key, listed)
	f.Fail(OpAccept, 1, m)
	if _, err := c.store.Accept(c.Context(), []*journal.Record{c.entry(key, content("a"))}, c.now, c.now.Add(lease)); !errors.Is(err, ErrInjected) {
		c.Fatalf("Accept: %v", err)
	}
	c.duplicate(c.entry(key, content("a")), e)
	c.accept1(c.entry(key, content("b")), journal.Result{Status: journal.Conflict, ID: e.ID})
}

// supplyStorm lets webhooks of two contents, and lists, arrive at once for events from a list, in batches of orders of
// their own: all who bring one of the contents are duplicates, and all others conflicts.
func supplyStorm(c *suite) {
	const keys = 100
	c.storedMany(keys, listed)
	var mu sync.Mutex
	duplicates := map[string]map[string]int{}
	parallel(func(worker int) {
		mine := []string{"a", "b", ""}[worker%3]
		var batch []*journal.Record
		for _, k := range rand.Perm(keys) {
			e := c.entry(fmt.Sprint("evt_", k), content(mine))
			if mine == "" {
				listed(e)
			}
			batch = append(batch, e)
		}
		results, err := c.store.Accept(c.Context(), batch, c.now, c.now.Add(lease))
		if err != nil {
			c.Errorf("Accept: %v", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for i, r := range results {
			switch key := batch[i].Key; {
			case r.Err != nil, r.Status == journal.Accepted, mine == "" && r.Status != journal.Duplicate:
				c.Errorf("%s with %q: %+v", key, mine, r)
			case mine != "" && r.Status == journal.Duplicate:
				if duplicates[key] == nil {
					duplicates[key] = map[string]int{}
				}
				duplicates[key][mine]++
			}
		}
	})
	for key, by := range duplicates {
		if len(by) != 1 {
			c.Errorf("%s was a duplicate with %v", key, by)
		}
	}
	if len(duplicates) != keys {
		c.Errorf("%d of %d events have a digest", len(duplicates), keys)
	}
}

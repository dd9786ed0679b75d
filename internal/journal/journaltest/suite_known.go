package journaltest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

func (c *suite) known(source string, keys ...string) map[string]journal.Known {
	c.Helper()
	known, err := c.store.Known(c.Context(), source, keys)
	c.ok("Known", err)
	return known
}

var knownCases = []testCase{
	{"what is on record is known by its key, and nothing else", func(c *suite) {
		e := c.stored("evt_1")
		c.fresh(c.entry(""), c.entry("elsewhere", func(e *journal.Record) { e.Source = "shop" }))
		c.same("known", c.known("billing", "evt_1", "evt_2", "evt_1", "elsewhere", "EVT_1", "evt_1 ", "evt%"), map[string]journal.Known{
			"evt_1": {ID: e.ID, ReceivedAt: e.ReceivedAt, Verified: true, State: journal.Pending},
		})
		if known := c.known("shop", "elsewhere"); len(known) != 1 {
			c.Errorf("of the other source: %+v", known)
		}
	}},
	{"no keys, and keys that no store can hold, are not known", func(c *suite) {
		c.fresh(c.entry(""), c.entry("evt_1"))
		c.same("none", c.known("billing"), map[string]journal.Known{})
		c.same("none of these", c.known("billing", "", "a\x00b", "\xff", strings.Repeat("k", hookonce.MaxKeyLen+1), "' OR ''='", `","`, "\u2028"), map[string]journal.Known{})
		c.same("of no source", c.known("", "evt_1"), map[string]journal.Known{})
	}},
	{"odd keys are found", func(c *suite) {
		odd := []string{`a"b`, `a\b`, "a,b", "{a}", "NULL", "évt", "<&>", "1", "\u2028", "€𝄞", strings.Repeat("k", hookonce.MaxKeyLen)}
		for _, key := range odd {
			c.fresh(c.entry(key))
		}
		known := c.known("billing", odd...)
		for _, key := range odd {
			if known[key].ID == 0 {
				c.Errorf("%q is not known", key)
			}
		}
	}},
	{"how its deliveries stand, all of them", func(c *suite) {
		want := map[string]journal.State{}
		for name, states := range map[journal.State][]journal.State{
			journal.Done:    {journal.Done, journal.Done},
			journal.Pending: {journal.Done, journal.Pending},
			journal.Failed:  {journal.Failed, journal.Pending},
			journal.Dead:    {journal.Failed, journal.Dead},
		} {
			key := "evt_" + string(name)
			c.stored(key, to("a", "b"))
			for i, w := range c.take(2) {
				if states[i] != journal.Pending {
					c.finish1(c.outcome(w, states[i]), true)
				}
			}
			want[key] = name
		}
		c.stored("evt_unrouted", to())
		want["evt_unrouted"] = journal.Done
		got := map[string]journal.State{}
		for key, k := range c.known("billing", "evt_done", "evt_pending", "evt_failed", "evt_dead", "evt_unrouted") {
			got[key] = k.State
		}
		c.same("states", got, want)
	}},
	{"a logical duplicate that was dropped stands as the first does", func(c *suite) {
		first, dropped := c.entry("evt_1", saying("paid")), c.entry("evt_2", saying("paid"), orDrop)
		c.fresh(first)
		c.logicalDuplicateOf(first, dropped)
		for _, state := range []journal.State{journal.Failed, journal.Done} {
			c.finish1(c.outcome(c.take1("evt_1"), state), true)
			if k := c.known("billing", "evt_2")["evt_2"]; k.ID != dropped.ID || k.State != state {
				c.Errorf("the first is %s: %+v", state, k)
			}
			c.pass(time.Minute)
		}
	}},
	{"whether a list or a webhook brought it", func(c *suite) {
		a, b := c.entry("a", listed), c.entry("b", listed)
		c.fresh(a, b, c.entry("d", func(e *journal.Record) { e.Digest = nil }))
		c.duplicate(c.entry("b"), b)
		known := c.known("billing", "a", "b", "d")
		for key, want := range map[string][2]bool{"a": {true, false}, "b": {true, true}, "d": {false, true}} {
			if k := known[key]; k.Listed != want[0] || k.Verified != want[1] {
				c.Errorf("%s: %+v, want %v", key, k, want)
			}
		}
	}},
	{"what was recorded after it went past the store is known", func(c *suite) {
		e := c.stored("evt_1", to())
		c.recordBypassed(c.bypassed(e, "app"))
		if k := c.known("billing", "evt_1")["evt_1"]; k.ID != e.ID || k.State != journal.Done {
			c.Errorf("known: %+v", k)
		}
	}},
	{"what was purged is not known, and without its body it is", func(c *suite) {
		e := c.done("evt_1")
		c.pass(time.Hour)
		c.purge(journal.KindBodies, 1)
		if k := c.known("billing", "evt_1")["evt_1"]; k.ID != e.ID {
			c.Errorf("without its body: %+v", k)
		}
		c.purge(journal.KindIDs, 1)
		c.same("purged", c.known("billing", "evt_1"), map[string]journal.Known{})
	}},
	{"as many keys as are allowed, and not one more", func(c *suite) {
		c.storedMany(journal.MaxKnown)
		var keys []string
		for i := range journal.MaxKnown {
			keys = append(keys, fmt.Sprint("evt_", i))
		}
		if n := len(c.known("billing", keys...)); n != journal.MaxKnown {
			c.Errorf("%d of %d are known", n, journal.MaxKnown)
		}
		if _, err := c.store.Known(c.Context(), "billing", append(keys, "more")); !errors.Is(err, journal.ErrTooManyKeys) {
			c.Errorf("of %d: %v", len(keys)+1, err)
		}
	}},
}

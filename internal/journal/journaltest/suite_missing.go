package journaltest

import (
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// lost is an event that never arrived, found now.
func (c *suite) lost(key string, edit ...func(*journal.MissingEvent)) journal.MissingEvent {
	m := journal.MissingEvent{Key: key, Type: "invoice.paid", Happened: c.now.Add(-time.Hour), Found: c.now, Expires: c.now.Add(24 * time.Hour)}
	for _, f := range edit {
		f(&m)
	}
	return m
}

func askedNow(c *suite) func(*journal.MissingEvent) {
	return func(m *journal.MissingEvent) { m.Asked = c.now }
}

func withoutKey(m *journal.MissingEvent) { m.Key, m.Entry = "", m.Key }

// found keeps what a run at billing found, under the mark.
func (c *suite) found(missing ...journal.MissingEvent) {
	c.Helper()
	c.foundMore(0, missing...)
}

// over keeps that keys of a source are on record elsewhere, as a run finds that has found nothing else.
func (c *suite) over(source string, keys ...string) {
	c.Helper()
	m, _, err := c.store.TakeMark(c.Context(), source, "a", c.now, c.now.Add(lease))
	c.ok("TakeMark", err)
	held, err := c.store.AdvanceMark(c.Context(), source, m.Token, journal.MarkAdvance{Lease: c.now.Add(lease), Found: &journal.Finding{At: c.now, Over: keys}})
	c.ok("AdvanceMark", err)
	if !held {
		c.Fatal("the mark is not held")
	}
	_, err = c.store.ReleaseMark(c.Context(), source, m.Token, journal.MarkResult{Ended: c.now})
	c.ok("ReleaseMark", err)
}

func (c *suite) foundMore(beyond int64, missing ...journal.MissingEvent) {
	c.Helper()
	m := c.takeMark("a", true)
	held, err := c.store.AdvanceMark(c.Context(), "billing", m.Token, journal.MarkAdvance{Lease: c.now.Add(lease), Found: &journal.Finding{
		At: c.now, Missing: missing, Beyond: beyond, From: c.now.Add(-2 * time.Hour), Expires: c.now.Add(24 * time.Hour)}})
	c.ok("AdvanceMark", err)
	if !held {
		c.Fatal("the mark is not held")
	}
	c.releaseMark(m.Token, journal.MarkResult{Ended: c.now}, true)
}

// missing expects these to be missing at billing, and so many more.
func (c *suite) missing(beyond int64, want ...journal.MissingEvent) {
	c.Helper()
	all, err := c.store.Missing(c.Context(), journal.MissingQuery{Source: "billing", Now: c.now, Limit: journal.MaxMissing})
	c.ok("Missing", err)
	c.same("missing", all, want)
	counts, err := c.store.MissingCounts(c.Context(), c.now)
	c.ok("MissingCounts", err)
	var count journal.MissingCount
	for _, of := range counts {
		if of.Source == "billing" {
			count = of
		}
	}
	if count.Kept != int64(len(want)) || count.Beyond != beyond || len(want) > 0 && !count.First.Equal(want[0].Found) {
		c.Errorf("counted are %+v, want %d and %d", count, len(want), beyond)
	}
}

// all are what a list of this moment shows.
func (c *suite) all() journal.Dismissal {
	return journal.Dismissal{FoundBefore: c.now.Add(time.Microsecond)}
}

func (c *suite) dismiss(want int64, d journal.Dismissal) {
	c.Helper()
	d.Source, d.At, d.By, d.Reason = "billing", c.now, "ann", "it was a test"
	n, err := c.store.DismissMissing(c.Context(), d)
	c.ok("DismissMissing", err)
	if n != want {
		c.Fatalf("%d were dismissed, want %d", n, want)
	}
}

var missingCases = []testCase{
	{"what was found stands until it is on record, whoever brings it", func(c *suite) {
		c.missing(0)
		a, b, d := c.lost("evt_1"), c.lost("evt_2", func(m *journal.MissingEvent) { m.Why, m.Happened = "its signature is wrong", time.Time{} }), c.lost("evt_3")
		b.Type = ""
		c.found(d, a, b)
		all, err := c.store.Missing(c.Context(), journal.MissingQuery{Source: "billing", Now: c.now, Limit: 10})
		if err != nil || len(all) != 3 {
			c.Fatalf("Missing = %+v, %v", all, err)
		}
		c.pass(23 * time.Hour)
		c.stored("evt_1", listed)
		c.stored("evt_2")
		c.stored("evt_3", func(e *journal.Record) { e.Source = "shop" })
		c.missing(0, d)
		c.store = c.f.Open(c)
		c.missing(0, d)
		c.fresh(c.entry("evt_3"))
		c.missing(0)
	}},
	{"what is over is forgotten by the next run, and not found again when its event is purged", func(c *suite) {
		c.found(c.lost("evt_1"))
		c.done("evt_1")
		c.found()
		c.pass(time.Hour)
		c.purge(journal.KindIDs, 1)
		c.missing(0)
	}},
	{"what is on record elsewhere is over for its source, and may be found again", func(c *suite) {
		first := c.lost("evt_1")
		c.found(first, c.lost("evt_2"), c.lost("evt_3"), c.lost("evt_4", withoutKey))
		c.over("billing", "evt_2", "evt_3", "evt_4", "evt_5")
		c.over("shop", "evt_1")
		c.missing(0, first, c.lost("evt_4", withoutKey))
		c.found(c.lost("evt_2"))
		c.missing(0, first, c.lost("evt_2"), c.lost("evt_4", withoutKey))
	}},
	{"what is found again is the same", func(c *suite) {
		first := c.lost("evt_1")
		c.found(first)
		c.pass(time.Minute)
		c.found(c.lost("evt_1", func(m *journal.MissingEvent) { m.Why, m.Type = "the API answered 500", "another" }), c.lost("evt_2"))
		first.Why, first.Expires = "the API answered 500", c.now.Add(24*time.Hour)
		c.missing(0, first, c.lost("evt_2"))
		c.found(c.lost("evt_1"))
		c.missing(0, first, c.lost("evt_2"))
	}},
	{"what the provider was asked for is missing only if it does not come", func(c *suite) {
		m := c.lost("evt_1", askedNow(c))
		c.found(m)
		c.missing(0)
		c.pass(journal.AskedGrace - time.Microsecond)
		c.missing(0)
		c.found(c.lost("evt_1", askedNow(c))) // which does not begin anew
		c.pass(time.Microsecond)
		m.Expires = c.now.Add(24*time.Hour - time.Microsecond)
		c.missing(0, m)
	}},
	{"it expires", func(c *suite) {
		m := c.lost("evt_1")
		c.found(m, c.lost("evt_2", func(m *journal.MissingEvent) { m.Expires = c.now.Add(time.Hour) }))
		c.pass(time.Hour)
		c.missing(0, m)
		c.pass(23 * time.Hour)
		c.missing(0)
	}},
	{"without a key it is told apart by what the provider calls it, and no event ends it", func(c *suite) {
		unkeyed := c.lost("evt_1", withoutKey)
		c.found(unkeyed)
		c.stored("evt_1")
		c.missing(0, unkeyed)
		c.found(c.lost("evt_1", withoutKey), c.lost("evt_2", func(m *journal.MissingEvent) { m.Entry = "delivery 7" }))
		c.missing(0, unkeyed, c.lost("evt_2"))
	}},
	{"sources are apart", func(c *suite) {
		c.found(c.lost("evt_1"))
		m, _, err := c.store.TakeMark(c.Context(), "a shop", "b", c.now, c.now.Add(lease))
		c.ok("TakeMark", err)
		_, err = c.store.AdvanceMark(c.Context(), "a shop", m.Token, journal.MarkAdvance{Lease: c.now, Found: &journal.Finding{At: c.now, Missing: []journal.MissingEvent{c.lost("evt_1"), c.lost("evt_2")}}})
		c.ok("AdvanceMark", err)
		counts, err := c.store.MissingCounts(c.Context(), c.now)
		c.ok("MissingCounts", err)
		c.same("counts", counts, []journal.MissingCount{{Source: "a shop", Kept: 2, First: c.now}, {Source: "billing", Kept: 1, First: c.now}})
		c.dismiss(1, c.all())
		counts, err = c.store.MissingCounts(c.Context(), c.now)
		c.ok("MissingCounts", err)
		c.same("counts", counts, []journal.MissingCount{{Source: "a shop", Kept: 2, First: c.now}})
	}},
	{"whoever lost the mark puts nothing on record", func(c *suite) {
		old := c.takeMark("a", true)
		c.pass(lease)
		c.takeMark("b", true)
		held, err := c.store.AdvanceMark(c.Context(), "billing", old.Token, journal.MarkAdvance{Lease: c.now.Add(lease), Found: &journal.Finding{At: c.now, Missing: []journal.MissingEvent{c.lost("evt_1")}, Beyond: 3}})
		if err != nil || held {
			c.Errorf("AdvanceMark = %t, %v", held, err)
		}
		c.missing(0)
	}},
	{"what somebody dismissed is over, stays so, and is on the audit log", func(c *suite) {
		b := c.lost("evt_2")
		c.found(c.lost("evt_1"), b, c.lost("evt_3", withoutKey))
		c.dismiss(2, journal.Dismissal{IDs: []string{"evt_1", "evt_3", "evt_9"}})
		c.missing(0, b)
		c.found(c.lost("evt_1"), c.lost("evt_3", withoutKey))
		c.missing(0, b)
		c.dismiss(0, journal.Dismissal{IDs: []string{"evt_1"}})
		c.dismiss(1, c.all())
		c.missing(0)
		audits, err := c.store.Audits(c.Context(), 0, 10)
		c.ok("Audits", err)
		for i := range audits {
			audits[i].ID = 0
		}
		a := journal.Audit{At: c.now, By: "ann", Reason: "it was a test", Action: journal.ActionDismiss, Filter: "billing evt_2", Count: 1}
		first := a
		first.Filter, first.Count = "billing evt_1, evt_3", 2
		c.same("audit log", audits, []journal.Audit{a, first})
	}},
	{"what is under way can be dismissed", func(c *suite) {
		c.found(c.lost("evt_1", askedNow(c)))
		c.dismiss(1, journal.Dismissal{IDs: []string{"evt_1"}})
		c.pass(journal.AskedGrace)
		c.missing(0)
	}},
	{"of all that is missing what nobody has seen stands", func(c *suite) {
		a := c.lost("evt_a")
		c.foundMore(3, a)
		c.pass(time.Hour)
		b := c.lost("evt_b", askedNow(c))
		c.found(b)
		seen := journal.Dismissal{FoundBefore: c.now.Add(time.Minute)}
		c.pass(time.Minute)
		found := c.lost("evt_c")
		c.foundMore(1, found) // which may be another than those that were counted
		c.pass(journal.AskedGrace)
		c.missing(3, a, b, found)
		c.dismiss(0, journal.Dismissal{})
		c.dismiss(1, seen)
		c.missing(3, b, found)
		c.found(c.lost("evt_a"))
		c.missing(3, b, found)
		c.dismiss(5, c.all())
		c.missing(0)
		audits, err := c.store.Audits(c.Context(), 0, 1)
		c.ok("Audits", err)
		c.same("audit log", []string{audits[0].Filter}, []string{"billing evt_b, evt_c and 3 more"})
	}},
	{"there is room for so many, and the rest is counted", func(c *suite) {
		many := make([]journal.MissingEvent, 0, journal.MaxMissing+5)
		for i := range journal.MaxMissing + 5 {
			many = append(many, c.lost(fmt.Sprintf("evt_%04d", i)))
		}
		c.found(many[:10]...)
		c.foundMore(2, many...)
		c.missing(7, many[:journal.MaxMissing]...)
		c.foundMore(2, many...) // again, as after a run that failed
		c.missing(7, many[:journal.MaxMissing]...)
		c.dismiss(0, journal.Dismissal{Since: c.now.Add(-2*time.Hour + time.Microsecond)}) // some of them are older
		c.dismiss(7, journal.Dismissal{Since: c.now.Add(-2 * time.Hour)})
		c.missing(0, many[:journal.MaxMissing]...)
		c.fresh(c.entry("evt_0000"))
		c.found(many[journal.MaxMissing:]...)
		c.missing(4, append(many[1:journal.MaxMissing:journal.MaxMissing], many[journal.MaxMissing])...)
		c.dismiss(journal.MaxMissing+4, c.all())
		c.missing(0)
		c.found(many[journal.MaxMissing+1:]...) // what was dismissed takes its room until it expires
		c.missing(4)
		c.pass(24 * time.Hour)
		c.found(c.lost("evt_0000"), c.lost("evt_new"))
		c.missing(0, c.lost("evt_new"))
	}},
	{"what no store can hold is counted", func(c *suite) {
		c.found(c.lost("a\x00b"), c.lost("evt_1", func(m *journal.MissingEvent) { m.Type, m.Why = "a\x00\xffb", "c\x00" }), c.lost(""))
		c.missing(2, c.lost("evt_1", func(m *journal.MissingEvent) {
			m.Type, m.Why = "a\uFFFDb", (journal.MarkResult{Error: "c\x00"}).Kept().Error
		}))
	}},
	{"what was found is on record exactly if the mark has moved", func(c *suite) {
		c.faulty(OpAdvanceMark, func(c *suite, m Mode) {
			mark := c.takeMark("a", true)
			a := journal.MarkAdvance{Through: start.Add(time.Duration(m+1) * time.Hour), Lease: c.now.Add(lease), Found: &journal.Finding{At: c.now, Missing: []journal.MissingEvent{c.lost("evt_1")}}}
			if _, err := c.store.AdvanceMark(c.Context(), "billing", mark.Token, a); !errors.Is(err, ErrInjected) {
				c.Fatalf("AdvanceMark: %v", err)
			}
			if m == Persisted {
				mark.Through = a.Through
				c.missing(0, c.lost("evt_1"))
			}
			c.marks(mark)
			held, err := c.store.AdvanceMark(c.Context(), "billing", mark.Token, a)
			if err != nil || !held {
				c.Fatalf("AdvanceMark: %t, %v", held, err)
			}
			c.missing(0, c.lost("evt_1"))
		})
	}},
	{"a dismissal that failed is repeated: it has been done, or is now", func(c *suite) {
		c.faulty(OpDismiss, func(c *suite, m Mode) {
			key := fmt.Sprint("evt_", m)
			c.found(c.lost(key))
			if _, err := c.store.DismissMissing(c.Context(), journal.Dismissal{Source: "billing", IDs: []string{key}, At: c.now}); !errors.Is(err, ErrInjected) {
				c.Fatalf("DismissMissing: %v", err)
			}
			want := int64(1)
			if m == Persisted {
				want = 0
			}
			c.dismiss(want, c.all())
			c.missing(0)
			audits, err := c.store.Audits(c.Context(), 0, 10)
			c.ok("Audits", err)
			if len(audits) != int(m)+1 {
				c.Errorf("%d entries of the audit log", len(audits))
			}
		})
	}},
	{"keys are found under other sources, where they were last", func(c *suite) {
		at := func(source string) func(*journal.Record) { return func(e *journal.Record) { e.Source = source } }
		c.stored("evt_1", at("a"))
		c.pass(time.Minute)
		c.fresh(c.entry("evt_1", at("z")), c.entry("evt_2", at("b")), c.entry("evt_2"), c.entry("evt_3"), c.entry("", at("c")), c.entry("evt_4", at("z")))
		found, err := c.store.KnownElsewhere(c.Context(), "billing", nil, []string{"evt_1", "evt_2", "evt_3", "evt_5", "", "evt_1"})
		c.ok("KnownElsewhere", err)
		c.same("elsewhere", found, map[string]journal.Elsewhere{"evt_1": {Source: "z", ReceivedAt: c.now}, "evt_2": {Source: "b", ReceivedAt: c.now}})
		found, err = c.store.KnownElsewhere(c.Context(), "billing", []string{"z", "b"}, []string{"evt_1", "evt_2"})
		c.ok("KnownElsewhere", err)
		c.same("elsewhere, but for two", found, map[string]journal.Elsewhere{"evt_1": {Source: "a", ReceivedAt: c.now.Add(-time.Minute)}})
		found, err = c.store.KnownElsewhere(c.Context(), "a source without events", nil, []string{"evt_3"})
		c.ok("KnownElsewhere", err)
		c.same("elsewhere", found, map[string]journal.Elsewhere{"evt_3": {Source: "billing", ReceivedAt: c.now}})
		if _, err := c.store.KnownElsewhere(c.Context(), "billing", nil, make([]string, journal.MaxKnown+1)); !errors.Is(err, journal.ErrTooManyKeys) {
			c.Errorf("too many keys: %v", err)
		}
	}},
	{"whether a source has events from before", func(c *suite) {
		has := func(source string, before time.Time, want bool) {
			c.Helper()
			is, err := c.store.HasBefore(c.Context(), source, before)
			c.ok("HasBefore", err)
			if is != want {
				c.Errorf("%s before %v: %t", source, before, is)
			}
		}
		has("billing", c.now, false)
		c.stored("evt_1", func(e *journal.Record) { e.Source = "shop" })
		first := c.now
		c.pass(time.Minute)
		c.stored("evt_2")
		has("billing", c.now, false)
		has("billing", c.now.Add(time.Millisecond), true)
		has("shop", first, false)
		has("shop", c.now, true)
	}},
}

package journaltest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// everyone is the first step of a sweep over all sources.
func everyone(kind journal.Kind, before time.Time, limit int) journal.Purge {
	return journal.Purge{Kind: kind, Before: before, Others: true, Limit: limit}
}

// purgeStep does one step of a sweep.
func (c *suite) purgeStep(p journal.Purge) journal.Purged {
	c.Helper()
	purged, err := c.store.Purge(c.Context(), p)
	c.ok(fmt.Sprintf("Purge(%+v)", p), err)
	return purged
}

// purge deletes a kind of everything before now, and expects this number of rows.
func (c *suite) purge(kind journal.Kind, want int) {
	c.Helper()
	if got := c.purgeStep(everyone(kind, c.now, 100)); got.Deleted != want || got.More {
		c.Fatalf("purging %s: %+v, want %d rows and no more", kind, got, want)
	}
}

// done stores an event and finishes it.
func (c *suite) done(key string, edit ...func(*journal.Record)) *journal.Record {
	c.Helper()
	e := c.stored(key, edit...)
	c.finish1(c.outcome(c.take1(key), journal.Done), true)
	return e
}

// answered stores an event and finishes it with an answer that is kept.
func (c *suite) answered(key string, edit ...func(*journal.Record)) *journal.Record {
	c.Helper()
	e := c.stored(key, edit...)
	c.finish1(c.replied(c.take1(key), journal.Done, "kept"), true)
	return e
}

// has expects rows of these kinds of an event, and of no others.
func (c *suite) has(e *journal.Record, want ...journal.Kind) {
	c.Helper()
	var got []journal.Kind
	for _, k := range eventKinds {
		if c.f.Rows(c, e.ID)[k] > 0 {
			got = append(got, k)
		}
	}
	if !slices.Equal(got, want) {
		c.Errorf("of %s there are %v, want %v", e.Key, got, want)
	}
}

// eventKinds are the kinds that belong to one event, the event itself last.
var eventKinds = []journal.Kind{journal.KindBodies, journal.KindAttempts, journal.KindAnswers, journal.KindIDs}

func from(source string) func(*journal.Record) {
	return func(e *journal.Record) { e.Source = source }
}

var purgeCases = []testCase{
	{"each kind goes by itself", func(c *suite) {
		e := c.answered("evt_1")
		c.pass(time.Hour)
		c.has(e, eventKinds...)
		c.purge(journal.KindBodies, 1)
		c.has(e, journal.KindAttempts, journal.KindAnswers, journal.KindIDs)
		c.purge(journal.KindAnswers, 1)
		c.has(e, journal.KindAttempts, journal.KindIDs)
		c.purge(journal.KindAttempts, 1)
		c.has(e, journal.KindIDs)
		for _, k := range eventKinds[:3] {
			c.purge(k, 0)
		}
		c.accept1(c.entry("evt_1"), journal.Result{Status: journal.Duplicate, ID: e.ID, Done: true})
	}},
	{"events go and their keys are new again", func(c *suite) {
		c.done("evt_1")
		c.pass(time.Hour)
		c.purge(journal.KindBodies, 1)
		c.purge(journal.KindIDs, 1)
		c.fresh(c.entry("evt_1"))
	}},
	{"an event takes all that is left of it along", func(c *suite) {
		e := c.answered("evt_1")
		c.pass(time.Hour)
		c.purge(journal.KindIDs, 1)
		c.attempts(e)
		c.standing(e.ID, journal.Absent, nil)
		again := c.stored("evt_1", func(n *journal.Record) { n.ID = e.ID })
		c.matches(c.take1("evt_1"), again, journal.Held{EventID: e.ID, Destination: "app", Token: 1}, 1)
	}},
	{"what is younger stays", func(c *suite) {
		old := c.answered("old")
		c.pass(time.Hour)
		limit := c.now
		young := c.answered("young")
		for _, k := range eventKinds {
			if p := c.purgeStep(everyone(k, limit, 10)); p.Deleted != 1 {
				c.Fatalf("%s: Purge = %+v", k, p)
			}
		}
		c.has(old)
		c.has(young, eventKinds...)
	}},
	{"sources have periods of their own", func(c *suite) {
		short, usual, long := c.answered("a", from("short")), c.answered("b", from("usual")), c.answered("c", from("long"))
		c.pass(time.Hour)
		for i, k := range eventKinds {
			for _, step := range []struct {
				sources []string
				others  bool
				gone    *journal.Record
			}{{[]string{"short", "none"}, false, short}, {[]string{"short", "long"}, true, usual}, {[]string{"long"}, false, long}} {
				c.has(step.gone, eventKinds[i:]...)
				p := c.purgeStep(journal.Purge{Kind: k, Before: c.now, Sources: step.sources, Others: step.others, Limit: 10})
				if p.Deleted != 1 {
					c.Errorf("%s of %v (others: %v): %+v", k, step.sources, step.others, p)
				}
				c.has(step.gone, eventKinds[i+1:]...)
			}
		}
	}},
	{"events with an open delivery stay whole", purgeOpen},
	{"at most limit events in a call, and all of them in the end", func(c *suite) {
		for i := range 7 {
			c.done(fmt.Sprintf("evt_%d", i))
		}
		c.pass(time.Hour)
		for _, k := range []journal.Kind{journal.KindBodies, journal.KindAttempts, journal.KindIDs} {
			c.drain(func() journal.Purged { return c.purgeStep(everyone(k, c.now, 3)) }, 3, 3, 1, 0)
		}
	}},
	{"a sweep goes on where it was, and passes what stays", func(c *suite) {
		for i := range 65 {
			c.done(fmt.Sprintf("evt_%d", i), from([]string{"long", "short"}[i/60]))
		}
		c.pass(time.Hour)
		for _, k := range []journal.Kind{journal.KindBodies, journal.KindIDs} {
			p := journal.Purge{Kind: k, Before: c.now, Sources: []string{"short"}, Limit: 3}
			c.drain(func() journal.Purged {
				purged := c.purgeStep(p)
				p.After = purged.Next
				return purged
			}, 0, 0, 3, 2, 0) // it looks at thirty
		}
	}},
	{"what was numbered by a clock that was ahead goes when it is old, and nothing before", purgeAhead},
	{"a purge that failed is repeated without harm", func(c *suite) { c.faulty(OpPurge, purgeAgain) }},
}

// drain expects these numbers from successive steps.
func (c *suite) drain(call func() journal.Purged, want ...int) {
	c.Helper()
	for i, w := range want {
		if got := call(); got.Deleted != w || i == len(want)-1 && got.More {
			c.Fatalf("call %d: %+v, want %d rows", i, got, w)
		}
	}
}

// purgeOpen purges beside one event in each open state, and one of two destinations.
func purgeOpen(c *suite) {
	entries := map[string]*journal.Record{}
	for _, key := range []string{"processing", "failed", "dead", "half"} {
		entries[key] = c.entry(key)
		if key == "half" {
			entries[key].Destinations = []string{"a", "b"}
		}
		c.fresh(entries[key])
	}
	for _, w := range c.take(10) {
		switch {
		case w.Key == "failed", w.Key == "dead":
			c.finish1(c.outcome(w, journal.State(w.Key)), true)
		case w.Key == "half" && w.Destination == "a":
			c.finish1(c.outcome(w, journal.Done), true)
		}
	}
	entries["pending"] = c.entry("pending")
	c.fresh(entries["pending"])
	c.pass(time.Hour)
	for _, k := range eventKinds {
		c.purge(k, 0)
	}
	for key, attempts := range map[string]int{"failed": 1, "dead": 1, "half": 1} {
		if got := len(c.f.Attempts(c, entries[key].ID)); got != attempts {
			c.Errorf("%d attempts of %s are left", got, key)
		}
	}
	c.accept(c.entry("dead"))
	if got := len(c.take(10)); got != 5 {
		c.Fatalf("%d deliveries can be taken, want 5 with their bodies", got)
	}
	c.open(map[journal.State]int64{journal.Processing: 5})
}

// purgeAgain repeats a purge that failed.
func purgeAgain(c *suite, m Mode) {
	e := c.answered([]string{NotPersisted: "lost", Persisted: "kept"}[m])
	c.pass(time.Hour)
	if _, err := c.store.Purge(c.Context(), everyone(journal.KindBodies, c.now, 10)); !errors.Is(err, ErrInjected) {
		c.Fatalf("Purge = %v", err)
	}
	c.purge(journal.KindBodies, map[Mode]int{NotPersisted: 1, Persisted: 0}[m])
	c.has(e, eventKinds[1:]...)
	c.purge(journal.KindIDs, 1)
}

// purgeAhead has the clock five years ahead for one event, and set back for those that follow, which go on being numbered by it.
func purgeAhead(c *suite) {
	const wrong = 5 * 365 * 24 * time.Hour
	before := c.answered("before")
	c.pass(wrong)
	ahead := c.answered("ahead")
	c.pass(time.Second - wrong)
	old, other := c.answered("old"), c.answered("other", from("long"))
	open := c.stored("open")
	c.finish1(c.outcome(c.take1("open"), journal.Dead), true)
	c.pass(time.Hour)
	limit := c.now
	c.pass(time.Second)
	young := c.answered("young")
	step := func(k journal.Kind, before time.Time) journal.Purge {
		p := everyone(k, before, 10)
		p.Sources, p.Ahead, p.Now = []string{"long"}, true, c.now
		return p
	}
	for i, k := range eventKinds {
		if p := c.purgeStep(step(k, limit.Add(-time.Hour))); p.Deleted != 0 || p.More {
			c.Errorf("%s: %+v while nothing is old", k, p)
		}
		c.has(old, eventKinds[i:]...)
		p := step(k, limit)
		c.drain(func() journal.Purged {
			purged := c.purgeStep(p)
			p.After = purged.Next
			return purged
		}, 1, 0)
		c.has(old, eventKinds[i+1:]...)
	}
	for _, e := range []*journal.Record{before, ahead, other, young} { // before is for the sweep by identifiers
		c.has(e, eventKinds...)
	}
	c.has(open, journal.KindBodies, journal.KindAttempts, journal.KindIDs)
	received := limit.Add(-time.Hour)
	c.counts(journal.OpenCount{Destination: "app", State: journal.Dead, Count: 1, Oldest: received, Since: received})
}

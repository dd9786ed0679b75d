package journaltest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// takeMark takes the mark of billing, and expects to get it, or not.
func (c *suite) takeMark(holder string, want bool) journal.Mark {
	c.Helper()
	m, taken, err := c.store.TakeMark(c.Context(), "billing", holder, c.now, c.now.Add(lease))
	c.ok("TakeMark", err)
	if taken != want {
		c.Fatalf("%s took the mark: %t, %+v", holder, taken, m)
	}
	return m
}

// advanceMark advances the mark of billing under a token, and expects it to be held, or not.
func (c *suite) advanceMark(token int64, through time.Time, want bool) {
	c.Helper()
	held, err := c.store.AdvanceMark(c.Context(), "billing", token, journal.MarkAdvance{Through: through, Lease: c.now.Add(lease)})
	c.ok("AdvanceMark", err)
	if held != want {
		c.Fatalf("the mark is held under token %d: %t", token, held)
	}
}

// releaseMark releases the mark of billing under a token, and expects it to be held, or not.
func (c *suite) releaseMark(token int64, r journal.MarkResult, want bool) {
	c.Helper()
	held, err := c.store.ReleaseMark(c.Context(), "billing", token, r)
	c.ok("ReleaseMark", err)
	if held != want {
		c.Fatalf("the mark was held under token %d: %t", token, held)
	}
}

// marks expects these to be all marks.
func (c *suite) marks(want ...journal.Mark) {
	c.Helper()
	all, err := c.store.Marks(c.Context())
	c.ok("Marks", err)
	c.same("marks", all, want)
}

var markCases = []testCase{
	{"the first who takes it makes it, and nothing was compared", func(c *suite) {
		c.marks()
		want := journal.Mark{Source: "billing", Token: 1, Holder: "a", Lease: c.now.Add(lease)}
		c.same("mark", c.takeMark("a", true), want)
		c.marks(want)
	}},
	{"while one holds it nobody else gets it, and is told who has it", func(c *suite) {
		held := c.takeMark("a", true)
		c.pass(lease - time.Millisecond)
		c.same("mark", c.takeMark("b", false), held)
		c.marks(held)
	}},
	{"marks of different sources are apart", func(c *suite) {
		c.takeMark("a", true)
		if _, taken, err := c.store.TakeMark(c.Context(), "Billing", "b", c.now, c.now.Add(lease)); err != nil || !taken {
			c.Errorf("of another source: %t, %v", taken, err)
		}
		c.advanceMark(1, start, true)
		all, err := c.store.Marks(c.Context())
		if err != nil || len(all) != 2 || all[0].Source != "Billing" || !all[0].Through.IsZero() {
			c.Errorf("Marks = %+v, %v", all, err)
		}
	}},
	{"it only goes forward", func(c *suite) {
		m := c.takeMark("a", true)
		c.advanceMark(m.Token, start.Add(time.Hour), true)
		c.advanceMark(m.Token, start.Add(time.Minute), true)
		c.advanceMark(m.Token, time.Time{}, true)
		m.Through = start.Add(time.Hour)
		c.marks(m)
		c.advanceMark(m.Token, start.Add(time.Hour+time.Microsecond), true)
		m.Through = start.Add(time.Hour + time.Microsecond)
		c.marks(m)
	}},
	{"it goes back only where that is asked for", func(c *suite) {
		m := c.takeMark("a", true)
		c.advanceMark(m.Token, start.Add(72*time.Hour), true)
		for _, a := range []journal.MarkAdvance{{Through: start, Back: true}, {Back: true}} { // none leaves it
			a.Lease = m.Lease
			if held, err := c.store.AdvanceMark(c.Context(), "billing", m.Token, a); err != nil || !held {
				c.Fatalf("AdvanceMark(%+v) = %t, %v", a, held, err)
			}
			m.Through = start
			c.marks(m)
		}
		if held, err := c.store.AdvanceMark(c.Context(), "billing", m.Token-1, journal.MarkAdvance{Through: start.Add(-time.Hour), Back: true, Lease: m.Lease}); err != nil || held {
			c.Errorf("under an old token: %t, %v", held, err)
		}
		c.marks(m)
	}},
	{"a lease that a clock gave which was ahead holds nobody up", func(c *suite) {
		for _, past := range []time.Duration{0, time.Microsecond} {
			until := c.now.Add(lease + journal.MuchAhead + past)
			if _, taken, err := c.store.TakeMark(c.Context(), "billing", "a", until.Add(-lease), until); err != nil || !taken {
				c.Fatalf("TakeMark: %t, %v", taken, err)
			}
			c.takeMark("b", past > 0)
		}
	}},
	{"who advances it holds it for longer", func(c *suite) {
		m := c.takeMark("a", true)
		c.pass(lease - time.Second)
		c.advanceMark(m.Token, time.Time{}, true)
		c.pass(lease - time.Second)
		c.takeMark("b", false)
		c.pass(time.Second)
		c.takeMark("b", true)
	}},
	{"a lease that ran out is taken over, and the one who had it can do nothing more", func(c *suite) {
		old := c.takeMark("a", true)
		c.advanceMark(old.Token, start, true)
		c.pass(lease)
		c.advanceMark(old.Token, start.Add(time.Minute), true) // nobody has taken it
		c.pass(lease)
		m := c.takeMark("b", true)
		if m.Token <= old.Token || !m.Through.Equal(start.Add(time.Minute)) {
			c.Errorf("took over %+v", m)
		}
		c.advanceMark(old.Token, start.Add(time.Hour), false)
		c.releaseMark(old.Token, journal.MarkResult{Ended: c.now}, false)
		c.marks(m)
		c.advanceMark(m.Token, start.Add(2*time.Minute), true)
	}},
	{"its holder gets it again, under another token", func(c *suite) {
		first := c.takeMark("a", true)
		again := c.takeMark("a", true)
		if again.Token <= first.Token {
			c.Errorf("took %+v again as %+v", first, again)
		}
		c.advanceMark(first.Token, start, false)
		c.advanceMark(again.Token, start, true)
	}},
	{"what came of a run is kept until the next one ends", func(c *suite) {
		m := c.takeMark("a", true)
		c.advanceMark(m.Token, start, true)
		r := journal.MarkResult{Ended: c.now, Listed: 1 << 40, Missing: 3, Recovered: 2, Error: "the token may not list events"}
		c.releaseMark(m.Token, r, true)
		c.marks(journal.Mark{Source: "billing", Token: 1, Through: start, Last: r})
		c.advanceMark(m.Token, start.Add(time.Hour), false)
		c.releaseMark(m.Token, journal.MarkResult{}, false)
		m = c.takeMark("b", true)
		c.same("mark", m, journal.Mark{Source: "billing", Token: 2, Holder: "b", Lease: c.now.Add(lease), Through: start, Last: r})
		r = journal.MarkResult{Ended: c.now.Add(time.Minute), Listed: 5}
		c.releaseMark(m.Token, r, true)
		c.marks(journal.Mark{Source: "billing", Token: 2, Through: start, Last: r})
	}},
	{"errors are kept in a form that every store holds", func(c *suite) {
		for _, text := range []string{strings.Repeat("é", hookonce.MaxErrorLen), "a\x00b\xff"} {
			m := c.takeMark("a", true)
			c.releaseMark(m.Token, journal.MarkResult{Ended: c.now, Error: text}, true)
			all, err := c.store.Marks(c.Context())
			if err != nil || len(all) != 1 || all[0].Last.Error != (journal.MarkResult{Error: text}).Kept().Error || len(all[0].Last.Error) > hookonce.MaxErrorLen {
				c.Errorf("Marks = %+v, %v", all, err)
			}
		}
	}},
	{"a mark that was never taken cannot be moved", func(c *suite) {
		c.advanceMark(1, start, false)
		c.releaseMark(0, journal.MarkResult{}, false)
		c.marks()
	}},
	{"marks survive", func(c *suite) {
		m := c.takeMark("a", true)
		c.advanceMark(m.Token, start, true)
		m.Through = start
		c.store = c.f.Open(c)
		c.marks(m)
		c.takeMark("b", false)
		c.advanceMark(m.Token, start.Add(time.Minute), true)
	}},
	{"a take that failed is repeated without harm", func(c *suite) {
		c.faulty(OpTakeMark, func(c *suite, _ Mode) {
			if _, taken, err := c.store.TakeMark(c.Context(), "billing", "a", c.now, c.now.Add(lease)); !errors.Is(err, ErrInjected) || taken {
				c.Fatalf("TakeMark: %t, %v", taken, err)
			}
			m := c.takeMark("a", true)
			c.takeMark("b", false)
			c.advanceMark(m.Token, start, true)
			c.releaseMark(m.Token, journal.MarkResult{Ended: c.now}, true)
		})
	}},
	{"an advance that failed is repeated without harm", func(c *suite) {
		c.faulty(OpAdvanceMark, func(c *suite, m Mode) {
			through := start.Add(time.Duration(m) * time.Hour)
			mark := c.takeMark("a", true)
			_, err := c.store.AdvanceMark(c.Context(), "billing", mark.Token, journal.MarkAdvance{Through: through, Lease: c.now.Add(lease)})
			if !errors.Is(err, ErrInjected) {
				c.Fatalf("AdvanceMark: %v", err)
			}
			c.advanceMark(mark.Token, through, true)
			mark.Through = through
			c.marks(mark)
		})
	}},
	{"a release that failed is repeated: it has been done, or is now", func(c *suite) {
		c.faulty(OpReleaseMark, func(c *suite, m Mode) {
			mark := c.takeMark("a", true)
			r := journal.MarkResult{Ended: c.now, Listed: int64(m) + 1}
			if _, err := c.store.ReleaseMark(c.Context(), "billing", mark.Token, r); !errors.Is(err, ErrInjected) {
				c.Fatalf("ReleaseMark: %v", err)
			}
			c.releaseMark(mark.Token, r, m == NotPersisted)
			c.marks(journal.Mark{Source: "billing", Token: mark.Token, Last: r})
		})
	}},
}

// markStorm has all workers take a mark whose lease runs out at once, and advance it if they got it: one does, and no
// other moves it.
func markStorm(c *suite) {
	for round := range 10 {
		var taken, moved atomic.Int64
		parallel(func(worker int) {
			m, mine, err := c.store.TakeMark(c.Context(), "billing", fmt.Sprint("worker ", worker), c.now, c.now.Add(lease))
			if err != nil {
				c.Errorf("TakeMark: %v", err)
			}
			if mine {
				taken.Add(1)
			}
			token := m.Token
			if !mine {
				token = m.Token - 1
			}
			held, err := c.store.AdvanceMark(c.Context(), "billing", token, journal.MarkAdvance{Through: start.Add(time.Duration(round) * time.Hour), Lease: c.now.Add(lease)})
			if err != nil {
				c.Errorf("AdvanceMark: %v", err)
			}
			if held {
				moved.Add(1)
			}
		})
		if taken.Load() != 1 || moved.Load() != 1 {
			c.Errorf("round %d: %d took the mark, %d moved it", round, taken.Load(), moved.Load())
		}
		c.pass(lease)
	}
	all, err := c.store.Marks(c.Context())
	if err != nil || len(all) != 1 || all[0].Token != 10 {
		c.Errorf("Marks = %+v, %v", all, err)
	}
}

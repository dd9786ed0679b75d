package journaltest

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

var finishCases = []testCase{
	{"done deletes the delivery and leaves an attempt", func(c *suite) {
		e := c.stored("evt_1")
		o := c.outcome(c.take1("evt_1"), journal.Done)
		c.finish1(o, true)
		c.open(nil)
		c.attempts(e, o)
		c.finish1(o, false)
	}},
	{"every attempt is kept under its token", func(c *suite) {
		e := c.stored("evt_1")
		var want []journal.Outcome
		for _, s := range []journal.State{journal.Failed, journal.Failed, journal.Dead} {
			o := c.outcome(c.take1("evt_1"), s)
			o.Status, o.Error = len(want), strings.Repeat("x", len(want))
			want = append(want, o)
			c.finish1(o, true)
			c.pass(time.Hour)
		}
		c.open(map[journal.State]int64{journal.Dead: 1})
		c.attempts(e, want...)
	}},
	{"pending hands work back as if it had not been tried", func(c *suite) {
		e := c.stored("evt_1")
		o := c.outcome(c.take1("evt_1"), journal.Pending)
		o.Due = c.now.Add(time.Second)
		c.finish1(o, true)
		c.open(map[journal.State]int64{journal.Pending: 1})
		c.attempts(e)
		c.takeKeys(10)
		c.pass(time.Second)
		c.matches(c.take1("evt_1"), e, journal.Held{EventID: e.ID, Destination: "app", Token: 2}, 1)
	}},
	{"an attempt keeps the first bytes of the answer", func(c *suite) {
		e := c.stored("evt_1")
		short, long := c.outcome(c.take1("evt_1"), journal.Failed), []byte(strings.Repeat("\x00\xff", journal.MaxExcerpt))
		short.Excerpt = []byte("no \x00")
		c.finish1(short, true)
		c.pass(time.Hour)
		o := c.outcome(c.take1("evt_1"), journal.Done)
		o.Excerpt = long
		c.finish1(o, true)
		o.Excerpt = long[:journal.MaxExcerpt]
		c.attempts(e, short, o)
	}},
	{"a stale token changes nothing", func(c *suite) {
		e := c.stored("evt_1")
		stale := c.take1("evt_1")
		c.pass(lease)
		current := c.take1("evt_1")
		for _, s := range []journal.State{journal.Done, journal.Failed, journal.Dead, journal.Pending} {
			c.finish1(c.outcome(stale, s), false)
		}
		c.open(map[journal.State]int64{journal.Processing: 1})
		c.attempts(e)
		c.finish1(c.outcome(current, journal.Done), true)
	}},
	{"only processing work is finished", func(c *suite) {
		e := c.stored("evt_1")
		o := c.outcome(&journal.Work{Held: journal.Held{EventID: e.ID, Destination: "app"}}, journal.Done)
		c.finish1(o, false)
		w := c.take1("evt_1")
		c.finish1(c.outcome(w, journal.Failed), true)
		c.finish1(c.outcome(w, journal.Done), false)
		c.open(map[journal.State]int64{journal.Failed: 1})
	}},
	{"each outcome of a batch is judged by itself", finishMixed},
	{"of two outcomes for one token the first applies", func(c *suite) {
		a, b := c.entry("a"), c.entry("b")
		c.fresh(a, b)
		w := c.takeKeys(2, "a", "b")
		applied := c.finish(c.outcome(w[1], journal.Failed), c.outcome(w[0], journal.Done),
			c.outcome(w[1], journal.Done), c.outcome(w[0], journal.Failed))
		c.same("Finish", applied, []bool{true, true, false, false})
		c.open(map[journal.State]int64{journal.Failed: 1})
		c.attempts(b, c.outcome(w[1], journal.Failed))
	}},
	{"the error's text is made to fit", func(c *suite) {
		e := c.stored("evt_1")
		o := c.outcome(c.take1("evt_1"), journal.Failed)
		o.Error = "\x00\xff" + strings.Repeat("é", hookonce.MaxErrorLen)
		c.finish1(o, true)
		got := c.f.Attempts(c, e.ID)[0].Error
		if len(got) > hookonce.MaxErrorLen || len(got) < hookonce.MaxErrorLen-4 || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			c.Fatalf("the error is stored as %d bytes: %q", len(got), got)
		}
	}},
	{"nothing to finish is nothing", func(c *suite) { c.finish() }},
}

// finishMixed finishes a batch of every outcome, current, stale and unknown.
func finishMixed(c *suite) {
	var batch []*journal.Record
	for _, key := range []string{"a-done", "b-failed", "c-dead", "d-pending", "e-stale"} {
		batch = append(batch, c.entry(key))
	}
	c.fresh(batch...)
	w := c.takeKeys(10, "a-done", "b-failed", "c-dead", "d-pending", "e-stale")
	stale := c.outcome(w[4], journal.Done)
	stale.Token++
	unknown := stale
	unknown.EventID = 1
	applied := c.finish(unknown, c.outcome(w[3], journal.Pending), c.outcome(w[2], journal.Dead), stale,
		c.outcome(w[1], journal.Failed), c.outcome(w[0], journal.Done))
	c.same("Finish", applied, []bool{false, true, true, false, true, true})
	c.open(map[journal.State]int64{journal.Failed: 1, journal.Dead: 1, journal.Pending: 1, journal.Processing: 1})
}

// attempts expects exactly these attempts of e to be recorded.
func (c *suite) attempts(e *journal.Record, want ...journal.Outcome) {
	c.Helper()
	got := c.f.Attempts(c, e.ID)
	if len(got) != len(want) {
		c.Fatalf("%d attempts are recorded, want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		g := got[i]
		if g.Held != w.Held || g.State != w.State || g.Status != w.Status || g.Error != w.Error ||
			!g.Started.Equal(w.Started) || g.Duration != w.Duration || !bytes.Equal(g.Excerpt, w.Excerpt) {
			c.Errorf("attempt %d is recorded as %+v, want %+v", i, g, w)
		}
	}
}

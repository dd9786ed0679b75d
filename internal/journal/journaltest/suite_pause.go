package journaltest

import (
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

func (c *suite) setPaused(p journal.Pause, paused, changes bool) {
	c.Helper()
	changed, err := c.store.SetPaused(c.Context(), p, paused)
	if err != nil || changed != changes {
		c.Fatalf("SetPaused(%q, %v) = %v, %v; want %v", p.Destination, paused, changed, err, changes)
	}
}

func (c *suite) paused(want ...journal.Pause) {
	c.Helper()
	got, err := c.store.Pauses(c.Context())
	c.ok("Pauses", err)
	c.same("paused", got, want)
}

func (c *suite) audited(before int64, limit int, want ...journal.Audit) {
	c.Helper()
	got, err := c.store.Audits(c.Context(), before, limit)
	c.ok("Audits", err)
	c.same("audits", got, want)
}

var pauseCases = []testCase{
	{"a pause lasts until it is ended, and both are on record", func(c *suite) {
		p := journal.Pause{Destination: "ledger", At: c.now, By: "ada", Reason: "it's down"}
		c.paused()
		c.setPaused(p, true, true)
		other := journal.Pause{Destination: "app", At: c.now.Add(time.Second), By: "bob", Reason: "upgrade"}
		c.setPaused(other, true, true)
		c.setPaused(journal.Pause{Destination: "ledger", At: c.now.Add(time.Hour), By: "eve"}, true, false)
		c.paused(other, p)
		end := journal.Pause{Destination: "ledger", At: c.now.Add(time.Minute), By: "bob", Reason: "up again"}
		c.setPaused(end, false, true)
		c.setPaused(end, false, false)
		c.paused(other)
		first := journal.Audit{ID: 1, At: p.At, By: "ada", Reason: "it's down", Action: journal.ActionPause, Filter: "ledger"}
		second := journal.Audit{ID: 2, At: other.At, By: "bob", Reason: "upgrade", Action: journal.ActionPause, Filter: "app"}
		third := journal.Audit{ID: 3, At: end.At, By: "bob", Reason: "up again", Action: journal.ActionResume, Filter: "ledger"}
		c.audited(0, 10, third, second, first)
		c.audited(3, 1, second)
		c.audited(1, 10)
	}},
	{"a pause is there when the store is opened again", func(c *suite) {
		p := journal.Pause{Destination: "ledger", At: c.now, By: "ada"}
		c.setPaused(p, true, true)
		c.store = c.f.Open(c)
		c.paused(p)
	}},
	{"a pause does not stop the store from taking: the journal does", func(c *suite) {
		c.fresh(c.entry("evt_1"))
		c.setPaused(journal.Pause{Destination: "app", At: c.now, By: "ada"}, true, true)
		c.take1("evt_1")
	}},
	{"what changes nothing can be on record as well", func(c *suite) {
		a := journal.Audit{At: c.now, By: "ada", Reason: "a ticket", Action: journal.ActionLook, Filter: "the body of 7"}
		c.ok("RecordAudit", c.store.RecordAudit(c.Context(), a))
		a.ID = 1
		c.audited(0, 10, a)
	}},
	{"audits go by when they were made", func(c *suite) {
		pause := func(paused bool) {
			c.Helper()
			p := journal.Pause{Destination: "app", At: c.now, By: "ada", Reason: "x"}
			if _, err := c.store.SetPaused(c.Context(), p, paused); err != nil {
				c.Fatal(err)
			}
		}
		pause(true)
		c.pass(time.Hour)
		limit := c.now
		pause(false)
		c.drain(func() journal.Purged { return c.purgeStep(everyone(journal.KindAudits, limit, 1)) }, 1, 0)
		audits, err := c.store.Audits(c.Context(), 0, 10)
		if err != nil || len(audits) != 1 || audits[0].Action != journal.ActionResume {
			c.Errorf("Audits = %+v, %v", audits, err)
		}
		pause(true)
		if audits, err = c.store.Audits(c.Context(), 0, 10); err != nil || len(audits) != 2 || audits[0].ID <= audits[1].ID {
			c.Errorf("Audits = %+v, %v", audits, err)
		}
	}},
}

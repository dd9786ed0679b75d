package journaltest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// fails attempts a delivery that is due and has it fail so, a second later. It returns when the attempt began.
func (c *suite) fails(key string, s journal.State, kind journal.ErrorKind, status int, text string) time.Time {
	c.Helper()
	return c.ends(c.take1(key), s, kind, status, text)
}

func (c *suite) ends(w *journal.Work, s journal.State, kind journal.ErrorKind, status int, text string) time.Time {
	c.Helper()
	o := c.outcome(w, s)
	o.Kind, o.Status, o.Error, o.Excerpt = kind, status, text, []byte("answer to "+w.Key)
	c.finish1(o, true)
	c.pass(time.Second)
	return o.Started
}

func (c *suite) failures(since time.Time) journal.Failures {
	c.Helper()
	f, err := c.store.FailureGroups(c.Context(), since)
	c.ok("FailureGroups", err)
	return f
}

// groups writes groups of failures, one a line.
func groups(all []journal.FailureGroup) (lines []string) {
	for _, g := range all {
		var samples []string
		for _, s := range g.Samples {
			samples = append(samples, s.Key)
		}
		lines = append(lines, fmt.Sprintf("%s %s %d: %d, %d dead, such as %s", g.Destination, g.Kind, g.Status, g.Count, g.Dead, strings.Join(samples, " ")))
	}
	return lines
}

var failureCases = []testCase{
	{"nothing failed", func(c *suite) {
		c.fresh(c.entry("waits"), c.entry("done", to("other")))
		c.same("failures", c.failures(c.now.Add(-time.Hour)), journal.Failures{})
	}},
	{"by destination, kind and status, with the newest of them", func(c *suite) {
		var began, ended time.Time
		for i := range 5 {
			c.fresh(c.entry(fmt.Sprint("s", i)))
			at := c.fails(fmt.Sprint("s", i), journal.State([]string{"failed", "dead"}[i%2]), journal.ErrorStatus, 500, fmt.Sprint("text ", i))
			if i == 0 {
				began = at
			}
			ended = at
		}
		newest := c.stored("other status")
		c.fails("other status", journal.Failed, journal.ErrorStatus, 503, "busy")
		c.fresh(c.entry("elsewhere", to("audit")))
		c.fails("elsewhere", journal.Dead, journal.ErrorDNS, 0, "no name")
		f := c.failures(c.now.Add(-time.Hour))
		c.same("open", groups(f.Open), []string{"app status 500: 5, 2 dead, such as s4 s3 s2", "app status 503: 1, 0 dead, such as other status", "audit dns 0: 1, 1 dead, such as elsewhere"})
		c.same("resolved", groups(f.Resolved), []string(nil))
		g := f.Open[0]
		if !g.Since.Equal(began) || !g.Latest.Equal(ended) || g.Error != "text 4" || g.AtLeast || f.More {
			c.Errorf("since %v, latest %v, text %q; want %v, %v", g.Since, g.Latest, g.Error, began, ended)
		}
		c.same("sample", f.Open[1].Samples, []journal.FailureSample{{EventID: newest.ID, Source: "billing", Key: "other status", Type: "invoice.paid",
			State: journal.Failed, Started: c.now.Add(-2 * time.Second), Error: "busy", Excerpt: []byte("answer to other status")}})
	}},
	{"since the first attempt of the oldest that is open", func(c *suite) {
		c.fresh(c.entry("a"))
		began := c.fails("a", journal.Failed, journal.ErrorTimeout, 0, "timeout")
		c.pass(time.Hour)
		ended := c.fails("a", journal.Failed, journal.ErrorTimeout, 0, "timeout")
		if g := c.failures(c.now).Open[0]; !g.Since.Equal(began) || !g.Latest.Equal(ended) || g.Count != 1 {
			c.Errorf("%d since %v, latest %v; want %v, %v", g.Count, g.Since, g.Latest, began, ended)
		}
		c.pass(time.Hour)
		other := c.fails("a", journal.Failed, journal.ErrorRefused, 0, "refused")
		f := c.failures(c.now.Add(-90 * time.Minute))
		c.same("open", groups(f.Open), []string{"app refused 0: 1, 0 dead, such as a"})
		c.same("resolved", groups(f.Resolved), []string{"app timeout 0: 1, 0 dead, such as a"})
		if !f.Open[0].Since.Equal(other) || !f.Resolved[0].Since.Equal(ended) || f.Resolved[0].Samples[0].State != journal.Failed {
			c.Errorf("since %v and %v; want %v and %v", f.Open[0].Since, f.Resolved[0].Since, other, ended)
		}
	}},
	{"what is tried again, handed back or delivered is open no more", func(c *suite) {
		for _, key := range []string{"held", "redriven", "delivered", "handed back"} {
			c.fresh(c.entry(key))
			c.fails(key, journal.Dead, journal.ErrorTLS, 0, "certificate not trusted")
			c.replay(c.asked(journal.Filter{}), 10)
			if key != "redriven" {
				w := c.take1(key)
				switch key {
				case "delivered":
					c.finish1(c.outcome(w, journal.Done), true)
				case "handed back":
					c.finish1(c.outcome(w, journal.Pending), true)
				}
			} else {
				c.replay(c.asked(journal.Filter{}), 10)
				c.takeKeys(10, key)
			}
		}
		f := c.failures(c.now.Add(-time.Hour))
		c.same("open", groups(f.Open), []string(nil))
		c.same("resolved", groups(f.Resolved), []string{"app tls 0: 4, 0 dead, such as handed back delivered redriven"})
		if state := f.Resolved[0].Samples[1].State; state != journal.Done {
			c.Errorf("what was delivered is %s", state)
		}
		c.same("long ago", groups(c.failures(c.now).Resolved), []string(nil))
	}},
	{"a body that is gone is a kind of its own", func(c *suite) {
		e := c.stored("gone")
		c.fails("gone", journal.Failed, journal.ErrorStatus, 500, "no")
		c.f.DropBody(c.T, e.ID)
		c.pass(time.Hour)
		c.takeKeys(10)
		f := c.failures(c.now)
		c.same("open", groups(f.Open), []string{"app body_gone 0: 1, 1 dead, such as gone"})
		if g := f.Open[0]; g.Error != journal.BodyGone || !g.Since.Equal(journal.IDTime(e.ID)) || !g.Samples[0].Started.IsZero() {
			c.Errorf("it is %+v", g)
		}
	}},
	{"the delivery and its attempts say why", func(c *suite) {
		e := c.stored("a")
		if d := c.history(e.ID).Deliveries[0]; d.Kind != "" || d.Status != 0 {
			c.Errorf("before it fails it has %s %d", d.Kind, d.Status)
		}
		c.fails("a", journal.Failed, journal.ErrorStatus, 418, "a teapot")
		h := c.history(e.ID)
		d, a := h.Deliveries[0], h.Attempts[0]
		if d.Kind != journal.ErrorStatus || d.Status != 418 || a.Kind != journal.ErrorStatus || a.Status != 418 {
			c.Errorf("the delivery has %s %d, the attempt %s %d", d.Kind, d.Status, a.Kind, a.Status)
		}
		c.pass(time.Hour)
		c.finish1(c.outcome(c.take1("a"), journal.Pending), true)
		if d := c.history(e.ID).Deliveries[0]; d.Kind != journal.ErrorStatus || d.Status != 418 {
			c.Errorf("handing it back makes it %s %d", d.Kind, d.Status)
		}
	}},
	{"a destination that fails in many ways hides no other", func(c *suite) {
		for i := range journal.MaxFailureGroups + 2 {
			key := fmt.Sprint("e", i)
			c.fresh(c.entry(key))
			c.fails(key, journal.Dead, journal.ErrorStatus, 400+i, "no")
		}
		c.fresh(c.entry("b", to("b")))
		c.fails("b", journal.Dead, journal.ErrorTimeout, 0, "late")
		f := c.failures(c.now)
		last := f.Open[len(f.Open)-1]
		if len(f.Open) != journal.MaxFailureGroups+1 || last.Destination != "b" || !f.More {
			c.Errorf("%d groups, the last of %s, more: %v", len(f.Open), last.Destination, f.More)
		}
		c.replay(c.asked(journal.Filter{Destination: "b"}), 10)
		f = c.failures(c.now.Add(-24 * time.Hour))
		c.same("resolved", groups(f.Resolved), []string{"b timeout 0: 1, 0 dead, such as b"})
	}},
	{"kinds of long ago hide what failed since, and say that they may", func(c *suite) {
		for i := range journal.MaxFailureGroups + 2 {
			key := fmt.Sprint("e", i)
			c.fresh(c.entry(key))
			c.fails(key, journal.Dead, journal.ErrorStatus, 400+i, "no")
		}
		c.pass(48 * time.Hour)
		c.fresh(c.entry("new"))
		c.fails("new", journal.Dead, journal.ErrorTimeout, 0, "late")
		c.replay(c.asked(journal.Filter{}), 100)
		if f := c.failures(c.now.Add(-24 * time.Hour)); len(f.Resolved) != 1 && !f.More {
			c.Errorf("%d groups, and it does not say that there are more", len(f.Resolved))
		}
	}},
	{"errors and statuses choose events", func(c *suite) {
		c.fresh(c.entry("waits"))
		held := c.take1("waits")
		for _, e := range []struct {
			key    string
			state  journal.State
			kind   journal.ErrorKind
			status int
		}{
			{"500", journal.Failed, journal.ErrorStatus, 500}, {"503", journal.Dead, journal.ErrorStatus, 503}, {"dns", journal.Failed, journal.ErrorDNS, 0},
		} {
			c.fresh(c.entry(e.key))
			c.fails(e.key, e.state, e.kind, e.status, "no")
		}
		c.finish1(c.outcome(held, journal.Done), true)
		c.lists(journal.Filter{Error: journal.ErrorStatus}, "503", "500")
		c.lists(journal.Filter{Error: journal.ErrorStatus, Status: 500}, "500")
		c.lists(journal.Filter{Status: 503}, "503")
		c.lists(journal.Filter{Status: 503, State: journal.Failed})
		c.lists(journal.Filter{Error: journal.ErrorDNS, Destination: "app", State: journal.Failed}, "dns")
		c.lists(journal.Filter{Error: journal.ErrorDNS, Destination: "audit"})
		c.lists(journal.Filter{Error: journal.ErrorStatus, State: journal.Done})
		c.lists(journal.Filter{Error: journal.ErrorStatus, State: journal.Pending})
	}},
	{"a replay of a group is of that group alone", func(c *suite) {
		c.fresh(c.entry("both", to("app", "audit")), c.entry("other"))
		for _, w := range c.take(10) {
			kind, status := journal.ErrorStatus, 500
			if w.Destination == "audit" || w.Key == "other" {
				kind, status = journal.ErrorTimeout, 0
			}
			c.ends(w, journal.Dead, kind, status, "no")
		}
		c.replays(c.asked(journal.Filter{Error: journal.ErrorStatus}, force), journal.Replayed{Events: 1, Deliveries: 1})
		c.states("app of other: dead", "app of both: pending", "audit of both: dead")
		c.replays(c.asked(journal.Filter{Status: 500}), journal.Replayed{})
		c.replays(c.asked(journal.Filter{Error: journal.ErrorTimeout, Destination: "app", State: journal.Failed}), journal.Replayed{})
		c.replays(c.asked(journal.Filter{Error: journal.ErrorTimeout, State: journal.Done}, force), journal.Replayed{})
		c.replays(c.asked(journal.Filter{Error: journal.ErrorTimeout, Destination: "app"}), journal.Replayed{Events: 1, Deliveries: 1})
		c.states("app of other: pending", "app of both: pending", "audit of both: dead")
	}},
}

// RunLargeGroup checks that a replay scoped to a group of failures takes all of it and nothing else, over several looks
// of [journal.MaxScan] events, and while others fail in the same way and in another.
func RunLargeGroup(t *testing.T, factory Factory) {
	f := factory(t)
	c := &suite{T: t, f: f, store: f.Open(t), now: start, ids: journal.NewIDs(1, 0)}
	const piece, pieces = 1000, 45
	for range pieces {
		c.failMany(piece)
	}
	r := c.asked(journal.Filter{Destination: "app", Error: journal.ErrorStatus, Status: 500})
	counted := c.replayAll(r, dryRun, nil)
	if want := pieces * piece / 2; counted != want {
		t.Errorf("a dry run counts %d, want %d", counted, want)
	}
	meanwhile := 0
	done := c.replayAll(r, nil, func() {
		if meanwhile++; meanwhile == 2 {
			c.failMany(piece) // which the replay comes to as well
		}
	})
	if want := counted + piece/2; done != want {
		t.Errorf("it takes %d, want %d", done, want)
	}
	open := c.failures(c.now).Open
	c.same("open", groups(open), []string{fmt.Sprintf("app timeout 0: %d, 0 dead, such as e%d e%d e%d", journal.MaxFailureCount, 2*done-1, 2*done-3, 2*done-5)})
	if !open[0].AtLeast {
		t.Error("it does not say that there are more than were counted")
	}
	if done := c.replayAll(r, nil, nil); done != 0 {
		t.Errorf("doing it again takes %d", done)
	}
}

// failMany stores events every other of which fails with the status 500, and the others for another reason.
func (c *suite) failMany(n int) {
	c.Helper()
	batch := make([]*journal.Record, n)
	for i := range batch {
		batch[i] = c.entry(fmt.Sprint("e", c.named), hold)
		c.named++
	}
	c.fresh(batch...)
	outcomes := make([]journal.Outcome, n)
	for i, e := range batch {
		o := journal.Outcome{Held: journal.Held{EventID: e.ID, Destination: "app", Token: 1}, State: journal.Failed,
			Started: c.now, Due: c.now.Add(time.Hour), Kind: journal.ErrorStatus, Status: 500, Error: "no"}
		if i%2 == 1 {
			o.Kind, o.Status = journal.ErrorTimeout, 0
		}
		outcomes[i] = o
	}
	for i, applied := range c.finish(outcomes...) {
		if !applied {
			c.Fatalf("the outcome of %s does not apply", batch[i].Key)
		}
	}
	c.pass(time.Second)
}

// replayAll replays in pieces until nothing is left, and returns how many deliveries begin again. between is called after
// every piece.
func (c *suite) replayAll(r journal.Replay, edit func(*journal.Replay), between func()) (n int) {
	c.Helper()
	if edit != nil {
		edit(&r)
	}
	for {
		done := c.replay(r, 5000)
		n += done.Deliveries
		if done.Next == 0 {
			return n
		}
		r.After, r.Audit = done.Next, done.Audit
		if between != nil {
			between()
		}
	}
}

package journaltest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/internal/journal"
)

// standing expects how the delivery of an event to "app" stands.
func (c *suite) standing(id int64, state journal.State, answer *journal.Response) {
	c.Helper()
	got, err := c.store.Statuses(c.Context(), []journal.DeliveryID{{EventID: id, Destination: "app"}})
	c.ok("Statuses", err)
	if diff := cmp.Diff([]journal.DeliveryStatus{{State: state, Response: answer}}, got, cmp.Comparer(bytes.Equal)); diff != "" {
		c.Fatalf("Statuses (-want +got):\n%s", diff)
	}
}

// replied is an outcome with a whole answer.
func (c *suite) replied(w *journal.Work, s journal.State, text string) journal.Outcome {
	o := c.outcome(w, s)
	o.Response = &journal.Response{Status: 201, Header: []byte("Content-Type: text/xml\r\n"), Body: []byte(text)}
	return o
}

var answerCases = []testCase{
	{"the answer comes with done, in the same transaction", func(c *suite) {
		e := c.stored("evt_1")
		c.standing(e.ID, journal.Pending, nil)
		o := c.replied(c.take1("evt_1"), journal.Done, "<Response/>")
		c.standing(e.ID, journal.Processing, nil)
		c.finish1(o, true)
		c.standing(e.ID, journal.Done, o.Response)
		c.store = c.f.Open(c)
		c.standing(e.ID, journal.Done, o.Response)
	}},
	{"only done keeps an answer", func(c *suite) {
		e := c.stored("evt_1")
		c.finish1(c.replied(c.take1("evt_1"), journal.Failed, "no"), true)
		c.standing(e.ID, journal.Failed, nil)
		c.pass(time.Hour)
		c.finish1(c.replied(c.take1("evt_1"), journal.Dead, "never"), true)
		c.standing(e.ID, journal.Dead, nil)
		c.accept(c.entry("evt_1"))
		c.finish1(c.outcome(c.take1("evt_1"), journal.Done), true)
		c.standing(e.ID, journal.Done, nil)
	}},
	{"a token that is not current leaves no answer", func(c *suite) {
		e := c.stored("evt_1")
		late := c.take1("evt_1")
		c.pass(lease)
		current := c.take1("evt_1")
		c.finish1(c.replied(late, journal.Done, "late"), false)
		c.standing(e.ID, journal.Processing, nil)
		o := c.replied(current, journal.Done, "current")
		c.finish1(o, true)
		c.finish1(c.replied(late, journal.Done, "late"), false)
		c.standing(e.ID, journal.Done, o.Response)
	}},
	{"answers and outcomes without one share a batch", func(c *suite) {
		batch := []*journal.Record{c.entry("a"), c.entry("b"), c.entry("c", to("app", "other"))}
		c.fresh(batch...)
		var outcomes []journal.Outcome
		want := make(map[int64]*journal.Response)
		for _, w := range c.take(10) {
			o := c.outcome(w, journal.Done)
			if w.Key != "b" {
				o = c.replied(w, journal.Done, w.Key+w.Destination)
			}
			if w.Destination == "app" {
				want[w.EventID] = o.Response
			}
			outcomes = append(outcomes, o)
		}
		if slices.Contains(c.finish(outcomes...), false) {
			c.Error("an outcome was not applied")
		}
		for _, e := range batch {
			c.standing(e.ID, journal.Done, want[e.ID])
		}
	}},
	{"an empty and a large answer come back as they were", func(c *suite) {
		for _, text := range []string{"", strings.Repeat("\x00\xff", 128<<10)} {
			e := c.stored(fmt.Sprintf("evt_%d", len(text)))
			o := c.outcome(c.take(1)[0], journal.Done)
			o.Response = &journal.Response{Status: 204, Header: []byte{}, Body: []byte(text)}
			c.finish1(o, true)
			c.standing(e.ID, journal.Done, o.Response)
		}
	}},
	{"answers have a period of their own", func(c *suite) {
		e := c.stored("evt_1")
		o := c.replied(c.take1("evt_1"), journal.Done, "kept")
		c.finish1(o, true)
		c.pass(time.Hour)
		c.purge(journal.KindBodies, 1)
		c.purge(journal.KindAttempts, 1)
		c.standing(e.ID, journal.Done, o.Response)
		c.purge(journal.KindAnswers, 1)
		c.standing(e.ID, journal.Done, nil)
	}},
	{"nothing is known about what never was", func(c *suite) {
		c.stored("evt_1")
		c.standing(1, journal.Absent, nil)
	}},
	{"what is on record and has no delivery is done", func(c *suite) {
		c.standing(c.stored("evt_1", to()).ID, journal.Done, nil)
		first, second := c.stored("evt_2", saying("paid")), c.entry("evt_3", saying("paid"), orDrop)
		c.logicalDuplicateOf(first, second)
		c.standing(first.ID, journal.Pending, nil)
		c.standing(second.ID, journal.Done, nil)
	}},
}

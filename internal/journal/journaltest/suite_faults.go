package journaltest

import (
	"errors"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

var faultCases = []testCase{
	{"what was accepted is there after reopening", func(c *suite) {
		e := c.entry("evt_1")
		c.fresh(e, c.entry("done"))
		c.finish1(c.outcome(c.takeKeys(2, "evt_1", "done")[1], journal.Done), true)
		c.store = c.f.Open(c)
		c.open(map[journal.State]int64{journal.Processing: 1})
		c.pass(lease)
		c.matches(c.takeKeys(10, "evt_1")[0], e, journal.Held{EventID: e.ID, Destination: "app", Token: 2}, 1)
	}},
	{"a store that is up can be pinged", func(c *suite) {
		c.ok("Ping", c.store.Ping(c.Context()))
	}},
	{"a canceled call fails and disturbs nothing", func(c *suite) {
		c.fresh(c.entry("before"))
		for name, err := range c.callAll(false) {
			if err == nil {
				c.Errorf("%s did not notice that its context has ended", name)
			}
		}
		c.fresh(c.entry("after"))
		c.takeKeys(10, "before", "after")
	}},
	{"a closed store answers errors", func(c *suite) {
		c.ok("Close", c.store.Close())
		for name, err := range c.callAll(true) {
			if err == nil {
				c.Errorf("%s of a closed store succeeded", name)
			}
		}
	}},
	{"an accept that failed is repeated without harm", func(c *suite) { c.faulty(OpAccept, acceptAgain) }},
	{"a take that failed comes back with its lease", func(c *suite) { c.faulty(OpTake, takeAgain) }},
	{"a finish that failed is repeated without harm", func(c *suite) { c.faulty(OpFinish, finishAgain) }},
}

// callAll calls every method, with a live or a canceled context, and returns the errors by method.
func (c *suite) callAll(live bool) map[string]error {
	ctx := canceled(c)
	if live {
		ctx = c.Context()
	}
	errs := map[string]error{"Ping": c.store.Ping(ctx)}
	h := journal.Held{EventID: 1, Destination: "app", Token: 1}
	_, errs["Accept"] = c.store.Accept(ctx, []*journal.Record{c.entry("canceled")}, c.now, c.now.Add(lease))
	_, errs["Take"] = c.store.Take(ctx, c.now, c.now.Add(lease), journal.Wanted{Deliveries: 1})
	_, errs["Extend"] = c.store.Extend(ctx, []journal.Held{h}, c.now)
	_, errs["Finish"] = c.store.Finish(ctx, []journal.Outcome{{Held: h, State: journal.Done, Started: c.now}})
	_, errs["Answers"] = c.store.Statuses(ctx, []journal.DeliveryID{{EventID: 1, Destination: "app"}})
	errs["RecordBypassed"] = c.store.RecordBypassed(ctx, []journal.Outcome{{Held: h, State: journal.Done, Started: c.now}})
	_, errs["Purge"] = c.store.Purge(ctx, everyone(journal.KindIDs, c.now, 1))
	_, errs["Stats"] = c.store.Stats(ctx)
	_, errs["Known"] = c.store.Known(ctx, "billing", []string{"evt_1"})
	_, _, errs["TakeMark"] = c.store.TakeMark(ctx, "billing", "a", c.now, c.now.Add(lease))
	_, errs["AdvanceMark"] = c.store.AdvanceMark(ctx, "billing", 1, journal.MarkAdvance{Lease: c.now})
	_, errs["ReleaseMark"] = c.store.ReleaseMark(ctx, "billing", 1, journal.MarkResult{})
	_, errs["Marks"] = c.store.Marks(ctx)
	_, errs["AdvanceMark with a finding"] = c.store.AdvanceMark(ctx, "billing", 1, journal.MarkAdvance{Lease: c.now, Found: &journal.Finding{At: c.now}})
	_, errs["KnownElsewhere"] = c.store.KnownElsewhere(ctx, "billing", nil, []string{"evt_1"})
	_, errs["HasBefore"] = c.store.HasBefore(ctx, "billing", c.now)
	_, errs["Missing"] = c.store.Missing(ctx, journal.MissingQuery{Source: "billing", Now: c.now, Limit: 1})
	_, errs["MissingCounts"] = c.store.MissingCounts(ctx, c.now)
	_, errs["DismissMissing"] = c.store.DismissMissing(ctx, journal.Dismissal{Source: "billing", At: c.now})
	errs["AddTallies"] = c.store.AddTallies(ctx, "p", 1, nil)
	_, errs["Tallies"] = c.store.Tallies(ctx, ever(time.Minute))
	_, errs["ForgetTallies"] = c.store.ForgetTallies(ctx, c.now)
	return errs
}

// faulty runs a check in both ways in which a call can fail.
func (c *suite) faulty(op Op, check func(c *suite, m Mode)) {
	real := c.store
	for _, m := range []Mode{NotPersisted, Persisted} {
		f := NewFaulty(real)
		f.Fail(op, 1, m)
		c.store = f
		check(c, m)
	}
}

func acceptAgain(c *suite, m Mode) {
	e := c.entry([]string{NotPersisted: "lost", Persisted: "kept"}[m])
	if _, err := c.store.Accept(c.Context(), []*journal.Record{e}, c.now, c.now.Add(lease)); !errors.Is(err, ErrInjected) {
		c.Fatalf("Accept: %v", err)
	}
	again := c.entry(e.Key)
	want := journal.Result{Status: journal.Accepted, ID: again.ID}
	if m == Persisted {
		want = journal.Result{Status: journal.Duplicate, ID: e.ID}
	}
	c.accept1(again, want)
	c.takeKeys(10, e.Key)
}

func takeAgain(c *suite, m Mode) {
	c.fresh(c.entry("evt_" + string(rune('a'+int(m)))))
	if _, err := c.store.Take(c.Context(), c.now, c.now.Add(lease), journal.Wanted{Deliveries: 1}); !errors.Is(err, ErrInjected) {
		c.Fatalf("Take: %v", err)
	}
	wantToken := int64(1)
	if m == Persisted {
		c.takeKeys(10)
		c.pass(lease)
		wantToken = 2
	}
	w := c.take(10)
	if len(w) != 1 || w[0].Token != wantToken {
		c.Fatalf("took %v, want one delivery under token %d", w, wantToken)
	}
	c.finish1(c.outcome(w[0], journal.Done), true)
}

func finishAgain(c *suite, m Mode) {
	key := "evt_" + string(rune('a'+int(m)))
	e := c.stored(key)
	o := c.outcome(c.take1(key), journal.Failed)
	if _, err := c.store.Finish(c.Context(), []journal.Outcome{o}); !errors.Is(err, ErrInjected) {
		c.Fatalf("Finish: %v", err)
	}
	c.finish1(o, m == NotPersisted)
	c.attempts(e, o)
	c.pass(time.Minute)
	c.finish1(c.outcome(c.take1(key), journal.Done), true)
}

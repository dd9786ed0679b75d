package journaltest

import (
	"sync"
	"sync/atomic"

	"github.com/hookonce/hookonce/internal/journal"
)

// changed returns an entry that says that something changed.
func (c *suite) changed(edit ...func(*journal.Record)) *journal.Record {
	return c.entry("account-1", append([]func(*journal.Record){func(e *journal.Record) {
		e.Key = journal.CoalesceKey(e.Key)
	}}, edit...)...)
}

func otherContent(e *journal.Record) { e.Digest, e.Body = []byte("another"), []byte("another") }

var coalesceCases = []testCase{
	{"one that waits takes in what comes, whatever its content", func(c *suite) {
		e := c.changed()
		c.fresh(e)
		for range 3 {
			c.accept1(c.changed(otherContent), journal.Result{Status: journal.Duplicate, ID: e.ID})
		}
		c.matches(c.takeKeys(10, e.Key)[0], e, journal.Held{EventID: e.ID, Destination: "app", Token: 1}, 1)
	}},
	{"one that failed has begun", func(c *suite) { coalesceEnded(c, journal.Failed) }},
	{"one that is dead has begun", func(c *suite) { coalesceEnded(c, journal.Dead) }},
	{"one that was handed back may have begun", func(c *suite) { coalesceEnded(c, journal.Pending) }},
	{"one that is replayed has begun, and holds up nothing new", func(c *suite) {
		for state, edit := range map[journal.State]func(*journal.Replay){journal.Done: force, journal.Dead: func(r *journal.Replay) { r.Rate = 0.01 }} {
			e := c.changed()
			c.fresh(e)
			c.finish1(c.outcome(c.take1(e.Key), state), true)
			c.replay(c.asked(journal.Filter{State: state}, only(e.ID), edit), 10)
			next := c.changed()
			c.fresh(next)
			ids := []int64{}
			for _, w := range c.take(10) {
				ids = append(ids, w.EventID)
				c.finish1(c.outcome(w, journal.Done), true)
			}
			c.same("taken", ids, []int64{e.ID, next.ID})
		}
	}},
	{"one that was buried takes in nothing", func(c *suite) {
		e := c.changed()
		c.fresh(e)
		c.f.DropBody(c, e.ID)
		c.takeKeys(10)
		c.open(map[journal.State]int64{journal.Dead: 1})
		c.fresh(c.changed())
		c.open(map[journal.State]int64{journal.Dead: 1, journal.Pending: 1})
	}},
	{"one that has begun gives the key up and goes on", func(c *suite) {
		first := c.changed()
		c.fresh(first)
		w := c.take1(first.Key)
		next := c.changed()
		c.fresh(next)
		c.accept1(c.changed(), journal.Result{Status: journal.Duplicate, ID: next.ID})
		c.finish1(c.outcome(w, journal.Failed), true)
		c.pass(c.outcome(w, journal.Failed).Due.Sub(c.now))
		ids := map[int64]bool{}
		for _, w := range c.take(10) {
			ids[w.EventID] = true
		}
		if len(ids) != 2 || !ids[first.ID] || !ids[next.ID] {
			c.Fatalf("took %v, want events %d and %d", ids, first.ID, next.ID)
		}
	}},
	{"one that was held from the start has begun", func(c *suite) {
		c.fresh(c.changed(hold))
		c.fresh(c.changed(hold))
		c.open(map[journal.State]int64{journal.Processing: 2})
	}},
	{"one whose lease ran out has begun", func(c *suite) {
		c.fresh(c.changed(hold))
		c.pass(2 * lease)
		c.fresh(c.changed())
	}},
	{"one that is done does not swallow the next", func(c *suite) {
		for range 3 {
			e := c.changed()
			c.fresh(e)
			w := c.takeKeys(10, e.Key)[0]
			c.finish1(c.outcome(w, journal.Done), true)
		}
		c.open(nil)
	}},
	{"without a destination each is done when it is stored", func(c *suite) {
		c.fresh(c.changed(to()))
		c.fresh(c.changed(to()))
	}},
	{"one that has begun anywhere has begun", func(c *suite) {
		first := c.changed(to("a", "b"))
		c.fresh(first)
		c.take(1)
		next := c.changed(to("a", "b"))
		c.fresh(next)
		c.open(map[journal.State]int64{journal.Processing: 1, journal.Pending: 3})
	}},
	{"one that is done somewhere has begun", func(c *suite) {
		c.fresh(c.changed(to("a", "b")))
		c.finish1(c.outcome(c.take(1)[0], journal.Done), true)
		c.fresh(c.changed(to("a", "b")))
		c.open(map[journal.State]int64{journal.Pending: 3})
	}},
	{"one that is not on its way to a new destination does not wait for it", func(c *suite) {
		c.fresh(c.changed(to("a")))
		c.fresh(c.changed(to("a", "b")))
		c.open(map[journal.State]int64{journal.Pending: 3})
	}},
	{"of several in a batch the first counts, held or not", func(c *suite) {
		for _, edit := range []func(*journal.Record){hold, func(*journal.Record) {}} {
			first := c.changed(edit)
			results := c.accept(first, c.changed(edit, otherContent), c.changed(edit))
			for i, want := range []journal.Status{journal.Accepted, journal.Duplicate, journal.Duplicate} {
				if results[i].Status != want || results[i].ID != first.ID {
					c.Errorf("entry %d: %+v, want %s of event %d", i, results[i], want, first.ID)
				}
			}
			c.finishAll(c.take(10), journal.Done)
		}
	}},
	{"one in a batch that goes elsewhere is not taken in", func(c *suite) {
		a, b, both := c.changed(to("a")), c.changed(to("b")), c.changed(to("a", "b"))
		results := c.accept(a, c.changed(to("a")), b, both)
		for i, want := range []journal.Result{{Status: journal.Accepted, ID: a.ID}, {Status: journal.Duplicate, ID: a.ID},
			{Status: journal.Accepted, ID: b.ID}, {Status: journal.Accepted, ID: both.ID}} {
			if results[i].Status != want.Status || results[i].ID != want.ID {
				c.Errorf("entry %d: %+v, want %s of event %d", i, results[i], want.Status, want.ID)
			}
		}
		c.open(map[journal.State]int64{journal.Pending: 4})
	}},
	{"of several in a batch without a destination the first counts", func(c *suite) {
		first := c.changed(to())
		for i, r := range c.accept(first, c.changed(to()), c.changed(to(), otherContent)) {
			if want := []journal.Status{journal.Accepted, journal.Duplicate, journal.Duplicate}[i]; r.Status != want || r.ID != first.ID {
				c.Errorf("entry %d: %+v, want %s of event %d", i, r, want, first.ID)
			}
		}
	}},
	{"others under the same key are apart", func(c *suite) {
		e := c.changed()
		c.fresh(e, c.entry("account-1"), c.changed(func(e *journal.Record) { e.Source = "shop" }))
	}},
}

// coalesceEnded checks that work of which an attempt ended in state s goes on by itself, and takes in nothing: its destination
// may have looked before the next change.
func coalesceEnded(c *suite, s journal.State) {
	first := c.changed()
	c.fresh(first)
	c.finish1(c.outcome(c.take1(first.Key), s), true)
	next := c.changed()
	c.fresh(next)
	c.accept1(c.changed(), journal.Result{Status: journal.Duplicate, ID: next.ID})
	want := map[journal.State]int64{s: 1}
	want[journal.Pending]++
	c.open(want)
}

// coalesceStorm plays a destination that looks at a counter each time that it is told of a change, while
// others raise the counter and tell. In the end it must have seen the last value.
func coalesceStorm(c *suite) {
	const rounds = 60
	var counter, seen atomic.Int64
	var tellers sync.WaitGroup
	look := func() {
		work, err := c.store.Take(c.Context(), c.now, c.now.Add(lease), journal.Wanted{Deliveries: 3})
		if err != nil {
			c.Errorf("Take: %v", err)
		}
		for _, w := range work {
			now := counter.Load()
			for last := seen.Load(); now > last && !seen.CompareAndSwap(last, now); last = seen.Load() {
			}
			if _, err := c.store.Finish(c.Context(), []journal.Outcome{c.outcome(w, journal.Done)}); err != nil {
				c.Errorf("Finish: %v", err)
			}
		}
	}
	for range workers / 2 {
		tellers.Go(func() {
			for range rounds {
				counter.Add(1)
				if _, err := c.store.Accept(c.Context(), []*journal.Record{c.changed(), c.entry("")}, c.now, c.now.Add(lease)); err != nil {
					c.Errorf("Accept: %v", err)
				}
			}
		})
	}
	stop := make(chan struct{})
	var lookers sync.WaitGroup
	for range workers / 2 {
		lookers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					look()
				}
			}
		})
	}
	tellers.Wait()
	close(stop)
	lookers.Wait()
	for len(c.openWork()) > 0 {
		look()
	}
	if counter.Load() != seen.Load() {
		c.Errorf("the destination saw change %d of %d last", seen.Load(), counter.Load())
	}
}

// openWork counts the open deliveries.
func (c *suite) openWork() map[journal.State]int64 {
	stats, err := c.store.Stats(c.Context())
	c.ok("Stats", err)
	for s, n := range stats.Open {
		if n == 0 {
			delete(stats.Open, s)
		}
	}
	return stats.Open
}

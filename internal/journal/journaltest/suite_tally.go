package journaltest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/tally"
)

// minute is the one in which the cases about tallies begin: the last of an hour.
var minute = start.Truncate(time.Hour).Add(59 * time.Minute)

// counted is a point of the source billing and, if it is about a delivery, the destination app.
func counted(at time.Time, what tally.What, n int64) tally.Point {
	p := tally.Point{Minute: at, Source: "billing", What: what, N: n}
	if what == tally.First {
		p.Destination = "app"
	}
	return p
}

func (c *suite) add(process string, seq int64, points ...tally.Point) {
	c.Helper()
	c.ok("AddTallies", c.store.AddTallies(c.Context(), process, seq, points))
}

// ever matches all points of a step.
func ever(step time.Duration) tally.Query {
	return tally.Query{From: start.Add(-365 * 24 * time.Hour), Until: start.Add(365 * 24 * time.Hour), Step: step}
}

// tallies expects these points.
func (c *suite) tallies(q tally.Query, want ...tally.Point) {
	c.Helper()
	got, err := c.store.Tallies(c.Context(), q)
	c.ok("Tallies", err)
	c.same(fmt.Sprintf("tallies of %+v", q), got, want)
}

var tallyCases = []testCase{
	{"what is added is there by the minute and by the hour", func(c *suite) {
		c.tallies(ever(time.Minute))
		next := minute.Add(time.Minute)
		c.add("p", 1, counted(minute, tally.Accepted, 2), counted(minute, tally.Received, 3), counted(next, tally.Received, 5))
		c.add("p", 2, counted(next, tally.Received, 7))
		c.tallies(ever(time.Minute), counted(minute, tally.Accepted, 2), counted(minute, tally.Received, 3), counted(next, tally.Received, 12))
		hour := minute.Truncate(time.Hour)
		c.tallies(ever(time.Hour), counted(hour, tally.Accepted, 2), counted(hour, tally.Received, 3), counted(hour.Add(time.Hour), tally.Received, 12))
	}},
	{"minutes of one hour in one batch are one hour", func(c *suite) {
		before := minute.Add(-time.Minute)
		c.add("p", 1, counted(before, tally.Received, 3), counted(minute, tally.Received, 4))
		c.tallies(ever(time.Hour), counted(minute.Truncate(time.Hour), tally.Received, 7))
	}},
	{"a minute that several gateways found active is active once, and so it is in its hour", func(c *suite) {
		before, hour := minute.Add(-time.Minute), minute.Truncate(time.Hour)
		c.add("p", 1, counted(before, tally.Active, 1), counted(before, tally.Received, 3))
		c.add("q", 1, counted(before, tally.Active, 1), counted(minute, tally.Active, 1), counted(before, tally.Received, 4))
		c.tallies(ever(time.Minute), counted(before, tally.Active, 1), counted(before, tally.Received, 7), counted(minute, tally.Active, 1))
		c.tallies(ever(time.Hour), counted(hour, tally.Active, 2), counted(hour, tally.Received, 7))
	}},
	{"the same batch twice is once, and so is an earlier one", func(c *suite) {
		c.add("p", 1, counted(minute, tally.Received, 1))
		c.add("p", 2, counted(minute, tally.Received, 10))
		c.add("p", 2, counted(minute, tally.Received, 10))
		c.add("p", 1, counted(minute, tally.Received, 1))
		c.tallies(ever(time.Minute), counted(minute, tally.Received, 11))
		c.tallies(ever(time.Hour), counted(minute.Truncate(time.Hour), tally.Received, 11))
	}},
	{"a process that died and began anew is another one", func(c *suite) {
		c.add("died", 7, counted(minute, tally.Received, 1))
		c.store = c.f.Open(c)
		c.add("anew", 1, counted(minute, tally.Received, 10))
		c.add("died", 7, counted(minute, tally.Received, 1))
		c.tallies(ever(time.Minute), counted(minute, tally.Received, 11))
	}},
	{"a batch of which nothing is known is sent again", func(c *suite) {
		real, rec := c.store, tally.NewRegistry(func() time.Time { return c.now })
		f := NewFaulty(real)
		total := int64(0)
		for _, m := range []Mode{NotPersisted, Persisted} {
			f.Fail(OpTallies, 2, m)
			for i := range int64(4) { // two fail, one sends the doubtful one and what came since, one more
				rec.Counter("billing", "", tally.Received).Add(1 + i)
				total += 1 + i
				if err := rec.Flush(c.Context(), f); (err != nil) != (i < 2) || err != nil && !errors.Is(err, ErrInjected) {
					c.Fatalf("flush %d: %v", i, err)
				}
			}
			c.tallies(ever(time.Minute), counted(c.now.Truncate(time.Minute), tally.Received, total))
		}
	}},
	{"one that is still on its way, and sent again, is added once", func(c *suite) {
		var both sync.WaitGroup
		for range 8 {
			both.Go(func() { c.add("p", 1, counted(minute, tally.Received, 5)) })
		}
		both.Wait()
		c.tallies(ever(time.Minute), counted(minute, tally.Received, 5))
	}},
	{"what several processes add at a time adds up", addTogether},
	{"questions are narrowed, added up and cut", func(c *suite) {
		other := tally.Point{Minute: minute, Source: "shop", What: tally.Received, N: 4}
		c.add("p", 1, counted(minute, tally.First, 1), counted(minute, tally.Received, 2), other, counted(minute.Add(time.Minute), tally.Received, 8))
		q := ever(time.Minute)
		q.Until = minute.Add(time.Minute)
		c.tallies(q, counted(minute, tally.Received, 2), counted(minute, tally.First, 1), other)
		q.Source = "billing"
		c.tallies(q, counted(minute, tally.Received, 2), counted(minute, tally.First, 1))
		q.Destination = "app"
		c.tallies(q, counted(minute, tally.First, 1))
		q = ever(time.Minute)
		q.From = minute.Add(time.Minute)
		c.tallies(q, counted(minute.Add(time.Minute), tally.Received, 8))
		q = ever(time.Minute)
		q.Whats = []tally.What{tally.Received, tally.Dead}
		c.tallies(q, counted(minute, tally.Received, 2), other, counted(minute.Add(time.Minute), tally.Received, 8))
		q.Total = true
		c.tallies(q, tally.Point{Minute: minute, What: tally.Received, N: 6}, tally.Point{Minute: minute.Add(time.Minute), What: tally.Received, N: 8})
		q.Limit = 1
		c.tallies(q, tally.Point{Minute: minute, What: tally.Received, N: 6})
		q = ever(time.Minute)
		q.Whats = []tally.What{"receive"}
		c.tallies(q)
	}},
	{"minutes and hours are forgotten when they are old enough", func(c *suite) {
		hour := minute.Truncate(time.Hour)
		c.add("p", 1, counted(minute, tally.Received, 1))
		for _, step := range []struct {
			after         time.Duration
			minutes, hour []tally.Point
		}{
			{tally.KeepMinutes, []tally.Point{counted(minute, tally.Received, 1)}, []tally.Point{counted(hour, tally.Received, 1)}},
			{tally.KeepMinutes + time.Minute, nil, []tally.Point{counted(hour, tally.Received, 1)}},
			{tally.KeepHours - time.Hour, nil, []tally.Point{counted(hour, tally.Received, 1)}},
			{tally.KeepHours + time.Minute, nil, nil},
		} {
			for range 2 {
				c.forget(minute.Add(step.after))
			}
			c.tallies(ever(time.Minute), step.minutes...)
			c.tallies(ever(time.Hour), step.hour...)
		}
	}},
	{"a minute that comes late counts in its hour", func(c *suite) {
		c.add("p", 1, counted(minute, tally.Received, 1))
		c.forget(minute.Add(tally.KeepMinutes + time.Minute))
		c.add("q", 1, counted(minute, tally.Received, 2))
		c.forget(minute.Add(tally.KeepMinutes + time.Minute))
		c.tallies(ever(time.Hour), counted(minute.Truncate(time.Hour), tally.Received, 3))
	}},
}

// forget has what is too old at now deleted, which nobody keeps it from.
func (c *suite) forget(now time.Time) {
	c.Helper()
	busy, err := c.store.ForgetTallies(c.Context(), now)
	c.ok("ForgetTallies", err)
	c.same("busy", busy, false)
}

// addTogether has three processes add to the same rows in orders of their own, while one forgets, and each batch is sent
// once or twice.
func addTogether(c *suite) {
	const processes, batches, points = 3, 20, 30
	stores := c.stores(processes)
	var all sync.WaitGroup
	for p := range processes {
		store := stores[p%len(stores)]
		all.Go(func() {
			for seq := range int64(batches) {
				var batch []tally.Point
				for _, i := range rand.Perm(points) {
					batch = append(batch, tally.Point{Minute: minute.Add(time.Duration(i%3) * time.Minute), Source: fmt.Sprint("source ", i), What: tally.Received, N: 1})
				}
				for range 1 + rand.IntN(2) {
					if err := store.AddTallies(c.Context(), fmt.Sprint("process ", p), seq+1, batch); err != nil {
						c.Errorf("AddTallies: %v", err)
					}
				}
				if _, err := store.ForgetTallies(c.Context(), minute); err != nil {
					c.Errorf("ForgetTallies: %v", err)
				}
			}
		})
	}
	all.Wait()
	for _, step := range []time.Duration{time.Minute, time.Hour} {
		q := ever(step)
		q.Total = true
		got, err := c.store.Tallies(c.Context(), q)
		var sum int64
		for _, p := range got {
			sum += p.N
		}
		if err != nil || sum != processes*batches*points {
			c.Errorf("by %v there are %d, want %d (%v)", step, sum, processes*batches*points, err)
		}
	}
}

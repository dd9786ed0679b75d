package journaltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// workers is how many goroutines talk to a store at once.
const workers = 8

// RunConcurrent checks what the contract says about several callers at once; where the fixture is
// shared, they are spread over several stores on the same database. Run it with -race.
func RunConcurrent(t *testing.T, factory Factory) {
	runCases(t, func(t testing.TB) *Fixture {
		f := factory(t)
		if open := f.Open; f.Shared {
			f.Open = func(t testing.TB) journal.Store { return Rotate(open(t), open(t), open(t)) }
		}
		return f
	}, concurrentCases)
}

var concurrentCases = []testCase{
	{"batches that share keys store each once", acceptStorm},
	{"copies at once re-drive dead work once", redriveStorm},
	{"of the contents that come after a list, one is the first", supplyStorm},
	{"one at a time has the mark of a source", markStorm},
	{"what coalesces is never swallowed by what has begun", coalesceStorm},
	{"each delivery is taken by one", takeStorm},
	{"the deliveries of a resource follow each other, whoever takes them", orderStorm},
	{"of those who say the same, one is the first", logicalDuplicateStorm},
	{"of all who finish under one token one succeeds", finishStorm},
	{"a life under load ends with everything done once", lifeStorm},
}

// parallel runs f in all workers and waits for them.
func parallel(f func(worker int)) {
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { f(w) })
	}
	wg.Wait()
}

// acceptStorm has all workers accept the same keys, each in batches and an order of its own.
func acceptStorm(c *suite) {
	const keys = 200
	var mu sync.Mutex
	winners, seen := map[string]int64{}, map[string][]int64{}
	parallel(func(int) {
		order := rand.Perm(keys)
		for len(order) > 0 {
			n := min(1+rand.IntN(40), len(order))
			var batch []*journal.Record
			for _, k := range order[:n] {
				batch = append(batch, c.entry(fmt.Sprintf("evt_%03d", k)))
			}
			order = order[n:]
			results, err := c.store.Accept(c.Context(), batch, c.now, c.now.Add(lease))
			if err != nil {
				c.Errorf("Accept: %v", err)
				return
			}
			mu.Lock()
			for i, r := range results {
				key := batch[i].Key
				if r.Status == journal.Accepted {
					if winners[key] != 0 {
						c.Errorf("%s was accepted twice", key)
					}
					winners[key] = r.ID
				}
				seen[key] = append(seen[key], r.ID)
			}
			mu.Unlock()
		}
	})
	for key, ids := range seen {
		for _, id := range ids {
			if id != winners[key] {
				c.Errorf("%s: somebody was told id %d, it is %d", key, id, winners[key])
			}
		}
	}
	if len(winners) != keys {
		c.Errorf("%d keys were accepted, want %d", len(winners), keys)
	}
	c.open(map[journal.State]int64{journal.Pending: keys})
}

// redriveStorm lets copies of the same dead events arrive at once, in batches of opposite orders.
func redriveStorm(c *suite) {
	const keys = 150
	c.storedMany(keys, to("a", "b", "c"))
	c.finishAll(c.take(3*keys), journal.Dead)
	var redriven atomic.Int64
	parallel(func(int) {
		var copies []*journal.Record
		for _, k := range rand.Perm(keys) {
			copies = append(copies, c.entry(fmt.Sprintf("evt_%d", k)))
		}
		results, err := c.store.Accept(c.Context(), copies, c.now, c.now.Add(lease))
		if err != nil {
			c.Errorf("Accept: %v", err)
		}
		for _, r := range results {
			if r.Redriven {
				redriven.Add(1)
			}
		}
	})
	if n := redriven.Load(); n != keys {
		c.Errorf("%d copies say that they re-drove one of %d events", n, keys)
	}
	c.open(map[journal.State]int64{journal.Pending: 3 * keys})
}

// takeStorm has all workers take until nothing is left.
func takeStorm(c *suite) {
	const n = 400
	c.storedMany(n)
	var mu sync.Mutex
	taken := map[journal.Held]int{}
	parallel(func(int) {
		for {
			work, err := c.store.Take(c.Context(), c.now, c.now.Add(lease), journal.Wanted{Deliveries: 7})
			if err != nil {
				c.Errorf("Take: %v", err)
			}
			if len(work) == 0 {
				return
			}
			mu.Lock()
			for _, w := range work {
				taken[w.Held]++
			}
			mu.Unlock()
		}
	})
	// A worker that finds nothing may only have been skipping what another was taking, so the total
	// is what counts, not who took it.
	for _, w := range c.take(n) {
		taken[w.Held]++
	}
	for h, times := range taken {
		if times != 1 || h.Token != 1 {
			c.Errorf("%+v was taken %d times", h, times)
		}
	}
	if len(taken) != n {
		c.Errorf("took %d deliveries, want %d", len(taken), n)
	}
}

// finishStorm has all workers finish the same work, each differently.
func finishStorm(c *suite) {
	const n = 50
	c.storedMany(n)
	work := c.take(n)
	var mu sync.Mutex
	wins := map[journal.Held]int{}
	parallel(func(worker int) {
		state := []journal.State{journal.Done, journal.Failed, journal.Dead, journal.Pending}[worker%4]
		var outcomes []journal.Outcome
		for _, i := range rand.Perm(n) {
			outcomes = append(outcomes, c.outcome(work[i], state))
		}
		applied, err := c.store.Finish(c.Context(), outcomes)
		if err != nil {
			c.Errorf("Finish: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		for i, ok := range applied {
			if ok {
				wins[outcomes[i].Held]++
			}
		}
	})
	for _, w := range work {
		if wins[w.Held] != 1 {
			c.Errorf("%d outcomes of %+v were applied", wins[w.Held], w.Held)
		}
	}
}

// lifeStorm runs senders with copies, workers that finish, fail and lose work, and a purge, all at
// once, until every event is done; then every key must have been done exactly once.
func lifeStorm(c *suite) {
	const keys = 150
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	var clock atomic.Int64 // milliseconds since start, moved on by whoever takes
	now := func() time.Time { return start.Add(time.Duration(clock.Load()) * time.Millisecond) }
	var mu sync.Mutex
	done := map[string]int{}
	var left atomic.Int64
	left.Store(keys)
	parallel(func(worker int) {
		if worker < workers/2 {
			for _, k := range rand.Perm(keys) {
				e := c.entry(fmt.Sprintf("evt_%d", k))
				if _, err := c.store.Accept(ctx, []*journal.Record{e}, now(), now().Add(lease)); err != nil {
					c.Errorf("Accept: %v", err)
				}
			}
			return
		}
		for left.Load() > 0 && ctx.Err() == nil {
			clock.Add(100)
			work, err := c.store.Take(ctx, now(), now().Add(lease), journal.Wanted{Deliveries: 5})
			if err != nil {
				c.Errorf("Take: %v", err)
				return
			}
			outcomes := c.lose(work, now())
			applied, err := c.store.Finish(ctx, outcomes)
			if err != nil {
				c.Errorf("Finish: %v", err)
				return
			}
			mu.Lock()
			for i, o := range outcomes {
				if applied[i] && o.State == journal.Done {
					done[work[i].Key]++
					left.Add(-1)
				}
			}
			mu.Unlock()
			for _, k := range []journal.Kind{journal.KindBodies, journal.KindAttempts} {
				if _, err := c.store.Purge(ctx, everyone(k, now(), 10)); err != nil {
					c.Errorf("Purge: %v", err)
				}
			}
		}
	})
	for key, n := range done {
		if n != 1 {
			c.Errorf("%s was done %d times", key, n)
		}
	}
	if len(done) != keys {
		c.Errorf("%d events were done, want %d", len(done), keys)
	}
	c.open(nil)
}

// lose returns outcomes for some of the work, in order, and loses the rest, whose leases run out.
func (c *suite) lose(work []*journal.Work, now time.Time) []journal.Outcome {
	var outcomes []journal.Outcome
	for _, w := range work {
		o := journal.Outcome{Held: w.Held, Started: now, Due: now.Add(50 * time.Millisecond), Group: w.Group()}
		switch n := rand.IntN(10); {
		case n == 0:
			return outcomes
		case n == 1:
			o.State = journal.Failed
		case n == 2:
			o.State = journal.Pending
		default:
			o.State = journal.Done
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

package tally

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Every is how often a [Registry] hands over what was added. It divides a minute, so that each ends with it.
	Every = 10 * time.Second
	// KeepRecent is how long a [Registry] keeps counts in memory.
	KeepRecent = 2 * time.Hour

	// maxCounters bounds the counters of a process. What is beyond, after many reloads with ever new names, counts as [Other].
	maxCounters = 20_000
	// maxWaiting bounds what waits for a store that is away, in points: those of the oldest minute are given up beyond it.
	maxWaiting = 100_000
	// maxBatch is how many points are handed over at once: few enough that a store which adds them in the transaction of a
	// webhook that is being accepted holds that up for some milliseconds.
	maxBatch = 500
)

// Other stands for sources and destinations that came when there were too many names already.
const Other = "(other)"

// Adder is what a [Registry] needs of a store.
type Adder interface {
	// AddTallies adds points, under the number seq of a process. What was added under that number, or a higher one, is not
	// added again. An error means that nothing is known about the outcome.
	AddTallies(ctx context.Context, process string, seq int64, points []Point) error
}

// Counter counts one thing. Add and Inc are safe for concurrent use and cost an atomic addition.
type Counter struct{ n atomic.Int64 }

// Add adds n.
func (c *Counter) Add(n int64) { c.n.Add(n) }

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// name is what a counter counts.
type name struct {
	source, destination string
	what                What
}

// Registry has all counters of a process. A nil Registry gives counters that nobody reads. Its methods are safe for
// concurrent use.
type Registry struct {
	process string
	now     func() time.Time

	mu       sync.Mutex
	counters map[name]*Counter
	since    time.Time        // what was added since then is in the counters alone
	minutes  map[int64]counts // the last of them, by the minute's Unix seconds
	waiting  map[int64]counts // what is still to be handed over, in the same form
	points   int              // in waiting
	lost     int64            // points that were given up
	flushed  time.Time        // when all was handed over last

	sending sync.Mutex // one hand-over at a time
	seq     int64      // of the last batch
	doubt   []Point    // that batch, if it is not known whether it was added
}

type counts map[name]int64

// NewRegistry returns a registry without counters. It goes by this clock.
func NewRegistry(now func() time.Time) *Registry {
	return &Registry{process: rand.Text(), now: now, since: now(), counters: map[name]*Counter{},
		minutes: map[int64]counts{}, waiting: map[int64]counts{}}
}

// Counter returns the counter of a word, which is one of [Words]. Source and destination are names from the
// configuration, never what a stranger wrote; see [Word.Of] for which there are.
func (r *Registry) Counter(source, destination string, what What) *Counter {
	if r == nil {
		return new(Counter)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := name{source, destination, what}
	if r.counters[n] == nil && len(r.counters) >= maxCounters {
		n = name{Other, Other, what}
	}
	if r.counters[n] == nil {
		r.counters[n] = new(Counter)
	}
	return r.counters[n]
}

// Ages returns what counts the ages of copies of a source.
func (r *Registry) Ages(source string) *Histogram { return r.histogram(source, "", Ages()) }

// Durations returns what counts how long attempts took.
func (r *Registry) Durations(source, destination string) *Histogram {
	return r.histogram(source, destination, Durations())
}

func (r *Registry) histogram(source, destination string, bins []Bin) *Histogram {
	h := &Histogram{bins: bins}
	for _, b := range bins {
		h.counters = append(h.counters, r.Counter(source, destination, b.What))
	}
	return h
}

// Run hands over what was counted every ten seconds and at the end of each minute, until stop is closed. Each hand-over has
// so much time. Failed is told of each that failed; it is tried again.
func (r *Registry) Run(stop <-chan struct{}, to Adder, limit time.Duration, failed func(error)) {
	for {
		now := r.now()
		timer := time.NewTimer(now.Truncate(Every).Add(Every).Sub(now))
		select {
		case <-stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		err := r.Flush(ctx, to)
		cancel()
		if err != nil {
			failed(err)
		}
	}
}

// Flush hands over all that was counted so far. After an error what is left waits for the next call: it is on record in
// the end once, unless there comes to be too much of it (see [Registry.Lost]).
func (r *Registry) Flush(ctx context.Context, to Adder) error {
	r.sending.Lock()
	defer r.sending.Unlock()
	r.collect()
	for {
		if r.doubt == nil {
			if r.doubt = r.next(); r.doubt == nil {
				r.mu.Lock()
				r.flushed = r.now()
				r.mu.Unlock()
				return nil
			}
			r.seq++
		}
		if err := to.AddTallies(ctx, r.process, r.seq, r.doubt); err != nil {
			return fmt.Errorf("handing over what was counted: %w", errors.Join(err, context.Cause(ctx)))
		}
		r.doubt = nil
	}
}

// Lost returns how many points were given up, because the store was away for so long that too much waited for it.
func (r *Registry) Lost() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// Flushed returns when all that was counted had been handed over last; zero: it never had.
func (r *Registry) Flushed() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flushed
}

// Recent returns what this process counted in the last two hours and matches, to the moment. It needs no store.
func (r *Registry) Recent(q Query) []Point {
	r.collect()
	r.mu.Lock()
	defer r.mu.Unlock()
	sums := map[Point]int64{}
	for at, counts := range r.minutes {
		minute := time.Unix(at, 0).UTC().Truncate(q.Step)
		if minute.Before(q.From) || !minute.Before(q.Until) {
			continue
		}
		for n, count := range counts {
			if q.matches(n) {
				p := Point{Minute: minute, Source: n.source, Destination: n.destination, What: n.what}
				if q.Total {
					p.Source, p.Destination = "", ""
				}
				sums[p] += count
			}
		}
	}
	all := make([]Point, 0, len(sums))
	for p, n := range sums {
		p.N = n
		all = append(all, p)
	}
	slices.SortFunc(all, Point.Compare)
	if q.Limit > 0 {
		all = all[:min(q.Limit, len(all))]
	}
	return all
}

func (q *Query) matches(n name) bool {
	return (q.Source == "" || q.Source == n.source) && (q.Destination == "" || q.Destination == n.destination) &&
		(len(q.Whats) == 0 || slices.Contains(q.Whats, n.what))
}

// collect moves what was added into the minute in which it began to be added.
func (r *Registry) collect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.since.Truncate(time.Minute).Unix()
	r.since = r.now()
	for n, c := range r.counters {
		if added := c.n.Swap(0); added != 0 {
			first := r.note(r.minutes, at, n, added)
			r.hold(at, n, added)
			if first && n.what == Verified {
				active := name{n.source, n.destination, Active}
				r.note(r.minutes, at, active, 1)
				r.hold(at, active, 1)
			}
		}
	}
	oldest := r.since.Add(-KeepRecent).Unix()
	maps.DeleteFunc(r.minutes, func(at int64, _ counts) bool { return at < oldest })
	for r.points > maxWaiting {
		oldest := slices.Min(slices.Collect(maps.Keys(r.waiting)))
		r.lost += int64(len(r.waiting[oldest]))
		r.points -= len(r.waiting[oldest])
		delete(r.waiting, oldest)
	}
}

// hold has something handed over.
func (r *Registry) hold(at int64, n name, added int64) {
	if r.note(r.waiting, at, n, added) {
		r.points++
	}
}

// note adds to a minute, and reports whether that had nothing of the name yet.
func (r *Registry) note(minutes map[int64]counts, at int64, n name, added int64) (first bool) {
	if minutes[at] == nil {
		minutes[at] = counts{}
	}
	_, there := minutes[at][n]
	minutes[at][n] += added
	return !there
}

// next takes the next batch out of what waits, the oldest first. It returns nil if nothing does.
func (r *Registry) next() (batch []Point) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range slices.Sorted(maps.Keys(r.waiting)) {
		for n, count := range r.waiting[at] {
			if len(batch) == maxBatch {
				break
			}
			batch = append(batch, Point{time.Unix(at, 0).UTC(), n.source, n.destination, n.what, count})
			delete(r.waiting[at], n)
		}
		if len(r.waiting[at]) == 0 {
			delete(r.waiting, at)
		}
	}
	r.points -= len(batch)
	slices.SortFunc(batch, Point.Compare)
	return batch
}

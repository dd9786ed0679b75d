package tally

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var start = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

// clock is a clock that stands still.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// store adds up what it is given, each batch once, and fails as it is told.
type store struct {
	sum   map[Point]int64
	seq   map[string]int64
	calls [][]Point
	fail  func(call int) (persist bool, err error)
	while func() // before it answers
}

func (s *store) AddTallies(_ context.Context, process string, seq int64, points []Point) error {
	if s.sum == nil {
		s.sum, s.seq = map[Point]int64{}, map[string]int64{}
	}
	s.calls = append(s.calls, slices.Clone(points))
	if s.while != nil {
		s.while()
	}
	var err error
	persist := true
	if s.fail != nil {
		persist, err = s.fail(len(s.calls))
	}
	if persist && seq > s.seq[process] {
		s.seq[process] = seq
		for _, p := range points {
			n := p.N
			p.N = 0
			s.sum[p] += n
		}
	}
	return err
}

func (s *store) has(t *testing.T, at time.Time, source string, what What, want int64) {
	t.Helper()
	if got := s.sum[Point{Minute: at, Source: source, What: what}]; got != want {
		t.Errorf("%s of %s at %v: %d, want %d", what, source, at, got, want)
	}
}

var errAway = errors.New("the store is away")

func TestCountsGoIntoTheMinuteInWhichTheyHappened(t *testing.T) {
	c, s := &clock{start}, &store{}
	r := NewRegistry(c.now)
	received := r.Counter("billing", "", Received)
	minute := start.Truncate(time.Minute)
	s.while = func() { // the minute ends during the flush, and more comes
		s.while = nil
		c.at = minute.Add(time.Minute + time.Second)
		received.Add(10)
	}
	received.Add(1)
	c.at = start.Add(5 * time.Second)
	for range 2 {
		if err := r.Flush(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	received.Add(100)
	c.at = c.at.Add(Every)
	if err := r.Flush(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	// What came while the first flush was under way began to be added in the minute of that flush.
	s.has(t, minute, "billing", Received, 11)
	s.has(t, minute.Add(time.Minute), "billing", Received, 100)
	if n := len(s.calls); n != 3 {
		t.Errorf("%d batches, want 3: nothing is sent when nothing was counted", n)
	}
}

func TestABatchOfWhichNothingIsKnownIsSentAgainUnchanged(t *testing.T) {
	for _, persisted := range []bool{false, true} {
		t.Run(fmt.Sprint("persisted ", persisted), func(t *testing.T) {
			c := &clock{start}
			s := &store{fail: func(call int) (bool, error) {
				if call <= 3 {
					return persisted, errAway
				}
				return true, nil
			}}
			r := NewRegistry(c.now)
			n := r.Counter("billing", "", Received)
			for i := range int64(4) {
				n.Add(1 + i)
				if err := r.Flush(t.Context(), s); (err != nil) != (i < 3) || err != nil && !errors.Is(err, errAway) {
					t.Fatalf("flush %d: %v", i, err)
				}
				if at := r.Flushed(); at.IsZero() != (i < 3) || i == 3 && !at.Equal(c.at) {
					t.Errorf("after flush %d: all was handed over at %v", i, at)
				}
			}
			for i := range 4 {
				if !slices.Equal(s.calls[i], s.calls[0]) {
					t.Errorf("call %d is %v, want it to be that of call 0, %v", i, s.calls[i], s.calls[0])
				}
			}
			s.has(t, start.Truncate(time.Minute), "billing", Received, 10)
		})
	}
}

// Hundreds of goroutines count while others flush: nothing is lost and nothing is doubled.
func TestNothingIsLostBetweenCountingAndFlushing(t *testing.T) {
	s := &store{fail: func(call int) (bool, error) {
		if call%3 == 0 {
			return call%2 == 0, errAway
		}
		return true, nil
	}}
	r := NewRegistry(time.Now)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			for range 200 {
				r.Counter(fmt.Sprint("source ", i%7), "", Accepted).Inc()
				if i%10 == 0 {
					_ = r.Flush(t.Context(), s)
				}
			}
		})
	}
	all.Wait()
	for r.Flush(t.Context(), s) != nil {
	}
	var sum int64
	for _, n := range s.sum {
		sum += n
	}
	if sum != 20_000 {
		t.Errorf("%d were counted, want 20000", sum)
	}
}

func TestRunHandsOverAtTheEndOfEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now().UTC() // a full minute
		s := &store{}
		r := NewRegistry(time.Now)
		n := r.Counter("billing", "", Received)
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			r.Run(stop, s, time.Second, func(err error) { t.Error(err) })
		}()
		for range 120 {
			time.Sleep(time.Second - time.Millisecond)
			n.Inc()
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		close(stop)
		<-ended
		s.has(t, begin, "billing", Received, 60)
		s.has(t, begin.Add(time.Minute), "billing", Received, 60)
		if len(s.calls) != 12 {
			t.Errorf("%d batches in two minutes, want 12", len(s.calls))
		}
	})
}

func TestRecentNeedsNoStore(t *testing.T) {
	c := &clock{start}
	r := NewRegistry(c.now)
	for range 5 {
		r.Counter("billing", "", Received).Add(1)
		r.Counter("shop", "", Received).Add(2)
		r.Counter("shop", "app", Done).Add(3)
		_ = r.Recent(Query{Step: time.Minute}) // moves it into its minute, as a flush does
		c.at = c.at.Add(50 * time.Minute)
		_ = r.Recent(Query{Step: time.Minute})
	}
	q := Query{From: start.Add(-time.Hour), Until: c.at, Step: time.Hour, Whats: []What{Received}, Total: true}
	var sum int64
	for _, p := range r.Recent(q) {
		sum += p.N
	}
	if sum != 2*3 {
		t.Errorf("the last two hours have %d, want those of two counts", sum)
	}
	q.Source, q.Total, q.Limit = "shop", false, 1
	if got := r.Recent(q); len(got) != 1 || got[0].Source != "shop" || got[0].N != 2 {
		t.Errorf("of one source, the first: %v", got)
	}
}

func TestWhatACounterCostsIsBounded(t *testing.T) {
	c, s := &clock{start}, &store{fail: func(int) (bool, error) { return false, errAway }}
	r := NewRegistry(c.now)
	for i := range maxCounters + 1000 {
		r.Counter(fmt.Sprint(i), "", Received).Inc()
	}
	if n := len(r.counters); n > maxCounters+1 {
		t.Errorf("%d counters", n)
	}
	_ = r.Flush(t.Context(), s)
	if got := r.Recent(Query{Step: time.Minute, Until: start, Source: Other}); len(got) != 1 || got[0].N != 1000 {
		t.Errorf("of names beyond the bound: %v", got)
	}
	for range 10 { // the store stays away
		c.at = c.at.Add(time.Minute)
		for _, n := range r.counters {
			n.Inc()
		}
		_ = r.Flush(t.Context(), s)
	}
	if r.points > maxWaiting || r.Lost() == 0 {
		t.Errorf("%d points wait, and %d were given up", r.points, r.Lost())
	}
	s.fail = nil
	if err := r.Flush(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for _, batch := range s.calls {
		if len(batch) > 500 { // which a store adds while a webhook waits
			t.Errorf("a batch of %d points", len(batch))
		}
	}
	if r.points != 0 || len(r.waiting) != 0 {
		t.Errorf("%d points in %d minutes still wait", r.points, len(r.waiting))
	}
}

func TestANilRecorderCountsForNobody(t *testing.T) {
	var r *Registry
	r.Counter("billing", "", Received).Inc()
	r.Ages("billing").Observe(time.Second)
}

func TestWordsAreAClosedSet(t *testing.T) {
	seen := map[What]bool{}
	for _, w := range Words() {
		if seen[w.What] || w.What == "" || w.Meaning == "" || w.Of == "" {
			t.Errorf("%+v is there twice, or says nothing", w)
		}
		seen[w.What] = true
	}
	for _, bins := range [][]Bin{Ages(), Durations()} {
		for _, b := range bins {
			if !seen[b.What] {
				t.Errorf("the bin %s is no word", b.What)
			}
		}
	}
	if len(Match("age:*")) != 12 || len(Match(string(First))) != 1 || Match("fir") != nil || Match("firs*") == nil {
		t.Error("patterns match what they should not")
	}
}

func TestBinsAndQuantiles(t *testing.T) {
	c := &clock{start}
	r := NewRegistry(c.now)
	h := r.Durations("billing", "app")
	for d, n := range map[time.Duration]int{0: 1, 10 * time.Millisecond: 49, 11 * time.Millisecond: 45, 3 * time.Second: 4, time.Hour: 1} {
		for range n {
			h.Observe(d)
		}
	}
	counts := map[What]int64{}
	for _, p := range r.Recent(Query{Step: time.Minute, Until: start}) {
		counts[p.What] = p.N
	}
	for _, want := range []struct {
		q     float64
		bound time.Duration
	}{{0, 10 * time.Millisecond}, {0.5, 10 * time.Millisecond}, {0.51, 30 * time.Millisecond}, {0.95, 30 * time.Millisecond}, {0.99, 3 * time.Second}, {1, 30 * time.Second}} {
		if got, ok := Quantile(counts, Durations(), want.q); !ok || got != want.bound {
			t.Errorf("quantile %v is %v (%v), want %v", want.q, got, ok, want.bound)
		}
	}
	if _, ok := Quantile(nil, Ages(), 0.5); ok {
		t.Error("there is a median of nothing")
	}
}

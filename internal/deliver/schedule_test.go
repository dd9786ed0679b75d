package deliver

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const almostOne = 1 - 1.0/(1<<53)

func TestScheduleNext(t *testing.T) {
	s := Schedule{4 * time.Second, time.Minute}
	for _, c := range []struct {
		schedule Schedule
		attempt  int
		random   float64
		want     time.Duration
		ok       bool
	}{
		{s, 1, 0, 2 * time.Second, true},
		{s, 1, 0.5, 3 * time.Second, true},
		{s, 2, 0, 30 * time.Second, true},
		{s, 2, 0.5, 45 * time.Second, true},
		{s, 3, 0, 0, false},
		{s, math.MaxInt, 0, 0, false},
		{s, 0, 0, 2 * time.Second, true},
		{s, -1, 0, 2 * time.Second, true},
		{Schedule{}, 1, 0, 0, false},
		{nil, 1, 0.9, 0, false},
	} {
		got, ok := c.schedule.Next(c.attempt, c.random)
		if got != c.want || ok != c.ok {
			t.Errorf("%v.Next(%d, %v) = %v, %v; want %v, %v", c.schedule, c.attempt, c.random, got, ok, c.want, c.ok)
		}
	}
}

func TestDefaultSchedule(t *testing.T) {
	s := DefaultSchedule()
	for i, want := range []time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second, 135 * time.Second} {
		if s[i] != want {
			t.Errorf("step %d is %v, want %v", i+1, s[i], want)
		}
	}
	var sum time.Duration
	for _, step := range s {
		sum += step
	}
	if len(s) != 12 || s[len(s)-1] != 24*time.Hour || sum < 84*time.Hour || sum > 86*time.Hour {
		t.Errorf("%d steps to %v over %v", len(s), s[len(s)-1], sum)
	}
}

func TestExponentialOfNoRetries(t *testing.T) {
	for _, attempts := range []int{-1, 0, 1} {
		if s := Exponential(time.Second, time.Hour, 2, attempts); len(s) != 0 {
			t.Errorf("%d attempts have %d retries", attempts, len(s))
		}
	}
}

// A schedule that at least doubles until it is capped never comes back sooner than the time before,
// stays between half of its step and the whole, and allows exactly as many attempts as were asked.
func TestScheduleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "first"))
		longest := time.Duration(rapid.Int64Range(int64(first), int64(1000*time.Hour)).Draw(t, "longest"))
		factor := rapid.Float64Range(2, 1e6).Draw(t, "factor")
		attempts := rapid.IntRange(1, 100).Draw(t, "attempts")
		random := rapid.Float64Range(0, almostOne)
		s := Exponential(first, longest, factor, attempts)
		made, last := 1, time.Duration(0)
		for {
			delay, ok := s.Next(made, random.Draw(t, "random"))
			if !ok {
				break
			}
			step := s[made-1]
			if delay < step/2 || delay > step || delay > longest {
				t.Fatalf("delay %v of step %v, capped at %v", delay, step, longest)
			}
			if step < longest && delay+1 < last { // one nanosecond for rounding
				t.Fatalf("delay %v follows %v", delay, last)
			}
			made, last = made+1, delay
		}
		if made != attempts {
			t.Fatalf("%d attempts, want %d", made, attempts)
		}
	})
}

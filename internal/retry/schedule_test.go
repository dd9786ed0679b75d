package retry

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const almostOne = 1 - 1.0/(1<<53)

func TestDelay(t *testing.T) {
	s := Schedule{Attempts: 3, First: 4 * time.Second, Longest: minute, Factor: 20}
	for _, c := range []struct {
		name     string
		schedule Schedule
		attempt  int
		random   float64
		want     time.Duration
		again    bool
	}{
		{"the first", s, 1, 0, 2 * time.Second, true},
		{"the first, in the middle", s, 1, 0.5, 3 * time.Second, true},
		{"the longest", s, 2, 0, 30 * time.Second, true},
		{"the longest, in the middle", s, 2, 0.5, 45 * time.Second, true},
		{"the last", s, 3, 0, 0, false},
		{"beyond the last", s, math.MaxInt, 0, 0, false},
		{"none", s, 0, 0, 2 * time.Second, true},
		{"less than none", s, -1, 0, 2 * time.Second, true},
		{"once", Schedule{Attempts: 1, First: minute, Longest: minute, Factor: 1}, 1, 0, 0, false},
		{"once, and none was made", Schedule{Attempts: 1, First: minute, Longest: minute, Factor: 1}, 0, 0, 0, false},
		{"the zero schedule", Schedule{}, 1, 0.9, 0, false},
		{"for ever", Schedule{math.MaxInt, minute, time.Hour, 3}, math.MaxInt - 1, 0, time.Hour / 2, true},
		{"for ever, at once", Schedule{math.MaxInt, 0, time.Hour, 3}, math.MaxInt - 1, 0.5, 0, true},
		{"as long as there is time", Schedule{math.MaxInt, minute, math.MaxInt64, 3}, 1000, 0, math.MaxInt64 / 2, true},
	} {
		if got, again := c.schedule.Delay(c.attempt, c.random); got != c.want || again != c.again {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, got, again, c.want, c.again)
		}
	}
}

// The pages and the comment say so.
func TestDefault(t *testing.T) {
	s := Default()
	var sum time.Duration
	made := 1
	for wants := []time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second, 135 * time.Second}; ; made++ {
		half, again := s.Delay(made, 0)
		if !again {
			break
		}
		if made <= len(wants) && half != wants[made-1]/2 {
			t.Errorf("wait %d is %v, want %v", made, 2*half, wants[made-1])
		}
		sum += 2 * half
	}
	if first, last, ok := s.Ends(); made != 13 || !ok || first != 5*time.Second || last != 24*time.Hour || sum < 84*time.Hour || sum > 86*time.Hour {
		t.Errorf("%d attempts from %v to %v over %v", made, first, last, sum)
	}
}

func TestScheduleOfNoRetries(t *testing.T) {
	for _, attempts := range []int{-1, 0, 1} {
		s := Schedule{attempts, time.Second, time.Hour, 2}
		if _, again := s.Delay(1, 0); again {
			t.Errorf("%d attempts have a retry", attempts)
		}
		if _, _, ok := s.Ends(); ok {
			t.Errorf("%d attempts have waits", attempts)
		}
	}
}

// A schedule that at least doubles until it is capped never comes back sooner than the time before,
// stays between half of its wait and the whole, and allows exactly as many attempts as were asked.
func TestScheduleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "first"))
		longest := time.Duration(rapid.Int64Range(int64(first), int64(1000*time.Hour)).Draw(t, "longest"))
		factor := rapid.Float64Range(2, 1e6).Draw(t, "factor")
		attempts := rapid.IntRange(1, 100).Draw(t, "attempts")
		random := rapid.Float64Range(0, almostOne)
		s := Schedule{attempts, first, longest, factor}
		made, last := 1, time.Duration(0)
		for {
			delay, ok := s.Delay(made, random.Draw(t, "random"))
			if !ok {
				break
			}
			wait := s.wait(made)
			if delay < wait/2 || delay > wait || delay > longest {
				t.Fatalf("delay %v of wait %v, capped at %v", delay, wait, longest)
			}
			if wait < longest && delay+1 < last { // one nanosecond for rounding
				t.Fatalf("delay %v follows %v", delay, last)
			}
			made, last = made+1, delay
		}
		if made != attempts {
			t.Fatalf("%d attempts, want %d", made, attempts)
		}
	})
}

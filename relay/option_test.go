package relay_test

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce/relay"
)

// Schedules are those that deliveries go by, and chance has a part in them.
func TestSchedules(t *testing.T) {
	schedule := relay.Exponential(time.Second, 10*time.Second, 3, 6)
	seen := map[time.Duration]bool{}
	for range 100 {
		for i, full := range []time.Duration{time.Second, 3 * time.Second, 9 * time.Second, 10 * time.Second, 10 * time.Second} {
			delay, again := schedule(i + 1)
			if !again || delay < full/2 || delay > full {
				t.Fatalf("after attempt %d: %v, %v", i+1, delay, again)
			}
			seen[delay] = true
		}
	}
	if len(seen) < 10 {
		t.Errorf("chance has no part in it: %v", seen)
	}
	for _, tries := range []int{6, 7, 1 << 30} {
		if delay, again := schedule(tries); again {
			t.Errorf("again after attempt %d, in %v", tries, delay)
		}
	}
	usual := relay.DefaultSchedule()
	for tries := 1; tries < 14; tries++ {
		if _, again := usual(tries); again != (tries < 13) {
			t.Errorf("by default, again after attempt %d: %v", tries, again)
		}
	}
}

package ingest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

func TestAnEventThatCameAgainCountsOnceAnHour(t *testing.T) {
	var s reseen
	ids := journal.NewIDs(1, 0)
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	var events []int64
	for range 100 {
		events = append(events, ids.Next(now))
	}
	for hour := range int64(3) {
		var counted atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for _, id := range events {
					if s.first(id, hour) {
						counted.Add(1)
					}
				}
			})
		}
		all.Wait()
		if n := counted.Load(); n != int64(len(events)) {
			t.Errorf("hour %d: %d events came again, want %d", hour, n, len(events))
		}
	}
}

// What many events cost is exactness, never memory.
func TestVeryManyEventsThatCameAgain(t *testing.T) {
	var s reseen
	ids := journal.NewIDs(1, 0)
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	const events = 20_000
	counted := 0
	for range events {
		id := ids.Next(now)
		for range 3 {
			if s.first(id, 7) {
				counted++
			}
		}
	}
	if counted != events {
		t.Errorf("%d counted of %d whose copies come together", counted, events)
	}
}

package ingest

import (
	"sync"
	"testing"
	"time"
)

// What a flood of refused requests asked for at the same time is not missed afterwards.
func TestRefusalsTakeNothing(t *testing.T) {
	bounds, now := newThrottle(1, 1), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := bounds.check(now); err != nil {
		t.Fatal(err)
	}
	var flood sync.WaitGroup
	for range 8 {
		flood.Go(func() {
			for range 20_000 {
				if bounds.check(now) == nil {
					t.Error("one more is taken")
				}
			}
		})
	}
	flood.Wait()
	if err := bounds.check(now.Add(time.Second)); err != nil {
		t.Errorf("a second later: %v", err)
	}
}

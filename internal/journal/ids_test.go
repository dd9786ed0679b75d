package journal_test

import (
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

var idEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

func TestIDs_layout(t *testing.T) {
	ids := journal.NewIDs(5, 0)
	now := idEpoch.Add(1000*time.Millisecond + 250*time.Microsecond)
	for counter := range int64(3) {
		if got, want := ids.Next(now), 1000<<22|(256+counter)<<12|5; got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	if got, want := ids.Next(now.Add(749*time.Microsecond+999)), int64(1000<<22|1023<<12|5); got != want {
		t.Errorf("at the end of the millisecond: got %d, want %d", got, want)
	}
}

// What follows something in another process has the larger identifier, whichever of them has the larger
// number: the order of a resource goes by it.
func TestIDs_growOverProcesses(t *testing.T) {
	high, low := journal.NewIDs(journal.MaxWriter, 0), journal.NewIDs(0, 0)
	now := idEpoch.Add(time.Hour)
	for range 2000 {
		a, b := high.Next(now), low.Next(now.Add(2*time.Microsecond))
		if b <= a {
			t.Fatalf("%d follows %d within a millisecond", b, a)
		}
		now = now.Add(4 * time.Microsecond)
	}
}

// Identifiers grow whatever the clock does and however many are asked for.
func TestIDs_alwaysGrow(t *testing.T) {
	ids := journal.NewIDs(journal.MaxWriter, 0)
	now := idEpoch.Add(24 * time.Hour)
	last := int64(0)
	for i := range 10_000 {
		if i%100 == 0 {
			now = now.Add(time.Duration(i%7-3) * time.Millisecond)
		}
		id := ids.Next(now)
		if id <= last {
			t.Fatalf("%d after %d", id, last)
		}
		if id&journal.MaxWriter != journal.MaxWriter {
			t.Fatalf("%d does not carry the writer", id)
		}
		last = id
	}
}

// A process that starts with its clock behind goes on after what the store has.
func TestIDs_goOnAfter(t *testing.T) {
	before := journal.NewIDs(9, 0)
	var last int64
	for range 5000 {
		last = before.Next(idEpoch.Add(time.Hour))
	}
	if id := journal.NewIDs(0, last).Next(idEpoch); id <= last {
		t.Errorf("%d is not after %d", id, last)
	}
}

func TestIDs_uniqueUnderConcurrency(t *testing.T) {
	now := time.Now()
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for _, ids := range []*journal.IDs{journal.NewIDs(1, 0), journal.NewIDs(2, 0)} {
		for range 4 {
			wg.Go(func() {
				for range 2000 {
					id := ids.Next(now)
					mu.Lock()
					if seen[id] {
						t.Errorf("%d twice", id)
					}
					seen[id] = true
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
}

// An identifier tells when its event was accepted.
func TestIDTime(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 123_000_000, time.UTC)
	for range 3 {
		if got := journal.IDTime(journal.NewIDs(7, 0).Next(at)); !got.Equal(at) {
			t.Errorf("IDTime = %v, want %v", got, at)
		}
	}
}

// After a clock that was ahead identifiers are ahead of the time, which is known, and an event is as old as it was received.
func TestIDs_aheadOfTheClock(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	future := now.AddDate(5, 0, 0)
	ids := journal.NewIDs(0, 0)
	if got := ids.Ahead(now); got != 0 {
		t.Errorf("before the first identifier it is %v ahead", got)
	}
	right := ids.Next(now)
	if got := ids.Ahead(now.Add(time.Second)); got != 0 {
		t.Errorf("a clock that goes on is %v behind", got)
	}
	ids.Next(future)
	late := ids.Next(now)
	if got := ids.Ahead(now); got != future.Sub(now) {
		t.Errorf("%v ahead, want %v", got, future.Sub(now))
	}
	if got := ids.Ahead(time.Unix(0, 0)); got != 0 {
		t.Errorf("a clock at 1970 finds identifiers %v ahead", got)
	}
	if first := journal.BeyondID(now); right >= first || late < first || journal.NewIDs(0, 0).Next(now.Add(journal.MuchAhead)) < first {
		t.Errorf("%d is the first that is ahead, of %d and %d", first, right, late)
	}
	for _, tt := range []struct {
		id             int64
		received, want time.Time
	}{
		{right, now, now}, {late, now, now}, {late, time.Time{}, journal.IDTime(late)}, {late, future, journal.IDTime(late)},
		{right, now.Add(-journal.MuchAhead), now}, {right, now.Add(-journal.MuchAhead - time.Microsecond), now.Add(-journal.MuchAhead - time.Microsecond)},
	} {
		if got := journal.AcceptedAt(tt.id, tt.received); !got.Equal(tt.want) {
			t.Errorf("an event received at %v under %d was accepted at %v, want %v", tt.received, tt.id, got, tt.want)
		}
	}
}

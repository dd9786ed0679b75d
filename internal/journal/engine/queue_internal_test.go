package engine

import (
	"testing"

	"github.com/hookonce/hookonce/internal/journal"
)

// A commit has no more bytes than what it is sent in can hold, however many may wait. Copies weigh nothing in it.
func TestDrainIsBoundedInBytes(t *testing.T) {
	const requests = 6
	half := &journal.Event{Source: "billing", Body: make([]byte, journal.MaxBatchBytes/2)}
	copied := &journal.Event{Source: "billing", Key: "evt_1", Body: half.Body}
	q := newQueue(100, requests*2*journal.MaxBatchBytes)
	add := func(events ...*journal.Event) {
		r := newRequest().(*request)
		r.reset(len(events))
		for i, e := range events {
			r.slots = append(r.slots, slot{event: e, request: r, index: i})
		}
		if err := q.add(r); err != nil {
			t.Fatal(err)
		}
	}
	add(half, half, half, half) // is one commit whatever it weighs
	add(copied, copied, copied)
	add(half)
	add(half)
	var drained []int
	for range 3 {
		batch, _ := q.drain(nil, 100)
		drained = append(drained, len(batch))
	}
	if drained[0] != 4 || drained[1] != 2 || drained[2] != 1 {
		t.Errorf("commits of %v events, want 4, 2 and 1", drained)
	}
}

package engine

import (
	"testing"

	"github.com/hookonce/hookonce/internal/journal"
)

// What is remembered of a key is two objects, its entry and its text: the garbage collector visits each of them.
func TestDoneCacheIsSmall(t *testing.T) {
	c := newDoneCache(1)
	events := []*journal.Event{
		{Source: "billing", Key: "evt_1", Digest: make([]byte, 16)},
		{Source: "billing", Key: "evt_2", Digest: make([]byte, 16)},
	}
	next := 0
	if n := testing.AllocsPerRun(100, func() { c.add(events[next%2], 1, 0); next++ }); n > 2 {
		t.Errorf("%.0f objects for a key, want 2", n)
	}
	c.add(events[0], 7, 0)
	if res, ok := c.lookup(events[0]); !ok || res.ID != 7 || res.Status != journal.Duplicate {
		t.Errorf("a copy gets %+v, %v", res, ok)
	}
	if res, ok := c.lookup(&journal.Event{Source: "billing", Key: "evt_1", Digest: []byte("another")}); !ok || res.Status != journal.Conflict {
		t.Errorf("another content gets %+v, %v", res, ok)
	}
}

package engine

import (
	"runtime"
	"strconv"
	"strings"
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
	if n := testing.AllocsPerRun(100, func() { c.add(events[0], 7, 0) }); n > 0 {
		t.Errorf("%.0f objects for what is known already, want none", n)
	}
	if res, ok := c.lookup(events[0]); !ok || res.ID != 7 || res.Status != journal.Duplicate {
		t.Errorf("a copy gets %+v, %v", res, ok)
	}
	if res, ok := c.lookup(&journal.Event{Source: "billing", Key: "evt_1", Digest: []byte("another")}); !ok || res.Status != journal.Conflict {
		t.Errorf("another content gets %+v, %v", res, ok)
	}
}

// What is known anew of a key takes the place of what was known, text and all.
func TestDoneCacheKeepsOneTextOfAKey(t *testing.T) {
	const keys, long = 64, 64 << 10
	c := newDoneCache(keys)
	size := func(id int64) int64 {
		for i := range keys {
			c.add(&journal.Event{Source: "billing", Key: strings.Repeat("k", long) + strconv.Itoa(i), Digest: make([]byte, 16)}, id, 0)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	empty := size(1) - keys*long
	for id := range int64(3) {
		if got := size(id+2) - empty; got > keys*long*3/2 {
			t.Errorf("%d bytes for keys of %d", got, keys*long)
		}
	}
	runtime.KeepAlive(c)
}

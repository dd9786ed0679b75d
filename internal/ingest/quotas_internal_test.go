package ingest

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Requests that hold all of the queue, and all turn out to need a little more, do not wait for each other.
func TestRoomsDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pools{}
		p.entries.Resize(1000, true)
		p.bytes.Resize(100, true)
		s := p.share()
		var rooms []room
		for room, ok := s.queue(1, 10); ok; room, ok = s.queue(1, 10) {
			rooms = append(rooms, room)
		}
		start, good := time.Now(), 0
		var all sync.WaitGroup
		for i := range rooms {
			all.Go(func() {
				defer func() { rooms[i].leave() }()
				switch err := rooms[i].become(t.Context(), 1, 12); {
				case err == nil:
					good++
				case !errors.Is(err, errFull):
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if time.Since(start) > 0 || good == 0 {
			t.Errorf("%d of %d got more, after %v", good, len(rooms), time.Since(start))
		}
		if entries, bytes := p.entries.Used(), p.bytes.Used(); entries != 0 || bytes != 0 {
			t.Errorf("%d entries and %d bytes are kept", entries, bytes)
		}
	})
}

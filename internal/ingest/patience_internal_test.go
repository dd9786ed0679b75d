package ingest

import (
	"testing"
	"time"
)

// How long a store may take: as long as the gateway says at most, less for a sender that waits less, and half of that where the
// event goes past a store that is down.
func TestAcceptTimeout(t *testing.T) {
	const most = 5 * time.Second
	for name, c := range map[string]struct {
		source Source
		want   time.Duration
	}{
		"closed":                {Source{Deadline: time.Minute}, most},
		"closed, in a hurry":    {Source{Deadline: time.Second}, most},
		"sync":                  {Source{Sync: true, Deadline: time.Minute}, most},
		"sync, in a hurry":      {Source{Sync: true, Deadline: 2 * time.Second}, 2 * time.Second},
		"open, and in no hurry": {Source{Open: true, Deadline: time.Minute}, most},
		"open":                  {Source{Open: true, Deadline: 9 * time.Second}, 4500 * time.Millisecond},
		"open, in a hurry":      {Source{Open: true, Deadline: 2 * time.Second}, time.Second},
	} {
		if got := acceptTimeout(c.source, Options{AcceptTimeout: most}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

package relay

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// An effect is begun once more after lost takes, and not again before it is known what came of that, however many takes are lost:
// what hangs would go on for ever. What was enqueued later was in none of them.
func TestExcusedOnceUntilItIsKnown(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	l := &lostTakes{excused: map[int64]bool{}}
	since := now.Add(-time.Hour)
	old := hookonce.QueuedEffect{ID: 1, EnqueuedAt: now}
	is := func(what string, e hookonce.QueuedEffect, want bool) {
		t.Helper()
		if l.excuse(e, since) != want {
			t.Errorf("%s: excused: %t", what, !want)
		}
	}
	is("no take was lost", old, false)
	l.add(now.Add(time.Second))
	is("a take was lost", old, true)
	is("it was begun since", old, false)
	l.add(now.Add(2 * time.Second))
	is("it was begun, and another take was lost", old, false)
	l.forget(old)
	is("it is known what came of it", old, true)
	since = now.Add(2 * time.Second)
	is("the take was a moment ago, as the deaths", hookonce.QueuedEffect{ID: 3, EnqueuedAt: now}, true)
	since = now.Add(3 * time.Second)
	is("the take was long before the deaths", hookonce.QueuedEffect{ID: 4, EnqueuedAt: now}, false)
	is("it was enqueued later", hookonce.QueuedEffect{ID: 2, EnqueuedAt: now.Add(time.Minute)}, false)
}

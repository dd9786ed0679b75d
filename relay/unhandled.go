package relay

import (
	"context"
	"time"

	"github.com/hookonce/hookonce"
)

// What is looked at for names that no handler is for.
const (
	unhandledEvery = time.Minute // between two looks
	unhandledAge   = time.Minute // that an effect waits before it is told of: another relay may be about to take it
	unhandledPage  = 100         // effects that are read at a time
	unhandledPages = 10          // of one state that are read in one look; the next one goes on there
	maxUnhandled   = 100         // names that are told of
)

// unfinished are the states in which an effect waits for a relay, or has one.
var unfinished = []hookonce.State{hookonce.StatePending, hookonce.StateFailed, hookonce.StateProcessing}

// waitsSince returns since when an effect waits for a relay. Of one that was tried, somebody else
// may be the relay until it is due, or until its lease has run out.
func waitsSince(e hookonce.QueuedEffect) time.Time {
	switch e.State {
	case hookonce.StateFailed:
		return e.Due
	case hookonce.StateProcessing:
		return e.Lease
	}
	return e.EnqueuedAt
}

// lister is a queue that can list its effects.
type lister interface {
	Effects(ctx context.Context, s hookonce.State, after int64, limit int) ([]hookonce.QueuedEffect, error)
}

// lookForUnhandled logs each name once under which effects wait and that this relay has no handler
// for, until ctx ends: one that is mistyped or was renamed, or whose relay nobody started, would
// wait for ever without a word. It goes on beside the relay's work. A queue that cannot list its
// effects is not asked.
func (r *run) lookForUnhandled(ctx context.Context) {
	queue, lists := r.queue.(lister)
	if !lists {
		return
	}
	told := map[string]bool{}
	after := map[hookonce.State]int64{} // the effect that was looked at last; 0: the next look begins with the oldest
	ticker := time.NewTicker(unhandledEvery)
	defer ticker.Stop()
	for len(told) < maxUnhandled {
		for _, state := range unfinished {
			after[state] = r.lookAt(ctx, queue, state, after[state], told)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// lookAt looks at effects in one state, from after on, and returns where to go on the next time.
func (r *run) lookAt(ctx context.Context, queue lister, state hookonce.State, after int64, told map[string]bool) int64 {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for range unhandledPages {
		page, err := queue.Effects(ctx, state, after, unhandledPage)
		if err != nil {
			return after // whoever takes effects says what is wrong with the store
		}
		for _, e := range page {
			after = e.ID
			if r.handlers[e.Name] != nil || told[e.Name] || len(told) >= maxUnhandled || r.now().Sub(waitsSince(e)) < unhandledAge {
				continue
			}
			told[e.Name] = true
			r.log.WarnContext(ctx, "relay: effects wait that this relay has no handler for; give it one, or start the relay that has",
				"name", e.Name, "effect", e.ID, "state", e.State, "enqueued_at", e.EnqueuedAt)
		}
		if len(page) < unhandledPage {
			return 0
		}
	}
	return after
}

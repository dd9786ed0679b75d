package relay

import (
	"context"
	"time"

	"github.com/hookonce/hookonce"
)

// What is looked at for names that no handler is for.
const (
	unhandledEvery = time.Minute // between two looks, which are taken when nothing else is to be done
	unhandledAge   = time.Minute // that an effect waits before it is told of: another relay may be about to take it
	unhandledPage  = 100         // effects that are read at a time
	unhandledPages = 10          // that are read in one look; the next one goes on there
	maxUnhandled   = 100         // names that are told of
)

// unhandled is what a relay knows of effects that wait for another one.
type unhandled struct {
	next  time.Time // when it looks again
	after int64     // the effect that it looked at last; 0: it begins with the oldest
	told  map[string]bool
}

// lookForUnhandled logs each name once under which effects wait and that this relay has no handler for: one that is mistyped, or
// whose relay nobody started, would wait for ever without a word. A queue that cannot list its effects is not asked.
func (r *run) lookForUnhandled(ctx context.Context) {
	queue, lists := r.queue.(interface {
		Effects(ctx context.Context, s hookonce.State, after int64, limit int) ([]hookonce.QueuedEffect, error)
	})
	u := &r.unhandled
	if !lists || len(u.told) >= maxUnhandled || time.Now().Before(u.next) {
		return
	}
	u.next = time.Now().Add(unhandledEvery)
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for range unhandledPages {
		page, err := queue.Effects(ctx, hookonce.StatePending, u.after, unhandledPage)
		if err != nil {
			return // whoever takes effects says what is wrong with the store
		}
		for _, e := range page {
			if r.now().Sub(e.EnqueuedAt) < unhandledAge {
				u.after = 0
				return
			}
			u.after = e.ID
			if r.handlers[e.Name] == nil && !u.told[e.Name] && len(u.told) < maxUnhandled {
				u.told[e.Name] = true
				r.log.WarnContext(ctx, "relay: effects wait that this relay has no handler for; give it one, or start the relay that has",
					"name", e.Name, "effect", e.ID, "enqueued_at", e.EnqueuedAt)
			}
		}
		if len(page) < unhandledPage {
			u.after = 0
			return
		}
	}
}

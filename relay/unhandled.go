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

// waitsSince returns since when an effect waits for a relay: it is there and due, or the lease of the relay that had it has run out.
func waitsSince(e hookonce.QueuedEffect) time.Time {
	switch {
	case e.State == hookonce.StateProcessing:
		return e.Lease
	case e.Due.Before(e.EnqueuedAt):
		return e.EnqueuedAt
	}
	return e.Due
}

// lister is a queue that can list its effects.
type lister interface {
	Effects(ctx context.Context, s hookonce.State, after int64, limit int) ([]hookonce.QueuedEffect, error)
}

// counter is a queue that knows the names of its effects, and when the first of each is due, without reading them all, with
// payloads of up to a mebibyte.
type counter interface {
	CountEffects(ctx context.Context, limit int) ([]hookonce.EffectCount, error)
	ListEffects(ctx context.Context, q hookonce.EffectQuery) ([]hookonce.QueuedEffect, error)
}

// lookForUnhandled logs each name once under which effects wait and that this relay has no handler
// for, until ctx ends: one that is mistyped or was renamed, or whose relay nobody started, would
// wait for ever without a word. It goes on beside the relay's work. A queue that cannot list its
// effects is not asked.
func (r *run) lookForUnhandled(ctx context.Context) {
	u := &unhandled{run: r, told: map[string]bool{}, after: map[hookonce.State]int64{}}
	var look func(context.Context)
	switch queue := r.queue.(type) {
	case counter:
		look = func(ctx context.Context) { u.lookAtNames(ctx, queue) }
	case lister:
		look = func(ctx context.Context) {
			for _, state := range unfinished {
				u.lookAt(ctx, queue, state)
			}
		}
	default:
		return
	}
	ticker := time.NewTicker(unhandledEvery)
	defer ticker.Stop()
	for len(u.told) < maxUnhandled {
		look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// unhandled are the names that a relay has no handler for.
type unhandled struct {
	*run
	told  map[string]bool
	after map[hookonce.State]int64 // the effect that was looked at last, where all are; 0: the next look begins with the oldest
}

// lookAtNames looks at the effect of each name that waits longest.
func (u *unhandled) lookAtNames(ctx context.Context, queue counter) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	counts, err := queue.CountEffects(ctx, 1)
	if err != nil {
		return // whoever takes effects says what is wrong with the store
	}
	for _, c := range counts {
		if c.Due.IsZero() || !u.waits(c.Name, c.Due) {
			continue
		}
		first, err := queue.ListEffects(ctx, hookonce.EffectQuery{Name: c.Name, Limit: 1})
		if err != nil {
			return
		}
		for _, e := range first {
			u.tell(ctx, e)
		}
	}
}

// lookAt looks at effects in one state, from where the last look ended.
func (u *unhandled) lookAt(ctx context.Context, queue lister, state hookonce.State) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for range unhandledPages {
		page, err := queue.Effects(ctx, state, u.after[state], unhandledPage)
		if err != nil {
			return // as above
		}
		for _, e := range page {
			u.after[state] = e.ID
			u.tell(ctx, e)
		}
		if len(page) < unhandledPage {
			u.after[state] = 0
			return
		}
	}
}

// waits reports whether the name is to be told of: an effect has waited since then that this relay does not carry out.
func (u *unhandled) waits(name string, since time.Time) bool {
	return u.handlers[name] == nil && !u.told[name] && len(u.told) < maxUnhandled && u.now().Sub(since) >= unhandledAge
}

func (u *unhandled) tell(ctx context.Context, e hookonce.QueuedEffect) {
	if !u.waits(e.Name, waitsSince(e)) {
		return
	}
	u.told[e.Name] = true
	u.log.WarnContext(ctx, "relay: effects wait that this relay has no handler for; give it one, or start the relay that has",
		"name", e.Name, "effect", e.ID, "state", e.State, "enqueued_at", e.EnqueuedAt)
}

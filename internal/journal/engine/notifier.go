package engine

import (
	"context"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

const (
	ringRest    = 100 * time.Millisecond // between two rings: what happens meanwhile is told by one
	ringTimeout = time.Second            // after which polling is no slower
)

// ropes are what the journal's goroutines pull to have the bell rung, and feel when it was.
type ropes struct {
	ring  chan struct{} // to be rung
	heard chan struct{} // it was: pauses may have changed
}

func newRopes() ropes { return ropes{ring: make(chan struct{}, 1), heard: make(chan struct{}, 1)} }

// pull does not block, and a second pull before the first was felt is the same one.
func pull(rope chan struct{}) {
	select {
	case rope <- struct{}{}:
	default:
	}
}

// tellOthers has the other processes look for work, and at who is paused.
func (j *Engine) tellOthers() { pull(j.ropes.ring) }

// listener follows the bell until the journal's context ends.
func (j *Engine) listener() {
	j.opt.Notifier.Listen(j.ctx, func() {
		j.done.forget() // somebody may have replayed it
		j.lookHere()
		pull(j.ropes.heard)
	})
	j.done.end()
}

// ringer rings for those who ask, until the journal's context ends.
func (j *Engine) ringer() {
	for {
		select {
		case <-j.ropes.ring:
			j.ring()
		case <-j.ctx.Done():
			return
		}
		if !j.pause(ringRest) {
			return
		}
	}
}

// ring rings once. It does nothing without a bell.
func (j *Engine) ring() {
	if j.opt.Notifier == nil {
		return
	}
	ctx, cancel := context.WithTimeout(j.ctx, ringTimeout)
	defer cancel()
	if err := j.opt.Notifier.Notify(ctx); err != nil {
		j.opt.Logger.Debug("journal: other processes were not told of work, and find it when they poll", "error", err)
	}
}

// handedBack tells the others of recorded hand-backs that they need not wait for.
func (j *Engine) handedBack(o journal.Outcome) {
	if o.State == journal.Pending && !j.opt.Now().Before(o.Due) {
		j.tellOthers()
	}
}

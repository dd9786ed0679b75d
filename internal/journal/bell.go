package journal

import (
	"context"
	"time"
)

// Bell lets the processes on one store wake each other. Work does not depend on it: whoever hears nothing finds
// the same when it polls. What a process remembers as done it forgets with every ring, because somebody may have
// replayed it; one that cannot hear remembers nothing. It is rung after the commit, and never for ordinary events.
type Bell interface {
	// Ring wakes everybody who listens, the caller included. It may be lost.
	Ring(ctx context.Context) error
	// Listen calls heard after every ring, and whenever some may have been missed, until ctx ends. It
	// returns sooner if this process cannot hear. heard does not block.
	Listen(ctx context.Context, heard func())
}

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
func (j *Journal) tellOthers() { pull(j.ropes.ring) }

// listener follows the bell until the journal's context ends.
func (j *Journal) listener() {
	j.opt.Bell.Listen(j.ctx, func() {
		j.done.forget() // somebody may have replayed it
		j.lookHere()
		pull(j.ropes.heard)
	})
	j.done.end()
}

// ringer rings for those who ask, until the journal's context ends.
func (j *Journal) ringer() {
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
func (j *Journal) ring() {
	if j.opt.Bell == nil {
		return
	}
	ctx, cancel := context.WithTimeout(j.ctx, ringTimeout)
	defer cancel()
	if err := j.opt.Bell.Ring(ctx); err != nil {
		j.opt.Logger.Debug("journal: other processes were not told of work, and find it when they poll", "error", err)
	}
}

// handedBack tells the others of recorded hand-backs that they need not wait for.
func (j *Journal) handedBack(o Outcome) {
	if o.State == Pending && !j.opt.Now().Before(o.Due) {
		j.tellOthers()
	}
}

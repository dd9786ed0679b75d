package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// pauseEvery is how often a process looks who is paused.
const pauseEvery = 500 * time.Millisecond

// Paused reports whether an operator has paused a destination, as far as this process knows: what other
// processes do about it is known here within a second. It does not block.
func (j *Engine) Paused(destination string) bool {
	paused := j.paused.Load()
	return paused != nil && (*paused)[destination]
}

// SetPaused pauses a destination, or resumes it, for all processes on the store. Nothing is taken for it
// any more; what waits in a process goes back without losing an attempt, and attempts under way come to
// their end. It lasts until somebody resumes the destination, restarts included. It needs [Options.Records].
func (j *Engine) SetPaused(ctx context.Context, p journal.Pause, paused bool) (changed bool, err error) {
	if changed, err = j.opt.Records.SetPaused(ctx, p, paused); err != nil {
		return false, err
	}
	j.tellOthers()
	return changed, j.readPauses(ctx)
}

// Look has the pollers of all processes look for due work now, because it is known that there is some.
func (j *Engine) Look() {
	j.lookHere()
	j.tellOthers()
}

// lookHere does it in this process.
func (j *Engine) lookHere() { j.schedule.note(j.opt.Now()) }

// readPauses makes this process follow the store.
func (j *Engine) readPauses(ctx context.Context) error {
	pauses, err := j.opt.Records.Pauses(ctx)
	if err != nil {
		return fmt.Errorf("journal: reading which destinations are paused: %w", err)
	}
	paused := make(map[string]bool, len(pauses))
	for _, p := range pauses {
		paused[p.Destination] = true
	}
	resumed := j.held.pause(paused) // first, or what goes back would come again at once
	j.paused.Store(&paused)
	if resumed {
		j.lookHere()
	}
	return nil
}

// pause rests these destinations and no others. It reports whether one may begin again.
func (h *holds) pause(paused map[string]bool) (resumed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, s := range h.shares {
		resumed = resumed || s.paused && !paused[name]
		s.paused = paused[name]
	}
	return resumed
}

// watchPauses keeps up with what operators decide elsewhere, until Close begins. While the store cannot be
// asked, the last answer counts.
func (j *Engine) watchPauses() {
	for j.pausesMayHaveChanged() {
		_ = j.call(opPauses, j.opt.Timeout, 1, j.readPauses)
	}
}

// pausesMayHaveChanged waits until it is time to read pauses. It reports false when Close has begun.
func (j *Engine) pausesMayHaveChanged() bool {
	timer := time.NewTimer(pauseEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-j.ropes.heard:
		return true
	case <-j.stop:
		return false
	}
}

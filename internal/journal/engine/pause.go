package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/inflight"
)

// pauseEvery is how often a process looks who is paused.
const pauseEvery = 500 * time.Millisecond

// pauses are the destinations that operators have paused, as the store has them.
type pauses struct {
	*core
	inflight *inflight.Set
	schedule *schedule
	notifier *notifier
	now      atomic.Pointer[map[string]bool] // nil: not read yet
}

// names returns them by name. Nobody changes the map.
func (p *pauses) names() map[string]bool {
	if now := p.now.Load(); now != nil {
		return *now
	}
	return nil
}

// set is [Engine.SetPaused].
func (p *pauses) set(ctx context.Context, pause journal.Pause, paused bool) (changed bool, err error) {
	if changed, err = p.store.SetPaused(ctx, pause, paused); err != nil {
		return false, err
	}
	p.notifier.tell()
	return changed, p.read(ctx)
}

// read makes this process follow the store.
func (p *pauses) read(ctx context.Context) error {
	all, err := p.store.Pauses(ctx)
	if err != nil {
		return fmt.Errorf("journal: reading which destinations are paused: %w", err)
	}
	paused := make(map[string]bool, len(all))
	for _, pause := range all {
		paused[pause.Destination] = true
	}
	p.metrics.pauses(all, p.names())
	resumed := p.inflight.Destinations.Pause(paused) // first, or what goes back would come again at once
	p.now.Store(&paused)
	if resumed {
		p.schedule.note(p.opt.Now())
	}
	return nil
}

// watch keeps up with what operators decide elsewhere, until Close begins. While the store cannot be
// asked, the last answer counts.
func (p *pauses) watch() {
	for wait(pauseEvery, p.stop, p.notifier.heard) {
		_ = p.call(opPauses, p.opt.Timeout, 1, p.read)
	}
}

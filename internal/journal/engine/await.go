package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/inflight"
)

const (
	statusEvery = 200 * time.Millisecond // how late it is noticed here what another process did
	statusBatch = 250                    // deliveries that one call asks about
)

// awaiter tells those who wait for the end of a delivery.
type awaiter struct {
	*core
	inflight *inflight.Set
	waits    *waits
}

// await is [Engine.Await].
func (a *awaiter) await(ctx context.Context, d journal.DeliveryID) (journal.DeliveryStatus, error) {
	w := a.waits.join(d)
	defer a.waits.leave(d, w)
	signal(a.waits.asked) // or nobody would tell what happened already, or happens elsewhere
	select {
	case <-w.ended:
		return w.status, nil
	case <-ctx.Done():
		return journal.DeliveryStatus{}, fmt.Errorf("journal: waiting for the delivery: %w", context.Cause(ctx))
	case <-a.ctx.Done():
		return journal.DeliveryStatus{}, journal.ErrClosed
	}
}

// run asks the store about deliveries that somebody waits for, while there are any: what happened
// before they came, and what happens in other processes. It ends with the engine's context.
func (a *awaiter) run() {
	for {
		select {
		case <-a.waits.asked:
		case <-a.ctx.Done():
			return
		}
		for a.ask() && wait(statusEvery, a.ctx.Done(), a.waits.asked) && a.ctx.Err() == nil {
		}
	}
}

// ask asks the store once, and reports whether anybody still waits.
func (a *awaiter) ask() bool {
	deliveries, waiting := a.waits.elsewhere(a.inflight, statusBatch)
	if len(deliveries) == 0 {
		return waiting
	}
	var statuses []journal.DeliveryStatus
	err := a.call(opStatuses, a.opt.Timeout, len(deliveries), func(ctx context.Context) (err error) {
		statuses, err = a.store.Statuses(ctx, deliveries)
		if err == nil {
			err = journal.CheckAnswers(len(statuses), len(deliveries))
		}
		return err
	})
	if err != nil {
		return true
	}
	for i, s := range statuses {
		if s.Ended() || s.State == journal.Pending && a.inflight.Destinations.Suspended(deliveries[i].Destination) {
			a.waits.tell(deliveries[i], s)
		}
	}
	return true
}

// waits are the deliveries whose end somebody waits for.
type waits struct {
	asked chan struct{} // has the awaiter look at once

	mu sync.Mutex
	of map[journal.DeliveryID]*waiting
}

// waiting is one such delivery.
type waiting struct {
	senders int
	ended   chan struct{} // closed when status is set
	status  journal.DeliveryStatus
}

func newWaits() *waits {
	return &waits{asked: make(chan struct{}, 1), of: map[journal.DeliveryID]*waiting{}}
}

func (s *waits) join(d journal.DeliveryID) *waiting {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.of[d]
	if w == nil {
		w = &waiting{ended: make(chan struct{})}
		s.of[d] = w
	}
	w.senders++
	return w
}

func (s *waits) leave(d journal.DeliveryID, w *waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.senders--; w.senders == 0 && s.of[d] == w {
		delete(s.of, d)
	}
}

// tell lets everybody go who waits for a delivery.
func (s *waits) tell(d journal.DeliveryID, status journal.DeliveryStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.of[d]; w != nil {
		w.status = status
		close(w.ended)
		delete(s.of, d)
	}
}

// elsewhere returns at most limit deliveries that somebody waits for, and whether there are any at all. Those
// whose first attempt is in flight in this process are left out: whoever finishes them tells.
func (s *waits) elsewhere(here *inflight.Set, limit int) (deliveries []journal.DeliveryID, any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range s.of {
		if len(deliveries) == limit {
			break
		}
		if !here.HasFirst(d) {
			deliveries = append(deliveries, d)
		}
	}
	return deliveries, len(s.of) > 0
}

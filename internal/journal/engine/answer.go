package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Await waits until an attempt at a delivery has come to its end, here or in another process on the same
// store, and says what it came to. What it returns is durable. An answer that is not a success is known
// only in the process that got it; elsewhere there is the state alone. A delivery that is put off, because
// its destination is at rest, is [journal.Pending].
//
// It fails when ctx or the journal ends first. Safe for concurrent use.
func (j *Engine) Await(ctx context.Context, t journal.DeliveryID) (journal.DeliveryStatus, error) {
	w := j.waits.join(t)
	defer j.waits.leave(t, w)
	j.waits.wake() // or nobody would tell what happened already, or happens elsewhere
	select {
	case <-w.ended:
		return w.standing, nil
	case <-ctx.Done():
		return journal.DeliveryStatus{}, fmt.Errorf("journal: waiting for the delivery: %w", context.Cause(ctx))
	case <-j.ctx.Done():
		return journal.DeliveryStatus{}, journal.ErrClosed
	}
}

// waits are the deliveries whose end somebody waits for.
type waits struct {
	asked chan struct{} // has the reader look at once

	mu sync.Mutex
	of map[journal.DeliveryID]*waiting
}

// waiting is one such delivery.
type waiting struct {
	senders  int
	ended    chan struct{} // closed when standing is set
	standing journal.DeliveryStatus
}

func newWaits() *waits {
	return &waits{asked: make(chan struct{}, 1), of: map[journal.DeliveryID]*waiting{}}
}

func (s *waits) join(t journal.DeliveryID) *waiting {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.of[t]
	if w == nil {
		w = &waiting{ended: make(chan struct{})}
		s.of[t] = w
	}
	w.senders++
	return w
}

func (s *waits) leave(t journal.DeliveryID, w *waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.senders--; w.senders == 0 && s.of[t] == w {
		delete(s.of, t)
	}
}

// tell lets everybody go who waits for a delivery.
func (s *waits) tell(t journal.DeliveryID, standing journal.DeliveryStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.of[t]; w != nil {
		w.standing = standing
		close(w.ended)
		delete(s.of, t)
	}
}

// wake has the reader look.
func (s *waits) wake() {
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

// targets returns at most limit deliveries that somebody waits for, and whether there are any at all. Those
// that are held in this process are left out: whoever finishes them tells.
func (s *waits) targets(held *holds, limit int) (targets []journal.DeliveryID, any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.of {
		if len(targets) == limit {
			break
		}
		if !held.holds(t) {
			targets = append(targets, t)
		}
	}
	return targets, len(s.of) > 0
}

// holds reports whether the first attempt at a delivery is held here, which is the one that most wait for.
func (h *holds) holds(t journal.DeliveryID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	it := h.items[journal.Held{EventID: t.EventID, Destination: t.Destination, Token: 1}]
	return it != nil && !it.lost
}

// rests reports whether nothing is taken for a destination at the moment.
func (h *holds) rests(destination string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.share(destination)
	return s == nil || s.suspended(h.now)
}

const (
	answersEvery = 200 * time.Millisecond // how late it is noticed here what another process did
	answersBatch = 250                    // deliveries that one call asks about
)

// answerer asks the store about deliveries that somebody waits for, while there are any: what happened
// before they came, and what happens in other processes. It ends with the journal's context.
func (j *Engine) answerer() {
	for {
		select {
		case <-j.waits.asked:
		case <-j.ctx.Done():
			return
		}
		for waiting := true; waiting; {
			if waiting = j.ask(); waiting {
				j.pauseOrAsked(answersEvery)
				waiting = j.ctx.Err() == nil
			}
		}
	}
}

// pauseOrAsked waits until somebody asks, but not longer than d.
func (j *Engine) pauseOrAsked(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-j.waits.asked:
	case <-j.ctx.Done():
	}
}

// ask asks the store once, and reports whether anybody still waits.
func (j *Engine) ask() bool {
	targets, waiting := j.waits.targets(j.held, answersBatch)
	if len(targets) == 0 {
		return waiting
	}
	var standings []journal.DeliveryStatus
	err := j.call(opAnswers, j.opt.Timeout, len(targets), func(ctx context.Context) (err error) {
		standings, err = j.store.Statuses(ctx, targets)
		if err == nil && len(standings) != len(targets) {
			err = fmt.Errorf("the store answered about %d of %d deliveries", len(standings), len(targets))
		}
		return err
	})
	if err != nil {
		return true
	}
	for i, s := range standings {
		if s.Ended() || s.State == journal.Pending && j.held.rests(targets[i].Destination) {
			j.waits.tell(targets[i], s)
		}
	}
	return true
}

package journal

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Answer is what a destination answered, as far as it is passed on to a sender who waits for it.
type Answer struct {
	Status int
	Header []byte // HTTP/1 field lines, CRLF-terminated
	Body   []byte
}

// size is what an answer counts towards a bound on memory.
func (a *Answer) size() int64 {
	if a == nil {
		return 0
	}
	return size(a.Header, a.Body)
}

// Target names a delivery.
type Target struct {
	EventID     int64
	Destination string
}

// Standing says how a delivery stands.
type Standing struct {
	// State is that of the delivery; [Done] if it is not open, whether or not there ever was one.
	State State
	// Answer is what the destination answered. Nil: it did not, or the answer was not kept.
	Answer *Answer
}

// ended reports whether there is nothing more to wait for.
func (s *Standing) ended() bool {
	return s.Answer != nil || s.State != Pending && s.State != Processing
}

// Await waits until an attempt at a delivery has come to its end, here or in another process on the same
// store, and says what it came to. What it returns is durable. An answer that is not a success is known
// only in the process that got it; elsewhere there is the state alone. A delivery that is put off, because
// its destination is at rest, is [Pending].
//
// It fails when ctx or the journal ends first. Safe for concurrent use.
func (j *Journal) Await(ctx context.Context, t Target) (Standing, error) {
	w := j.waits.join(t)
	defer j.waits.leave(t, w)
	j.waits.wake() // or nobody would tell what happened already, or happens elsewhere
	select {
	case <-w.ended:
		return w.standing, nil
	case <-ctx.Done():
		return Standing{}, fmt.Errorf("journal: waiting for the delivery: %w", context.Cause(ctx))
	case <-j.ctx.Done():
		return Standing{}, ErrClosed
	}
}

// waits are the deliveries whose end somebody waits for.
type waits struct {
	asked chan struct{} // has the reader look at once

	mu sync.Mutex
	of map[Target]*waiting
}

// waiting is one such delivery.
type waiting struct {
	senders  int
	ended    chan struct{} // closed when standing is set
	standing Standing
}

func newWaits() *waits {
	return &waits{asked: make(chan struct{}, 1), of: map[Target]*waiting{}}
}

func (s *waits) join(t Target) *waiting {
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

func (s *waits) leave(t Target, w *waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.senders--; w.senders == 0 && s.of[t] == w {
		delete(s.of, t)
	}
}

// tell lets everybody go who waits for a delivery.
func (s *waits) tell(t Target, standing Standing) {
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
func (s *waits) targets(held *holds, limit int) (targets []Target, any bool) {
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
func (h *holds) holds(t Target) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	it := h.items[Held{EventID: t.EventID, Destination: t.Destination, Token: 1}]
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
func (j *Journal) answerer() {
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
func (j *Journal) pauseOrAsked(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-j.waits.asked:
	case <-j.ctx.Done():
	}
}

// ask asks the store once, and reports whether anybody still waits.
func (j *Journal) ask() bool {
	targets, waiting := j.waits.targets(j.held, answersBatch)
	if len(targets) == 0 {
		return waiting
	}
	var standings []Standing
	err := j.call(opAnswers, j.opt.Timeout, len(targets), func(ctx context.Context) (err error) {
		standings, err = j.store.Answers(ctx, targets)
		if err == nil && len(standings) != len(targets) {
			err = fmt.Errorf("the store answered about %d of %d deliveries", len(standings), len(targets))
		}
		return err
	})
	if err != nil {
		return true
	}
	for i, s := range standings {
		if s.ended() || s.State == Pending && j.held.rests(targets[i].Destination) {
			j.waits.tell(targets[i], s)
		}
	}
	return true
}

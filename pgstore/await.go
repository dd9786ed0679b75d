package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/hookonce/hookonce"
)

// looks say how often Await looks for itself: more and more rarely where nobody tells it, and while it
// listens only for what nobody tells, such as a lease that ran out.
type looks struct{ shortest, longest time.Duration }

const (
	shortestLook = 50 * time.Millisecond
	longestLook  = time.Second
)

// Await implements [hookonce.Awaiter]: it returns nil once the claim under ref is not processing, or can be
// taken over. With [WithNotify] it listens on one connection per store, beside the pool, which the first
// caller opens and which is closed a while after the last one left, or by [Store.Close]. While that
// connection is lost, or leads through a pooler, it asks again and again, as it does without the option.
// It returns ctx's error when that ends first, and what [Store.Lookup] returns if the store fails.
func (s *Store) Await(ctx context.Context, ref hookonce.Ref) error {
	if err := ref.Validate(); err != nil {
		return err
	}
	told, leave := s.listenFor(ref)
	defer leave()
	for look := s.looks.shortest; ; look = min(2*look, s.looks.longest) {
		if over, err := s.isOver(ctx, ref); over || err != nil {
			return err
		}
		if s.ears.open() {
			look = s.looks.longest
		}
		timer := time.NewTimer(look)
		select {
		case <-told:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// isOver reports whether there is nobody to wait for.
func (s *Store) isOver(ctx context.Context, ref hookonce.Ref) (bool, error) {
	c, err := s.Lookup(ctx, ref)
	if errors.Is(err, hookonce.ErrNotFound) {
		return true, nil
	}
	return err == nil && c.VerdictFor(hookonce.ClaimRequest{}, s.now()) != hookonce.Busy, err
}

// listenFor returns a channel that has an element when it is time to look at ref, and starts to listen.
func (s *Store) listenFor(ref hookonce.Ref) (told <-chan struct{}, leave func()) {
	if !s.notify {
		return nil, func() {}
	}
	told, leave = s.ears.join(payload(ref))
	s.ears.start(s.listen)
	return told, leave
}

// payload is what is told of a claim; see toldSQL.
func payload(ref hookonce.Ref) string { return ref.Source + "\n" + ref.Key }

// channel is where ends of work are told.
func (s *Store) channel() string { return s.schema + "_claims" }

// Close closes the connections that the store has beside the pool: the one on which Await listens, and the one on
// which outcomes are recorded while handlers hold the pool. Callers go on, and the store can be used as before. The
// pool is the caller's.
func (s *Store) Close() {
	s.ears.stop()
	s.spare.close()
}

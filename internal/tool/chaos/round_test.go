package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"golang.org/x/sync/errgroup"
)

// senders is how many events are on their way at once. Each comes in two copies.
const senders = 6

// delivery delivers an event to a process of the application, and returns what its sender is told.
type delivery func(ctx context.Context, key string) (receipt, error)

// receipt is what a sender knows about an event.
type receipt int

const (
	unacknowledged receipt = iota
	acknowledged           // it is done
	givenUp                // it is on record as dead
)

// fatalError is what may never come of a delivery.
type fatalError struct{ error }

// round is one store under one kind of harm.
type round struct {
	*bank
	all       []transfer
	deliver   []delivery
	witness   func(ctx context.Context, ref hookonce.Ref) (hookonce.Claim, error) // asks the store, past what is between; nil: answers are compared instead
	adversary *adversary

	mu      sync.Mutex
	answers int
	longest time.Duration // that a delivery took
}

// newRound returns a round with its bank and its adversary, who does what harm says.
func newRound(t testing.TB, harm func(d *dice) harm) *round {
	t.Helper()
	d, all := newDice(t), transfers(t.Name())
	r := &round{bank: newBank(d, all), all: all}
	r.adversary = newAdversary(d, harm(d))
	r.bank.nudge = r.adversary.nudge
	return r
}

// storm sends every event while the adversary is loose, and returns when all copies are acknowledged. They
// are sent once more for as long as it had no turn: nothing was tested then.
func (r *round) storm(t *testing.T) {
	t.Helper()
	stop := r.adversary.unleash(t)
	start := time.Now()
	err := r.send(t.Context())
	for err == nil && r.adversary.hits.Load() == 0 && !t.Failed() {
		err = r.send(t.Context())
	}
	took := time.Since(start)
	stop()
	t.Logf("%d answers to %d deliveries in %v, the longest took %v; harm was done %d times",
		r.answers, 2*len(r.all), took.Round(time.Millisecond), r.longest.Round(time.Millisecond), r.adversary.hits.Load())
	if err != nil {
		t.Fatal(err)
	}
}

// send sends every event in two copies at once.
func (r *round) send(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute+time.Duration(len(r.all))*50*time.Millisecond)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(senders)
	for _, e := range r.all {
		g.Go(func() error {
			var copies errgroup.Group
			for range 2 {
				copies.Go(func() error { return r.insist(ctx, e.key) })
			}
			return copies.Wait()
		})
	}
	return g.Wait()
}

// insist delivers one copy, to any process in any way, until it is acknowledged. An acknowledgement has to be true at once: in
// the end the other copy may have done what this one was told of.
func (r *round) insist(ctx context.Context, key string) error {
	for {
		start := time.Now()
		got, err := r.deliver[r.n(len(r.deliver))](ctx, key)
		if r.took(time.Since(start)) >= patience && ctx.Err() == nil {
			return wrap(key, fmt.Errorf("a delivery hung: %w", cmp.Or(err, errAcknowledged)))
		}
		if got == acknowledged && r.witness != nil {
			err = r.isDone(ctx, key)
		}
		if got != unacknowledged || errors.As(err, new(fatalError)) {
			return wrap(key, err)
		}
		if !r.pause(ctx) {
			return wrap(key, fmt.Errorf("it was never acknowledged, the last time because of: %w", err))
		}
	}
}

// isDone asks whether what was acknowledged is on record as done, until there is an answer: the witness is harmed as well.
func (r *round) isDone(ctx context.Context, key string) error {
	for {
		c, err := r.witness(ctx, ref(key))
		switch {
		case err == nil && c.State == hookonce.StateDone:
			return nil
		case err == nil, errors.Is(err, hookonce.ErrNotFound):
			return fatalError{fmt.Errorf("it was acknowledged, and its claim is %q", c.State)}
		}
		if !r.pause(ctx) {
			return fmt.Errorf("it was acknowledged, and nobody says of what its claim is: %w", err)
		}
	}
}

// pause waits as senders do, only for less long. It reports whether there is time for another try.
func (r *round) pause(ctx context.Context) bool {
	select {
	case <-time.After(r.upTo(5 * time.Millisecond)):
		return true
	case <-ctx.Done():
		return false
	}
}

// took notes how long a delivery took.
func (r *round) took(d time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers++
	r.longest = max(r.longest, d)
	r.adversary.rested()
	return d
}

var errAcknowledged = errors.New("it was acknowledged in the end")

func wrap(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", key, err)
}

// claims returns what the store has on record. All of it must be final, because all events were acknowledged.
func (r *round) claims(t testing.TB) []hookonce.Claim {
	t.Helper()
	claims := make([]hookonce.Claim, len(r.all))
	for i, e := range r.all {
		c, err := r.witness(t.Context(), ref(e.key))
		if err != nil || (c.State != hookonce.StateDone && c.State != hookonce.StateDead) {
			t.Errorf("%s was acknowledged, and its claim is %q (%v)", e.key, c.State, err)
		}
		claims[i] = c
	}
	return claims
}

// happened returns the events that are on record as done.
func (r *round) happened(t testing.TB) (done []transfer) {
	t.Helper()
	for i, c := range r.claims(t) {
		if c.State == hookonce.StateDone {
			done = append(done, r.all[i])
		}
	}
	return done
}

// harm does one thing to a server, and reports whether there was anything to do.
type harm func(ctx context.Context) (bool, error)

// either returns a harm that is one of these.
func either(d *dice, harms ...harm) harm {
	return func(ctx context.Context) (bool, error) { return harms[d.n(len(harms))](ctx) }
}

// adversary does harm at random moments, and at those that it is told of. It strikes about as often as deliveries
// are answered: on a machine that is slow or busy, one that kept to the clock would leave no delivery the time to
// connect, and the round would never end.
type adversary struct {
	*dice
	harm   harm
	nudges chan struct{}
	rest   chan struct{} // holds what the answers gave it and it has not spent
	hits   atomic.Int64  // how often it did harm
}

// newAdversary returns an adversary who may strike a few times at once.
func newAdversary(d *dice, h harm) *adversary {
	a := &adversary{dice: d, harm: h, nudges: make(chan struct{}), rest: make(chan struct{}, senders)}
	for range cap(a.rest) {
		a.rested()
	}
	return a
}

// rested is told of every answer.
func (a *adversary) rested() {
	select {
	case a.rest <- struct{}{}:
	default:
	}
}

// spend waits until the adversary has rested enough for one more strike: for no answer, for one or for two.
func (a *adversary) spend(ctx context.Context) error {
	for range a.n(3) {
		select {
		case <-a.rest:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// nudge makes the adversary strike now, unless it is about to.
func (a *adversary) nudge() {
	select {
	case a.nudges <- struct{}{}:
	default:
	}
}

// unleash lets the adversary go until stop is called.
func (a *adversary) unleash(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var loose sync.WaitGroup
	loose.Go(func() {
		for {
			select {
			case <-a.nudges:
			case <-time.After(a.upTo(30 * time.Millisecond)):
			case <-ctx.Done():
				return
			}
			if a.spend(ctx) != nil {
				return
			}
			hit, err := a.harm(ctx)
			if err != nil && ctx.Err() == nil {
				t.Errorf("the adversary failed: %v", err)
				return
			}
			if hit {
				a.hits.Add(1)
			}
		}
	})
	return func() {
		cancel()
		loose.Wait()
	}
}

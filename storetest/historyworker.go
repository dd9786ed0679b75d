package storetest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/hookonce/hookonce"
)

// worker does random things, one after the other.
type worker struct {
	id      int
	lab     *lab
	store   hookonce.Store
	clock   *Clock
	history *history
	random  *rand.Rand
}

// chance reports true in so many of a hundred cases.
func (w *worker) chance(percent int) bool { return w.random.IntN(100) < percent }

func (w *worker) step(ctx context.Context) {
	if w.chance(50) {
		w.clock.Advance(time.Duration(w.random.IntN(1_500_000)) * time.Microsecond)
	}
	k := w.history.claims[w.random.IntN(historyClaims)]
	switch n := w.random.IntN(100); {
	case n < 35:
		w.claim(ctx, k)
	case n < 55:
		w.settle(ctx, k, call{kind: completing})
	case n < 70:
		w.settle(ctx, k, call{kind: failing, dead: w.chance(30), pin: w.chance(30), forget: w.history.forgets && w.chance(30)})
	case n < 80:
		w.settle(ctx, k, call{kind: extending, duration: time.Duration(1+w.random.IntN(2000)) * time.Millisecond})
	case n < 90 || w.lab.noPurge:
		w.do(ctx, call{kind: lookingUp}, k)
	default:
		w.purge(ctx)
	}
}

func (w *worker) claim(ctx context.Context, k *track) {
	in := call{
		kind: claiming, event: []string{"", "paid", "refunded"}[w.random.IntN(3)], digest: []string{"", "one", "two"}[w.random.IntN(3)],
		duration: time.Duration(1+w.random.IntN(1000)) * time.Millisecond,
		pin:      w.chance(30),
	}
	if w.chance(3) {
		in.duration = 0
	}
	if a, c := w.do(ctx, in, k); a.verdict == hookonce.Acquired {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.held = append(k.held, c)
	}
}

// settle records an outcome under one of the last claims that somebody won.
func (w *worker) settle(ctx context.Context, k *track, in call) {
	k.mu.Lock()
	in.claim = hookonce.Claim{Ref: k.ref, Token: 1}
	if n := len(k.held); n > 0 {
		in.claim = k.held[max(0, n-1-w.random.IntN(3))]
	}
	k.mu.Unlock()
	w.do(ctx, in, k)
}

// purge deletes what is old, which concerns every claim.
func (w *worker) purge(ctx context.Context) {
	w.do(ctx, call{
		kind: purging, before: micros(w.clock.Now()) - w.random.Int64N(1_000_000), limit: 1 + w.random.IntN(historyClaims),
	}, w.history.claims...)
}

// unanswered is the end of a call of which nobody knows whether it took effect, or still will.
const unanswered = math.MaxInt64

// do makes the call and records it for the claims that it concerns.
func (w *worker) do(ctx context.Context, in call, claims ...*track) (told, hookonce.Claim) {
	in.now = micros(w.clock.Now())
	begin := w.history.now()
	a, c := w.faulty(ctx, in, claims[0].ref)
	end := w.history.now()
	if a.fault == unknownOutcome {
		end = unanswered
	}
	w.history.note(in, a)
	for _, k := range claims {
		k.mu.Lock()
		k.ops = append(k.ops, porcupine.Operation{ClientId: w.id, Input: in, Call: begin, Output: a, Return: end})
		k.mu.Unlock()
	}
	return a, c
}

// note keeps what count needs.
func (h *history) note(in call, a told) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.purged += a.purged
	h.unknown = h.unknown || a.fault == unknownOutcome && (in.kind == claiming || in.kind == purging)
}

// faulty makes the call, or loses it or its answer, or has the database lose a write.
func (w *worker) faulty(ctx context.Context, in call, ref hookonce.Ref) (told, hookonce.Claim) {
	switch n := w.random.IntN(100); {
	case n < 2:
		return told{fault: unknownOutcome}, hookonce.Claim{}
	case n < 4:
		_, _ = in.of(ctx, w.store, ref)
		return told{fault: unknownOutcome}, hookonce.Claim{}
	case n < 8 && w.lab.failWrite != nil:
		w.lab.failWrite(w.chance(50))
	}
	return in.of(ctx, w.store, ref)
}

// of makes the call of the store s.
func (in call) of(ctx context.Context, s hookonce.Store, ref hookonce.Ref) (a told, c hookonce.Claim) {
	var err error
	switch in.kind {
	case claiming:
		c, err = s.Claim(ctx, hookonce.ClaimRequest{Ref: ref, Type: in.event, Digest: []byte(in.digest), Lease: in.duration, Pin: in.pin})
		a.verdict, a.conflict = c.Verdict, c.Conflict
	case completing:
		err = s.Complete(ctx, in.claim)
	case failing:
		err = s.Fail(ctx, in.claim, in.failure())
	case extending:
		c, err = s.Extend(ctx, in.claim, in.duration)
	case lookingUp:
		c, err = s.Lookup(ctx, ref)
	case purging:
		a.purged, err = s.Purge(ctx, before(at(in.before), in.limit))
	}
	a.stored = recordOf(c)
	switch {
	case errors.Is(err, hookonce.ErrStale):
		return told{fault: staleToken}, c
	case errors.Is(err, hookonce.ErrNotFound):
		return told{fault: noClaim}, c
	case err != nil:
		return told{fault: unknownOutcome, purged: a.purged}, c
	}
	return a, c
}

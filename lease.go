package hookonce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/lease"
)

// UnderLease is [TxStore.Within] for effects that share no transaction with the claim: it claims req.Ref, runs
// fn while the lease is kept, and records what came of it. Guarantee: at least once with a stable key. A
// process that dies between the effect and the record of it leaves the claim to its lease, and then the next
// copy runs fn again. Make what fn does outside repeatable by sending keys along: [Transport] and [EffectKey]
// derive them from the claim in its context.
//
// Acquired and Unkeyed run fn once; an unkeyed request has no claim, and no lease. Duplicate returns without running
// fn and without an error, Busy with one that wraps [ErrBusy], and Pinned with [ErrPinned]: an error of nil
// always means that the work is done and on record. The claim has the verdict beside an error, too.
//
// The lease is req.Lease, [DefaultLease] if it is zero, and at least 10 ms; it is extended at each third of its
// length while fn runs. Leases end by the clock of whoever asks, so the clocks of all processes must agree to well within
// one; a process that is ahead by a whole lease runs fn beside another. The context of fn ends when the lease is lost, or when ctx does; what is recorded
// afterwards outlives ctx by 5 s at most.
//
// When fn returns nil the claim is done, unless the error says otherwise. When fn returns an error, or panics,
// the claim is failed, or dead for [Permanent] errors, and the error is returned wrapped, the panic re-raised.
// Nothing is rolled back. So with req.Pin a failed attempt leaves the claim pinned to req.Digest, and only the same
// request may try again. Only an error marked with [Forget] says that nothing was done, and takes that back,
// unless an earlier attempt had come further, or [PinRequest] or [Transport] was called.
//
// Errors besides those of [Store.Claim]: one that wraps [ErrUnknownOutcome] if it could
// not be recorded that fn is done; one that wraps [ErrTraceLost] and fn's error if the failure could not be; and
// one that wraps [ErrStale], with the verdict Busy, if another worker took the claim over meanwhile. A caller
// that gets one of these must not acknowledge anything. The error of an fn that met another claim may wrap ErrStale, too;
// of this one the verdict tells.
func UnderLease(ctx context.Context, store Store, req ClaimRequest, fn func(ctx context.Context, c Claim) error) (Claim, error) {
	req.Lease = cmp.Or(req.Lease, DefaultLease)
	if req.Lease < lease.MinLength {
		return Claim{}, fmt.Errorf("hookonce: UnderLease: a lease of %v is too short to be extended in time; ask for at least %v", req.Lease, lease.MinLength)
	}
	asked := time.Now()
	c, err := store.Claim(ctx, req)
	switch {
	case err != nil || c.Verdict == Duplicate:
		return c, err
	case c.Verdict.Err() != nil:
		return c, fmt.Errorf("hookonce: %s: %w", c.Ref, c.Verdict.Err())
	case c.Verdict == Unkeyed:
		return c, fn(ContextWithRef(ctx, c.Ref), c)
	}
	if req.Pin {
		ctx = ContextWithPin(ctx, c.Ref)
	}
	taken, err := borrow(ctx, store, c, req.Lease, asked, fn)
	if taken {
		c.Verdict = Busy
	}
	return c, err
}

// errNotBegun says that the handler was not called.
var errNotBegun = errors.New("hookonce: the work was not begun")

// borrow runs fn under the lease of c and records what came of it. It reports as well whether c was taken over: the error
// does not tell, because fn may have met another claim that was.
func borrow(ctx context.Context, store Store, c Claim, length time.Duration, asked time.Time, fn func(context.Context, Claim) error) (taken bool, err error) {
	err = errors.New("the handler ended its goroutine")
	defer func() {
		p := recover()
		if p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
		taken, err = record(ctx, store, c, err)
		if p != nil {
			panic(p)
		}
	}()
	return false, hold(ctx, store, c, length, asked, fn)
}

// hold runs fn while the lease is kept. An error of fn after the lease was lost says so.
func hold(ctx context.Context, store Store, c Claim, length time.Duration, asked time.Time, fn func(context.Context, Claim) error) error {
	if time.Since(asked) >= length {
		return fmt.Errorf("%w: the lease of %s: %w", errNotBegun, c.Ref, lease.ErrOver)
	}
	held, release := KeepLease(ctx, store, c, length, asked)
	defer release()
	err := fn(ContextWithRef(held, c.Ref), c)
	if err != nil && held.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w (%v)", err, context.Cause(held))
	}
	return err
}

// record stores what came of the attempt under c, and returns failed, or why nothing can be acknowledged, and whether that
// is because c was taken over.
func record(ctx context.Context, store Store, c Claim, failed error) (taken bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if failed == nil {
		err = insist(ctx, func() error { return store.Complete(ctx, c) })
	} else {
		f := FailureOf(ctx, c.Ref, failed)
		f.Pin = f.Pin || c.Pinned == c.Token && !f.Forget && !errors.Is(failed, errNotBegun)
		err = insist(ctx, func() error { return store.Fail(ctx, c, f) })
	}
	taken = errors.Is(err, ErrStale)
	switch {
	case failed == nil && err != nil:
		err = fmt.Errorf("hookonce: %s: attempt %d: %w: the work is done, and that could not be recorded: %w", c.Ref, c.Token, ErrUnknownOutcome, err)
	case failed != nil && err != nil:
		err = fmt.Errorf("hookonce: %s: attempt %d: %w (%w: %w)", c.Ref, c.Token, failed, ErrTraceLost, err)
	case failed != nil:
		err = fmt.Errorf("hookonce: %s: attempt %d: %w", c.Ref, c.Token, failed)
	}
	return taken, err
}

// KeepLease extends the lease of c at each third of its length, until ctx ends or release is called, which
// waits for that. Length is what was asked for, and asked the time before the claim was asked for:
// no earlier than it plus length has another worker a right to the work. The context that it returns ends when
// the lease is lost: at once when another worker has taken the claim over, and otherwise when the lease has
// run out because the store could not be reached; [context.Cause] says which. Release must be called. It
// records nothing: see [UnderLease], which does all of it. A length of zero means that the claim has no deadline
// ([ClaimRequest]): it cannot be lost, so ctx is returned as it is, and nothing is extended.
func KeepLease(ctx context.Context, store Store, c Claim, length time.Duration, asked time.Time) (held context.Context, release func()) {
	if length == 0 {
		return ctx, func() {}
	}
	return lease.Lease{
		Of: c.Ref.String(), Length: length, Asked: asked,
		Extend: func(ctx context.Context) error {
			_, err := store.Extend(ctx, c, length)
			return err
		},
		Gone: func(err error) bool { return errors.Is(err, ErrStale) || errors.Is(err, ErrNotFound) },
	}.Keep(ctx)
}

// insist calls f until it succeeds, or it is known that it cannot, or ctx ends. It begins soon: what is not
// recorded happens again.
func insist(ctx context.Context, f func() error) error {
	for pause := 50 * time.Millisecond; ; pause *= 2 {
		err := f()
		if err == nil || errors.Is(err, ErrStale) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalidRef) || errors.Is(err, ErrResponseTooLarge) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

package hookonce

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/hookonce/hookonce/internal/lease"
	"github.com/hookonce/hookonce/internal/recorder"
)

// recordTimeout bounds how long it is tried to record what came of a request.
const recordTimeout = 5 * time.Second

// IdempotentLease is [Idempotent] for effects that share no transaction with the claim: it puts next, any
// handler, behind a lease. Guarantee: at least once with a stable key. Copies get the stored answer, and
// of several at once one runs. But a process that dies between the effect and the record of it leaves the
// claim to its lease ([WithLease]), and then the next copy runs next again; so does one that came to the
// end of a lease that was lost. Make what next does outside repeatable by sending keys along
// ([Transport]).
//
// Everything is as with [Idempotent], except:
//
//   - the lease is extended at a third of its length while next runs, until [WithTimeout] has passed. When it
//     is lost, the request's context ends. Only what was recorded under the current token counts: a request
//     whose claim was taken over meanwhile is answered 409, and stores nothing. A crash is over when the
//     lease is, not when somebody cleans up;
//   - an answer that is not kept frees the claim at once, and so do a panic and an answer that was cut short; but
//     nothing is rolled back. So the claim is pinned to its request before next runs: another one under the same
//     key is a 422 as long as nothing is done under it, also after next failed, or its process died. Only an
//     answer of 401, 403, 407, 425 or 429 says that next refused the request before anything happened, and takes
//     that back, unless an earlier attempt had come further, or [PinRequest] or [Transport] was called;
//   - an answer that is complete when the request's context has ended, because [WithTimeout] has passed or the lease
//     was lost, counts as cut short all the same: nobody can tell. Give handlers the time that they need;
//   - an answer above [WithMaxResponse] cannot undo the work either: the 500 that says so is kept in its
//     place;
//   - requests with safe methods, and those without a key where it is optional, go to next as they are, with
//     the writer of the server.
//
// It panics if store or next is nil, or an option makes no sense.
func IdempotentLease(store ResponseStore, source string, next http.Handler, opts ...Option) http.Handler {
	if store == nil || next == nil {
		panic("hookonce: IdempotentLease needs a store and a handler")
	}
	h := &idempotentLease{
		idempotency: idempotency{settings: newIdempotency(forIdempotentLease, source, opts), responses: store, next: next},
		store:       store,
	}
	h.attempt = h.borrow
	return h
}

type idempotentLease struct {
	idempotency
	store ResponseStore
}

// borrow claims the call under a lease and runs the handler. Neither ends with ctx.
func (h *idempotentLease) borrow(ctx context.Context, c *call) result {
	ctx = context.WithoutCancel(ctx)
	asking, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	asked := time.Now()
	held, err := h.store.Claim(asking, c.claim(h.lease))
	if err != nil || held.Verdict != Acquired {
		return h.settle(asking, held, nil, err)
	}
	ctx = &pinContext{Context: ctx, ref: held.Ref, key: c.sent}
	answer, err := h.run(ctx, held, asked, c)
	answer, err = h.record(ctx, held, c, answer, err)
	if errors.Is(err, ErrStale) {
		return result{verdict: Busy, problem: inProgress(), err: err}
	}
	return h.settle(ctx, held, answer, err)
}

// run runs the handler while the lease is kept, which was granted after the time asked. A panic is an error.
func (h *idempotentLease) run(ctx context.Context, held Claim, asked time.Time, c *call) (answer *Response, err error) {
	if time.Since(asked) >= h.lease {
		return nil, fmt.Errorf("%w: the lease of %s: %w", errNotBegun, held.Ref, lease.ErrOver)
	}
	ctx, cancel := context.WithTimeout(ContextWithRef(ctx, held.Ref), h.timeout)
	defer cancel()
	ctx, release := KeepLease(ctx, h.store, held, h.lease, asked)
	defer release()
	rec := recorder.New(h.maxResponse)
	defer func() {
		p := recover()
		switch {
		case errors.Is(rec.Err(), ErrResponseTooLarge) && h.keeps(rec.Status(), held) && ctx.Err() == nil:
			answer, err = h.tooLarge(ctx, c, rec.Err()) // after which a proxy panics
		case p != nil:
			err = h.caught(ctx, c, p)
		}
	}()
	h.next.ServeHTTP(rec, c.readable(ctx))
	return h.finish(ctx, rec, held)
}

// tooLarge returns the answer in place of one that is larger than can be kept, and logs why it cannot.
func (h *idempotentLease) tooLarge(ctx context.Context, c *call, why error) (*Response, error) {
	h.log.ErrorContext(ctx, "the request was carried out, and is answered 500 for good: its answer cannot be kept", "source", c.Source, "key", c.Key, "error", why)
	rec := recorder.New(math.MaxInt)
	h.refuse(rec, h.occurrence(c.Request, answerTooLarge("the request was carried out, and its answer is larger than can be kept")))
	answer, err := rec.Answer()
	return (*Response)(answer), err
}

// record stores what came of the attempt, and returns the answer, or why it cannot be answered with that.
func (h *idempotentLease) record(ctx context.Context, held Claim, c *call, answer *Response, failed error) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	if failed == nil {
		return h.complete(ctx, held, c, answer)
	}
	f := FailureOf(ctx, held.Ref, failed)
	f.Pin = f.Pin || !harmless(answer, failed)
	err := insist(ctx, func() error { return h.store.Fail(ctx, held, f) })
	switch {
	case errors.Is(err, ErrStale):
		return answer, err
	case err != nil:
		h.log.ErrorContext(ctx, "a failure could not be recorded; the claim is free when its lease ends", "source", held.Source, "key", held.Key, "error", err)
	}
	return answer, failed
}

// complete stores the answer, or in its place that the store does not take one of that size.
func (h *idempotentLease) complete(ctx context.Context, held Claim, c *call, answer *Response) (*Response, error) {
	store := func() error { return h.store.CompleteWith(ctx, held, *answer.again()) }
	err := insist(ctx, store)
	if errors.Is(err, ErrResponseTooLarge) {
		if answer, err = h.tooLarge(ctx, c, err); err == nil {
			err = insist(ctx, store)
		}
	}
	if err != nil && !errors.Is(err, ErrStale) {
		err = fmt.Errorf("%w: the answer could not be recorded: %w", ErrUnknownOutcome, err)
	}
	return answer, err
}

// errNotBegun says that the handler was not called.
var errNotBegun = errors.New("hookonce: the work was not begun")

// harmless reports whether it is known that a failed attempt had no effect: it was not begun, or refused.
func harmless(answer *Response, failed error) bool {
	return errors.Is(failed, errNotBegun) || errors.Is(failed, errNotKept) && answer != nil && turnedAway(answer.Status)
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

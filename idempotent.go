package hookonce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/hookonce/hookonce/internal/recorder"
)

// Idempotent returns a handler for requests that clients make safe to repeat with the header
// Idempotency-Key: the first request under a key runs handle in the transaction that claims the key, and
// every copy gets the same answer without it. It follows draft-ietf-httpapi-idempotency-key-header-07,
// which has expired and is no RFC. Guarantee: atomic. What handle writes through tx, the claim and the
// answer commit together or not at all, and nobody is answered before that.
//
// Which requests are the same: those under one key of one source and one scope. Source names the operation, such
// as "charges"; a key under another source is another key. The scope is what [WithScope] tells (or
// [WithoutScope] says that there is none; one of the two is required, because without scopes whoever
// knows or guesses another's key gets the other's answer). They must agree in method, path, query, the
// header fields of [WithFingerprint] and the body, byte for byte (see [WithFingerprintFunc], also for forms).
//
// What is answered, faults as problem details (RFC 9457) with a link to [WithDocumentation], a name of the
// occurrence, which the log has too, the key, and whether the same request may be sent again (retryable):
//
//   - the first request: what handle wrote, after the commit;
//   - a copy: the same status, header and body, with Idempotency-Replayed: true. Set-Cookie and what
//     belongs to the connection (Connection, Upgrade and others) are not repeated, and never stored;
//   - 409 with Retry-After while the first is under way (see [WithWait]), and 422 for another request under
//     the same key;
//   - 400 when the key is missing (see [WithOptionalKey]) or malformed, 403 when the scope is not known, 405
//     for methods without an effect, 413 and 400 for a body that is too large or ends early;
//   - 503 with Retry-After when handle returned an error or panicked, when the store cannot be reached,
//     and when the outcome of the commit is unknown: the next copy reads the truth. [RetryAfter] sets the
//     time. An error marked with [Permanent], and an answer above [WithMaxResponse], is a 500;
//   - 503 in place of an answer that was cut short: one that is longer or shorter than its own Content-Length, or
//     of a handler that returned after its context had ended. Nothing is kept of it, and the work is rolled back;
//   - 410 when the work is done and its answer is not on record, as when something else completed the claim.
//
// An error from handle rolls the transaction back and discards what it wrote; the claim is failed, with a
// trace, and the next copy runs handle again, even if it says something else than the first: nothing came
// of that. So it is with an answer that is not kept, except that the client gets it: see [WithKeep]. An
// answer of 5xx after the commit cannot be. [ErrRollback] undoes the work too, and keeps the answer, which must be
// one of 400 or above.
//
// No rollback undoes what handle did outside the transaction. So once it has called another system with
// [Transport], or [PinRequest], a failed request is pinned: another one under the same key is a 422, and
// the same may be sent again. The pin is on record with the failure, after the rollback. So a process that is
// killed before that leaves none, nor does a store that cannot be reached, and then another request under the
// key runs. What must not meet that goes to the outbox ([Enqueue]), or behind [IdempotentLease], which pins
// before the work begins.
//
// The writer that handle gets keeps the answer in memory. It cannot flush, hijack, send 1xx or trailers;
// [http.ResponseController] answers [http.ErrNotSupported]. The request has its raw body, which can be read
// again through GetBody, and a context that ends after [WithTimeout], not when the client hangs up; it
// carries what [Enqueue], [Newer], [Transition], [Once] and [Transport] need. [http.ErrAbortHandler] rolls
// back and cuts the connection.
//
// The handler may be used concurrently. Copies in one process wait in memory and take no connection.
// Idempotent panics if store or handle is nil, or an option makes no sense.
func Idempotent[Tx any](store TxResponseStore[Tx], source string, handle func(w http.ResponseWriter, r *http.Request, tx Tx) error, opts ...Option) http.Handler {
	if store == nil || handle == nil {
		panic("hookonce: Idempotent needs a store and a handler")
	}
	h := &idempotent[Tx]{
		idempotency: idempotency{settings: newIdempotency(forIdempotent, source, opts), responses: store},
		store:       store,
		handle:      handle,
	}
	h.attempt = h.transact
	return h
}

type idempotent[Tx any] struct {
	idempotency
	store  TxResponseStore[Tx]
	handle func(http.ResponseWriter, *http.Request, Tx) error
	warned sync.Once
}

// transact claims the call and runs the handler in one transaction, under a deadline that the client's
// hang-up does not move.
func (h *idempotent[Tx]) transact(ctx context.Context, c *call) (res result) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			res = h.settle(ctx, Claim{Verdict: Acquired}, nil, h.caught(ctx, c, p))
		}
	}()
	if c.Key != "" {
		ctx = &pinContext{Context: ctx, ref: c.Ref, key: c.sent, warn: h.warn}
	}
	var answer *Response
	claim, err := h.store.Within(ctx, c.claim(0), func(tx Tx, held Claim) (err error) {
		answer, err = h.run(ContextWith(ctx, h.store, held, nil), tx, held, c)
		return err
	})
	if answer != nil && errors.Is(err, ErrRollback) {
		claim, err = h.keepAlone(ctx, c, answer)
	}
	return h.settle(ctx, claim, answer, err)
}

// warn says once what a call by [Transport] means inside a transaction.
func (h *idempotent[Tx]) warn(ctx context.Context, host string) {
	h.warned.Do(func() {
		h.log.WarnContext(ctx, "a handler of Idempotent calls another system inside its transaction: a process that dies before the failure is on record leaves the key open to another request, which would be told what became of this call; ask for the call with Enqueue, or put the handler behind IdempotentLease",
			"source", h.source, "host", host)
	})
}

// run runs the handler and keeps its answer. With [ErrRollback] the answer is there, and yet to be kept.
func (h *idempotent[Tx]) run(ctx context.Context, tx Tx, held Claim, c *call) (*Response, error) {
	rec := recorder.New(h.maxResponse)
	handled := h.handle(rec, c.readable(ctx), tx)
	if handled != nil {
		if err := refuseRollback(handled, rec.Status()); err != nil {
			return nil, err
		}
	}
	answer, err := h.finish(ctx, rec, held)
	if err != nil || handled != nil || held.Key == "" {
		return answer, cmp.Or(err, Forget(handled)) // what is worth a record is the answer
	}
	return answer, h.store.KeepResponse(ctx, tx, held.Ref, *answer.again())
}

// refuseRollback returns the error of a handler that undoes its work, or nil if it is ErrRollback and the status that
// the handler wrote, 0 if it wrote none, belongs to an answer that may be kept without the work.
func refuseRollback(handled error, status int) error {
	switch {
	case !errors.Is(handled, ErrRollback):
		return handled
	case status == 0:
		return fmt.Errorf("there is no answer to keep, because the handler wrote none: %w", handled)
	case status < http.StatusBadRequest:
		return fmt.Errorf("the answer %d is not kept, because it says that the work is done: %w", status, handled)
	}
	return nil
}

// keepAlone records the answer of work that was undone, in a transaction of its own. Between the two the key is
// free: an attempt that got it has the last word. If there is no record the next copy does the work again.
func (h *idempotent[Tx]) keepAlone(ctx context.Context, c *call, answer *Response) (Claim, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return h.store.Within(ctx, c.claim(0), func(tx Tx, held Claim) error {
		if held.Key == "" {
			return nil
		}
		return h.store.KeepResponse(ctx, tx, held.Ref, *answer.again())
	})
}

package hookonce

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/lease"
	"github.com/hookonce/hookonce/internal/problem"
	"github.com/hookonce/hookonce/internal/recorder"
	"github.com/hookonce/hookonce/internal/singleflight"
)

// Idempotent returns a handler for requests that clients make safe to repeat with the header
// Idempotency-Key: the first request under a key runs handle in the transaction that claims the key, and
// every copy gets the same answer without it. It follows draft-ietf-httpapi-idempotency-key-header-07,
// which has expired and is no RFC. Guarantee: atomic. The writes of handle through tx, the claim and the
// answer commit together or not at all, and no client is answered before that.
//
// # Which requests are the same
//
// Requests are copies if they have one key, one source and one scope. Source names the operation, such as "charges";
// a key under another source is another key. [WithScope] tells the scope, or [WithoutScope] says that there is none. One
// of the two is required: without scopes, a client that knows or guesses another's key gets the other's answer. Copies
// must agree in method, path, query, the header fields of [WithFingerprint] and the body, byte for byte (see
// [WithFingerprintFunc], also for forms).
//
// # Answers
//
// Faults are problem details (RFC 9457) with a link to [WithDocumentation], a name of the occurrence, which the log has
// too, the key, and whether the same request may be sent again (retryable). A client gets:
//
//   - the first request: what handle wrote, after the commit;
//   - a copy: the same status, header and body, with Idempotency-Replayed: true. Set-Cookie and what
//     belongs to the connection (Connection, Upgrade and others) are not repeated, and never stored;
//   - 409 with Retry-After while the first is under way (see [WithWait]), with [IdempotentLease] also where handle
//     answers a later attempt with 409, which may be about one that is still at work; and 422 for another request under
//     the same key;
//   - 400 when the key is missing (see [WithOptionalKey]) or malformed, 403 when the scope is not known, 405
//     for methods without an effect, 413, 400 and 408 for a body that is too large, ends early or is too slow;
//   - 503 with Retry-After when handle returned an error or panicked, when the store cannot be reached,
//     and when the outcome of the commit is unknown: the next copy reads the truth. Without a key there is none
//     that could, so the client is told to look before it sends the request again; and so it is after a failure of
//     a request without a key that had called another system ([Transport], [PinRequest]). [RetryAfter] sets the
//     time. An error marked with [Permanent] that is on record, and an answer above [WithMaxResponse] that would be
//     kept, is a 500; but that answer is a 503 where another system was called under a key;
//   - 503 in place of an answer that was cut short: one that is longer or shorter than its own Content-Length, or
//     of a handler that returned after its context had ended, or above [WithMaxResponse] where it would not be kept.
//     Nothing is kept of it, and the work is rolled back;
//   - 410 when the work is done and its answer is not on record, as when something else completed the claim.
//
// # Failures
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
// key runs. A call that must not meet that goes to the outbox ([Enqueue]), or behind [IdempotentLease], which pins
// before the work begins.
//
// # The handler
//
// The writer that handle gets keeps the answer in memory. It cannot flush, hijack, send 1xx or
// trailers; [http.ResponseController] answers [http.ErrNotSupported]. The request has its raw body,
// which can be read again through GetBody, and a context that ends after [WithTimeout], not when
// the client hangs up; it carries what [Enqueue], [Newer], [Transition], [Once] and [Transport]
// need. Temporary files of a form that handle has parsed are deleted when it has ended.
// [http.ErrAbortHandler] rolls back and cuts the connection.
//
// The handler may be used concurrently. Copies in one process wait in memory and take no connection.
// Idempotent panics if store or handle is nil, or an option makes no sense.
func Idempotent[Tx any](store TxResponseStore[Tx], source string, handle func(w http.ResponseWriter, r *http.Request, tx Tx) error, opts ...IdempotentOption) http.Handler {
	if store == nil || handle == nil {
		panic("hookonce: Idempotent needs a store and a handler")
	}
	s := defaultKeySettings("Idempotent", source, 0)
	for _, o := range opts {
		o.idempotent(&s)
	}
	s.settle()
	h := &idempotent[Tx]{
		idempotency: idempotency{keySettings: s, responses: store},
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
	pin := &pinContext{Context: ctx, ref: c.Ref, key: c.sent}
	if c.Key != "" { // of a request without one there is no record that could come too late
		pin.warn = h.warn
	}
	ctx = pin
	defer func() {
		if p := recover(); p != nil {
			res = h.settle(ctx, Claim{Verdict: Acquired}, nil, h.caught(ctx, c, p))
		}
		if res.problem != nil && pin.reached.Load() { // no rollback has undone that
			if c.Key != "" && errors.Is(res.err, ErrResponseTooLarge) {
				res.problem = undone()
			}
			res.problem.Unknown = true
		}
	}()
	var answer *Response
	claim, err := h.store.Within(ctx, c.claim(0), func(tx Tx, held Claim) (err error) {
		answer, err = h.run(lend(ctx, h.store, held, nil, tx), tx, held, c)
		return ofWork(err)
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
func (h *idempotent[Tx]) run(ctx *workContext, tx Tx, held Claim, c *call) (*Response, error) {
	rec := recorder.New(h.maxResponse)
	var handled error
	c.withRequest(ctx, func(r *http.Request) { handled = h.handle(rec, r, tx) })
	handled = cmp.Or(handled, ctx.work.unreturned())
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
//     lease is, and needs no cleaning up. Leases end by the store's clock in each process: these clocks must agree
//     to well within a lease, or two copies run next at once;
//   - an answer that is not kept frees the claim at once, and so do a panic and an answer that was cut short; but
//     nothing is rolled back. So the claim is pinned to its request before next runs: another one under the same
//     key is a 422 as long as nothing is done under it, also after next failed, or its process died. Only an
//     answer of 401, 403, 407, 425 or 429 says that next refused the request before anything happened, and takes
//     that back, unless an earlier attempt had come further, or [PinRequest] or [Transport] was called;
//   - an answer that is complete when the request's context has ended, because [WithTimeout] has passed or the lease
//     was lost, counts as cut short all the same: nobody can tell. Give handlers the time that they need;
//   - a handler has ended when next returns: what goes on behind it, such as behind [http.TimeoutHandler] or a router's
//     timeout, runs beside the next copy. Put these in front of IdempotentLease, or use [WithTimeout];
//   - an answer above [WithMaxResponse] that would be kept cannot undo the work either: a 500 is kept in its place, which
//     says whether the request was carried out or refused. The observer is told [ErrResponseTooLarge];
//   - requests with safe methods, and those without a key where it is optional, go to next as they are, with
//     the writer of the server.
//
// It panics if store or next is nil, or an option makes no sense.
func IdempotentLease(store ResponseStore, source string, next http.Handler, opts ...IdempotentLeaseOption) http.Handler {
	if store == nil || next == nil {
		panic("hookonce: IdempotentLease needs a store and a handler")
	}
	s := defaultKeySettings("IdempotentLease", source, DefaultLease)
	for _, o := range opts {
		o.idempotentLease(&s)
	}
	s.settle()
	h := &idempotentLease{
		idempotency: idempotency{keySettings: s, responses: store, next: next},
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
	answer, ran := h.run(ctx, held, asked, c)
	answer, err = h.record(ctx, held, c, answer, ran)
	if errors.Is(err, ErrStale) {
		if !errors.Is(ran, errNotBegun) {
			h.log.WarnContext(ctx, "the claim was taken over while the request was carried out; the handler may have run twice under this key", "source", held.Source, "key", held.Key, "error", err)
		}
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
		reason, _ := p.(error) // a proxy panics, and so do programs with the error of a Write, because of the answer
		ended := p == nil || p == http.ErrAbortHandler || errors.Is(reason, ErrResponseTooLarge)
		switch tooLarge := errors.Is(rec.Err(), ErrResponseTooLarge); {
		case tooLarge && ended && h.keeps(rec.Status(), held) && ctx.Err() == nil:
			answer, err = h.instead(c, rec.Status(), rec.Err())
		case tooLarge && p == http.ErrAbortHandler: // because of that
			answer, err = h.finish(ctx, rec, held)
		case p != nil:
			err = h.caught(ctx, c, p)
		}
	}()
	c.withRequest(ctx, func(r *http.Request) { h.next.ServeHTTP(rec, r) })
	return h.finish(ctx, rec, held)
}

// insteadError says that the answer of a request that is done could not be kept, and that a problem is on record in its place.
type insteadError struct {
	status  int // that the handler answered
	problem *problem.Details
	err     error
}

func (e *insteadError) Error() string {
	return fmt.Sprintf("the handler answered %d, and its client and all copies get %d: %v", e.status, e.problem.Status, e.err)
}

func (e *insteadError) Unwrap() error { return e.err }

// instead returns the answer in place of one of that status that is larger than can be kept, with an [insteadError].
func (h *idempotentLease) instead(c *call, status int, why error) (*Response, error) {
	said := "the request was carried out, and its answer is larger than can be kept"
	if status >= http.StatusBadRequest {
		said = fmt.Sprintf("the request was refused (%d), and that answer is larger than can be kept", status)
	}
	p := h.occurrence(c.Request, problem.AnswerTooLarge.New(said))
	rec := recorder.New(math.MaxInt)
	h.refuse(rec, p)
	answer, _ := rec.Answer() // which is complete, and of any size
	return (*Response)(answer), &insteadError{status, p, why}
}

// record stores what came of the attempt, and returns the answer, or why it cannot be answered with that.
func (h *idempotentLease) record(ctx context.Context, held Claim, c *call, answer *Response, failed error) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	if instead := (*insteadError)(nil); failed == nil || errors.As(failed, &instead) {
		return h.complete(ctx, held, c, answer, failed)
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

// complete stores the answer, or one in its place if the store takes none of that size. Instead is nil unless it is one
// already.
func (h *idempotentLease) complete(ctx context.Context, held Claim, c *call, answer *Response, instead error) (*Response, error) {
	store := func() error { return h.store.CompleteWith(ctx, held, *answer.again()) }
	err := insist(ctx, store)
	if errors.Is(err, ErrResponseTooLarge) {
		answer, instead = h.instead(c, answer.Status, err)
		err = insist(ctx, store)
	}
	switch {
	case err == nil:
		return answer, instead
	case !errors.Is(err, ErrStale):
		err = fmt.Errorf("%w: the answer could not be recorded: %w", ErrUnknownOutcome, err)
	}
	return answer, err
}

// harmless reports whether it is known that a failed attempt had no effect: it was not begun, or refused.
func harmless(answer *Response, failed error) bool {
	return errors.Is(failed, errNotBegun) || errors.Is(failed, errNotKept) && answer != nil && turnedAway(answer.Status)
}

// idempotency is what [Idempotent] and [IdempotentLease] have in common: which request is which, who waits
// for whom, and what is answered. How a request is carried out once is theirs.
type idempotency struct {
	keySettings
	responses ResponseStore
	// attempt claims a call and carries it out, or says what came of it earlier. It outlives ctx.
	attempt func(ctx context.Context, c *call) result
	// next gets, as they are, the requests that are not claimed: those with safe methods and those without a
	// key. Nil: the former are refused, and the latter attempted.
	next  http.Handler
	calls singleflight.Group[Ref, result]
}

// ServeHTTP answers one request.
func (h *idempotency) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, refusal := h.open(w, r)
	switch {
	case refusal != nil:
		refusal = h.occurrence(r, refusal)
		h.reject(r.Context(), refusal)
		h.refuse(w, refusal)
	case c == nil:
		h.next.ServeHTTP(w, r)
	default:
		h.serve(w, c)
	}
}

// open returns the call that the request makes, or why it is refused, or neither if it is for next.
func (h *idempotency) open(w http.ResponseWriter, r *http.Request) (*call, *problem.Details) {
	if header.SafeMethod(r.Method) {
		return nil, h.unclaimed()
	}
	ref, refusal := h.identify(r)
	if refusal != nil || ref.Key == "" && h.next != nil {
		return nil, refusal
	}
	body, refusal := h.readBody(w, r)
	if refusal != nil {
		return nil, refusal
	}
	c := &call{Ref: ref, kind: cmp.Or(r.Pattern, r.Method), body: body, Request: r}
	c.sent, _ = parseKey(r.Header[header.IdempotencyKey], h.strictKey, h.maxKey) // refused before, if it is malformed
	c.withRequest(r.Context(), func(r *http.Request) { c.digest = fingerprint(r, h.fingerprint, body, h.content) })
	return c, nil
}

// unclaimed returns the refusal of requests with safe methods, if they are refused.
func (h *idempotency) unclaimed() *problem.Details {
	if h.next != nil {
		return nil
	}
	return rejection(problem.MethodNotAllowed, ReasonMethod, "this address takes requests that change something, with POST, PUT, PATCH or DELETE")
}

// identify finds out under which key the request is claimed.
func (h *idempotency) identify(r *http.Request) (Ref, *problem.Details) {
	ref := Ref{Source: h.source}
	lines := r.Header[header.IdempotencyKey]
	if len(lines) == 0 {
		if h.optionalKey {
			return ref, nil
		}
		return ref, keyMissing()
	}
	key, err := parseKey(lines, h.strictKey, h.maxKey)
	if err != nil {
		return ref, keyMalformed(err)
	}
	scope, refusal := h.scopeOf(r)
	ref.Key = scopedKey(scope, key)
	return ref, refusal
}

// scopeOf asks whose request it is. A caller that nobody knows is refused: it must share no key with
// another.
func (h *idempotency) scopeOf(r *http.Request) (string, *problem.Details) {
	if h.unscoped {
		return "", nil
	}
	scope, err := h.scope(r)
	delay, retry := RetryDelay(err)
	switch {
	case retry:
		return "", undecided("it cannot be told now who sends the request", cmp.Or(max(delay, 0), defaultRetry), err)
	case err != nil || scope == "":
		return "", callerUnknown()
	}
	return scope, nil
}

// serve carries a call out, or finds out what came of it, and answers.
func (h *idempotency) serve(w http.ResponseWriter, c *call) {
	start := h.now()
	res := h.once(c.Context(), c)
	if res.response == nil {
		res.problem = h.occurrence(c.Request, res.problem)
	}
	h.report(c, res, h.now().Sub(start))
	switch {
	case res.aborted:
		panic(http.ErrAbortHandler)
	case res.response == nil:
		h.refuse(w, res.problem)
		return
	case res.verdict == Duplicate:
		w.Header().Set(recorder.Replayed, "true")
	}
	(*recorder.Answer)(res.response).Send(w)
}

// refuse answers with p.
func (h *idempotency) refuse(w http.ResponseWriter, p *problem.Details) {
	if p.Status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", "POST, PUT, PATCH, DELETE")
	}
	p.Write(w)
}

// occurrence returns p as the answer to r: with a name of its own, the key as it was sent, and what to do.
func (h *idempotency) occurrence(r *http.Request, p *problem.Details) *problem.Details {
	lines := r.Header[header.IdempotencyKey]
	own := p.Of(len(lines) > 0)
	if len(lines) == 1 && len(lines[0]) <= 2*h.maxKey+2 { // quoted, and all of it escaped
		own.Key = lines[0]
	}
	own.Documentation = p.Type.Page(h.documentation)
	return own
}

// once lets one of several equal calls in this process make its attempt, and gives the others what came of
// it. They wait in memory, as long as copies may. A call that says something else under the same key asks
// the store itself, after that.
func (h *idempotency) once(ctx context.Context, c *call) result {
	if c.Key == "" {
		return h.attempt(ctx, c)
	}
	waiting, cancel := context.WithTimeout(ctx, h.wait)
	defer cancel()
	for {
		first, mine := h.calls.Join(c.Ref, h.wait+h.timeout+recordTimeout)
		if mine {
			return h.lead(ctx, waiting, c, first)
		}
		res, ok := first.Wait(waiting)
		switch {
		case !ok:
			return result{verdict: Busy, problem: inProgress()}
		case res.verdict == Busy && waiting.Err() == nil: // it waited for another process, until its time was over
		case bytes.Equal(res.digest, c.digest):
			return res.shared()
		}
	}
}

// lead attempts the call. While another process has it, it asks again.
func (h *idempotency) lead(ctx, waiting context.Context, c *call, first *singleflight.Call[result]) (res result) {
	res = result{digest: c.digest, problem: unavailable("the request was not carried out", defaultRetry), err: errors.New("the handler ended its goroutine")}
	defer func() { h.calls.Finish(c.Ref, first, res) }()
	for next := time.Now(); ; next = time.Now().Add(pollInterval) {
		res = h.attempt(ctx, c)
		res.digest = c.digest
		if res.verdict != Busy || !h.pause(waiting, c.Ref, next) {
			return res
		}
	}
}

// How long it takes until a store is asked again about a claim that another process holds: where it does not
// tell when the work is over, and at the most where it does.
const (
	pollInterval  = 100 * time.Millisecond
	awaitInterval = time.Second
)

// pause returns true when it is time to ask for the claim again, and false when ctx has ended. A store that says at once
// that the work is over may have seen nothing of a claim in an open transaction: believed once, it is asked for the claim
// no sooner than next.
func (h *idempotency) pause(ctx context.Context, ref Ref, next time.Time) bool {
	awaiting, cancel := context.WithTimeout(ctx, awaitInterval)
	defer cancel()
	rest := pollInterval
	if awaiter, ok := h.responses.(Awaiter); ok && awaiter.Await(awaiting, ref) == nil {
		rest = time.Until(next)
	}
	poll := time.NewTimer(rest)
	defer poll.Stop()
	select {
	case <-poll.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// report logs and observes what came of a call.
func (h *idempotency) report(c *call, res result, took time.Duration) {
	if isAround(res.err, ErrTooManyKeys) {
		h.reject(c.Context(), res.problem)
		return
	}
	ctx, status := c.Context(), res.status()
	h.observe(ctx, Observation{Source: c.Source, Type: c.kind, Status: status, Err: res.err, Duration: took})
	level := slog.LevelDebug
	switch status {
	case "failed", "dead":
		level = slog.LevelError
	case "conflict":
		level = slog.LevelWarn
	}
	if errors.Is(res.err, errNotKept) {
		level = slog.LevelWarn
	}
	if !h.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("source", c.Source), slog.String("key", c.Key), slog.String("type", c.kind), slog.Duration("took", took)}
	if res.problem != nil {
		attrs = append(attrs, slog.String("instance", res.problem.Instance))
	}
	if res.err != nil {
		attrs = append(attrs, slog.String("error", res.err.Error()))
	}
	h.log.LogAttrs(ctx, level, "idempotent request "+status, attrs...)
}

// result is what came of a call.
type result struct {
	verdict  Verdict
	conflict bool
	digest   []byte    // of the call that it came of
	response *Response // nil: problem is the answer
	durable  bool      // response is on record
	problem  *problem.Details
	err      error // why nothing is on record, or not the answer of the handler, if that is so
	aborted  bool  // the handler wants the connection cut
}

// shared is the result as another call gets it that says the same.
func (res result) shared() result {
	if res.response != nil {
		res.response = res.response.again()
	}
	if res.durable {
		res.verdict, res.err = Duplicate, nil
	}
	res.aborted = false
	return res
}

// again returns the response as copies get it, which is all that is stored.
func (r *Response) again() *Response {
	kept := *r
	kept.Header = recorder.Repeatable(r.Header)
	return &kept
}

func (res result) status() string {
	switch {
	case res.verdict == Busy:
		return Busy.String()
	case res.conflict && res.verdict == Duplicate, res.verdict == Pinned:
		return "conflict"
	case gaveUp(res.err):
		return "dead"
	case res.err != nil:
		return "failed"
	}
	return res.verdict.String()
}

// settle turns what a store and a handler said into a result. The claim is what the store answered, and
// answer what the handler wrote if it came so far.
func (h *idempotency) settle(ctx context.Context, c Claim, answer *Response, err error) result {
	res := result{verdict: c.Verdict, conflict: c.Conflict, err: err}
	var crash *panicError
	var instead *insteadError
	switch {
	case c.Verdict == Busy && (err == nil || errors.Is(err, ErrBusy)):
		res.problem, res.err = inProgress(), nil // nothing went wrong
	case c.Verdict == Pinned && (err == nil || errors.Is(err, ErrPinned)):
		res.problem, res.err = pinnedKey(), nil
	case errors.Is(err, errNotKept):
		res.response = answer
		if h.outstanding(answer.Status, c) && answer.Header.Get("Retry-After") == "" { // or the client takes it for the end
			answer.Header.Set("Retry-After", strconv.Itoa(int(defaultRetry/time.Second)))
		}
	case errors.As(err, &instead):
		res.response, res.durable, res.problem = answer, true, instead.problem
	case errors.As(err, &crash):
		res.problem, res.aborted = failure(err), crash.value == http.ErrAbortHandler
	case err != nil:
		res.problem = failure(err)
	case c.Verdict == Duplicate:
		return h.replay(ctx, c)
	default:
		res.response, res.durable = answer, true
	}
	return res
}

// replay finds the answer to a call that was carried out before.
func (h *idempotency) replay(ctx context.Context, c Claim) result {
	res := result{verdict: Duplicate, conflict: c.Conflict}
	if c.Conflict {
		res.problem = keyReused()
		return res
	}
	kept, err := h.responses.Response(ctx, c.Ref)
	switch {
	case errors.Is(err, ErrNotFound):
		res.problem = answerGone()
	case err != nil:
		res.problem, res.err = unavailable("the request was carried out, and its answer cannot be read now", defaultRetry), err
	default:
		res.response, res.durable = &kept, true
	}
	return res
}

// errNotKept undoes the work under an answer that is not kept.
var errNotKept = errors.New("hookonce: the answer is not kept")

// finish returns what the handler wrote, with an error that wraps [errNotKept] if its effect is not
// to stay, and one that wraps [recorder.ErrIncomplete] if it is not all that the handler was to
// write. That is so whenever its context had ended before it returned: many a handler, and a proxy
// that copies a body, returns then with half an answer. It is so for an answer that is too large
// and would not be kept: what it tells of passes, and the same request may come again.
func (h *idempotency) finish(ctx context.Context, rec *recorder.Recorder, c Claim) (*Response, error) {
	recorded, err := rec.Answer()
	answer := (*Response)(recorded)
	switch {
	case err == nil && !h.keeps(answer.Status, c):
		err = fmt.Errorf("%w: the handler answered %d", errNotKept, answer.Status)
		if turnedAway(answer.Status) {
			err = Forget(err)
		}
		return answer, err
	case errors.Is(err, ErrResponseTooLarge) && !h.keeps(rec.Status(), c):
		return nil, fmt.Errorf("%w: the handler answered %d: %v", recorder.ErrIncomplete, rec.Status(), err)
	case ctx.Err() != nil && !errors.Is(err, recorder.ErrIncomplete):
		return nil, fmt.Errorf("%w: the handler returned after its context had ended: %w", recorder.ErrIncomplete, context.Cause(ctx))
	}
	return answer, err
}

// keeps reports whether the answer to the attempt under c is kept. A success always is: the client takes it for the
// truth.
func (h *idempotency) keeps(status int, c Claim) bool {
	return status < http.StatusBadRequest || !h.outstanding(status, c) && h.keep(status)
}

// outstanding reports whether the answer may be about an earlier attempt: a conflict that a later one under a lease is told may
// be with one that is still at work somewhere and has the same key there. That is not what comes of the request.
func (h *idempotency) outstanding(status int, c Claim) bool {
	return status == http.StatusConflict && h.leased && c.Token > 1
}

// panicError is what a handler panicked with, and why its context had ended by then, if it had.
type panicError struct {
	value any
	ended error
}

func (e *panicError) Error() string {
	switch {
	case e.value == http.ErrAbortHandler && e.ended != nil:
		return fmt.Sprintf("the handler broke off its answer after its context had ended: %v", e.ended)
	case e.value == http.ErrAbortHandler:
		return "the handler broke off its answer"
	}
	return fmt.Sprintf("the handler panicked: %v", e.value)
}

// caught makes an error of what recover returned, and logs where it comes from.
func (h *idempotency) caught(ctx context.Context, c *call, p any) error {
	if p != http.ErrAbortHandler {
		h.log.ErrorContext(ctx, "idempotent handler panicked", "source", c.Source, "key", c.Key, "panic", p, "stack", string(debug.Stack()))
	}
	return &panicError{p, context.Cause(ctx)}
}

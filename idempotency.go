package hookonce

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/problem"
	"github.com/hookonce/hookonce/internal/recorder"
	"github.com/hookonce/hookonce/internal/singleflight"
)

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

// call is one request that is to have its effect once.
type call struct {
	Ref           // without a key if the request has none
	sent   string // the key as the client sent it, without its scope
	kind   string // for people
	digest []byte // of what the request says
	body   []byte
	*http.Request
}

// claim is what to ask the store for. Under a lease it is bound to what the request says, until it is known
// that nothing came of it.
func (c *call) claim(lease time.Duration) ClaimRequest {
	return ClaimRequest{Ref: c.Ref, Type: c.kind, Digest: c.digest, Lease: lease, Pin: lease != 0}
}

// readable returns the request for the handler: its body can be read from the beginning, and ctx is its
// context.
func (c *call) readable(ctx context.Context) *http.Request {
	r := c.WithContext(ctx)
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil }
	r.Body, _ = r.GetBody()
	r.ContentLength, r.TransferEncoding = int64(len(c.body)), nil
	return r
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
	c.digest = fingerprint(c.readable(r.Context()), h.fingerprint, body, h.content)
	return c, nil
}

// unclaimed returns the refusal of requests with safe methods, if they are refused.
func (h *idempotency) unclaimed() *problem.Details {
	if h.next != nil {
		return nil
	}
	return problem.MethodNotAllowed.New("this address takes requests that change something, with POST, PUT, PATCH or DELETE")
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
		h.log.ErrorContext(r.Context(), "the scope of a request could not be told", "source", h.source, "error", err)
		return "", unavailable("it cannot be told now who sends the request", cmp.Or(max(delay, 0), defaultRetry))
	case err != nil || scope == "":
		return "", callerUnknown()
	}
	return scope, nil
}

// serve carries a call out, or finds out what came of it, and answers.
func (h *idempotency) serve(w http.ResponseWriter, c *call) {
	start := h.now()
	res := h.once(c.Context(), c)
	if res.problem != nil {
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
	own := *p
	retryable := p.Type.Retryable()
	own.Instance, own.Retryable = problem.Occurrence(), &retryable
	if lines := r.Header[header.IdempotencyKey]; len(lines) == 1 && len(lines[0]) <= 2*h.maxKey+2 { // quoted, and all of it escaped
		own.Key = lines[0]
	}
	own.Documentation = p.Type.Page(h.documentation)
	return &own
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
	for {
		res = h.attempt(ctx, c)
		res.digest = c.digest
		if res.verdict != Busy || !h.pause(waiting, c.Ref) {
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

// pause returns true when it is time to ask for the claim again, and false when ctx has ended.
func (h *idempotency) pause(ctx context.Context, ref Ref) bool {
	awaiting, cancel := context.WithTimeout(ctx, awaitInterval)
	defer cancel()
	if awaiter, ok := h.responses.(Awaiter); ok && awaiter.Await(awaiting, ref) == nil {
		return ctx.Err() == nil
	}
	poll := time.NewTimer(pollInterval)
	defer poll.Stop()
	select {
	case <-poll.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// reject logs and observes a request that came to nothing.
func (h *idempotency) reject(ctx context.Context, p *problem.Details) {
	h.log.WarnContext(ctx, "idempotent request rejected", "source", h.source, "reason", p.Type.String(), "status", p.Status, "detail", p.Detail, "instance", p.Instance)
	h.observe(ctx, Observation{Source: h.source, Status: "rejected", Reason: p.Reason})
}

// report logs and observes what came of a call.
func (h *idempotency) report(c *call, res result, took time.Duration) {
	if errors.Is(res.err, ErrTooManyKeys) {
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
	err      error // why nothing is on record, if that is so
	aborted  bool  // the handler wants the connection cut
}

// shared is the result as another call gets it that says the same.
func (res result) shared() result {
	if res.response != nil {
		res.response = res.response.again()
	}
	if res.durable {
		res.verdict = Duplicate
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
	case res.err != nil && IsPermanent(res.err):
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
	switch {
	case c.Verdict == Busy && (err == nil || errors.Is(err, ErrBusy)):
		res.problem, res.err = inProgress(), nil // nothing went wrong
	case c.Verdict == Pinned && (err == nil || errors.Is(err, ErrPinned)):
		res.problem, res.err = pinnedKey(), nil
	case errors.Is(err, errNotKept):
		res.response = answer
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

// finish returns what the handler wrote, with an error that wraps [errNotKept] if its effect is not to stay, and
// one that wraps [recorder.ErrIncomplete] if it is not all that the handler was to write. That is so whenever its context
// had ended before it returned: many a handler, and a proxy that copies a body, returns then with half an answer.
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
	case ctx.Err() != nil && !errors.Is(err, recorder.ErrIncomplete):
		return nil, fmt.Errorf("%w: the handler returned after its context had ended: %w", recorder.ErrIncomplete, context.Cause(ctx))
	}
	return answer, err
}

// keeps reports whether the answer to the attempt under c is kept. A success always is: the client takes it for the
// truth. A conflict that a later attempt under a lease is told may be with an earlier one, which is still at work
// somewhere and has the same key there: that is not what comes of the request.
func (h *idempotency) keeps(status int, c Claim) bool {
	outstanding := status == http.StatusConflict && h.leased && c.Token > 1
	return status < http.StatusBadRequest || !outstanding && h.keep(status)
}

// panicError is what a handler panicked with.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.value) }

// caught makes an error of what recover returned, and logs where it comes from.
func (h *idempotency) caught(ctx context.Context, c *call, p any) error {
	if p != http.ErrAbortHandler {
		h.log.ErrorContext(ctx, "idempotent handler panicked", "source", c.Source, "key", c.Key, "panic", p, "stack", string(debug.Stack()))
	}
	return &panicError{p}
}

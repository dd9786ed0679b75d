package hookonce

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/hookonce/hookonce/internal/problem"
	"github.com/hookonce/hookonce/internal/recorder"
)

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
	outstanding := status == http.StatusConflict && h.of == forIdempotentLease && c.Token > 1
	return status < http.StatusBadRequest || !outstanding && h.keep(status)
}

// keepByDefault is the policy of [WithKeep]. Answers that say to come again are not kept, nor those to somebody who
// was not let in: nothing happened, and who is let in later is to get in.
func keepByDefault(status int) bool {
	return status < http.StatusInternalServerError && status != http.StatusRequestTimeout && !turnedAway(status)
}

// turnedAway reports whether the answer says that nothing was done: the caller has no right to ask, or comes too early
// or too often. It leaves no claim behind, or strangers could fill the table.
func turnedAway(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return false
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

package hookonce

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/hookonce/hookonce/internal/body"
	"github.com/hookonce/hookonce/internal/problem"
	"github.com/hookonce/hookonce/internal/recorder"
)

// Reasons for which a request with an Idempotency-Key, or without one, is rejected; like those of
// webhooks, label values of metrics.
const (
	ReasonKeyMissing    = "key_missing"    // there is no Idempotency-Key, and one is required
	ReasonKeyMalformed  = "key_malformed"  // it is empty, too long, there twice, or not in the form that is taken
	ReasonCallerUnknown = "caller_unknown" // the function of WithScope does not know whose request it is
	ReasonTooManyKeys   = "too_many_keys"  // the store takes no new key of this caller now: see ErrTooManyKeys
)

// faults are the types of the problems that requests are answered with here, and whether the same request may be
// sent again under the same key. The page of [DefaultDocumentation] has a section of that name for each.
var faults = map[string]bool{
	"answer-gone":               false,
	"answer-incomplete":         true,
	"answer-too-large":          false,
	"body-too-slow":             true,
	"body-truncated":            true,
	"body-too-large":            false,
	"caller-unknown":            false,
	"failed":                    false,
	"idempotency-key-malformed": false,
	"idempotency-key-missing":   false,
	"idempotency-key-reused":    false,
	"method-not-allowed":        false,
	"request-in-progress":       true,
	"too-many-keys":             true,
	"unavailable":               true,
}

// occurrence returns p as the answer to r: with a name of its own, the key as it was sent, and what to do.
func (h *idempotency) occurrence(r *http.Request, p *problem.Details) *problem.Details {
	own := *p
	retryable := faults[p.Type]
	own.Instance, own.Retryable = problem.Occurrence(), &retryable
	if lines := r.Header[keyHeader]; len(lines) == 1 && len(lines[0]) <= 2*h.maxKey+2 { // quoted, and all of it escaped
		own.Key = lines[0]
	}
	own.Documentation = problem.Page(h.documentation, p.Type)
	return &own
}

func keyMissing() *problem.Details {
	return &problem.Details{
		Status: http.StatusBadRequest, Type: "idempotency-key-missing", Title: "Idempotency-Key is missing", Reason: ReasonKeyMissing,
		Detail: "this operation needs the header Idempotency-Key: a new random text for each operation, such as a UUID, and the same one whenever the same request is sent again",
	}
}

func keyMalformed(err error) *problem.Details {
	return &problem.Details{
		Status: http.StatusBadRequest, Type: "idempotency-key-malformed", Title: "Idempotency-Key is malformed", Reason: ReasonKeyMalformed,
		Detail: "the header Idempotency-Key cannot be used: " + err.Error(),
	}
}

func callerUnknown() *problem.Details {
	return &problem.Details{
		Status: http.StatusForbidden, Type: "caller-unknown", Title: "Caller unknown", Reason: ReasonCallerUnknown,
		Detail: "it is not known on whose behalf the request is sent, and keys belong to callers; authenticate",
	}
}

func keyReused() *problem.Details {
	return &problem.Details{
		Status: http.StatusUnprocessableEntity, Type: "idempotency-key-reused", Title: "Idempotency-Key is already used",
		Detail: "another request was carried out under this key: it differs in method, address, content type or body; a new operation needs a new key",
	}
}

// pinnedKey answers a request that differs from one whose outcome is not known to be nothing.
func pinnedKey() *problem.Details {
	p := keyReused()
	p.Detail = "an earlier request under this key failed and may have had effects outside, and this one differs from it in method, address, content type or body; send the same request again to learn what became of it; a new operation needs a new key"
	return p
}

func inProgress() *problem.Details {
	return &problem.Details{
		Status: http.StatusConflict, Type: "request-in-progress", Title: "A request is outstanding for this Idempotency-Key",
		Detail: "a request with this key is being carried out; send it again later, with the same key, for its answer", RetryAfter: busyRetry,
	}
}

func tooManyKeys(retry time.Duration) *problem.Details {
	return &problem.Details{
		Status: http.StatusTooManyRequests, Type: "too-many-keys", Title: "Too many new keys", Reason: ReasonTooManyKeys,
		Detail: "too many requests with new keys came from here of which nothing came; send this one again later, with the same key", RetryAfter: retry,
	}
}

func answerGone() *problem.Details {
	return &problem.Details{
		Status: http.StatusGone, Type: "answer-gone", Title: "Answer gone",
		Detail: "the request with this key was carried out, and its answer is not on record; it was not carried out again",
	}
}

func answerTooLarge(detail string) *problem.Details {
	return &problem.Details{Status: http.StatusInternalServerError, Type: "answer-too-large", Title: "Answer too large", Detail: detail}
}

func answerIncomplete(retry time.Duration) *problem.Details {
	return &problem.Details{
		Status: http.StatusServiceUnavailable, Type: "answer-incomplete", Title: "Answer incomplete",
		Detail: "the answer was cut short and is not passed on; send the request again with the same key", RetryAfter: retry,
	}
}

// broken says that it makes no sense to send the request again.
func broken(detail string) *problem.Details {
	return &problem.Details{Status: http.StatusInternalServerError, Type: "failed", Detail: detail}
}

// failure answers for a request that had no effect, or of which that is not known. The text names no cause:
// causes are for the log.
func failure(err error) *problem.Details {
	retry := defaultRetry
	if d, ok := RetryDelay(err); ok {
		retry = cmp.Or(max(d, time.Duration(0)), defaultRetry)
	}
	switch {
	case errors.Is(err, ErrTooManyKeys):
		return tooManyKeys(retry)
	case errors.Is(err, ErrResponseTooLarge):
		return answerTooLarge("the request was not carried out, because its answer is larger than can be kept")
	case errors.Is(err, recorder.ErrIncomplete):
		return answerIncomplete(retry)
	case IsPermanent(err):
		return broken("the request cannot be carried out")
	case errors.Is(err, ErrUnknownOutcome):
		return unavailable("it is not known yet whether the request was carried out; send it again with the same key", retry)
	}
	return unavailable("the request could not be carried out now; send it again with the same key", retry)
}

const (
	defaultRetry = 10 * time.Second // Retry-After when the handler or the store failed
	busyRetry    = 1 * time.Second  // Retry-After when another copy is being handled
)

func unavailable(detail string, retry time.Duration) *problem.Details {
	return &problem.Details{Status: http.StatusServiceUnavailable, Type: "unavailable", Detail: detail, RetryAfter: retry}
}

// unverified tells the sender which part of the scheme failed, never what would have matched.
func unverified(err error) *problem.Details {
	p := &problem.Details{Status: http.StatusUnauthorized, Type: "unverified", Detail: "the request's signature could not be verified"}
	var reject *RejectError
	if errors.As(err, &reject) {
		p.Reason = reject.Reason
	}
	return p
}

// reply sends a. Browsers are told to believe the content type.
func reply(w http.ResponseWriter, a Answer) {
	h := w.Header()
	if a.ContentType != "" {
		h.Set("Content-Type", a.ContentType)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	w.WriteHeader(a.Status)
	w.Write(a.Body) // a sender that hung up does not read it; the outcome stands
}

// readBody returns the raw body of at most maxBody bytes, or the refusal to answer with. A reader whose error is marked
// with [RetryAfter] has the request come again. It is our fault, and no sender can mend it, that a middleware has taken
// something of the body.
func (s *settings) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *problem.Details) {
	raw, err := body.ReadWhole(r, s.maxBody)
	delay, later := RetryDelay(err)
	switch {
	case err == nil:
		return raw, nil
	case later: // the handler in front refuses the rest for now
		return nil, unavailable("the request is not taken now; send it again", cmp.Or(max(delay, 0), defaultRetry))
	case errors.Is(err, body.ErrTooLarge):
		body.HangUp(w)
		return nil, &problem.Details{Status: http.StatusRequestEntityTooLarge, Type: "body-too-large", Detail: fmt.Sprintf("the body is larger than %d bytes", s.maxBody)}
	case errors.Is(err, body.ErrTouched):
		s.log.ErrorContext(r.Context(), "a middleware has read, parsed, closed, cut or replaced the body of a request before it came to the handler: put the handler in front of that middleware, or have it set r.Body to the whole body again; one that replaces the body by another, which is shorter, sets r.ContentLength to the new length, or to -1",
			"source", s.source, "declared", r.ContentLength, "arrived", len(raw))
		return nil, unavailable("the request could not be read", defaultRetry)
	case errors.Is(err, body.ErrSlow):
		return nil, &problem.Details{Status: http.StatusRequestTimeout, Type: "body-too-slow", Detail: "the body did not arrive in time"}
	}
	return nil, &problem.Details{Status: http.StatusBadRequest, Type: "body-truncated", Detail: "the body ended before it was complete"}
}

package hookonce

import (
	"cmp"
	"errors"
	"net/http"
	"time"

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

// How long a client is asked to wait, in Retry-After.
const (
	defaultRetry = 10 * time.Second // when the handler or the store failed
	busyRetry    = 1 * time.Second  // when another copy is being handled
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

func unavailable(detail string, retry time.Duration) *problem.Details {
	return &problem.Details{Status: http.StatusServiceUnavailable, Type: "unavailable", Detail: detail, RetryAfter: retry}
}

package hookonce

import (
	"cmp"
	"errors"
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

// Reasons for which any request is rejected before anybody looks at what it says.
const (
	ReasonMethod    = "method"    // it has a method that is not taken
	ReasonTooLarge  = "too_large" // its body is above the limit
	ReasonTruncated = "truncated" // its body ended early
	ReasonSlow      = "slow"      // its body did not arrive in time
	ReasonUndecided = "undecided" // it was not found out whether it is authentic, or what it says: the fault is on this side
)

// How long a client is asked to wait, in Retry-After.
const (
	defaultRetry = 10 * time.Second // when the handler or the store failed
	busyRetry    = 1 * time.Second  // when another copy is being handled
)

// rejection answers for a request of which nothing came.
func rejection(typ *problem.Type, reason, detail string) *problem.Details {
	p := typ.New(detail)
	p.Reason = reason
	return p
}

// undecided answers for one that was not judged, because of cause.
func undecided(detail string, retry time.Duration, cause error) *problem.Details {
	p := rejection(problem.Unavailable, ReasonUndecided, detail)
	p.RetryAfter, p.Cause = retry, cause
	return p
}

func keyMissing() *problem.Details {
	return rejection(problem.KeyMissing, ReasonKeyMissing, "this operation needs the header Idempotency-Key: a new random text for each operation, such as a UUID, and the same one whenever the same request is sent again")
}

func keyMalformed(err error) *problem.Details {
	return rejection(problem.KeyMalformed, ReasonKeyMalformed, "the header Idempotency-Key cannot be used: "+err.Error())
}

func callerUnknown() *problem.Details {
	return rejection(problem.CallerUnknown, ReasonCallerUnknown, "it is not known on whose behalf the request is sent, and keys belong to callers; authenticate")
}

func keyReused() *problem.Details {
	return problem.KeyReused.New("another request was carried out under this key: it differs in method, address, content type or body; a new operation needs a new key")
}

// pinnedKey answers a request that differs from one whose outcome is not known to be nothing.
func pinnedKey() *problem.Details {
	return problem.KeyReused.New("an earlier request under this key failed and may have had effects outside, and this one differs from it in method, address, content type or body; send the same request again to learn what became of it; a new operation needs a new key")
}

func inProgress() *problem.Details {
	p := problem.RequestInProgress.New("a request with this key is being carried out; send it again later, with the same key, for its answer")
	p.RetryAfter = busyRetry
	return p
}

func tooManyKeys(retry time.Duration) *problem.Details {
	p := rejection(problem.TooManyKeys, ReasonTooManyKeys, "too many requests with new keys came from here of which nothing came; send this one again later, with the same key")
	p.RetryAfter = retry
	return p
}

func answerGone() *problem.Details {
	return problem.AnswerGone.New("the request with this key was carried out, and its answer is not on record; it was not carried out again")
}

func answerIncomplete(retry time.Duration) *problem.Details {
	p := problem.AnswerIncomplete.New("the answer was cut short and is not passed on; send the request again with the same key")
	p.RetryAfter = retry
	return p
}

// failure answers for a request that had no effect, or of which that is not known. The text names no cause:
// causes are for the log.
func failure(err error) *problem.Details {
	retry := defaultRetry
	if d, ok := RetryDelay(err); ok {
		retry = cmp.Or(max(d, time.Duration(0)), defaultRetry)
	}
	switch {
	case isAround(err, ErrTooManyKeys):
		return tooManyKeys(retry)
	case errors.Is(err, ErrResponseTooLarge) && !isAround(err, ErrTraceLost):
		return problem.AnswerTooLarge.New("the request was not carried out, because its answer is larger than can be kept")
	case errors.Is(err, recorder.ErrIncomplete):
		return answerIncomplete(retry)
	case gaveUp(err):
		return problem.Failed.New("the request cannot be carried out")
	case errors.Is(err, ErrUnknownOutcome):
		p := unavailable("it is not known yet whether the request was carried out; send it again with the same key", retry)
		p.Unknown = true
		return p
	}
	return unavailable("the request could not be carried out now; send it again with the same key", retry)
}

// undone answers for a request whose answer cannot be kept, and that has called another system: the same request finds
// that call under its key there, and a new one would make another.
func undone() *problem.Details {
	return unavailable("another system was called, and what was done here is undone, because the answer is larger than can be kept; send the request again with the same key", defaultRetry)
}

func unavailable(detail string, retry time.Duration) *problem.Details {
	p := problem.Unavailable.New(detail)
	p.RetryAfter = retry
	return p
}

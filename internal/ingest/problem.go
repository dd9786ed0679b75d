package ingest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/body"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/problem"
)

// refusal is a problem as the sender reads it. What the log says is elsewhere: a sender that is not verified learns
// nothing that helps it to become so. Its Reason is the label of the metric, and its RetryAfter is set where a sender should
// come back with the same request.
type refusal struct{ problem.Details }

func (p *refusal) Error() string { return p.Reason }

// The sender's mistakes.
var (
	errUnknownSource = &refusal{problem.Details{Status: http.StatusNotFound, Type: "unknown-source", Title: "Unknown source", Reason: "unknown_source",
		Detail: "No source is configured under this path; the path of a source is /in/<name>."}}
	errMethod = &refusal{problem.Details{Status: http.StatusMethodNotAllowed, Type: "method-not-allowed", Title: "Method not allowed", Reason: "method",
		Detail: "Events are sent with POST."}}
	errTooLarge = &refusal{problem.Details{Status: http.StatusRequestEntityTooLarge, Type: "body-too-large", Title: "Body too large", Reason: "too_large",
		Detail: "The body is larger than this source accepts.", Close: true}}
	errHeaders = &refusal{problem.Details{Status: http.StatusRequestHeaderFieldsTooLarge, Type: "headers-too-large", Title: "Headers too large", Reason: "headers_too_large",
		Detail: "The headers that the application needs are together larger than 8 KiB, or more than 64 lines. Nothing is stored."}}
	errTruncated = &refusal{problem.Details{Status: http.StatusBadRequest, Type: "body-truncated", Title: "Body truncated", Reason: "truncated",
		Detail: "The body ended early or was not framed as HTTP asks.", Close: true}}
	errSlow = &refusal{problem.Details{Status: http.StatusRequestTimeout, Type: "body-too-slow", Title: "Body too slow", Reason: "slow",
		Detail: "The body did not arrive in time.", Close: true}}
)

// What is authentic, but not taken now. It is no mistake of the provider's, and so it is answered with a
// status that the provider retries: a list of addresses may be out of date, and a rate too low.
var (
	errTooMany = &refusal{problem.Details{Status: http.StatusServiceUnavailable, Type: "too-many-requests", Title: "Too many requests", Reason: "rate",
		Detail: "This source takes fewer requests per second. Nothing is acknowledged: send it again.", RetryAfter: time.Second}}
	errNotAllowed = &refusal{problem.Details{Status: http.StatusServiceUnavailable, Type: "address-not-allowed", Title: "Address not allowed", Reason: "address",
		Detail: "This source takes no requests from this address now.", RetryAfter: time.Minute, Close: true}}
)

// Our own failures: the sender is asked to come again, never told that it did something wrong.
var (
	errFull        = unavailable("queue_full", "More events are waiting to be stored than memory is set aside for.")
	errCrowded     = crowded()
	errClosed      = unavailable("closing", "The gateway is shutting down.")
	errStore       = unavailable("store", "The event could not be stored.")
	errTimeout     = unavailable("timeout", "It is not known in time whether the event is stored.")
	errRowRefused  = unavailable("row_refused", "At least one event of this request could not be stored.")
	errUnanswered  = unavailable("unanswered", "The application has not answered in time, or could not handle the event. It is stored, and the answer to it may come later.")
	errPanic       = unavailable("panic", "The request could not be handled.")
	errUnspecified = unavailable("internal", "The request could not be handled.")
)

// panicError is what something panicked with, and where.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("%v: %v", errPanic, e.value) }

// Unwrap says what is answered.
func (e *panicError) Unwrap() error { return errPanic }

// crowded is the answer to a body for which there is no memory now. The rest of it is not read.
func crowded() *refusal {
	p := unavailable(errFull.Reason, "More is being received than memory is set aside for.")
	p.Close = true
	return p
}

// unavailableName is the type of all our own failures, and of nothing else.
const unavailableName = "unavailable"

// retryAfter is the Retry-After of our own failures. Providers that honour it would otherwise wait for minutes; most
// outages of a queue or a store are shorter.
const retryAfter = 5 * time.Second

func unavailable(reason, detail string) *refusal {
	return &refusal{problem.Details{Status: http.StatusServiceUnavailable, Type: unavailableName, Title: "Temporarily unavailable", Reason: reason,
		Detail: detail + " Nothing is acknowledged: send it again.", RetryAfter: retryAfter}}
}

// rejections are the answers to requests that are not verified, by reason. They differ in the reason
// alone, which names what the sender already knows.
var rejections = map[string]*refusal{
	hookonce.ReasonSignatureMissing:   unverified(hookonce.ReasonSignatureMissing, "The request carries no signature."),
	hookonce.ReasonSignatureMalformed: unverified(hookonce.ReasonSignatureMalformed, "The signature is not in the form that this source expects."),
	hookonce.ReasonSignatureMismatch:  unverified(hookonce.ReasonSignatureMismatch, "The signature does not belong to this body and this source."),
	hookonce.ReasonTimestampMissing:   unverified(hookonce.ReasonTimestampMissing, "The signed timestamp is missing or not a number."),
	hookonce.ReasonTimestampOld:       unverified(hookonce.ReasonTimestampOld, "The signed timestamp is too old."),
	hookonce.ReasonHandshakeRefused:   unverified(hookonce.ReasonHandshakeRefused, "This is not a challenge that is answered here."),
	hookonce.ReasonTimestampFuture:    unverified(hookonce.ReasonTimestampFuture, "The signed timestamp is in the future."),
}

// errUnverified answers for a reason that is not in the closed set.
var errUnverified = unverified("unverified", "The request could not be verified.")

func unverified(reason, detail string) *refusal {
	return &refusal{problem.Details{Status: http.StatusUnauthorized, Type: "unverified", Title: "Not verified", Reason: reason,
		Detail: detail}}
}

// refusals lists every refusal of a source, so that each has its counter before it first happens.
func refusals() []*refusal {
	all := []*refusal{errMethod, errTooLarge, errHeaders, errTruncated, errSlow, errTooMany, errNotAllowed,
		errFull, errCrowded, errClosed, errStore, errTimeout, errRowRefused, errUnanswered, errPanic, errUnspecified, errUnverified}
	for _, p := range rejections {
		all = append(all, p)
	}
	return all
}

// refusalOf is the one place that turns an error into an answer. What it does not know is our fault.
func refusalOf(err error) *refusal {
	var p *refusal
	var reject *hookonce.RejectError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &reject):
		if p, ok := rejections[reject.Reason]; ok {
			return p
		}
		return errUnverified
	case errors.Is(err, body.ErrTooLarge):
		return errTooLarge
	case errors.Is(err, body.ErrSlow):
		return errSlow
	case errors.Is(err, body.ErrTruncated):
		return errTruncated
	case errors.Is(err, body.ErrNoMemory):
		return errCrowded
	case errors.Is(err, journal.ErrFull):
		return errFull
	case errors.Is(err, journal.ErrClosed):
		return errClosed
	case errors.Is(err, journal.ErrUnavailable):
		return errStore
	case errors.Is(err, hookonce.ErrUnknownOutcome), errors.Is(err, context.DeadlineExceeded):
		return errTimeout
	}
	return errUnspecified
}

// ours reports whether the failure is our own. The status does not tell: it is what the provider retries.
func (p *refusal) ours() bool { return p.Type == unavailableName }

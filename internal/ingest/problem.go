package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// problem is a refusal as the sender reads it (RFC 9457). What the log says is elsewhere: a sender
// that is not verified learns nothing that helps it to become so.
type problem struct {
	status int
	reason string // label of the metric, and the extension member "reason"
	name   string // last part of the type
	title  string
	detail string
	// retryAfter is the header Retry-After, in seconds, of problems that a sender should come back from
	// with the same request; empty for others.
	retryAfter string
	// hangUp ends the connection after the answer, where the rest of the body is not worth reading.
	hangUp bool
}

func (p *problem) Error() string { return p.reason }

// The sender's mistakes.
var (
	errUnknownSource = &problem{status: http.StatusNotFound, reason: "unknown_source", name: "unknown-source",
		title: "Unknown source", detail: "No source is configured under this path; the path of a source is /in/<name>."}
	errMethod = &problem{status: http.StatusMethodNotAllowed, reason: "method", name: "method-not-allowed",
		title: "Method not allowed", detail: "Events are sent with POST."}
	errTooLarge = &problem{status: http.StatusRequestEntityTooLarge, reason: "too_large", name: "body-too-large",
		title: "Body too large", detail: "The body is larger than this source accepts.", hangUp: true}
	errHeaders = &problem{status: http.StatusRequestHeaderFieldsTooLarge, reason: "headers_too_large", name: "headers-too-large",
		title: "Headers too large", detail: "The headers that the application needs are together larger than 8 KiB, or more than 64 lines. Nothing is stored."}
	errTruncated = &problem{status: http.StatusBadRequest, reason: "truncated", name: "body-truncated",
		title: "Body truncated", detail: "The body ended early or was not framed as HTTP asks.", hangUp: true}
	errSlow = &problem{status: http.StatusRequestTimeout, reason: "slow", name: "body-too-slow",
		title: "Body too slow", detail: "The body did not arrive in time.", hangUp: true}
)

// What is authentic, but not taken now. It is no mistake of the provider's, and so it is answered with a
// status that the provider retries: a list of addresses may be out of date, and a rate too low.
var (
	errTooMany = &problem{status: http.StatusServiceUnavailable, reason: "rate", name: "too-many-requests",
		title: "Too many requests", detail: "This source takes fewer requests per second. Nothing is acknowledged: send it again.", retryAfter: "1"}
	errStranger = &problem{status: http.StatusServiceUnavailable, reason: "address", name: "address-not-allowed",
		title: "Address not allowed", detail: "This source takes no requests from this address now.", retryAfter: "60", hangUp: true}
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
func crowded() *problem {
	p := unavailable(errFull.reason, "More is being received than memory is set aside for.")
	p.hangUp = true
	return p
}

// unavailableName is the type of all our own failures, and of nothing else.
const unavailableName = "unavailable"

func unavailable(reason, detail string) *problem {
	return &problem{status: http.StatusServiceUnavailable, reason: reason, name: unavailableName,
		title: "Temporarily unavailable", detail: detail + " Nothing is acknowledged: send it again.", retryAfter: retryAfter}
}

// rejections are the answers to requests that are not verified, by reason. They differ in the reason
// alone, which names what the sender already knows.
var rejections = map[string]*problem{
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

func unverified(reason, detail string) *problem {
	return &problem{status: http.StatusUnauthorized, reason: reason, name: "unverified",
		title: "Not verified", detail: detail}
}

// problems lists every refusal of a source, so that each has its counter before it first happens.
func problems() []*problem {
	all := []*problem{errMethod, errTooLarge, errHeaders, errTruncated, errSlow, errTooMany, errStranger,
		errFull, errCrowded, errClosed, errStore, errTimeout, errRowRefused, errUnanswered, errPanic, errUnspecified, errUnverified}
	for _, p := range rejections {
		all = append(all, p)
	}
	return all
}

// problemOf is the one place that turns an error into an answer. What it does not know is our fault.
func problemOf(err error) *problem {
	var p *problem
	var reject *hookonce.RejectError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &reject):
		if p, ok := rejections[reject.Reason]; ok {
			return p
		}
		return errUnverified
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
func (p *problem) ours() bool { return p.name == unavailableName }

// retryAfter is the Retry-After of our own failures, in seconds. Providers that honour it would
// otherwise wait for minutes; most outages of a queue or a store are shorter.
const retryAfter = "5"

func (p *problem) write(w http.ResponseWriter, allow string) {
	h := w.Header()
	h["Content-Type"] = problemType
	h["X-Content-Type-Options"] = nosniff
	switch {
	case p.status == http.StatusMethodNotAllowed:
		h.Set("Allow", allow)
	case p.retryAfter != "":
		h.Set("Retry-After", p.retryAfter)
	case p.status == http.StatusServiceUnavailable:
		h.Set("Retry-After", retryAfter)
	}
	body := p.body()
	if p.hangUp {
		h.Set("Connection", "close")
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(body) // the sender may be gone; its copy comes again
}

func (p *problem) body() []byte {
	body, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Reason string `json:"reason"`
	}{"urn:hookonce:problem:" + p.name, p.title, p.status, p.detail, p.reason})
	if err != nil {
		panic(err) // strings and an int always encode
	}
	return append(body, '\n')
}

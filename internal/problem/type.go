package problem

import (
	"net/http"
	"strings"
)

// Type is a type of problem: what all its problems have in common. There are no others than those declared here, and
// docs/problems.md has a row for each.
type Type struct {
	name, title string
	status      int
	retryable   bool
}

// What a client can mend.
var (
	MethodNotAllowed = declare("method-not-allowed", http.StatusMethodNotAllowed, "Method not allowed")
	HeadersTooLarge  = declare("headers-too-large", http.StatusRequestHeaderFieldsTooLarge, "Headers too large")
	BodyTooLarge     = declare("body-too-large", http.StatusRequestEntityTooLarge, "Body too large")
	BodyTruncated    = declare("body-truncated", http.StatusBadRequest, "Body truncated").again()
	BodyTooSlow      = declare("body-too-slow", http.StatusRequestTimeout, "Body too slow").again()
)

// Webhooks.
var (
	UnknownSource     = declare("unknown-source", http.StatusNotFound, "Unknown source")
	Unverified        = declare("unverified", http.StatusUnauthorized, "Not verified")
	TooManyRequests   = declare("too-many-requests", http.StatusServiceUnavailable, "Too many requests").again()
	AddressNotAllowed = declare("address-not-allowed", http.StatusServiceUnavailable, "Address not allowed").again()
)

// Requests with an Idempotency-Key.
var (
	KeyMissing         = declare("idempotency-key-missing", http.StatusBadRequest, "Idempotency-Key is missing")
	KeyMalformed       = declare("idempotency-key-malformed", http.StatusBadRequest, "Idempotency-Key is malformed")
	KeyReused          = declare("idempotency-key-reused", http.StatusUnprocessableEntity, "Idempotency-Key is already used")
	CallerUnknown      = declare("caller-unknown", http.StatusForbidden, "Caller unknown")
	TooManyKeys        = declare("too-many-keys", http.StatusTooManyRequests, "Too many new keys").again()
	RequestInProgress  = declare("request-in-progress", http.StatusConflict, "A request is outstanding for this Idempotency-Key").again()
	AnswerGone         = declare("answer-gone", http.StatusGone, "Answer gone")
	AnswerTooLarge     = declare("answer-too-large", http.StatusInternalServerError, "Answer too large")
	AnswerIncomplete   = declare("answer-incomplete", http.StatusServiceUnavailable, "Answer incomplete").again()
	AmbiguousHeader    = declare("ambiguous-header", http.StatusBadRequest, "Ambiguous header")
	Path               = declare("path", http.StatusNotFound, "Path leads out of the service")
	ServiceTimeout     = declare("service-timeout", http.StatusGatewayTimeout, "Service timeout").again()
	ServiceUnreachable = declare("service-unreachable", http.StatusBadGateway, "Service unreachable").again()
)

// The receiver's own failures.
var (
	Unavailable = declare("unavailable", http.StatusServiceUnavailable, "Temporarily unavailable").again()
	Failed      = declare("failed", http.StatusInternalServerError, "Failed")
)

// types has every type, for the page.
var types []*Type

func declare(name string, status int, title string) *Type {
	t := &Type{name: name, title: title, status: status}
	types = append(types, t)
	return t
}

// again says that the same request may be sent again, under the same key.
func (t *Type) again() *Type {
	t.retryable = true
	return t
}

// New returns a problem of the type, of which detail tells the client what happened and what to do.
func (t *Type) New(detail string) *Details {
	return &Details{Type: t, Title: t.title, Status: t.status, Detail: detail}
}

// String returns the last part of the type's URN, such as "body-too-large".
func (t *Type) String() string { return t.name }

// Retryable reports whether the same request may be sent again, under the same key. Of a single problem [Details.Of] tells.
func (t *Type) Retryable() bool { return t.retryable }

// MarshalText returns the type's URN. URNs identify, and point nowhere.
func (t *Type) MarshalText() ([]byte, error) { return []byte("urn:hookonce:problem:" + t.name), nil }

// Page returns the address at which the page at address describes problems of the type: the type's name is the anchor,
// unless there is one already. Empty: there is no page.
func (t *Type) Page(address string) string {
	if address == "" || strings.Contains(address, "#") {
		return address
	}
	return address + "#" + t.name
}

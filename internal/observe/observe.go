// Package observe stands in front of an application and changes nothing: it forwards requests as they come, passes
// the answers back, and records beside it what the gateway would have made of them.
//
// Nobody waits for the record. A request is looked at after it was answered; what cannot be looked at or recorded, because
// the store is away or too much comes at once, is counted and forgotten. An [Observation] is never a claim, and
// nothing is decided by it.
package observe

import (
	"net/http"
	"net/url"
	"time"

	"github.com/hookonce/hookonce"
)

// Kind says what a request, or an event of it, was.
type Kind string

// The kinds.
const (
	Event     Kind = "event"     // authentic; without a key its copies cannot be recognised
	Notice    Kind = "notice"    // authentic, and only says that something changed: its copies mean something
	Refused   Kind = "refused"   // would have been refused
	Handshake Kind = "handshake" // a challenge of the provider's
	Unread    Kind = "unread"    // was forwarded and could not be looked at
	Gap       Kind = "gap"       // requests that are not on record
)

// strange reports whether anybody can send as many as they like, because no signature vouches for them.
func (k Kind) strange() bool { return k == Refused || k == Handshake || k == Unread }

// Why a request has the kind Unread, or is in a gap. Refused has the reasons of [hookonce.RejectError], and
// ReasonMethod.
const (
	ReasonMethod    = hookonce.ReasonMethod    // it is neither a POST nor a greeting of the provider's
	ReasonTooLarge  = hookonce.ReasonTooLarge  // the body is larger than the source accepts
	ReasonMemory    = "memory"                 // too many bodies were held at once
	ReasonQueue     = "queue"                  // too many requests waited to be looked at
	ReasonStore     = "store"                  // too many observations waited for the store, or it refused one
	ReasonPartial   = "partial"                // the sender broke off, or the application answered before it had read the body
	ReasonUndecided = hookonce.ReasonUndecided // the sender's keys could not be fetched
	ReasonPanic     = "panic"                  // a fault of ours
	ReasonEvents    = "max_events"             // further events of a request that had too many
)

// Why there was no answer.
const (
	FailureUnreachable = "unreachable" // no connection to the application
	FailureTimeout     = "timeout"     // the application took too long
	FailureBroken      = "broken"      // the application broke the connection, before its answer or within
	FailureSender      = "sender"      // the sender broke off within its own request
)

// Observation is one event of one request, or the request if there is none.
type Observation struct {
	Source     string
	ReceivedAt time.Time
	Kind       Kind
	// Requests is how many requests it stands for: zero for a further event of the one before, more than one where many
	// came at once that were refused, or not looked at, for the same reason and with the same answer.
	Requests int64
	// Key recognises the event when it comes again. Empty: it has none.
	Key  string
	Type string
	// Digest identifies the content that is equal in every copy.
	Digest []byte
	// Reason says why the gateway would have refused the request. An Event has one if its signature is valid, and
	// its time is not.
	Reason string
	// Status is what the application answered; zero: nothing.
	Status int
	// Failure says why there was no answer, or only a part of one.
	Failure string
	// Took is the time until the answer began, or there was none.
	Took time.Duration
	// Unheard is set if the sender had given up by then.
	Unheard bool
}

// answeredAt returns when the answer began.
func (o *Observation) answeredAt() time.Time { return o.ReceivedAt.Add(o.Took) }

// done reports whether the application took the event on.
func (o *Observation) done() bool { return o.Status/100 == 2 && o.Failure == "" }

// Source is one application and who sends to it.
type Source struct {
	// Name is the name of the source, and the last part of its path.
	Name string
	// To is where requests are forwarded.
	To *url.URL
	// Transport makes the connections to it.
	Transport http.RoundTripper
	// Provider verifies requests and finds their events.
	Provider hookonce.Provider
	// Timeless is the same for any signed time. Nil: the provider signs none.
	Timeless hookonce.Provider
	// Deadline is how long the sender is known to wait. Zero: it is not known.
	Deadline time.Duration
	// MaxBody is the largest body that is looked at, in bytes. Larger ones are forwarded.
	MaxBody int64
}

package hookonce

import (
	"net/http"
	"time"
)

// Event is one verified thing that happened at a provider. A handler must treat it as read-only.
type Event struct {
	// Source is the scope of Key: the name of the endpoint or, for what the gateway delivers, of
	// the gateway's source.
	Source string
	// Provider is the catalogue name of who sent it, such as "stripe".
	Provider string
	// Key recognises the event when it comes again; empty when the event is unkeyed. It is in the
	// form of [NormalKey].
	Key string
	// KeyOrigin says where the key was found, for example "json:$.id".
	KeyOrigin string
	// KeySigned reports whether the provider's signature covers the key. An unsigned key can be
	// changed by an attacker who replays a captured request.
	KeySigned bool
	// AttemptID is the provider's identifier of this delivery attempt, where it has one. It must
	// never be used as a key.
	AttemptID string
	// Type is the provider's event type, with its action where that is separate ("issues.opened").
	Type string
	// Time is when the event happened, as the provider states it. Zero when it does not say.
	Time time.Time
	// Resource identifies the object that the event is about, where the provider names one.
	Resource string
	// Tenant is the account, shop or workspace that the event belongs to, where the provider names it.
	Tenant string
	// Digest identifies the content that must be equal in every copy of the event. The part of the
	// body that providers change between attempts is left out.
	Digest []byte
	// Logical recognises logical duplicates: distinct events, with keys of their own, that stand for one change at
	// the provider. Empty where the provider is not known to send any.
	Logical string
	// Version is the provider's version number of the resource, an integer. Empty where there is none.
	Version string
	// Scope and Rank tell newer states of the resource from older ones, among the events of one source with
	// the same Scope: see [Newer]. Scope is the resource, inside its tenant, in the form of [NormalKey]; empty
	// where the provider names none. Rank is the provider's version number, or its time; zero where it gives
	// neither. Few providers promise that their times are in order.
	Scope string
	Rank  Rank
	// Coalesce is set for events that only say that something changed: one adds nothing while an
	// earlier one with the same key waits to be handled, and is new once that one has begun. Done work
	// never swallows them, and the library handles each.
	Coalesce bool
	// SenderAttempt and SenderReason are the provider's own count of its attempts and why it sends
	// again, as it writes them.
	SenderAttempt, SenderReason string
	// Body is the request's raw body. For providers that send batches it is the request's document
	// with this event's item alone in its array.
	Body []byte
	// Header holds the request's headers.
	Header http.Header
	// Attempt is the number of this attempt at the effect, from 1. It is set from the claim's token
	// when the handler runs; zero for unkeyed events.
	Attempt int64
	// Gateway is what the gateway, or a relay that posts an effect, says about its delivery. Zero
	// where the provider's request came here itself.
	Gateway Gateway
}

// Gateway is what hookonce's gateway says about its delivery of an event to an application.
type Gateway struct {
	// IdempotencyKey names the event among those of all sources: the same for each attempt and destination.
	IdempotencyKey string
	// Attempt is the gateway's own count of its attempts; zero for a delivery past its store.
	Attempt int64
	// FirstSeen is when the gateway received the event first.
	FirstSeen time.Time
	// LogicalDuplicateOf is the key of an earlier event about the same change, see Logical. Empty: none.
	LogicalDuplicateOf string
	// Stale: a newer state of the resource was delivered to this destination before.
	Stale bool
	// Forced: an operator had the event delivered again although it was done. If it is done here as well, it is a
	// duplicate like any other, and its handler does not run.
	Forced bool
	// Unprotected: the event was delivered past the gateway's store, which was down.
	Unprotected bool
}

// Ref returns the claim that the event belongs to.
func (e *Event) Ref() Ref { return Ref{Source: e.Source, Key: e.Key} }

package outgoing

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// The headers that say what the gateway knows about an event and its delivery, spelled as net/http does.
// docs/destinations.md has what they mean. [HeaderSafe] writes their texts.
const (
	IdempotencyKeyHeader = "Idempotency-Key"

	SourceHeader      = "Hookonce-Source"
	KeyHeader         = "Hookonce-Key"
	TypeHeader        = "Hookonce-Event-Type"
	ScopeHeader       = "Hookonce-Scope"
	AttemptHeader     = "Hookonce-Attempt"
	FirstSeenHeader   = "Hookonce-First-Seen"
	TwinOfHeader      = "Hookonce-Twin-Of"
	StaleHeader       = "Hookonce-Stale"
	ForcedHeader      = "Hookonce-Forced"
	UnprotectedHeader = "Hookonce-Unprotected"

	// FactsSignatureHeader signs all of these: see [SignFacts].
	FactsSignatureHeader = "Hookonce-Signature"
)

// The facts about an event that only its receiver asks for. They are kept with the event among its headers,
// where no sender can put any of them.
const (
	ProviderHeader        = "Hookonce-Provider"
	KeySignedHeader       = "Hookonce-Key-Signed"
	RankHeader            = "Hookonce-Rank"
	TimeHeader            = "Hookonce-Time"
	ResourceHeader        = "Hookonce-Resource"
	TenantHeader          = "Hookonce-Tenant"
	SenderAttemptIDHeader = "Hookonce-Sender-Attempt-Id"
	LogicalHeader         = "Hookonce-Logical"
	DigestHeader          = "Hookonce-Digest"
)

// IsFact reports whether the header of that canonical name is kept with an event.
func IsFact(name string) bool {
	switch name {
	case ProviderHeader, KeySignedHeader, RankHeader, TimeHeader, ResourceHeader, TenantHeader, SenderAttemptIDHeader, LogicalHeader, DigestHeader:
		return true
	}
	return false
}

// OwnPrefix begins the names of the headers that nobody but hookonce may set.
const OwnPrefix = "Hookonce-"

// FirstSeenForm is how [FirstSeenHeader] is written, in UTC.
const FirstSeenForm = "2006-01-02T15:04:05.000Z"

// SignFacts returns the value of [FactsSignatureHeader]: one signature per key over what the headers say
// about the event, bound to the message whose identifier and time are given, and so to the body that [Sign]
// signed with them. Whoever carries a delivery could otherwise send it again under another key.
func SignFacts(keys [][]byte, id, timestamp string, h http.Header) string {
	return signatures(keys, factsText(id, timestamp, h))
}

// VerifyFacts returns which of the keys, from 1, made one of the signatures in value, as [SignFacts] makes them;
// 0 for none of them.
func VerifyFacts(keys [][]byte, id, timestamp string, h http.Header, value string) int {
	return verify(keys, value, factsText(id, timestamp, h))
}

// factsText is what is signed: a line that says what it is, one each with the message's identifier and time,
// and one for each header, in the order of their names. A body that is signed comes after an identifier
// and a time with points between, and no header has line breaks, so neither text can pass for the other.
func factsText(id, timestamp string, h http.Header) []byte {
	names := make([]string, 0, len(h))
	for name := range h {
		if name == IdempotencyKeyHeader || strings.HasPrefix(name, OwnPrefix) && name != FactsSignatureHeader {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	text := append(make([]byte, 0, 1024), "hookonce-headers-v1\n"+id+"\n"+timestamp+"\n"...)
	for _, name := range names {
		for _, value := range h[name] {
			text = append(text, strings.ToLower(name)...)
			text = append(text, ':')
			text = append(text, value...)
			text = append(text, '\n')
		}
	}
	return text
}

// Facts writes header lines of facts, leaving out those that are empty.
type Facts []byte

// Add adds a line.
func (f *Facts) Add(name, value string) {
	if value == "" {
		return
	}
	*f = append(append(*f, name...), ": "...)
	*f = append(append(*f, HeaderSafe(value)...), "\r\n"...)
}

// AddTime adds a line with a time, as RFC 3339 writes it, in UTC.
func (f *Facts) AddTime(name string, at time.Time) {
	if !at.IsZero() {
		f.Add(name, at.UTC().Format(time.RFC3339Nano))
	}
}

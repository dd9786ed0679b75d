package header

import (
	"bytes"
	"net/http"
	"strings"
	"time"
)

// The headers that say what the gateway knows about an event and its delivery, spelled as net/http does.
// docs/destinations.md has what they mean. [Safe] writes their texts.
const (
	IdempotencyKey = "Idempotency-Key"

	HookonceSource             = "Hookonce-Source"
	HookonceEventID            = "Hookonce-Event-Id"
	HookonceKey                = "Hookonce-Key"
	HookonceEventType          = "Hookonce-Event-Type"
	HookonceScope              = "Hookonce-Scope"
	HookonceAttempt            = "Hookonce-Attempt"
	HookonceFirstSeen          = "Hookonce-First-Seen"
	HookonceLogicalDuplicateOf = "Hookonce-Logical-Duplicate-Of"
	HookonceStale              = "Hookonce-Stale"
	HookonceForced             = "Hookonce-Forced"
	HookonceUnprotected        = "Hookonce-Unprotected"

	// HookonceSignature signs all headers of ours: see outgoing.Sign.
	HookonceSignature = "Hookonce-Signature"
)

// HookonceEffect is the name of the effect that a relay posts. No delivery of a gateway has it.
const HookonceEffect = "Hookonce-Effect"

// The facts about an event that only its receiver asks for. They are kept with the event among its headers,
// where no sender can put any of them.
const (
	HookonceProvider        = "Hookonce-Provider"
	HookonceKeySigned       = "Hookonce-Key-Signed"
	HookonceRank            = "Hookonce-Rank"
	HookonceTime            = "Hookonce-Time"
	HookonceResource        = "Hookonce-Resource"
	HookonceTenant          = "Hookonce-Tenant"
	HookonceSenderAttemptID = "Hookonce-Sender-Attempt-Id"
	HookonceLogical         = "Hookonce-Logical"
	HookonceDigest          = "Hookonce-Digest"
)

// HookonceTrace is kept with an event for ourselves, and delivered to nobody: the trace in which it was accepted, as a
// traceparent.
const HookonceTrace = "Hookonce-Trace"

// isFact reports whether the header of that canonical name is kept with an event.
func isFact(name string) bool {
	switch name {
	case HookonceProvider, HookonceKeySigned, HookonceRank, HookonceTime, HookonceResource, HookonceTenant, HookonceSenderAttemptID, HookonceLogical, HookonceDigest:
		return true
	}
	return false
}

// OwnPrefix begins the names of the headers that nobody but hookonce may set.
const OwnPrefix = "Hookonce-"

// FirstSeenForm is how [HookonceFirstSeen] is written, in UTC.
const FirstSeenForm = "2006-01-02T15:04:05.000Z"

// The headers of Standard Webhooks (https://www.standardwebhooks.com), spelled as net/http does.
const (
	WebhookID        = "Webhook-Id"
	WebhookTimestamp = "Webhook-Timestamp"
	WebhookSignature = "Webhook-Signature"
)

// Facts writes header lines of facts, leaving out those that are empty.
type Facts []byte

// Add adds a line.
func (f *Facts) Add(name, value string) {
	if value != "" {
		*f = appendLine(*f, name, Safe(value))
	}
}

// AddTime adds a line with a time, as RFC 3339 writes it, in UTC.
func (f *Facts) AddTime(name string, at time.Time) {
	if !at.IsZero() {
		f.Add(name, at.UTC().Format(time.RFC3339Nano))
	}
}

// Fact returns the value of a line that [Facts.Add] wrote among others, as it stands there, empty if there is none.
func Fact(lines []byte, name string) string {
	for len(lines) > 0 {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte("\r\n"))
		if value, ok := bytes.CutPrefix(line, []byte(name+": ")); ok {
			return string(value)
		}
	}
	return ""
}

// Safe returns s as a header value can carry it: whatever is not visible ASCII, and the percent
// sign, is percent-encoded. It is undone by [net/url.PathUnescape].
func Safe(s string) string { return Escape(s, "") }

// Escape percent-encodes what is not visible ASCII, the percent sign, and the given characters.
func Escape(s, also string) string {
	n := 0
	for i := range len(s) {
		if escaped(s[i], also) {
			n++
		}
	}
	if n == 0 {
		return s
	}
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(s) + 2*n)
	for i := range len(s) {
		c := s[i]
		if !escaped(c, also) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

func escaped(c byte, also string) bool {
	return c <= ' ' || c > '~' || c == '%' || strings.IndexByte(also, c) >= 0
}

// SafeMethod reports whether requests with that method are handed on without a look at their Idempotency-Key: those that
// change nothing by their definition (RFC 9110, 9.2.1), and CONNECT, which is for proxies. Empty means GET.
func SafeMethod(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodConnect, "":
		return true
	}
	return false
}

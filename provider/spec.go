package provider

import "time"

const day = 24 * time.Hour

// Spec describes one kind of sender. It is data: [New] turns it into a [Provider]. The blocks are
// independent of each other: how to verify, where the event's facts are, what makes two copies equal,
// how to answer, and what is known about the sender's habits.
//
// A Spec returned by [Lookup] is the caller's own copy.
type Spec struct {
	// Name is the name in the catalogue and in configurations, such as "stripe".
	Name string
	// Title is the name for people, such as "Stripe".
	Title string
	// Secret says in half a sentence what the secret is and where it is found.
	Secret string
	// Verify lists the ways in which the sender may sign, tried in order; the first that succeeds
	// counts. At least one.
	Verify []Verify
	// Form names the form field that holds the JSON document when the sender uses
	// application/x-www-form-urlencoded. Empty: the body itself is the document. A form without that
	// field is an event without a document.
	Form string
	// Event says where the facts of the event are.
	Event Extract
	// Same lists the content that is equal in every copy of an event; it makes Event.Digest. Empty
	// means the whole body. Senders that change the body between attempts need it.
	Same []Value
	// Handshakes lists the requests that are answered instead of handled.
	Handshakes []Handshake
	// Answer stops the sender from sending the event again.
	Answer Answer
	// Limits states sizes and windows.
	Limits Limits
	// Example is what a realistic request looks like. See [Spec.Sample].
	Example Template
	// Sources says where the facts come from and how far they can be trusted.
	Sources []Source
	// Traps lists what goes wrong with this sender, for people.
	Traps []string
}

// Verify describes one way of signing: an HMAC over a list of values.
type Verify struct {
	// Hash is the hash function of the HMAC. Default [SHA256].
	Hash Hash
	// Key is how a secret's text becomes the HMAC's key. Default [KeyUTF8].
	Key KeyForm
	// Encoding is how the signature is written. Default [Hex].
	Encoding Encoding
	// Signature says where the signature is.
	Signature Signature
	// ID is the identifier that is signed along with the body, where the scheme has one. Only
	// header values. Other values refer to it as "id".
	ID Value
	// Time is the signed time of the attempt, where the scheme has one. Other values refer to it as
	// "ts". It must be in Sign: a tolerance on a time that is not signed protects nobody.
	Time *Timestamp
	// Sign lists what is signed, joined without separators: body, ts, id, url and const: values. It
	// must contain the body.
	Sign []Value
}

// Signature says where a signature is and in which format. The header's value is cut into entries at
// Split; the entries that begin with Prefix are signatures, all others are ignored. That covers:
//
//	plain           Prefix ""         Split ""     B23tXN68...
//	prefix          Prefix "sha256="  Split ""     sha256=7571...
//	key and value   Prefix "v1="      Split ","    t=1492774577,v1=5257...,v1=6ffb...
//	space list      Prefix "v1,"      Split " "    v1,g0hM... v1,bm9l...
type Signature struct {
	// In is the header with the signature, as a "header:" value.
	In Value
	// Split separates entries. Empty: the whole value is one entry. White space around entries is
	// ignored.
	Split string
	// Prefix precedes the signature in its entry.
	Prefix string
}

// Timestamp describes the signed time of an attempt.
type Timestamp struct {
	// In is where the time is: a "header:" value, or "part:" with the prefix of an entry of the
	// signature's header.
	In Value
	// Unit is how the time is written. Default [Seconds].
	Unit Unit
	// Past and Future are how far the time may be behind and ahead of the time of arrival. Zero
	// means not enforced.
	Past, Future time.Duration
}

// Extract says where the facts of an event are. In every list but those inside Key, the first value
// that is present and not empty counts. None of them is required.
type Extract struct {
	// Key lists the rules for the key, tried in order. All parts of a rule must be present and not
	// empty, except for a last part that ends in "?". Several parts are joined unambiguously.
	Key [][]Value
	// Delivery identifies the attempt. It is never a key.
	Delivery []Value
	// Type is the event's type; Action, where present, is appended after a dot.
	Type, Action []Value
	// Time is when the event happened.
	Time []Moment
	// Resource is the object that the event is about.
	Resource []Value
	// Tenant is the account, shop or workspace.
	Tenant []Value
}

// Moment is a point in time in an event. A value that is not in the unit's form is ignored.
type Moment struct {
	In   Value
	Unit Unit
}

// Handshake describes a request that proves who controls the endpoint. It is answered only after its
// signature was verified, as text/plain.
type Handshake struct {
	// When is the value that marks the handshake, and Is what it must be.
	When Value
	Is   string
	// Echo is the value to answer with. A request without it, or with more than 1024 bytes in it, is
	// not a handshake and treated as an event.
	Echo Value
}

// Answer is the response that counts as success.
type Answer struct {
	// Status is the HTTP status. Default 200.
	Status int
	// ContentType and Body are sent along. Default: none.
	ContentType, Body string
}

// DefaultMaxBody is the largest accepted body, in bytes, of a provider that states no other: 1 MiB.
const DefaultMaxBody = 1 << 20

// Limits states the sizes and windows of a sender.
type Limits struct {
	// MaxBody is the largest body, in bytes, that the sender may send. Default [DefaultMaxBody].
	MaxBody int64
	// Retry is how long after the event the sender still retries by itself. Zero: it does not, or
	// does not say.
	Retry time.Duration
	// Manual is how long after the event a person can have it sent again. Zero: not possible, or no
	// limit is stated.
	Manual time.Duration
}

// Window returns the longest time after which a copy of an event is known to arrive. Keys must be
// kept at least twice as long.
func (l Limits) Window() time.Duration { return max(l.Retry, l.Manual) }

// Template is the form of a realistic request. In the header's values and in the body, {{id}},
// {{type}}, {{event}} and {{action}} (the type before and after its first dot), {{unix}}, {{millis}}
// and {{time}} (RFC 3339) are replaced.
type Template struct {
	// Type is the event type where none is asked for.
	Type string
	// Header holds the headers besides those of the signature.
	Header map[string]string
	// Body is the JSON body. Placeholders stand inside string literals, except for numbers.
	Body string
}

// Confidence says how well a fact is sourced.
type Confidence string

// The degrees of confidence.
const (
	// Stated by the sender: its documentation, changelog, SDK or own source code.
	Stated Confidence = "stated"
	// Reported by others who quote the sender, or inferred from a stated fact.
	Reported Confidence = "reported"
)

// Source says where facts come from.
type Source struct {
	// Fact says which part of the specification is meant.
	Fact string
	// Confidence says how well it is sourced.
	Confidence Confidence
	// Where names the document or the repository and file.
	Where string
}

// Hash names a hash function.
type Hash string

// The hash functions.
const (
	SHA1   Hash = "sha1"
	SHA256 Hash = "sha256"
	SHA512 Hash = "sha512"
)

// KeyForm names how a secret's text becomes a key.
type KeyForm string

// The forms of keys.
const (
	// KeyUTF8 uses the text as it is.
	KeyUTF8 KeyForm = "utf8"
	// KeyBase64 decodes standard base64, with or without padding.
	KeyBase64 KeyForm = "base64"
	// KeyHex decodes hexadecimal digits.
	KeyHex KeyForm = "hex"
	// KeyWhsec decodes the base64 after "whsec_"; the prefix may be missing.
	KeyWhsec KeyForm = "whsec"
)

// Encoding names how a signature is written. A signature in another spelling of the same bytes
// (capital hexadecimal digits, other padding) is not accepted.
type Encoding string

// The encodings.
const (
	// Hex is lower-case hexadecimal.
	Hex Encoding = "hex"
	// Base64 is standard base64 with padding.
	Base64 Encoding = "base64"
	// Base64URL is URL-safe base64 without padding.
	Base64URL Encoding = "base64url"
)

// Unit names how a time is written.
type Unit string

// The units.
const (
	// Seconds since 1970, decimal digits only.
	Seconds Unit = "s"
	// Millis are milliseconds since 1970, decimal digits only.
	Millis Unit = "ms"
	// RFC3339 is the text form, with or without fractional seconds.
	RFC3339 Unit = "rfc3339"
)

package spec

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Spec describes one kind of sender. It is data: [New] turns it into a [Provider]. The blocks are
// independent of each other: how to verify, how to take a batch apart, where the event's facts are,
// what a repetition means, how to answer, and what is known about the sender's habits.
//
// A user's own specification is written in YAML with the names in the tags; see package specyaml.
type Spec struct {
	// Name is the name in the catalogue and in configurations, such as "stripe".
	Name string `yaml:"name"`
	// Title is the name for people, such as "Stripe". Default: Name.
	Title string `yaml:"title,omitempty"`
	// Secret says in half a sentence what the secret is and where it is found.
	Secret string `yaml:"secret,omitempty"`
	// OwnSecret is set if whoever receives makes the secret up, and enters it at the sender.
	OwnSecret bool `yaml:"own_secret,omitempty"`
	// Verify lists the ways in which the sender may sign, tried in order; the first that succeeds
	// counts. At least one. Where one of them signs fewer parts than another with the same key, a body that it signs must
	// be JSON: any other could hold what the other one signs besides, such as a time.
	Verify []Verify `yaml:"verify"`
	// Methods lists the HTTP methods that events come with: POST, and GET where the sender can be told to use that. What a
	// GET says is in its query, so every way of signing must cover the method and the URL; the event's body is that query,
	// as the form that a POST would have had. Default: POST.
	Methods []string `yaml:"methods,omitempty,flow"`
	// Form names the form field that holds the JSON document when the sender uses
	// application/x-www-form-urlencoded. Empty: the body itself is the document. A form without that
	// field is an event without a document. With Split, the body of an item's event is the form with that
	// item alone in the document.
	Form string `yaml:"form,omitempty"`
	// Split takes a batch apart. Nil: a request is one event.
	Split *Split `yaml:"split,omitempty"`
	// Event says where the facts of the event are.
	Event Extract `yaml:"event"`
	// Dedup says what a repetition means.
	Dedup Dedup `yaml:"dedup,omitempty"`
	// Order says what tells a newer state of the resource from an older one. Nil: nothing does.
	Order *Order `yaml:"order,omitempty"`
	// Headers lists the headers that the sender documents, besides those that are named elsewhere here: names, and
	// beginnings of names that end in a star, such as X-Acme-*. The gateway passes on no others of the sender's but
	// Content-Type, Content-Encoding and User-Agent. Empty: it passes on all but those that senders of webhooks do not set
	// and applications act on.
	Headers []string `yaml:"headers,omitempty,flow"`
	// Answer is how the sender is told that the event arrived, or did not.
	Answer Answer `yaml:"answer,omitempty"`
	// Handshakes lists the requests that are answered instead of handled, on endpoints that enable
	// them with [Settings.Handshakes].
	Handshakes []Handshake `yaml:"handshakes,omitempty"`
	// Limits states sizes and windows.
	Limits Limits `yaml:"limits,omitempty"`
	// Reconcile says how the sender is asked which events it made, so that those can be found that never arrived. Nil: it
	// cannot be asked, or nobody described how.
	Reconcile *Reconcile `yaml:"reconcile,omitempty"`
	// Example is what a realistic request looks like. See [Spec.Sample].
	Example Template `yaml:"example,omitempty"`
	// Sources says where the facts come from and how far they can be trusted.
	Sources []Source `yaml:"sources,omitempty"`
	// Traps lists what goes wrong with this sender, for people.
	Traps []string `yaml:"traps,omitempty"`
}

// WithDefaults returns a copy in which what the specification leaves out is filled in, as the fields say.
// What is filled in is the copy's own.
func (s Spec) WithDefaults() Spec {
	s.Verify = slices.Clone(s.Verify)
	for i := range s.Verify {
		s.Verify[i] = s.Verify[i].withDefaults()
	}
	if len(s.Methods) == 0 {
		s.Methods = []string{http.MethodPost}
	}
	s.Title = cmp.Or(s.Title, s.Name)
	s.Secret = cmp.Or(s.Secret, "the endpoint's signing secret")
	s.Dedup.OnRepeat = cmp.Or(s.Dedup.OnRepeat, Drop)
	s.Dedup.Logical = slices.Clone(s.Dedup.Logical)
	for i := range s.Dedup.Logical {
		s.Dedup.Logical[i].Mode = cmp.Or(s.Dedup.Logical[i].Mode, Flag)
	}
	s.Handshakes = slices.Clone(s.Handshakes)
	for i := range s.Handshakes {
		s.Handshakes[i] = s.Handshakes[i].withDefaults()
	}
	s.Answer.Status = cmp.Or(s.Answer.Status, http.StatusOK)
	s.Answer.Reject = cmp.Or(s.Answer.Reject, http.StatusUnauthorized)
	s.Answer.NotReady = cmp.Or(s.Answer.NotReady, http.StatusServiceUnavailable)
	s.Limits.MaxBody = cmp.Or(s.Limits.MaxBody, DefaultMaxBody)
	if s.Reconcile != nil {
		s.Reconcile = s.Reconcile.withDefaults()
	}
	return s
}

// Split says where the items of a batch are. Each item becomes an event of its own, whose body is the
// request's document with that item alone in its array. A batch of more than 10000 items is not taken
// apart: it is one event without a key or, where items are authenticated one by one, refused.
type Split struct {
	// Items lists paths with one [*] for each array on the way, as in json:$.entry[*].changes[*].
	// An element of an outer array in which none of the paths finds an array is an item itself, and so
	// is a document in which none does: nothing is lost because it looks unusual. Empty arrays are
	// acknowledged.
	Items []Value `yaml:"items"`
	// Lines is set if the body may be several JSON documents, one on each line.
	Lines bool `yaml:"lines,omitempty"`
}

// Extract says where the facts of an event are. In every list but those inside Key, the first value
// that is present and not empty counts. None of them is required.
type Extract struct {
	// Key lists the rules for the key, tried in order. All parts of a rule must be present and not
	// empty, except for a last part that ends in "?". Several parts are joined unambiguously. Of several rules one with
	// "id" is left out where an event was verified in a way that signs no identifier. No rule
	// means that no event of this sender can be recognised: all pass through unkeyed.
	Key [][]Value `yaml:"key,omitempty,flow"`
	// AttemptID identifies the attempt. It is never a key.
	AttemptID []Value `yaml:"attempt_id,omitempty,flow"`
	// Subscription identifies the sender's registration of this endpoint. Alone it is never a key:
	// it is the same for all events.
	Subscription []Value `yaml:"subscription,omitempty,flow"`
	// Type is the event's type; Action, where present, is appended after a dot.
	Type   []Value `yaml:"type,omitempty,flow"`
	Action []Value `yaml:"action,omitempty,flow"`
	// Time is when the event happened.
	Time []Moment `yaml:"time,omitempty"`
	// Resource is the object that the event is about.
	Resource []Value `yaml:"resource,omitempty,flow"`
	// Tenant is the account, shop or workspace.
	Tenant []Value `yaml:"tenant,omitempty,flow"`
	// Attempt is the sender's own count of its attempts, and Reason why it sends again.
	Attempt []Value `yaml:"attempt,omitempty,flow"`
	Reason  []Value `yaml:"reason,omitempty,flow"`
}

// Moment is a point in time in an event. A value that is not in the unit's form is ignored.
type Moment struct {
	In   Value `yaml:"in"`
	Unit Unit  `yaml:"unit,omitempty"`
}

// Answer is what the sender is told.
type Answer struct {
	// Status is the HTTP status of success, 200 to 299. Default 200.
	Status int `yaml:"status,omitempty"`
	// ContentType and Body are sent along. Default: none.
	ContentType string `yaml:"content_type,omitempty"`
	Body        string `yaml:"body,omitempty"`
	// Reject is the status for requests that are not authentic, 400 to 499. Default 401. It is 503, or
	// 429, for senders for which another of those is final, because they drop the event or disable the
	// webhook: a secret that was changed on one side only should cost neither. Whatever else is wrong
	// with a request is answered with it then, too.
	Reject int `yaml:"reject,omitempty"`
	// NotReady is the status when the event could not be made durable: one that the sender retries,
	// 500 to 599 or 429. Default 503.
	NotReady int `yaml:"not_ready,omitempty"`
	// Deadline is how long the sender waits for the answer. Zero: it does not say. The gateway answers
	// within it where a sender waits for its destination (mode: sync); nothing else is timed by it.
	Deadline time.Duration `yaml:"deadline,omitempty"`
}

// DefaultMaxBody is the largest accepted body, in bytes, of a provider that states no other: 1 MiB.
const DefaultMaxBody = 1 << 20

// Limits states the sizes and windows of a sender.
type Limits struct {
	// MaxBody is the largest body, in bytes, that the sender may send. Default [DefaultMaxBody].
	MaxBody int64 `yaml:"max_body,omitempty"`
	// Retry is how long after the event the sender still retries by itself. Zero: it does not, or
	// does not say.
	Retry time.Duration `yaml:"retry,omitempty"`
	// Manual is how long after the event a person can have it sent again. Zero: not possible, or no
	// limit is stated.
	Manual time.Duration `yaml:"manual,omitempty"`
}

// Window returns the longest time after which a copy of an event is known to arrive.
func (l Limits) Window() time.Duration { return max(l.Retry, l.Manual) }

// Keep returns the shortest time for which keys must be kept: twice the window. Copies that are later
// than the memory count as new.
func (l Limits) Keep() time.Duration { return 2 * l.Window() }

// FormatDuration writes a duration the way people do, and specifications in YAML: 5m and not 5m0s, 3d and not
// 72h0m0s.
func FormatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	if d > 2*day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Template is the form of a realistic request. In the header's values, the query and the body, {{id}},
// {{type}}, {{event}} and {{action}} (the type before and after its first dot), {{object}}, {{version}},
// {{unix}}, {{millis}} and {{time}} (RFC 3339) are replaced. So is what differs between deliveries of one event: {{attempt}}
// and {{retry}} count them, from 1 and from 0, and {{left}} counts down from 3 to 1.
type Template struct {
	// ID is an identifier of the kind that the sender gives its events, as it stands in the place of {{id}}.
	// Default: one like those of Standard Webhooks. See [Template.NewID].
	ID string `yaml:"id,omitempty"`
	// Type is the event type where none is asked for.
	Type string `yaml:"type,omitempty"`
	// Object is what the event is about where nothing else is asked for, as it stands in the place of
	// {{object}}. Default: the event's id.
	Object string `yaml:"object,omitempty"`
	// Header holds the headers besides those of the signature.
	Header map[string]string `yaml:"header,omitempty"`
	// Form is set if the body is a form: fields and values, written as a query string. Placeholders in
	// it are escaped.
	Form string `yaml:"form,omitempty"`
	// Body is the JSON body. Placeholders stand inside string literals, or in the place of a value: there a whole number
	// stays one and every other text becomes a string, so that what is sent is JSON whatever the id is.
	Body string `yaml:"body,omitempty"`
	// Compact is set if the body is sent without the white space between its members: some libraries of senders verify
	// JSON that they wrote anew, and would take any other form for a wrong secret.
	Compact bool `yaml:"compact,omitempty"`
}

// Confidence says how well a fact is sourced.
type Confidence string

// The degrees of confidence.
const (
	// Stated by the sender: its documentation, changelog, SDK or own source code.
	Stated Confidence = "stated"
	// Reported by others who quote the sender, or inferred from a stated fact.
	Reported Confidence = "reported"
	// NotSourced marks what nobody could be found to say. Nothing in the specification depends on it unless the fact says so.
	NotSourced Confidence = "not sourced"
)

// Source says where facts come from.
type Source struct {
	// Fact says which part of the specification is meant.
	Fact string `yaml:"fact"`
	// Confidence says how well it is sourced.
	Confidence Confidence `yaml:"confidence"`
	// Where names the document or the repository and file.
	Where string `yaml:"where,omitempty"`
}

// Handshake describes a request that proves who controls the endpoint.
type Handshake struct {
	// Method is the HTTP method. Default POST.
	Method string `yaml:"method,omitempty"`
	// When lists what marks the handshake; all of it must hold. Empty: every request with the method,
	// which is never right for POST.
	When []Match `yaml:"when,omitempty"`
	// Unsigned is set if the sender does not sign the handshake. It is answered without a look at the
	// signature then. A handshake with a method other than POST is always unsigned.
	Unsigned bool `yaml:"unsigned,omitempty"`
	// Echo is the challenge. A request without it, or with more than 1024 bytes in it, is not a
	// handshake.
	Echo Value `yaml:"echo,omitempty"`
	// Pattern is a regular expression that the whole challenge must match. Required where the answer is
	// computed with a secret: it must exclude everything that a signed body can be, or the endpoint
	// would sign for strangers. A body that matches it is refused.
	Pattern string `yaml:"pattern,omitempty"`
	// Code computes {{code}} from the challenge. Nil: nothing is computed.
	Code *ChallengeCode `yaml:"code,omitempty"`
	// Status is the status of the answer. Default 200.
	Status int `yaml:"status,omitempty"`
	// ContentType is text/plain or application/json. Default text/plain where there is a body, else none.
	ContentType string `yaml:"content_type,omitempty"`
	// Body is the body of the answer, in which {{echo}} and {{code}} are replaced. Default "{{echo}}"
	// where there is an Echo and no Header, else empty.
	Body string `yaml:"body,omitempty"`
	// Header is what the answer says in its header, by name, with the same replacements. Names begin with X- or
	// Webhook- and are none that browsers or proxies act on. A challenge that is not one word of visible ASCII
	// characters is none then: what a stranger wrote must not become another field.
	Header map[string]string `yaml:"header,omitempty"`
}

// withDefaults fills in what the method and the challenge suggest.
func (h Handshake) withDefaults() Handshake {
	h.Method = cmp.Or(h.Method, http.MethodPost)
	h.Unsigned = h.Unsigned || h.Method != http.MethodPost
	h.Status = cmp.Or(h.Status, http.StatusOK)
	if h.Echo != "" && len(h.Header) == 0 {
		h.Body = cmp.Or(h.Body, "{{echo}}")
	}
	if h.Body != "" {
		h.ContentType = cmp.Or(h.ContentType, "text/plain; charset=utf-8")
	}
	if h.Code != nil {
		code := *h.Code
		code.Encoding = cmp.Or(code.Encoding, Hex)
		h.Code = &code
	}
	return h
}

// Match compares a value. With neither Is nor Token the value must be present.
type Match struct {
	Value Value  `yaml:"value"`
	Is    string `yaml:"is,omitempty"`
	// Token is set if the value must be [Settings.Token]. A request in which it is something else is
	// refused with 403.
	Token bool `yaml:"token,omitempty"`
}

// ChallengeCode is what a handshake computes.
type ChallengeCode struct {
	// Kind is [HMAC] with the endpoint's secret, [PlainHash] (SHA-256), or [Code] of the scheme. Every
	// way of signing must be of that kind, except for a plain hash, which needs no secret.
	Kind Kind `yaml:"kind" only:"hmac,hash"`
	// Over lists what a plain hash is made of: echo, token and url. The others take the challenge.
	Over []Value `yaml:"over,omitempty,flow"`
	// Encoding is how it is written. Default [Hex].
	Encoding Encoding `yaml:"encoding,omitempty"`
}

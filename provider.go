package hookonce

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/problem"
)

// Request is one delivery as it came over the wire, before anything is believed about it.
type Request struct {
	Method string
	// URL is the address that the provider was configured to call, as the provider spells it. Only
	// schemes that sign the URL need it; behind a proxy it differs from what the server sees.
	URL    string
	Header http.Header
	// Body is the raw body, byte for byte as received.
	Body []byte
	// Now is the time of arrival, for timestamp tolerances.
	Now time.Time
	// Hurry is set by whoever has others to attend to: what would have to wait for its turn among requests of strangers
	// is an error at once, as it is for everybody after a while.
	Hurry bool
	// Lazy is set by a caller that takes the events from [Verified.All]. Those of a batch are then built one after
	// another. Else all of them are built at once, and each has in its body what surrounds the items of the batch:
	// together they can take 64 times the memory of the request.
	Lazy bool
}

// Verified is what a verified request carries.
type Verified struct {
	// Events are the events of the request, in order. Source is empty, unless the request says and proves it.
	// May be empty: an empty batch is acknowledged.
	Events []Event
	// Batch is what the events come from, in place of Events, if [Request.Lazy] was set and the provider sends
	// batches. Nil otherwise.
	Batch *Batch
	// Handshake, when set, is the reply to a handshake: nothing is stored and nothing is handled.
	Handshake *Answer
	// Proof says how the request was authenticated.
	Proof Proof
	// Unreadable, when set, says why events could not be extracted from a request whose signature is
	// valid. Events then holds one event with the whole body and what is known without it. It is unkeyed unless the
	// whole key stands in the header: losing is worse than repeating.
	Unreadable error
}

// Len returns how many events the request carries.
func (d *Verified) Len() int {
	if d.Batch != nil {
		return d.Batch.Len
	}
	return len(d.Events)
}

// All yields the events of the request in order: those of Batch, if there is one, or Events.
func (d *Verified) All() iter.Seq[*Event] {
	if d.Batch != nil {
		return d.Batch.All
	}
	return func(yield func(*Event) bool) {
		for i := range d.Events {
			if !yield(&d.Events[i]) {
				return
			}
		}
	}
}

// Batch are the events of one request that are not built yet.
type Batch struct {
	// Len is how many there are, and Size how many bytes their bodies have together.
	Len  int
	Size int64
	// All builds the events and yields them in order, as often as it is called, from the request, which must not
	// change. What was yielded is not kept. Not safe for concurrent use.
	All iter.Seq[*Event]
}

// Proof says how a request was authenticated.
type Proof struct {
	// Covers says what the signature binds: "body", "fields" (only the signed ones), "nonce" (nothing
	// of the content), "crc32" (a checksum that another body meets easily) or "nothing" (a secret was
	// sent along).
	Covers string
	// Secret is the number, from 1, of the configured secret that matched. Zero: the provider does not
	// say.
	Secret int
	// Vouched tells that secret, and the way of signing in which it matched, from the others of the endpoint when
	// their numbers have changed: a fingerprint of 15 bits, from 1 up. It is kept with the events, so that they can
	// be signed again with the same secret. Zero: the provider does not say.
	Vouched int16
}

// Partial reports whether the signature is known to leave some of the body open to change.
func (p Proof) Partial() bool { return p.Covers != "" && p.Covers != "body" }

// Answer is what a provider has its sender answered: an acknowledgement, or the reply to a handshake. A Status of zero
// is 200.
type Answer struct {
	Status      int
	ContentType string
	Body        []byte
	// Header has further fields of the reply to a handshake, by their names; acknowledgements have none. See
	// [Answer.Inert] for those that are sent.
	Header map[string]string
}

// plainText is what a body is sent as that has no type, or none that is harmless.
const plainText = "text/plain; charset=utf-8"

// Inert returns the answer with its status filled in, and as plain text unless it is JSON or plain text already: the
// reply to a handshake echoes what the sender chose, and no browser may take that for a page. Of its header those fields
// stay whose name begins with X- or Webhook- and is none that browsers or proxies act on, and whose value is one word of
// at most 1024 visible ASCII characters.
func (a Answer) Inert() Answer {
	media, _, err := mime.ParseMediaType(a.ContentType)
	if err != nil || media != "application/json" && media != "text/plain" {
		a.ContentType = plainText
	}
	if len(a.Body) == 0 {
		a.ContentType = ""
	}
	a.Status = cmp.Or(a.Status, http.StatusOK)
	a.Header = maps.Clone(a.Header)
	maps.DeleteFunc(a.Header, func(name, value string) bool { return header.CheckReply(name) != nil || !header.Visible(value) })
	return a
}

// Provider knows one kind of sender: how to verify its requests, which events they carry, and how to
// answer. Implementations are immutable and safe for concurrent use. Package provider has the
// catalogue.
type Provider interface {
	// Profile says how the sender wants to be talked to. It returns the same each time.
	Profile() Profile
	// Open verifies the request and extracts its events. It never panics, whatever the bytes. An
	// error wraps a *[RejectError]: the request is not authentic and must leave no trace in a claim. Any other says that it
	// cannot be told now, as where a key cannot be fetched: then its sender is to come again.
	// Open does not keep the request, but events share its body and headers.
	Open(req *Request) (*Verified, error)
}

// Profile is how one kind of sender wants to be talked to. A zero field means what is usual. It is shared: treat it as
// read-only.
type Profile struct {
	// Name is the name in the catalogue, such as "stripe". It is required.
	Name string
	// Acknowledgement is the answer that stops the sender from sending an event again: a success. Zero: a plain 200.
	Acknowledgement Answer
	// Methods are those, besides POST, whose requests go to [Provider.Open], without their body: some senders prove
	// with GET or HEAD that they talk to whom they think, and some can be told to send events with GET. Zero: none.
	Methods []string
	// Rejected is the status for requests that are not authentic. Zero: 401. One of 500 or above, or
	// 429, says that another 4xx is final for the sender: it drops the event, or disables the webhook.
	// So whatever else is wrong with a request, such as a body that cannot be taken, is answered with
	// it too.
	Rejected int
	// NotReady is the status for events that could not be made durable: one that the sender retries. Zero: 503.
	NotReady int
	// SecretHeaders are the canonical names of the headers that carry the secret itself. Whoever stores requests or
	// hands them on leaves these out.
	SecretHeaders []string
	// MaxBody is the largest body, in bytes, that the sender sends. Zero: it is not known, and [DefaultMaxBody] is the
	// limit unless another is set.
	MaxBody int64
}

// Takes reports whether requests with that method go to [Provider.Open].
func (p Profile) Takes(method string) bool {
	return method == http.MethodPost || slices.Contains(p.Methods, method)
}

// Allow returns the methods that are taken, in the form of the header Allow.
func (p Profile) Allow() string {
	return strings.Join(append([]string{http.MethodPost}, p.Methods...), ", ")
}

// Refusal returns the status with which this sender is refused because of err, where usual is the one that HTTP has
// for that. A [RejectError] may have a status of its own.
func (p Profile) Refusal(usual int, err error) int {
	var rejected *RejectError
	switch {
	case usual == http.StatusServiceUnavailable:
		return cmp.Or(p.NotReady, usual)
	case errors.As(err, &rejected):
		return cmp.Or(rejected.Status, p.Rejected, usual)
	case errors.Is(err, ErrUnverified):
		return cmp.Or(p.Rejected, usual)
	case problem.Retried(p.Rejected) && usual != http.StatusMethodNotAllowed:
		return p.Rejected
	}
	return usual
}

// check returns what is wrong with a profile by which each event would be sent again, or none verified.
func (p Profile) check() error {
	switch s := p.Acknowledgement.Status; {
	case p.Name == "":
		return errors.New("the provider has no name")
	case s != 0 && (s < 200 || s > 299):
		return fmt.Errorf("provider %s acknowledges with the status %d, which is no success: each event would be sent again", p.Name, s)
	}
	return nil
}

// ErrUnverified is wrapped by every [RejectError].
var ErrUnverified = errors.New("hookonce: the request is not verified")

// Reasons for which a request is rejected. They are label values of metrics: the set is closed.
const (
	ReasonSignatureMissing   = "signature_missing"   // the header or field that carries the signature is absent
	ReasonSignatureMalformed = "signature_malformed" // it is there but not in the scheme's form
	ReasonSignatureMismatch  = "signature_mismatch"  // it was not made with any of the secrets over this content
	ReasonTimestampMissing   = "timestamp_missing"   // the signed timestamp is absent or not a number
	ReasonTimestampOld       = "timestamp_old"       // older than the tolerance
	ReasonTimestampFuture    = "timestamp_future"    // further ahead than the tolerance
	ReasonHandshakeRefused   = "handshake_refused"   // a challenge that is not to be answered
)

// RejectError says precisely why a request was not accepted as authentic. Its text never contains a
// secret or an expected signature.
type RejectError struct {
	// Reason is one of the Reason constants.
	Reason string
	// Detail says which header or part, and what was expected in shape, for people.
	Detail string
	// Header is the name of the header that is absent, if the reason is that one is.
	Header string
	// Status is the HTTP status to answer with, where it is not the provider's usual one. Else zero.
	Status int
}

// Error returns the reason and the detail.
func (e *RejectError) Error() string { return e.Reason + ": " + e.Detail }

// Unwrap returns [ErrUnverified].
func (e *RejectError) Unwrap() error { return ErrUnverified }

package hookonce

import (
	"errors"
	"iter"
	"net/http"
	"time"
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
	// Reply, when set, answers a handshake: nothing is stored and nothing is handled.
	Reply *Answer
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

// Answer is an HTTP response in full. A Status of zero is 200.
type Answer struct {
	Status      int
	ContentType string
	Body        []byte
}

// Provider knows one kind of sender: how to verify its requests, which events they carry, and how to
// answer. Implementations are immutable and safe for concurrent use. Package provider has the
// catalogue.
type Provider interface {
	// Name returns the catalogue name, such as "stripe".
	Name() string
	// Open verifies the request and extracts its events. It never panics, whatever the bytes. An
	// error wraps a *[RejectError]: the request is not authentic and must leave no trace in a claim.
	// Open does not keep the request, but events share its body and headers.
	Open(req *Request) (*Verified, error)
	// OK returns the answer that stops the provider from sending the event again: a success, 200 if it has no
	// status.
	OK() Answer
}

// Greeter is implemented by providers that answer requests other than POST: some prove with GET or
// HEAD that they talk to whom they think.
type Greeter interface {
	// Greets reports whether requests with that method go to Open.
	Greets(method string) bool
}

// Refuser is implemented by providers that want certain statuses in place of 401 and 503.
type Refuser interface {
	// Refusals returns the status for requests that are not authentic, and for events that could not be
	// made durable: one that the provider retries. Zero means the usual one. A rejected of 500 or above
	// says that any 4xx disables the webhook, so that a body that is too large is answered with it too.
	Refusals() (rejected, notReady int)
}

// Confider is implemented by providers whose requests carry the secret itself.
type Confider interface {
	// Confided returns the canonical names of the headers that hold it. Whoever stores requests or hands
	// them on leaves these out.
	Confided() []string
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
	// Status is the HTTP status to answer with, where it is not the provider's usual one. Else zero.
	Status int
}

// Error returns the reason and the detail.
func (e *RejectError) Error() string { return e.Reason + ": " + e.Detail }

// Unwrap returns [ErrUnverified].
func (e *RejectError) Unwrap() error { return ErrUnverified }

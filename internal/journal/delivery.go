package journal

import (
	"context"
	"errors"
	"time"

	"github.com/hookonce/hookonce"
)

// Response is what a destination answered, as far as it is passed on to a sender who waits for it.
type Response struct {
	Status int
	Header []byte // HTTP/1 field lines, CRLF-terminated
	Body   []byte
}

// Size is what a response counts towards a bound on memory.
func (r *Response) Size() int64 {
	if r == nil {
		return 0
	}
	return int64(len(r.Header) + len(r.Body))
}

// DeliveryID names a delivery.
type DeliveryID struct {
	EventID     int64
	Destination string
}

// DeliveryStatus says how a delivery stands.
type DeliveryStatus struct {
	// State is that of the delivery; [Done] if it is not open, whether or not there ever was one, and [Absent] if
	// nothing is known of its event.
	State State
	// Response is what the destination answered. Nil: it did not, or the answer was not kept.
	Response *Response
}

// Ended reports whether there is nothing more to wait for.
func (s *DeliveryStatus) Ended() bool {
	return s.Response != nil || s.State != Pending && s.State != Processing
}

// Attempter makes one attempt at a delivery that is on no record. Its outcome is [Done] only if the
// destination took the event.
type Attempter func(ctx context.Context, w *Work) Outcome

// Delivery is what is known about one event and destination.
type Delivery struct {
	EventID     int64
	Destination string
	State       State
	Token       int64     // attempts begun so far, and the fence
	Tries       int       // attempts since it was accepted or last re-driven, without those of unknown outcome
	Due         time.Time // pending, failed: the next try; processing: the end of the lease; else zero
	Ended       time.Time // done: when the last attempt that succeeded ended; else zero
	LastError   string
	Kind        ErrorKind // of LastError
	Status      int       // HTTP status of the answer that LastError is about; 0: there was none
	Forced      bool      // replayed although it was done
	Group       string    // set: the deliveries of this ordering group follow each other; see [GroupOf]
	WaitsSince  time.Time // of what a [Plan] has begin again when it was dead or done; see [WaitsSince]
}

// Attempt is one try at a delivery that came to an end.
type Attempt struct {
	Destination string
	Token       int64
	State       State // what it made of the delivery: done, failed or dead
	Status      int   // HTTP status of the answer; 0: there was none
	Error       string
	Kind        ErrorKind
	Started     time.Time
	Duration    time.Duration
	Excerpt     []byte // its first bytes
}

// Held names a delivery under a token.
type Held struct {
	EventID     int64
	Destination string
	Token       int64
}

// Work is one leased delivery.
type Work struct {
	Held
	Source              string
	Key                 string
	Type                string
	Tries               int // as [Delivery] has it, this attempt included
	Header              []byte
	Body                []byte
	ReceivedAt          time.Time
	Lease               time.Time
	Resource            string        // the object that the event is about; empty: none
	Ordered             bool          // the delivery is in an ordering group, whatever its destination does by now: the next of that waits for it
	Rank                hookonce.Rank // how new that is, among events of the source about the same resource
	Stale               bool          // a newer rank of the resource was delivered to this destination
	LogicalDuplicateKey string        // the key of an earlier event for the same change; empty: none
	Forced              bool          // replayed although it was done
	Origin              Origin        // what the first attempt follows
	Vouched             int16         // a fingerprint of the secret that verified the event; 0: no signature vouches for it

	Unprotected bool // delivered past the store, under no token
}

// Group names the ordering group of the event.
func (w *Work) Group() string { return GroupOf(w.Source, w.Resource) }

// Size is what the work counts towards a bound on memory.
func (w *Work) Size() int64 { return int64(len(w.Header) + len(w.Body)) }

// Origin says what the tries of a delivery follow.
type Origin int16

// The origins, by the numbers that stores keep.
const (
	OriginFresh      Origin = iota // the event came for the first time
	OriginRedriven                 // a later copy made failed or dead work begin again
	OriginReplayed                 // an operator did
	OriginReconciled               // the event was stored from the provider's list
)

// String is the name in metrics.
func (o Origin) String() string { return [...]string{"fresh", "redriven", "replayed", "reconciled"}[o] }

// State is the state of a delivery.
type State string

// The states of a delivery. Done is the absence of the row.
const (
	Pending    State = "pending"
	Processing State = "processing"
	Done       State = "done"
	Failed     State = "failed"
	Dead       State = "dead"
)

// Absent is in the place of a state where an event is not on record: it was purged, or lost with the database. Nobody
// knows whether it was delivered.
const Absent State = "absent"

// MaxExcerpt is how many bytes of a destination's answer are kept with an attempt.
const MaxExcerpt = 512

// Outcome is what became of a piece of work.
type Outcome struct {
	Held
	State    State     // Done, Failed, Dead, or Pending to hand it back unattempted
	Due      time.Time // Failed, Pending: when to try again
	Spared   bool      // Failed: the attempt is on record, and does not count as a try
	Status   int       // HTTP status of the answer, 0 if there was none
	Error    string    // what went wrong, without bodies or secrets; cut to hookonce.MaxErrorLen
	Kind     ErrorKind // Failed, Dead: that in one word
	Started  time.Time
	Duration time.Duration
	Excerpt  []byte // how the destination's answer begins; cut to [MaxExcerpt]
	// Response is the whole answer, where the sender waits for it. Only that of Done is stored.
	Response *Response
	// Group is that of the work, for the store to know which ordering group is free. Set by the engine, like
	// Rank, which becomes the newest of the group that was delivered to the destination if State is
	// Done, unless that is of the same kind and higher. Zero: it is not compared.
	Group string
	Rank  hookonce.Rank
}

// SparedNote ends the error of an attempt that is [Outcome.Spared]: people who look at it ask why there are more than there are
// tries.
const SparedNote = "; it does not count as a try, because the destination is ill"

// ErrorText returns Error in the form that every store can hold: valid UTF-8 without NUL, cut to
// [hookonce.MaxErrorLen] bytes.
func (o *Outcome) ErrorText() string { return hookonce.Failure{Err: errors.New(o.Error)}.Text() }

// KeptExcerpt returns the part of Excerpt that is kept.
func (o *Outcome) KeptExcerpt() []byte { return o.Excerpt[:min(len(o.Excerpt), MaxExcerpt)] }

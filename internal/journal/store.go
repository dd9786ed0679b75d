package journal

import (
	"context"
	"slices"
	"time"
)

// Store is where the journal is durable. Implementations: journal/pg and journal/sqlite; journaltest
// has the conformance suite.
//
// Every method is one transaction: it happens wholly or not at all, and when it returns without an
// error it is durable (fsynced, or committed with synchronous_commit on). Methods are safe for
// concurrent use. An error means that nothing is known about the outcome: it may have been
// persisted. Times come from the caller.
type Store interface {
	// Accept stores a batch and returns one result per entry, in order. For each entry: a key that
	// is new in its source is stored with its body and one delivery per destination; a key that
	// exists changes nothing, except that its failed or dead deliveries become pending and due at
	// once (a redelivery re-drives failed work); an empty key is always new. The same key twice in
	// one batch is new once. Entries with Hold are stored as processing under token 1 with a lease
	// until lease; others as pending, due now.
	//
	// An entry under a [CoalesceKey] is a duplicate, whatever its digest, while every one of its
	// destinations has a delivery of the stored event to come: pending, failed or dead. Otherwise the
	// stored event loses the key, which may be durable even if the call then fails, and the entry is new.
	//
	// A row that the database refuses for its content gets an error in its Result.Err and leaves its
	// neighbours stored. Concurrent batches that share keys must not deadlock.
	Accept(ctx context.Context, batch []*Entry, now, lease time.Time) ([]Result, error)

	// Take leases deliveries that are wanted and due at now (pending or failed whose time has come,
	// processing whose lease ran out), oldest due first, skipping what other processes are taking at
	// the same moment: state processing, token raised by one, tries raised by one, lease as given.
	// The returned work carries header and body. A delivery whose body is gone becomes dead with an
	// error that says so, and is not returned.
	Take(ctx context.Context, now, lease time.Time, want Wanted) ([]*Work, error)

	// Extend moves the leases of held work to lease, where the token is current and the delivery is
	// processing, and returns for each whether it still is held.
	Extend(ctx context.Context, held []Held, lease time.Time) ([]bool, error)

	// Finish records outcomes, each only where its token is current and the delivery is processing,
	// and returns for each whether it was applied. Done deletes the delivery; Failed makes it due at
	// Due, with tries lowered by one if it is Spared; Dead parks it; Pending hands it back unattempted (tries lowered by one, due at Due, no
	// attempt recorded). Every other outcome leaves a row in attempts. The
	// Reply of one that is done is kept, in place of an earlier one.
	Finish(ctx context.Context, outcomes []Outcome) ([]bool, error)

	// Forwarded records deliveries that were made past the store, as [Outcome]s that are done and whose
	// tokens mean nothing. An open delivery ends, whatever its state, so that whoever holds it can record
	// nothing any more, and its attempt comes under the next token. Where none is open an attempt is
	// recorded if the delivery has none yet.
	Forwarded(ctx context.Context, outcomes []Outcome) error

	// Answers says how deliveries stand, in order, each as one moment has it: the state of the delivery, and
	// the answer that is kept with it. One that is not open is done.
	Answers(ctx context.Context, targets []Target) ([]Standing, error)

	// Orphans makes due at once all work that is processing, when the store can know that no other
	// process is alive to hold it (an embedded database that is locked to one process). Others
	// return 0. It is called once, before anything else.
	Orphans(ctx context.Context, now time.Time) (int, error)

	// Purge does one step of a sweep, see [Purge]. While another process does one nothing is deleted.
	Purge(ctx context.Context, p Purge) (Purged, error)

	// Stats counts rows. It is for gauges: exact for open work, an estimate where counting would read
	// a whole table.
	Stats(ctx context.Context) (Stats, error)

	// Ping reports whether the store can be written to.
	Ping(ctx context.Context) error

	// Close releases connections and locks. The store must not be used afterwards.
	Close() error
}

// Entry is one verified event on its way into the journal. The store reads it and keeps nothing of it.
type Entry struct {
	// ID is the time-ordered identifier under which the event is stored if it is new. See [IDs].
	ID     int64
	Source string
	Key    string // empty: unkeyed; see also [CoalesceKey]
	Type   string
	Digest []byte // of the content that must be equal in every copy; at most 32 bytes
	Header []byte // HTTP/1 field lines, CRLF-terminated; the events of one request can share them
	Facts  []byte // more such lines, of this event alone
	Body   []byte
	// Destinations are the names of where to deliver. None: the event is done when it is stored.
	Destinations []string
	ReceivedAt   time.Time
	// Resource names the object that the event is about, in one text for all of the source's tenants.
	// Empty: none, and its deliveries keep no order.
	Resource string
	// Rank orders the events of one resource: a version, or a time in microseconds. 0: not known.
	Rank int64
	// Vouched is a fingerprint of the secret that verified the event. 0: no signature vouches for it.
	Vouched int16
	// Logical is equal in two events that say the same under different keys (twins). Empty: none.
	Logical string
	// DropTwin stores the event without deliveries if it is the later of two twins. The delivery of the
	// first stands for it, and is re-driven like by a copy. So where a source drops any, its entries must
	// have a Logical in common only if they have the same Destinations.
	DropTwin bool
	// Hold are those of Destinations whose deliveries are leased to the caller at once instead of left to
	// Take.
	Hold []string
	// Ordered are those of Destinations, none of them in Hold, whose deliveries of the Resource follow
	// each other.
	Ordered []string
}

// Lines returns the header lines that are stored with the event: Header and Facts.
func (e *Entry) Lines() []byte {
	if len(e.Facts) == 0 {
		return e.Header
	}
	return slices.Concat(e.Header, e.Facts)
}

// Size is what the entry counts towards a bound on memory.
func (e *Entry) Size() int64 { return size(e.Header, e.Body) + int64(len(e.Facts)) }

// Status says what Accept did with an entry.
type Status string

// The statuses, in the words of the Hookonce-Status header.
const (
	Accepted  Status = "accepted"
	Duplicate Status = "duplicate"
	Conflict  Status = "conflict" // a duplicate key whose digest differs; the first copy stands
	Unkeyed   Status = "unkeyed"  // accepted without a key

	Unprotected Status = "unprotected" // delivered past the store, which is unavailable
)

// Result is the outcome of accepting one entry.
type Result struct {
	Status Status
	// ID is the event under which the key is stored: the entry's own if it is new.
	ID int64
	// Done reports, for a duplicate, that the event has no open delivery.
	Done bool
	// Redriven reports that failed or dead deliveries of the event were made due by this copy.
	Redriven bool
	// Twin is, for an accepted event, the earlier one that has its logical key. 0: there is none.
	Twin int64
	// TwinKey is the key of that one.
	TwinKey string
	// Err is set when the database refused this row; then nothing of it was stored.
	Err error
}

// Held names a delivery under a token.
type Held struct {
	EventID     int64
	Destination string
	Token       int64
}

// Wanted says what one Take may lease.
type Wanted struct {
	// Deliveries is how many there may be.
	Deliveries int
	// Bytes bounds the headers and bodies: none is taken after those that weigh as much, so that the
	// last may go beyond it. The store loads no others. Zero: no bound.
	Bytes int64
	// Destinations are those whose deliveries are taken, in the order in which they come to their turn
	// when there are more than Deliveries. Nil: all of them.
	Destinations []Want
}

// Want is the part of one destination in a [Wanted].
type Want struct {
	Destination string
	Deliveries  int
	Bytes       int64 // like that of [Wanted]
	// Stale asks for [Work.Stale].
	Stale bool
	// Pick asks for those that [Want.Choose] prefers, among the [PickAmong] that have been due for longest, as many
	// that have been for the shortest time, as many from somewhere between, and of lanes those at either end.
	Pick  bool
	Avoid []Class
}

// Work is one leased delivery.
type Work struct {
	Held
	Source     string
	Key        string
	Type       string
	Tries      int // attempts since accepted or last re-driven, this one included
	Header     []byte
	Body       []byte
	ReceivedAt time.Time
	Lease      time.Time
	Resource   string // the object that the event is about; empty: none
	Rank       int64  // its version or time in µs, comparable inside a resource; 0: not known
	Stale      bool   // a newer rank of the resource was delivered to this destination
	Twin       string // the key of an earlier event for the same change; empty: none
	Forced     bool   // replayed although it was done
	Vouched    int16  // a fingerprint of the secret that verified the event; 0: no signature vouches for it

	Unprotected bool // delivered past the store, under no token
}

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

// MaxAnswer is how many bytes of a destination's answer are kept with an attempt.
const MaxAnswer = 512

// Outcome is what became of a piece of work.
type Outcome struct {
	Held
	State    State     // Done, Failed, Dead, or Pending to hand it back unattempted
	Due      time.Time // Failed, Pending: when to try again
	Spared   bool      // Failed: the attempt is on record, and does not count as a try
	Status   int       // HTTP status of the answer, 0 if there was none
	Error    string    // what went wrong, without bodies or secrets; cut to hookonce.MaxErrorLen
	Started  time.Time
	Duration time.Duration
	Answer   []byte // how the destination's answer begins; cut to [MaxAnswer]
	// Reply is the whole answer, where the sender waits for it. Only that of Done is stored.
	Reply *Answer
	// Resource is that of the work, for the store to know which lane is free. Set by the [Journal], like
	// Rank, which becomes the newest of the resource that was delivered to the destination if State is
	// Done, unless that is higher. 0: it is not compared.
	Resource string
	Rank     int64
}

// Stats are row counts.
type Stats struct {
	// Open counts deliveries by state.
	Open map[State]int64
	// Events is the number of events in the journal, possibly an estimate.
	Events int64
	// Rows estimates the rows of other kinds, where the store can tell without reading the tables.
	Rows map[Kind]int64
	// Bytes is what the tables take on the disk, with their indexes and what else is in the same file; 0 if that
	// is not known.
	Bytes int64
}

package journal

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
)

// Event is one verified event on its way into the journal. Nobody changes it: its header and body go from
// whoever brought it to those who deliver without being copied.
type Event struct {
	Source string
	Key    string // empty: unkeyed; see also [CoalesceKey]
	Type   string
	Digest []byte // of the content that must be equal in every copy; at most 32 bytes
	// Listed says that the event comes from a list of the provider's, over its API, and that no webhook brought it: it
	// has a key of its own and no digest, because a list need not have the bytes that a webhook has. The first copy that
	// a webhook brings supplies the digest. See [Accepter.Accept].
	Listed bool
	Header []byte // HTTP/1 field lines, CRLF-terminated; the events of one request can share them
	Facts  []byte // more such lines, of this event alone
	Body   []byte
	// Destinations are the names of where to deliver. None: the event is done when it is stored.
	Destinations []string
	ReceivedAt   time.Time
	// Resource names the object that the event is about, in one text for all of the source's tenants.
	// Empty: none, and its deliveries keep no order.
	Resource string
	// Rank orders the events of one resource. Zero: not known.
	Rank hookonce.Rank
	// Vouched is a fingerprint of the secret that verified the event. 0: no signature vouches for it.
	Vouched int16
	// LogicalKey is equal in logical duplicates: events that say the same under different keys. Empty: none.
	LogicalKey string
	// DropLogicalDuplicate stores the event without deliveries if it is the later of two logical duplicates. The
	// delivery of the first stands for it, and is re-driven like by a copy. So where a source drops any, its
	// events must have a LogicalKey in common only if they have the same Destinations.
	DropLogicalDuplicate bool
	// CellMap is the number of the map of cells by which the event belongs here, or [AnyCellMap] or [CopiesOnly]. 0: whoever
	// accepts it knows of no cells, and a store that has a map refuses it. See [CellKeeper].
	CellMap int64
}

// Ref names the event by its source and key.
func (e *Event) Ref() hookonce.Ref { return hookonce.Ref{Source: e.Source, Key: e.Key} }

// Lines returns the header lines that are stored with the event: Header and Facts.
func (e *Event) Lines() []byte {
	if len(e.Facts) == 0 {
		return e.Header
	}
	return slices.Concat(e.Header, e.Facts)
}

// Origin says what the first attempts at the event follow.
func (e *Event) Origin() Origin {
	if e.Listed {
		return OriginReconciled
	}
	return OriginFresh
}

// Size is what the event counts towards a bound on memory, in bytes.
func (e *Event) Size() int64 { return int64(len(e.Header) + len(e.Facts) + len(e.Body)) }

// HasLogicalKey reports whether the event takes part in the comparison of logical keys. One without a key
// of its own does not: nothing says whether it is a logical duplicate or a copy.
func (e *Event) HasLogicalKey() bool { return e.LogicalKey != "" && e.Key != "" && !Coalesces(e.Key) }

// Waits reports whether e adds nothing to a stored event whose deliveries to the given destinations are
// still to come.
func (e *Event) Waits(coming map[string]bool) bool {
	for _, d := range e.Destinations {
		if !coming[d] {
			return false
		}
	}
	return len(e.Destinations) > 0
}

// TakesIn reports whether next adds nothing to e, which says that something changed and is stored with it, so that none of its
// deliveries has begun.
func (e *Event) TakesIn(next *Event) bool {
	coming := make(map[string]bool, len(e.Destinations))
	for _, d := range e.Destinations {
		coming[d] = true
	}
	return next.Waits(coming) || len(e.Destinations) == 0 && len(next.Destinations) == 0
}

// maxDigest is the longest digest that a store keeps, in bytes.
const maxDigest = 32

// Validate returns an error that wraps [hookonce.ErrInvalidRef] unless every store can hold the
// event's texts. Stores call it for each event and put the error into its [Result].
func (e *Event) Validate() error {
	if err := e.Ref().Validate(); err != nil {
		return err
	}
	if len(e.Digest) > maxDigest {
		return fmt.Errorf("%w: the digest has %d bytes, %d at most", hookonce.ErrInvalidRef, len(e.Digest), maxDigest)
	}
	if err := e.validateListed(); err != nil {
		return err
	}
	if !plainText(e.Type) {
		return fmt.Errorf("%w: the event type is not UTF-8 or contains NUL", hookonce.ErrInvalidRef)
	}
	if err := e.validateNames(); err != nil {
		return err
	}
	for _, d := range e.Destinations {
		if d == "" || !plainText(d) {
			return fmt.Errorf("%w: the destination %q is empty, not UTF-8 or contains NUL", hookonce.ErrInvalidRef, d)
		}
	}
	return nil
}

// validateListed checks what comes from a list: without a key of its own it would be new in every run, and a digest
// would make a conflict of each webhook that says the same in other bytes.
func (e *Event) validateListed() error {
	switch {
	case !e.Listed:
		return nil
	case e.Key == "" || Coalesces(e.Key):
		return fmt.Errorf("%w: an event from the provider's list needs a key of its own", hookonce.ErrInvalidRef)
	case len(e.Digest) > 0:
		return fmt.Errorf("%w: an event from the provider's list has no digest", hookonce.ErrInvalidRef)
	}
	return nil
}

// validateNames checks what is compared like a key, and has its form.
func (e *Event) validateNames() error {
	for _, name := range []string{e.Resource, e.LogicalKey} {
		if name == "" {
			continue
		}
		if err := (hookonce.Ref{Source: e.Source, Key: name}).Validate(); err != nil {
			return fmt.Errorf("the resource or the logical key: %w", err)
		}
	}
	return nil
}

// plainText reports whether a text column of every database takes s.
func plainText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// GroupOf names the ordering group of a resource: what the deliveries about it to one destination share. Sources do not share
// one, because two of them can give their objects the same names. Without a resource there is none. No source's name has
// a slash, so that no two groups have one name.
func GroupOf(source, resource string) string {
	if resource == "" {
		return ""
	}
	return source + "/" + resource
}

// NewerSQL is the condition under which the row n of the newest ranks, of the same destination, makes stale the event in the row e
// of events. Programs before version 17 of the schema named the resource alone, and no kind: then the event that had the rank
// tells of which source it is, and any kind will do.
const NewerSQL = `n.rank > e.rank AND coalesce(n.rank_kind = e.rank_kind, true)
	AND n.resource IN (e.source || '/' || e.resource, e.resource) AND (n.resource = e.source || '/' || e.resource OR EXISTS (
		SELECT 1 FROM {{.}}events o WHERE o.id = n.event_id AND o.source = e.source AND o.resource = e.resource))`

// Group names the event's ordering group.
func (e *Event) Group() string { return GroupOf(e.Source, e.Resource) }

// Record is an event as a store gets it to be stored: with what was decided here about it. The store keeps
// nothing of the record itself.
type Record struct {
	*Event
	// ID is the time-ordered identifier under which the event is stored if it is new. See [IDs].
	ID int64
	// Hold are those of Destinations whose deliveries are leased to the caller at once instead of left to
	// [Worker.Take].
	Hold []string
	// Ordered are those of Destinations, none of them in Hold, whose deliveries of the [Event.Group] follow
	// each other.
	Ordered []string
	// Bypassed says that destinations have taken the event already, past the store; they are not among Destinations. Of an event
	// that is stored already nothing begins again: see [Accepter.RecordBypassed].
	Bypassed bool
}

// Unrouted reports whether the event is delivered nowhere, because no route wanted it.
func (r *Record) Unrouted() bool { return len(r.Destinations) == 0 && !r.Bypassed }

// Status says what [Accepter.Accept] did with an event.
type Status string

// The statuses, in the words of the Hookonce-Status header.
const (
	Accepted  Status = "accepted"
	Duplicate Status = "duplicate"
	Conflict  Status = "conflict" // a duplicate key whose digest differs; the first copy stands
	Unkeyed   Status = "unkeyed"  // accepted without a key

	Unprotected Status = "unprotected" // delivered past the store, which is unavailable
)

// Result is what became of accepting one event.
type Result struct {
	Status Status
	// ID is the event under which the key is stored: the record's own if it is new.
	ID int64
	// Done reports, for a duplicate, that the event has no open delivery.
	Done bool
	// Redriven reports that failed or dead deliveries of the event were made due by this copy.
	Redriven bool
	// LogicalDuplicateOf is, for an accepted event, the earlier one that has its logical key. 0: there is none.
	LogicalDuplicateOf int64
	// LogicalDuplicateKey is the key of that one.
	LogicalDuplicateKey string
	// Err is set when the database refused this row; then nothing of it was stored.
	Err error
}

// Dropped reports whether e, which is new, was stored without deliveries because of an earlier logical
// duplicate.
func (r Result) Dropped(e *Event) bool { return r.LogicalDuplicateOf != 0 && e.DropLogicalDuplicate }

// Receipt returns what kind of copy a result is about, empty if the event is new.
func (r *Result) Receipt() ReceiptKind {
	switch {
	case r.Err != nil:
		return ""
	case r.Status == Conflict: // and whatever begins again because of it: two contents under one key are what somebody must see
		return ReceiptConflict
	case r.Redriven:
		return ReceiptRedriven
	case r.Status == Duplicate:
		return ReceiptDuplicate
	}
	return ""
}

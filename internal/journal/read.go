package journal

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Records is the side of a store that answers people: what happened to an event, and let it happen
// again. Implementations: journal/pg and journal/sqlite; journaltest has the conformance suite.
//
// Methods are safe for concurrent use. A method that writes is one transaction, durable when it returns
// without an error; an error means that nothing is known about the outcome. Times come from the caller.
type Records interface {
	// List returns the events that match, newest first, from those below the identifier before (0:
	// from the newest on), at most limit of them. It looks at no more than [MaxScan] events, so a page
	// may be short, or empty, although others follow: Page.Next says so. Whatever is accepted meanwhile
	// neither repeats nor hides an event of a later page.
	List(ctx context.Context, f Filter, before int64, limit int) (Page, error)

	// Contents calls see with the header and the body of each of the events, in any order, as far as they are
	// kept, and stops at its first error. What see gets is its own until it returns.
	Contents(ctx context.Context, ids []int64, see func(id int64, header, body []byte) error) error

	// Find returns the identifier of the event that has a key in a source, or [ErrNoEvent].
	Find(ctx context.Context, source, key string) (int64, error)

	// History returns all that is known about one event, or [ErrNoEvent].
	History(ctx context.Context, id int64) (*History, error)

	// Open counts the deliveries that are not done, by destination and state, in this order.
	Open(ctx context.Context) ([]OpenCount, error)

	// Sighted records when copies of events came. Of each event and kind the store keeps [MaxSightings]
	// rows, the last of which sums up what came later. What has no event any more is left out.
	Sighted(ctx context.Context, seen []Sighting) error

	// Replay makes deliveries begin again, those of at most limit events after the identifier r.After,
	// oldest first. See [Replay] for which. In the same transaction the audit record r.Audit is written,
	// or continued, unless nothing begins again. With DryRun it only counts.
	//
	// Only what is failed or dead at this moment is made due, and only what has no row is made anew, under
	// a token above all earlier ones: of a delivery that is pending or processing nothing changes, and no
	// two replays make the same delivery.
	Replay(ctx context.Context, r Replay, limit int) (Replayed, error)

	// SetPaused pauses a destination or resumes it, and leaves an audit record if that changed anything.
	SetPaused(ctx context.Context, p Pause, paused bool) (changed bool, err error)

	// Pauses returns the destinations that are paused, by name.
	Pauses(ctx context.Context) ([]Pause, error)

	// Announce records what a gateway says of itself in place of what it said before, and forgets those that
	// were last seen before forget. It need not be durable: gateways say it again.
	Announce(ctx context.Context, g Gateway, forget time.Time) error

	// Withdraw forgets a gateway.
	Withdraw(ctx context.Context, id string) error

	// Gateways returns those that are not forgotten, the longest running first.
	Gateways(ctx context.Context) ([]Gateway, error)

	// Audits returns what operators did, newest first, from those below the number before (0: from the
	// newest on), at most limit of them.
	Audits(ctx context.Context, before int64, limit int) ([]Audit, error)
}

// ErrNoEvent says that the journal has no such event, or not any more.
var ErrNoEvent = errors.New("journal: there is no such event")

// Bounds of what is read at once.
const (
	// MaxScan is how many events are looked at for one page.
	MaxScan = 20_000
	// MaxAttempts is how many attempts of one event a [History] has, the latest ones.
	MaxAttempts = 200
	// MaxSightings is how many sightings of one kind are kept of an event.
	MaxSightings = 20
)

// Filter chooses events. The zero Filter matches all; every field that is set narrows it.
type Filter struct {
	Source string `json:"source,omitempty"`
	// Type is a pattern for the event's type: text in which * stands for any characters.
	Type string `json:"type,omitempty"`
	// Resource is what the event is about, whole as [Entry] has it, or one of the parts of which it was made
	// with hookonce.JoinKey: see [MatchResource].
	Resource string `json:"resource,omitempty"`
	// State matches events with a delivery in that state, or, [Done], without an open delivery.
	State State `json:"state,omitempty"`
	// Destination restricts what State looks at to the deliveries to it, and matches events that were
	// ever attempted there or are to be.
	Destination string `json:"destination,omitempty"`
	// Seen matches events of which a copy of that kind came.
	Seen Sight `json:"seen,omitempty"`
	// Since and Until bound when the event was accepted, to the millisecond: from Since on, and before
	// Until. Zero: no bound.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// Window returns the identifiers that can match: from first on, and below end.
func (f *Filter) Window() (first, end int64) {
	first, end = boundary(f.Since), maxID
	if !f.Until.IsZero() {
		end = boundary(f.Until)
	}
	return first, end
}

// boundary is FirstID for a time that people name: those that no identifier reaches are beyond all.
func boundary(t time.Time) int64 {
	if t.UnixMilli()-idEpoch >= maxID>>(writerBits+counterBits) {
		return maxID
	}
	return FirstID(t)
}

// IDTime returns when the event with an identifier was accepted, to the millisecond.
func IDTime(id int64) time.Time { return time.UnixMilli(id>>(writerBits+counterBits) + idEpoch) }

// maxID is above every identifier.
const maxID = 1<<63 - 1

// MatchType reports whether an event type matches the pattern of a [Filter].
func MatchType(pattern, kind string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return kind == pattern
	}
	if len(kind) < len(first)+len(last) || !strings.HasPrefix(kind, first) || !strings.HasSuffix(kind, last) {
		return false
	}
	kind = kind[len(first) : len(kind)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(kind, part)
		if !found {
			return false
		}
		kind = rest
	}
	return true
}

// MatchResource reports whether a resource is the one that is meant, or has it as a part, such as an object that
// is scoped by its tenant. A part that is looked for inside another one is found too.
func MatchResource(want, resource string) bool {
	return resource == want || strings.Contains(resource, ResourcePart(want))
}

// ResourcePart is how a part stands in a resource that has several.
func ResourcePart(part string) string { return strconv.Itoa(len(part)) + ":" + part }

// Page is a part of a list of events.
type Page struct {
	Events []Summary
	// Next is where the list goes on: below this identifier. 0: it ends here.
	Next int64
}

// Summary is what a list says about an event.
type Summary struct {
	ID         int64
	Source     string
	Key        string // empty: unkeyed
	Type       string
	ReceivedAt time.Time
	Resource   string
	Rank       int64
	Twin       int64      // the earlier event for the same change; 0: none
	HasBody    bool       // false: it was deleted, and the event cannot be delivered again
	Unrouted   bool       // no route wanted it when it came; there may be deliveries that somebody replayed to
	Deliveries []Delivery // that are not done, by destination
}

// State returns the state of the event as a whole: that of the delivery that needs most attention.
func (s *Summary) State() State {
	for _, state := range []State{Dead, Failed, Processing, Pending} {
		for _, d := range s.Deliveries {
			if d.State == state {
				return state
			}
		}
	}
	return Done
}

// Unrouted says of an event that none of its source's routes led anywhere when it came.
const Unrouted = "no route wanted it"

// Delivery is what is known about one event and destination.
type Delivery struct {
	EventID     int64
	Destination string
	State       State
	Token       int64     // attempts begun so far, and the fence
	Tries       int       // attempts since it was accepted or last re-driven
	Due         time.Time // pending, failed: the next try; processing: the end of the lease; else zero
	LastError   string
	Forced      bool   // replayed although it was done
	Resource    string // set: deliveries of it follow each other
}

// Attempt is one try at a delivery that came to an end.
type Attempt struct {
	Destination string
	Token       int64
	State       State // what it made of the delivery: done, failed or dead
	Status      int   // HTTP status of the answer; 0: there was none
	Error       string
	Started     time.Time
	Duration    time.Duration
	Answer      []byte // its first bytes
}

// History is all that is known about an event.
type History struct {
	Summary
	// Size is that of the body in bytes; 0 if there is none any more.
	Size int64
	// Finished are the deliveries that are done, by destination, as far as their attempts are kept.
	Finished []Delivery
	// Attempts are the latest ones, oldest first, and at most [MaxAttempts].
	Attempts []Attempt
	// Sightings are when later copies came, oldest first.
	Sightings []Sighting
}

// OpenCount counts deliveries.
type OpenCount struct {
	Destination string
	State       State
	Count       int64
	// Oldest is when the oldest of the events was accepted, to the millisecond.
	Oldest time.Time
}

package journal

import (
	"time"
)

// Bounds of what is read at once.
const (
	// MaxScan is how many events are looked at for one page.
	MaxScan = 20_000
	// MaxAttempts is how many attempts of one event a [History] has, the latest ones.
	MaxAttempts = 200
	// MaxReceipts is how many receipts of one kind are kept of an event.
	MaxReceipts = 20
)

// Page is a part of a list of events.
type Page struct {
	Events []Summary
	// Next is where the list goes on: below this identifier. 0: it ends here.
	Next int64
}

// NewPage returns the page of the first limit events that one look found. more says that the look stopped at an
// identifier, and there may be others below it.
func NewPage(found []Summary, limit int, more bool, stopped int64) Page {
	switch {
	case len(found) > limit:
		return Page{found[:limit], found[limit-1].ID}
	case more:
		return Page{found, stopped}
	}
	return Page{Events: found}
}

// Summary is what a list says about an event.
type Summary struct {
	ID                 int64
	Source             string
	Key                string // empty: unkeyed
	Type               string
	ReceivedAt         time.Time
	Resource           string
	Rank               int64
	LogicalDuplicateOf int64      // the earlier event for the same change; 0: none
	HasBody            bool       // false: it was deleted, and the event cannot be delivered again
	Vouched            int16      // a fingerprint of the secret that verified it; 0: no signature vouches for it
	Unrouted           bool       // no route wanted it when it came; there may be deliveries that somebody replayed to
	Listed             bool       // it was stored from the provider's list: no webhook had brought it
	Deliveries         []Delivery // that are not done, by destination
}

// Arrival is the least that tells which event came.
type Arrival struct {
	ID           int64
	Source, Type string
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

// History is all that is known about an event.
type History struct {
	Summary
	// Size is that of the body in bytes; 0 if there is none any more.
	Size int64
	// Finished are the deliveries that are done, by destination, as far as their attempts are kept.
	Finished []Delivery
	// Attempts are the latest ones, oldest first, and at most [MaxAttempts].
	Attempts []Attempt
	// Duplicates are when later copies came, oldest first.
	Duplicates []DuplicateReceipt
}

// OpenCount counts deliveries.
type OpenCount struct {
	Destination string
	State       State
	Count       int64
	// Oldest is when the oldest of the events was accepted, to the millisecond.
	Oldest time.Time
	// Since is since when the one waits that waits longest, by [WaitsSince]. It is to come where all of them were put off.
	Since time.Time
}

// WaitsSince returns since when deliveries of a destination in one state wait. What a replay began again when it was dead or done
// was put off on purpose, and its event may be days old: unless it is dead again, it waits since it was due then, however often
// it is put off afterwards. accepted is the oldest event of the others, 0 for none, and received when that was; replayed is when
// the first that began again was due, zero for none.
func WaitsSince(accepted int64, received, replayed time.Time) (since time.Time) {
	if accepted == 0 {
		return replayed
	}
	since = AcceptedAt(accepted, received)
	if !replayed.IsZero() && replayed.Before(since) {
		return replayed
	}
	return since
}

// ByState adds up destinations.
func ByState(backlog []OpenCount) map[State]int64 {
	open := map[State]int64{}
	for _, c := range backlog {
		open[c.State] += c.Count
	}
	return open
}

// Stats are row counts.
type Stats struct {
	// Open counts deliveries by state, and Backlog by destination as well.
	Open    map[State]int64
	Backlog []OpenCount
	// Events is the number of events in the journal, possibly an estimate.
	Events int64
	// Rows estimates the rows of other kinds, where the store can tell without reading the tables.
	Rows map[Kind]int64
	// Bytes is what the tables take on the disk, with their indexes and what else is in the same file; 0 if that
	// is not known.
	Bytes int64
}

package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// MaxKeys is how many keys a [Ledger] is asked about at once.
const MaxKeys = 1000

// MaxMissing is how many events a [Report] lists. All of them are counted.
const MaxMissing = 10_000

// DefaultLag is how old an event is before it can be missing: it may be under way.
const DefaultLag = 10 * time.Minute

// Ledger is what is on record.
type Ledger interface {
	// Known returns what is on record of the keys of a source, by key. A key that is not on record is not in the result. One
	// query; there are at most [MaxKeys] keys, each once.
	Known(ctx context.Context, source string, keys []string) (map[string]Known, error)
}

// Known is what is on record of one key.
type Known struct {
	// ID is the event's, in the journal. Empty for claims.
	ID string
	// Received is when it arrived, or was stored from a list.
	Received time.Time
	// Listed is set if it was stored from a list, and no webhook has brought it since.
	Listed bool
	// Status says what became of it, in the words of the record.
	Status string
	// Unfinished says that it arrived and is not done, and Error why, as far as that is recorded.
	Unfinished bool
	Error      string
}

// Options is what a run is given. Source, Provider, Token, Ledger and Since are required.
type Options struct {
	// Source is the name that the keys belong to.
	Source string
	// Provider is the source's, whose specification has a [spec.Reconcile].
	Provider *spec.Provider
	// With are the settings that the specification asks for: see [spec.Reconcile.CheckSettings].
	With map[string]string
	// Token is the token of the sender's API.
	Token string

	// Ledger is what is on record.
	Ledger Ledger
	// Since and Until are the range of times, both included. Until is now where it is zero. A Since before the sender's window
	// is taken for the window's edge, which the report tells.
	Since, Until time.Time
	// Lag is how old an event is before it can be missing. Default [DefaultLag]; negative: none.
	Lag time.Duration
	// Remembered is how long the ledger remembers keys. Zero: for ever. An event that is older when it is looked up is not missing:
	// it may have come, and have been forgotten since.
	Remembered time.Duration
	// Types lists the event types that the webhook is subscribed to; one that ends in a star stands for all that begin so.
	// Events of others are counted and left alone. Empty: all are wanted.
	Types []string

	// Refused says why requests were refused that would have had one of the keys, as far as that is remembered. Nil: nobody
	// knows. At most [MaxKeys] keys.
	Refused func(ctx context.Context, keys []string) (map[string]string, error)
	// Hold is asked before anything is done about missing events, at most [MaxKeys] at a time. It says why nothing is to be done about
	// some of them, by their keys: they are [Held], and so is what is undated (see [Report]). Its error ends the doing: nothing is sent
	// again or stored from then on. Nil: nothing holds it up.
	Hold func(ctx context.Context, missing []Missing) (why map[string]string, err error)
	// OnlyDated has what is undated be no more than counted: where nobody looks at what is missing before something is done.
	OnlyDated bool
	// Asked reports whether the sender was asked before for an event that has no key: whether it came since nobody knows, so it is
	// [Redelivered], and not asked for again. Nil: no sender was.
	Asked func(Missing) bool
	// Redeliver has missing events sent again by the sender.
	Redeliver bool
	// GivenUp reports whether the sender was asked so often for an event that has a key that it is not asked again: the event has
	// [Failed]. A list of deliveries shows each that the sender makes as a new entry, so that its age alone ends nothing. Nil: no
	// event is.
	GivenUp func(Missing) bool
	// Ingest stores a missing event as one that was listed, and reports whether it did: false if its key is on record by now.
	// Its body, header and facts are the provider's own; Source is set, and there is no digest. Nil: nothing is stored. What
	// cannot be redelivered is not stored instead: exactly one of Redeliver and Ingest may be set.
	Ingest func(ctx context.Context, event hookonce.Event) (stored bool, err error)
	// Progress is told after each page and each action. Nil: nobody is.
	Progress func(Progress)

	// Now and Sleep are the clock. Default: the system's.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
	// Transport carries the requests. Default: [http.DefaultTransport].
	Transport http.RoundTripper
	// Log takes what is slow or tried again. Default: nothing is logged.
	Log *slog.Logger
}

// withDefaults fills in what is left out.
func (o Options) withDefaults() Options {
	o.Lag = max(cmp.Or(o.Lag, DefaultLag), 0)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.Until.IsZero() {
		o.Until = o.Now()
	}
	return o
}

// sleep waits, or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Delivery is what the sender says of the delivery of an event.
type Delivery string

// What the sender says.
const (
	// Unsaid: the sender does not say.
	Unsaid Delivery = ""
	// Delivered: the sender was told 2xx, by whomever it asked.
	Delivered Delivery = "delivered"
	// Undelivered: it was not, or not yet.
	Undelivered Delivery = "not delivered"
)

// Missing is an event that never arrived.
type Missing struct {
	// Key is the key that it would have. Empty in [Report.Undelivered].
	Key string `json:"key,omitempty"`
	// Type, Resource and Tenant are the event's, as far as the list says.
	Type     string `json:"type,omitempty"`
	Resource string `json:"resource,omitempty"`
	Tenant   string `json:"tenant,omitempty"`
	// Time is when it happened, or was delivered, as the list says. Zero: it does not.
	Time time.Time `json:"time,omitzero"`
	// Entry is the sender's own id of the entry.
	Entry string `json:"entry"`
	// Delivery is what the sender says.
	Delivery Delivery `json:"delivery,omitempty"`
	// Refused is why a request with this key was refused. Empty: none is remembered.
	Refused string `json:"refused,omitempty"`
	// Outcome is what was done about it. Empty: nothing was asked for, or it was not come to.
	Outcome Outcome `json:"outcome,omitempty"`
	// Why says why it failed, where it did.
	Why string `json:"why,omitempty"`
}

// Unfinished is an event that arrived and is not done.
type Unfinished struct {
	Key    string    `json:"key"`
	Type   string    `json:"type,omitempty"`
	Time   time.Time `json:"time,omitzero"`
	Status string    `json:"status"`
	// Error is why, as far as that is recorded.
	Error string `json:"error,omitempty"`
}

// Outcome is what was done about a missing event.
type Outcome string

// What was done.
const (
	// Redelivered: the sender was asked to send it again, and said that it would.
	Redelivered Outcome = "redelivered"
	// Stored: it was stored from the list.
	Stored Outcome = "stored"
	// Arrived: it came by itself in the meantime, and was not stored.
	Arrived Outcome = "arrived"
	// Elsewhere: it belongs to another cell, where it is missing as well, and was not stored: see Why.
	Elsewhere Outcome = "elsewhere"
	// Held: nothing is done about it, see Why.
	Held Outcome = "held"
	// Failed: see Why.
	Failed Outcome = "failed"
)

// Report is what a run found. Each listed event is counted in exactly one of Known, Missing, Young, Forgotten, Undated,
// Other and Unkeyed.
type Report struct {
	Source   string `json:"source"`
	Provider string `json:"provider"`
	// Since and Until are the range that was read; Settled is the time before which all events were compared and old enough
	// when they were.
	// With an error of [Run], it is Since.
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	Settled time.Time `json:"settled"`
	// Cut is set if Since was asked for that is before the sender's list begins. Window is how far that goes back; zero: the
	// sender does not say.
	Cut    bool          `json:"cut,omitempty"`
	Window time.Duration `json:"window,omitempty"`

	// Answered is when the first page was answered, by the sender's clock. Zero: it does not say. Ahead is
	// by how much our clock was ahead of that; zero: by a minute at most.
	Answered time.Time     `json:"-"`
	Ahead    time.Duration `json:"-"`

	// Pages and Entries are what was read; Repeated are entries that were read more than once.
	Pages    int `json:"pages"`
	Entries  int `json:"entries"`
	Repeated int `json:"repeated,omitempty"`

	// Listed are the events in the range. Each counts once, whatever the number of its entries.
	Listed int `json:"listed"`
	// Known are on record. Late of them were not at the first look.
	Known int `json:"known"`
	Late  int `json:"late,omitempty"`
	// NotDone of the known ones are not done, and Unfinished are the first [MaxMissing] of those.
	NotDone    int          `json:"not_done,omitempty"`
	Unfinished []Unfinished `json:"unfinished,omitempty"`
	// Missing are not on record. Refused of them came and were refused.
	Missing int `json:"missing"`
	Refused int `json:"refused,omitempty"`
	// RefusedUnknown says why nobody could be asked which of them were refused. Empty: somebody was asked.
	RefusedUnknown string `json:"refused_unknown,omitempty"`
	// Young are not on record and may be under way.
	Young int `json:"young,omitempty"`
	// Forgotten are not on record, and so old that they may have been: see [Options.Remembered].
	Forgotten int `json:"forgotten,omitempty"`
	// Undated are not on record, or not delivered, and the list does not say when they were made, or an event's own time alone says so
	// and is before Since, so that they may be from before it: see [Options.OnlyDated]. Without that they are Missing, or Unkeyed, as others are.
	Undated int `json:"undated,omitempty"`
	// Other are of types that are not wanted.
	Other int `json:"other,omitempty"`
	// Unkeyed have no key, so that nobody can say whether they arrived.
	Unkeyed int `json:"unkeyed,omitempty"`

	// Events are the missing ones, and Undelivered the unkeyed ones that the sender says it did not deliver: the first
	// [MaxMissing] of each.
	Events      []Missing `json:"events"`
	Undelivered []Missing `json:"undelivered,omitempty"`

	// Redelivered, Stored, Arrived, Elsewhere, Held and Failed count outcomes, and Failures the reasons of those that failed, fifty of them at most.
	Redelivered int            `json:"redelivered,omitempty"`
	Stored      int            `json:"stored,omitempty"`
	Arrived     int            `json:"arrived,omitempty"`
	Elsewhere   int            `json:"elsewhere,omitempty"`
	Held        int            `json:"held,omitempty"`
	Failed      int            `json:"failed,omitempty"`
	Failures    map[string]int `json:"failures,omitempty"`
}

// BeforeList is the error that tells of what was made before the sender's list begins, where that was asked for.
func (r *Report) BeforeList() error {
	return fmt.Errorf("what was made before %s could not be compared: the sender's list does not go back further", r.Since.UTC().Format(time.RFC3339))
}

// Progress is how far a run is.
type Progress struct {
	// Pages, Entries, Listed and Missing are those of the [Report] so far. Missing are those of the first look.
	Pages, Entries, Listed, Missing int
	// At is the time of the entry that was read last, zero if it has none.
	At time.Time
	// Done of Todo events were sent again or stored, or failed.
	Done, Todo int
}

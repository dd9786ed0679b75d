package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
)

// MissingKeeper is the side of a [Store] that remembers what never arrived, until it is over. [Reconciler.AdvanceMark] puts it
// there. An event is over when its key is on record, whoever brought it, when it is found to be on record in another cell, when
// somebody dismissed it, and when it expires.
type MissingKeeper interface {
	// Missing returns what never arrived at a source and is not over, oldest first by the time when it was found.
	Missing(ctx context.Context, q MissingQuery) ([]MissingEvent, error)

	// MissingCounts counts the same by source, in their order. A source at which nothing is missing has no count.
	MissingCounts(ctx context.Context, now time.Time) ([]MissingCount, error)

	// DismissMissing ends what is missing, leaves an entry of the audit log if that was something, and returns how much it was.
	// What was dismissed is not found again.
	DismissMissing(ctx context.Context, d Dismissal) (n int64, err error)
}

// MaxMissing is how many events of a source are remembered as missing, dismissed ones among them. More are counted.
const MaxMissing = 1000

// AskedGrace is how long an event that the provider was asked to send again does not count as missing: it is under way.
const AskedGrace = 10 * time.Minute

// RecordedWithin is how long after it was found what never arrived is on record at the latest. Nobody has seen what was found
// within that time before a list was read, or may not have.
const RecordedWithin = time.Minute

// MissingEvent is an event that a provider lists, and that was not on record when it was looked up.
type MissingEvent struct {
	// Key is that of the event. Empty: it has none, and Entry is what the provider calls it. Of one with a key, Entry is not
	// kept.
	Key, Entry string
	Type       string
	// Happened is when it happened, as the list says. Zero: it does not.
	Happened time.Time
	// Found is when it was found first, and Asked when the provider was first asked to send it again; zero: it was not.
	Found, Asked time.Time
	// Why says why it was refused, or could not be recovered. Empty: nobody knows.
	Why string
	// Expires is when nobody can tell any more whether it came.
	Expires time.Time
}

// ID is what the event is told apart by in its source, and whether that is a key.
func (m *MissingEvent) ID() (id string, keyed bool) {
	if m.Key != "" {
		return m.Key, true
	}
	return m.Entry, false
}

// Finding is what one run found. It is kept with [MarkAdvance].
type Finding struct {
	// At is when.
	At time.Time
	// Missing are those that are missing and were not stored. Each is once there.
	Missing []MissingEvent
	// Over are keys that are on record by now where the store does not see it, in another cell: what was missing of them is over.
	Over []string
	// Beyond is how many more there were, of which nothing is known but that they happened since From.
	Beyond int64
	From   time.Time
	// Settled is the time before which the run compared everything.
	Settled time.Time
	// Expires is when those expire.
	Expires time.Time
}

// UnderWay is how long before [Finding.Settled] an event happened that the provider was asked for, before it is counted where there
// is no room for it: a little less than the day for which the mark waits for such events.
const UnderWay = 23 * time.Hour

// Fit says what of a finding goes on record, when these are on record of the source already: those again, and as many others as
// there is room for. It counts the rest, and says since when they happened.
func (f *Finding) Fit(source string, has func(id string, keyed bool) bool, kept int) (put []MissingEvent, beyond int64, from time.Time) {
	beyond, from = f.Beyond, f.From
	for _, m := range f.Missing {
		id, keyed := m.ID()
		switch {
		case id == "" || (hookonce.Ref{Source: source, Key: id}).Validate() != nil: // no store can hold it
		case has(id, keyed):
			put = append(put, m.kept())
			continue
		case kept < MaxMissing:
			kept++
			put = append(put, m.kept())
			continue
		case !m.Asked.IsZero() && m.Happened.After(f.Settled.Add(-UnderWay)):
			continue // it is under way, and found again if it does not come
		}
		beyond++
		if at := m.Happened; !at.IsZero() && at.Before(from) {
			from = at
		}
	}
	return put, beyond, from
}

// kept is the event in the form that every store can hold.
func (m MissingEvent) kept() MissingEvent {
	if m.Key != "" {
		m.Entry = ""
	}
	m.Type = strings.ToValidUTF8(strings.ReplaceAll(m.Type, "\x00", ""), "\uFFFD")
	if m.Why != "" {
		m.Why = hookonce.Failure{Err: errors.New(m.Why)}.Text()
	}
	return m
}

// MissingQuery says what [MissingKeeper.Missing] returns.
type MissingQuery struct {
	Source string
	// Now is the time.
	Now time.Time
	// Limit is how many are returned at most.
	Limit int
}

// MissingCount says how many events of a source are missing.
type MissingCount struct {
	Source string
	// Kept are on record, and Beyond are at least so many more that there was no room for.
	Kept, Beyond int64
	// First is when the first of them was found; those beyond count as found when they were counted last.
	First time.Time
}

// Dismissal ends what is missing, because somebody looked at it.
type Dismissal struct {
	Source string
	// One of these says what it ends.
	//
	// IDs are those of events: their keys or, where they have none, their entries. They count whether the provider was asked for
	// them or not.
	IDs []string
	// FoundBefore ends all that was found before then and stood in a list of that moment, and the count of those beyond unless a run
	// counted since: what nobody has seen nobody dismisses.
	FoundBefore time.Time
	// Since ends only the count of those beyond, if they all happened then or later: a comparison from then on has left nothing
	// missing.
	Since time.Time

	At         time.Time
	By, Reason string
}

// AskedBefore is the time since when a provider was asked for what is left alone.
func (d *Dismissal) AskedBefore() time.Time {
	if len(d.IDs) > 0 {
		return d.At
	}
	return d.FoundBefore.Add(-AskedGrace)
}

// named is how many of the events that were dismissed an entry of the audit log names.
const named = 20

// Record is the entry of the audit log about so many, of which these have a name.
func (d *Dismissal) Record(n int64, ids []string) Audit {
	a := Audit{At: d.At, By: d.By, Reason: d.Reason, Action: ActionDismiss, Filter: d.Source, Count: n}
	slices.Sort(ids)
	ids = ids[:min(len(ids), named)]
	if len(ids) > 0 {
		a.Filter += " " + strings.Join(ids, ", ")
	}
	if more := n - int64(len(ids)); more > 0 && len(ids) > 0 {
		a.Filter += fmt.Sprintf(" and %d more", more)
	}
	return a
}

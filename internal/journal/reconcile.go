package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
)

// Reconciler is the side of a [Store] for those who compare it with what providers list: what is known of many keys at
// once, and how far each source was compared.
type Reconciler interface {
	// Known says what is on record of events by their keys, in one statement. Keys are those of one source, in the form
	// that [Event] has, at most [MaxKnown]; with more it fails with [ErrTooManyKeys]. What is not in the answer has no
	// event: it never came, or what was known of it was purged. So nothing follows for an event that the provider made
	// longer ago than the keys of its source are remembered (the IDs of its [Period] in the [Retention]; 0: for ever):
	// whoever asks bounds the times by that. A key that no store can hold, such as an empty one, is not known, either.
	Known(ctx context.Context, source string, keys []string) (map[string]Known, error)

	// KnownElsewhere says where keys are on record under other sources than this one, and than strangers, which are left out as
	// well: of several, the one that had it last. Keys are as for Known, and the first [MaxSources] sources are looked at.
	KnownElsewhere(ctx context.Context, source string, strangers, keys []string) (map[string]Elsewhere, error)

	// HasBefore reports whether there is an event of the source among the last [MaxScan] events that were received before a
	// time.
	HasBefore(ctx context.Context, source string, before time.Time) (bool, error)

	// TakeMark leases the mark of a source to a holder until lease, under the next token, unless another holder has it
	// and its lease lasts at now, as [Mark.Held] says: taken is false then, and the mark that of the other one. The mark of a
	// source that has none is made. Who holds it already gets it again, because a holder may not have heard of the first time.
	TakeMark(ctx context.Context, source, holder string, now, lease time.Time) (m Mark, taken bool, err error)

	// AdvanceMark moves the lease of a mark to a.Lease, and Through to a.Through unless it is there or beyond and a.Back is not
	// set, if the token is current, and reports whether it is: false says that somebody else has taken the mark since, and nothing changed.
	// That a lease has run out is no matter as long as nobody took it. What the run found missing, a.Found, goes on record
	// in the same transaction, so that Through never passes what nobody remembers, and what is over is forgotten.
	AdvanceMark(ctx context.Context, source string, token int64, a MarkAdvance) (held bool, err error)

	// ReleaseMark gives a mark back with the result of the run, in place of that of the run before, if the token is
	// current, and reports whether it was. Through stays where it is.
	ReleaseMark(ctx context.Context, source string, token int64, r MarkResult) (held bool, err error)

	// Marks returns all marks, by source. Those of sources that are configured no more are among them.
	Marks(ctx context.Context) ([]Mark, error)
}

// MaxKnown is how many keys [Reconciler.Known] is asked for at once.
const MaxKnown = 1000

// ErrTooManyKeys says that more than [MaxKnown] keys were asked for at once.
var ErrTooManyKeys = errors.New("journal: too many keys at once")

// Known is what is on record of an event.
type Known struct {
	ID int64
	// ReceivedAt is when its first copy came or, if it is Listed, when it was stored.
	ReceivedAt time.Time
	// Listed says that it was stored from the provider's list, and Verified that a webhook brought it, then or later.
	Listed, Verified bool
	// State says how its deliveries stand: [Dead] or [Failed] if one of them is, else [Pending] if one is still to be made
	// or under way, else [Done]. They are those of an earlier logical duplicate where these stand for it.
	State State
}

// MaxSources is how many sources [Reconciler.KnownElsewhere] looks at.
const MaxSources = 1000

// Elsewhere is where a key is on record under another source.
type Elsewhere struct {
	Source     string
	ReceivedAt time.Time
}

// Askable returns the keys of a source that a store may have, each once, or [ErrTooManyKeys].
func Askable(source string, keys []string) ([]string, error) {
	if len(keys) > MaxKnown {
		return nil, fmt.Errorf("%w: %d, and %d at most", ErrTooManyKeys, len(keys), MaxKnown)
	}
	seen := make(map[string]bool, len(keys))
	askable := make([]string, 0, len(keys))
	for _, key := range keys {
		if key == "" || seen[key] || (hookonce.Ref{Source: source, Key: key}).Validate() != nil {
			continue
		}
		seen[key] = true
		askable = append(askable, key)
	}
	return askable, nil
}

// Standing is the state of an event whose open deliveries are in these states, for [Known.State].
func Standing(open []State) State {
	worst := Done
	for _, s := range open {
		switch {
		case s == Dead:
			return Dead
		case s == Failed:
			worst = Failed
		case worst == Done:
			worst = Pending
		}
	}
	return worst
}

// Mark says how far a source was compared with what its provider lists. One process at a time works on it, which holds
// it under a lease, with nothing open in the store meanwhile.
type Mark struct {
	Source string
	// Through is the time, of the provider's, up to which all was compared. Zero: nothing was.
	Through time.Time
	// Token is the fence: it grows each time that the mark is taken.
	Token int64
	// Holder is who has it until Lease; empty: nobody. A lease that ran out is as good as none.
	Holder string
	Lease  time.Time
	// Last is what came of the last run that ended. Zero: none has.
	Last MarkResult
}

// Held reports whether another than holder has the mark at now, so that nobody takes it who would have it until lease. A lease that
// ends [MuchAhead] of that was given by a clock that was ahead, and counts as none: it would last for as long as that clock was.
func (m Mark) Held(holder string, now, lease time.Time) bool {
	return m.Holder != "" && m.Holder != holder && now.Before(m.Lease) && !m.Lease.After(lease.Add(MuchAhead))
}

// MarkAdvance is how far a run has come.
type MarkAdvance struct {
	// Through is as in [Mark]: zero, or a time before that of the mark, leaves it.
	Through time.Time
	// Back has Through count also if it is before that of the mark.
	Back bool
	// Lease is until when the run holds the mark.
	Lease time.Time
	// Found is what the run found missing. Nil: it is not told yet.
	Found *Finding
}

// MarkResult is what came of a run.
type MarkResult struct {
	Ended time.Time
	// Listed is how many events the provider listed, Missing how many of them were not on record, and Recovered how many of
	// those were stored, or asked for again.
	Listed, Missing, Recovered int64
	// Error is why the run ended early, without secrets; cut to [hookonce.MaxErrorLen] bytes. Empty: it went through.
	Error string
}

// Kept returns the result in the form that every store can hold.
func (r MarkResult) Kept() MarkResult {
	if r.Error != "" {
		r.Error = hookonce.Failure{Err: errors.New(r.Error)}.Text()
	}
	return r
}

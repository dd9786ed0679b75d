package api

import (
	"context"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// MissingEvent is an event that a sender lists, and that never arrived.
type MissingEvent struct {
	Key      string     `json:"key,omitempty" doc:"Missing: it has none."`
	Entry    string     `json:"entry,omitempty" doc:"What its sender calls it, where it has no key."`
	Type     string     `json:"type,omitempty"`
	Happened *time.Time `json:"happened_at,omitempty" doc:"As the list says. Missing: it does not."`
	Found    time.Time  `json:"found_at" doc:"When a gateway found it first."`
	Asked    *time.Time `json:"asked_at,omitempty" doc:"When its sender was first asked to send it again. Missing: it was not."`
	Why      string     `json:"why,omitempty" doc:"Why it was refused, or could not be recovered. Missing: nobody knows."`
	Expires  time.Time  `json:"expires_at" doc:"When nobody can tell any more whether it came, so that it is listed no longer."`
}

// MissingList is what never arrived at a source.
type MissingList struct {
	Events []MissingEvent `json:"events" nullable:"false" doc:"The first found first, 1000 at most."`
	// NotCompared keeps an empty list from reassuring anybody.
	NotCompared string `json:"not_compared,omitempty" doc:"Why gateways do not compare the source by themselves, and what to do: nobody looks for what is missing. Missing: they do."`
	// Through is how far an empty list says anything.
	Through *time.Time `json:"compared_through,omitempty" doc:"All that the sender made until then was looked for, except what the audit log names as not compared. Missing: nothing was yet."`
	Beyond  int64      `json:"beyond,omitempty" doc:"At least so many more: no more than 1000 are remembered of a source."`
	// FoundBefore is by the clock of this gateway, and lies as far back as a list may lack what was found.
	FoundBefore time.Time `json:"found_before" doc:"To dismiss all of this: what was found in the minute before, or since, stands."`
}

type missingInput struct {
	Name string `path:"name" maxLength:"64" doc:"Of a source."`
}

func (a *api) missing(ctx context.Context, in *missingInput) (*answer[MissingList], error) {
	now := a.opt.Now()
	out := &answer[MissingList]{MissingList{Events: []MissingEvent{}, FoundBefore: now.Add(-journal.RecordedWithin).UTC()}}
	err := a.ask(ctx, readTime, func(ctx context.Context) error {
		all, err := a.opt.Records.Missing(ctx, journal.MissingQuery{Source: in.Name, Now: now, Limit: journal.MaxMissing})
		if err != nil {
			return err
		}
		for i := range all {
			out.Body.Events = append(out.Body.Events, newMissingEvent(&all[i]))
		}
		counts, err := a.opt.Records.MissingCounts(ctx, now)
		i := slices.IndexFunc(counts, func(c journal.MissingCount) bool { return c.Source == in.Name })
		if i >= 0 {
			out.Body.Beyond = counts[i].Beyond
		}
		if err != nil {
			return err
		}
		marks, err := a.opt.Records.Marks(ctx)
		for _, m := range marks {
			if m.Source == in.Name && !m.Through.After(m.Last.Ended) { // the mark of a source that begins is ahead
				out.Body.Through = known(m.Through)
			}
		}
		source, unknown := a.sourceAt(in.Name)
		if out.Body.NotCompared = source.NotCompared; unknown != nil && i >= 0 {
			out.Body.NotCompared = "it is not configured any more" // and has some on record
		} else if err == nil {
			err = unknown
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// known returns a time that there is.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func newMissingEvent(m *journal.MissingEvent) MissingEvent {
	return MissingEvent{Key: m.Key, Entry: m.Entry, Type: m.Type, Happened: known(m.Happened), Found: m.Found.UTC(), Asked: known(m.Asked), Why: m.Why, Expires: m.Expires.UTC()}
}

// Dismiss says what is not to be told of any more.
type Dismiss struct {
	Keys        []string  `json:"keys,omitempty" maxItems:"1000" doc:"Those of the events or, where they have none, what their sender calls them."`
	All         bool      `json:"all,omitempty" doc:"All that a list showed, in place of keys: found_before says which."`
	FoundBefore time.Time `json:"found_before,omitzero" doc:"With all: that of the list. What was found then or later stands, because nobody has seen it, and so does what its sender had been asked for less than ten minutes before."`
	Reason      string    `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for the audit log."`
}

type dismissInput struct {
	Name string `path:"name" maxLength:"64" doc:"Of a source."`
	Body Dismiss
}

// Dismissed says how many events are not told of any more.
type Dismissed struct {
	Dismissed int64 `json:"dismissed" doc:"0: none of them is missing at the source, or not any more."`
}

func (a *api) dismiss(ctx context.Context, in *dismissInput) (*answer[Dismissed], error) {
	d := &in.Body
	switch {
	case !plain(d.Reason):
		return nil, invalid("body.reason", "this is not readable text", nil)
	case d.All == (len(d.Keys) > 0):
		return nil, invalid("body.keys", "name some, or say all: true in their place", nil)
	case d.All == d.FoundBefore.IsZero():
		return nil, invalid("body.found_before", "say that of the list with all: true, so that nothing is dismissed that nobody has seen, and leave it out with keys", nil)
	}
	for _, key := range d.Keys {
		if keys, err := journal.Askable(in.Name, []string{key}); err != nil || len(keys) == 0 {
			return nil, invalid("body.keys", "one of them is no key of an event", nil)
		}
	}
	out := &answer[Dismissed]{}
	err := a.ask(ctx, writeTime, func(ctx context.Context) (err error) {
		out.Body.Dismissed, err = a.opt.Records.DismissMissing(ctx, journal.Dismissal{Source: in.Name, IDs: d.Keys, FoundBefore: d.FoundBefore, At: a.opt.Now(), By: actor(ctx), Reason: d.Reason})
		return err
	})
	if err != nil {
		return nil, err
	}
	a.opt.Logger.InfoContext(ctx, "api: events that never arrived are dismissed", "source", in.Name, "count", out.Body.Dismissed, "by", actor(ctx), "reason", d.Reason)
	return out, nil
}

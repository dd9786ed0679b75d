package journal

import (
	"errors"
	"slices"
	"time"
)

// Retention says how long finished events are kept. Events with open deliveries, dead ones included, are
// always kept whole.
type Retention struct {
	// Period holds for every source that is not among Sources.
	Period
	Sources map[string]Period
	// Audits is for how long the record of what operators did is kept. Zero: for ever.
	Audits time.Duration
}

// Period says how long the parts of an event are kept, counted from when it was received. Zero keeps them
// for ever.
type Period struct {
	// IDs is for how long a key is remembered, with when its copies came. It must be at least twice as long
	// as the provider redelivers, or a late copy counts as new. What else is left of the event goes with it.
	IDs time.Duration
	// Bodies is for how long headers and bodies are kept: an event without cannot be delivered again.
	Bodies time.Duration
	// Attempts is for how long it is known where the event was delivered, and how that went. A replay of
	// what is done needs it as much as the body.
	Attempts time.Duration
	// Answers is for how long a copy gets the answer of its first, where senders wait for answers.
	Answers time.Duration
}

// Of returns how long a kind is kept. Ranks are kept as long as ids.
func (p Period) Of(k Kind) time.Duration {
	switch k {
	case KindBodies:
		return p.Bodies
	case KindAttempts:
		return p.Attempts
	case KindAnswers:
		return p.Answers
	}
	return p.IDs
}

// Longer returns the sources of which a kind is kept longer than of those that have no period of their own,
// by name.
func (r *Retention) Longer(k Kind) (sources []string) {
	usual := r.Of(k)
	for name, p := range r.Sources {
		if own := p.Of(k); usual > 0 && (own == 0 || own > usual) {
			sources = append(sources, name)
		}
	}
	slices.Sort(sources)
	return sources
}

// Longest returns how long the longest keep a kind.
func (r *Retention) Longest(k Kind) time.Duration {
	most := r.Of(k)
	for _, p := range r.Sources {
		if own := p.Of(k); most == 0 || own == 0 {
			most = 0
		} else {
			most = max(most, own)
		}
	}
	return most
}

// Validate reports a period that is negative.
func (r *Retention) Validate() error {
	all := []time.Duration{r.Audits}
	for _, k := range Kinds() {
		all = append(all, r.Of(k))
		for _, p := range r.Sources {
			all = append(all, p.Of(k))
		}
	}
	if slices.Min(all) < 0 {
		return errors.New("journal: a period of the retention is negative; 0 keeps for ever")
	}
	return nil
}

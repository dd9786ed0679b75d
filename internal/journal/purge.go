package journal

import (
	"slices"
	"time"
)

// Kind is a part of the journal that is kept for a time of its own.
type Kind string

// The kinds.
const (
	KindIDs      Kind = "ids"      // events, by which copies are recognised, with all that is left of them
	KindBodies   Kind = "bodies"   // headers and bodies
	KindAttempts Kind = "attempts" // what came of each attempt
	KindAnswers  Kind = "answers"  // answers that senders waited for
	KindRanks    Kind = "ranks"    // the newest rank of each resource that was delivered
	KindAudits   Kind = "audits"   // what operators did
)

// Kinds returns all of them.
func Kinds() []Kind {
	return []Kind{KindIDs, KindBodies, KindAttempts, KindAnswers, KindRanks, KindAudits}
}

// Purge is one step of a sweep: it looks at the events behind After, oldest first, and deletes one kind of
// what is left of those that were received before a time and have no open delivery.
type Purge struct {
	Kind Kind
	// Before is when the youngest event was received, exclusively, that is looked at. Of audits it is when
	// they were made.
	Before time.Time
	// Sources are those whose events are meant or, with Others, those whose are not. Ranks and audits
	// belong to no source.
	Sources []string
	Others  bool
	// After is where the step before has ended. 0: at the beginning.
	After int64
	// Limit is how many events the step may change. It looks at ten times as many at most.
	Limit int
	// Ahead has the step look at events whose identifiers are [MuchAhead] of Now, and at no others. Nobody can read off them how
	// old the events are: they are as old as is stored of when they were received.
	Ahead bool
	Now   time.Time
}

// Purged is what came of one [Purge].
type Purged struct {
	// Deleted counts the rows of the kind that went.
	Deleted int
	// Next is where the next step goes on.
	Next int64
	// More says that there may be more to do now. Otherwise time has to pass first.
	More bool
	// Busy says that another process was purging, so that nobody looked.
	Busy bool
}

// Found is an event that a [Purge] looks at.
type Found struct {
	ID     int64
	Source string
	Open   bool // it has an open delivery
	// Received is when it was received; of an event of which only the rows are left that the step is about it is zero.
	Received time.Time
}

// Look is how many events one step looks at.
func (p *Purge) Look() int { return 10 * max(p.Limit, 0) }

// Range returns the identifiers to look at: above after and below end.
func (p *Purge) Range() (after, end int64) {
	if p.Ahead {
		return max(p.After, BeyondID(p.Now)-1), maxID
	}
	return p.After, FirstID(p.Before)
}

// Aged leaves of the events that were found in [Purge.Range] those that Choose may choose from. Identifiers that are ahead still
// grow, so the first event that is too young ends it; what came while the clock was ahead is passed, because nobody knows its age.
func (p *Purge) Aged(found []Found) []Found {
	if !p.Ahead {
		return found
	}
	for i := range found {
		switch f := &found[i]; {
		case f.Received.After(p.Now.Add(MuchAhead)):
			f.Open = true // it stays like one
		case !f.Received.Before(p.Before):
			return found[:i]
		}
	}
	return found
}

// Choose returns those of the events that were found, which are sorted, whose rows go, and what is known
// then about the next step.
func (p *Purge) Choose(found []Found) (old []int64, rest Purged) {
	rest = Purged{Next: p.After, More: len(found) > 0 && len(found) >= p.Look()}
	for i, f := range found {
		rest.Next = f.ID
		if f.Open || slices.Contains(p.Sources, f.Source) == p.Others {
			continue
		}
		if old = append(old, f.ID); len(old) == p.Limit {
			rest.More = rest.More || i+1 < len(found)
			break
		}
	}
	return old, rest
}

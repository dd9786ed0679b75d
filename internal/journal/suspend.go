package journal

import (
	"cmp"
	"slices"
	"time"
)

// Rest says how little is brought for a destination that is ill, or recovers. The zero value ends it.
type Rest struct {
	// Until is when something is taken from the store again. Before that nothing is held but, unless Strict,
	// a few of those events that are accepted meanwhile and are of no source and type in Avoid.
	Until  time.Time
	Strict bool
	// Most bounds how many deliveries are held at once, but for those few. Zero: the share of the destination does.
	Most int
	// Pick has the store look for the deliveries that are most likely to be taken by the destination, see
	// [Want]; else those come that have been due for longest.
	Pick bool
	// Avoid are events that failed.
	Avoid []Class
}

// Class is what an event has in common with others that a destination may treat alike.
type Class struct{ Source, Type, Resource string }

// strangers bounds the deliveries of fresh events that are held in addition to [Rest.Most].
const strangers = 3

// Suspend makes the journal bring little for a destination, or nothing, as r says, by the decision of whoever
// delivers. The zero Rest ends that. What is held already stays with its receiver, who can hand it back. Only
// destinations that [Options.Destinations] names can be suspended.
//
// Suspend does not block and lasts as long as the process. Safe for concurrent use.
func (j *Journal) Suspend(destination string, r Rest) {
	j.held.suspend(destination, r)
	j.schedule.note(r.Until)
}

func (h *holds) suspend(destination string, r Rest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.shares[destination]; s != nil {
		s.rest = r
	}
}

// avoids reports whether an event of this source and type failed.
func (r *Rest) avoids(source, kind string) bool { return avoids(r.Avoid, source, kind) }

func avoids(avoid []Class, source, kind string) bool {
	return slices.ContainsFunc(avoid, func(k Class) bool { return k.Source == source && k.Type == kind })
}

// Choice is a delivery that may be taken, because it is due and its turn has come.
type Choice struct {
	EventID int64
	Lane    string // the resource whose deliveries follow each other; empty: in no lane
	Untried bool   // no attempt was made
	Class
}

// Choose returns at most n of the candidates, the best first: those of a source and type that is not in Avoid,
// then those that were never tried, of another source, of another resource, and of all these the newest.
// The order of all is changed.
func (w *Want) Choose(all []Choice, n int) []Choice {
	slices.SortFunc(all, func(a, b Choice) int {
		return cmp.Or(cmp.Compare(w.doubts(&a), w.doubts(&b)), cmp.Compare(b.EventID, a.EventID))
	})
	return all[:min(max(n, 0), len(all))]
}

// doubts is the higher the less likely the destination is to take a delivery.
func (w *Want) doubts(c *Choice) (doubts int) {
	if avoids(w.Avoid, c.Source, c.Type) {
		doubts += 8
	}
	if !c.Untried {
		doubts += 4
	}
	for _, k := range w.Avoid {
		if k.Source == c.Source {
			doubts |= 2
			if k.Resource == c.Resource && c.Resource != "" {
				doubts |= 1
			}
		}
	}
	return doubts
}

// PickAmong is how many deliveries a store looks at from each end of what is due, and somewhere between, for
// [Want.Pick].
const PickAmong = 128

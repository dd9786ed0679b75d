package journal

import (
	"cmp"
	"slices"
)

// Wanted says what one Take may lease.
type Wanted struct {
	// Deliveries is how many there may be.
	Deliveries int
	// Bytes bounds the headers and bodies: none is taken after those that weigh as much, so that the
	// last may go beyond it. The store loads no others. Zero: no bound.
	Bytes int64
	// Destinations are those whose deliveries are taken, in the order in which they come to their turn
	// when there is more than Deliveries or Bytes have room for. A store may have those without Pick all come to it at the
	// place of the first. Nil: all of them.
	Destinations []Want
}

// Want is the part of one destination in a [Wanted].
type Want struct {
	Destination string
	Deliveries  int
	Bytes       int64 // like that of [Wanted]
	// Stale asks for [Work.Stale].
	Stale bool
	// Pick asks for those that [Want.Choose] prefers, among the [PickAmong] that have been due for longest, as many
	// that have been for the shortest time, as many from somewhere between, and of ordering groups those at either end.
	Pick  bool
	Avoid []Class
}

// Class is what an event has in common with others that a destination may treat alike.
type Class struct{ Source, Type, Resource string }

func avoids(avoid []Class, source, kind string) bool {
	return slices.ContainsFunc(avoid, func(k Class) bool { return k.Source == source && k.Type == kind })
}

// Choice is a delivery that may be taken, because it is due and its turn has come.
type Choice struct {
	EventID       int64
	OrderingGroup string // the resource whose deliveries follow each other; empty: in none
	Untried       bool   // no attempt was made
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

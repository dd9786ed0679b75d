package hookonce

import "github.com/hookonce/hookonce/internal/rendezvous"

// Cell is one of several databases that keys are divided among, or the gateways on it.
type Cell struct {
	// Name tells it from the others, and takes part in the hash: a cell that is renamed owns other keys.
	Name string
	// Weight is its share of the keys, in proportion to those of the others. 0: it owns none, and is on its way out.
	Weight uint32
}

// Route returns the cell that a key belongs to: the same one in every process, whatever the order of the cells. A cell
// that is added, removed or weighted anew moves only the keys that it gains or loses. Without a cell of any weight the
// result is the zero Cell.
//
// It is for applications that divide their own database. The claim of an event, its effects and whatever they are
// guarded by have to be in one transaction, so what is routed is what these have in common: mostly an account or a
// tenant, and not the key of the event. Parts of a key are told apart: ("ab", "c") is another key than ("a", "bc"). The
// gateway's cells own Route(cells, source, key); of a source for which they keep an order, compare ranks or drop logical duplicates
// they own Route(cells, source, scope) where an event has a scope ([Event.Scope]).
//
// The method is specified in docs/cells.md and never changes. Whoever changes the cells moves keys, and has to see to it
// that a claim is looked for where it was made, until it may be forgotten. Route is a pure function, safe for concurrent
// use; for three cells it takes about two microseconds.
func Route(cells []Cell, key ...string) Cell {
	nodes := make([]rendezvous.Node, len(cells))
	for i, c := range cells {
		nodes[i] = rendezvous.Node(c)
	}
	i := rendezvous.Owner(nodes, key...)
	if i < 0 {
		return Cell{}
	}
	return cells[i]
}

package cells

import (
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// state is what a cell knows of cells at a moment. It is not changed.
type state struct {
	chain *Chain
	// confirmed has by cell, by number, since when the cell accepts nothing under maps below it. Sorted by number.
	confirmed map[string][]journal.CellConfirmation
	reachable []Cell // see peers, this cell among them
	former    []Asked
	// now is the database's clock at the moment read of ours.
	now, read time.Time
}

// clock is the earlier of a gateway's clock and that of the database: one that is ahead would end the asking before what is
// asked for is forgotten. What passed since the database was asked is measured, and not told by a clock that may be set.
func (s *state) clock(own time.Time) time.Time {
	if s.now.IsZero() {
		return own
	}
	if now := s.now.Add(time.Since(s.read)); now.Before(own) {
		return now
	}
	return own
}

func newState(r journal.CellRecord) (*state, error) {
	chain, err := NewChain(r.Maps)
	if err != nil {
		return nil, err
	}
	s := &state{chain: chain, confirmed: map[string][]journal.CellConfirmation{}, now: r.Now, read: time.Now()}
	for _, c := range r.Confirmations {
		s.confirmed[c.Cell] = append(s.confirmed[c.Cell], c)
	}
	s.reachable = chain.cells()
	s.former = s.formerOwners()
	return s, nil
}

// fencedAt says since when a cell is known to accept nothing under the map of that number, or below.
func (s *state) fencedAt(cell string, number int64) (at time.Time, known bool) {
	for _, c := range s.confirmed[cell] {
		if c.Number > number && (!known || c.At.Before(at)) {
			at, known = c.At, true
		}
	}
	return at, known
}

// Asked is a cell that owned keys by an earlier map, and has to be asked for those that it owned.
type Asked struct {
	Cell string
	Map  int64 // by which it owned them
	// Until is when what it accepted is forgotten everywhere; zero: for ever, or not known yet, because the cell
	// has not Confirmed that it accepts nothing under that map any more.
	Until     time.Time
	Confirmed bool
}

// formerOwners are all that owned keys by an earlier map and were not given up, newest map first. Until is when the cell confirmed
// that it accepts nothing under that map.
func (s *state) formerOwners() (all []Asked) {
	newest := s.chain.Newest()
	if newest == nil {
		return nil
	}
	for _, m := range slices.Backward(s.chain.maps[:len(s.chain.maps)-1]) {
		for _, c := range m.Cells {
			if c.Weight > 0 && !newest.lost(c.Name) {
				at, known := s.fencedAt(c.Name, m.Number)
				all = append(all, Asked{Cell: c.Name, Map: m.Number, Until: at, Confirmed: known})
			}
		}
	}
	return all
}

// asked returns whom a cell has to ask at now for keys that are remembered for so long (0: for ever), newest map first.
func (s *state) asked(self string, remembered time.Duration, now time.Time) (all []Asked) {
	for _, a := range s.former {
		if a.Cell == self {
			continue
		}
		if a.Confirmed && remembered > 0 {
			if a.Until = a.Until.Add(remembered); !now.Before(a.Until) {
				continue
			}
		} else {
			a.Until = time.Time{}
		}
		all = append(all, a)
	}
	return all
}

// formers returns the cells that have to be asked for a key, each once.
func (s *state) formers(asked []Asked, self, source, key, scope string) (cells []string) {
	var m *Map
	owner := ""
	for _, a := range asked {
		if m == nil || m.Number != a.Map {
			m = s.chain.numbered(a.Map)
			owner = m.Owner(source, key, scope)
		}
		if a.Cell == owner && owner != self && !slices.Contains(cells, owner) {
			cells = append(cells, owner)
		}
	}
	return cells
}

// peers are all cells that are talked to: those of any map that were not given up, as the newest map that has them says.
func (s *state) peers(self string) []Cell { return others(s.reachable, self) }

// others returns all cells but one.
func others(all []Cell, self string) []Cell {
	return slices.DeleteFunc(slices.Clone(all), func(c Cell) bool { return c.Name == self })
}

// peer returns the cell of that name.
func (s *state) peer(name string) (Cell, bool) {
	i := slices.IndexFunc(s.reachable, func(c Cell) bool { return c.Name == name })
	if i < 0 {
		return Cell{}, false
	}
	return s.reachable[i], true
}

package year

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/journal"
)

// cellFact is what the ledger has of a cell.
type cellFact struct {
	number int64     // of the newest map that its store has
	lost   time.Time // when it was; zero: it is not
	given  bool      // operators have given it up
}

// home is the cell of a process, or of a machine.
func (l *ledger) home(who string) string {
	machine, _, _ := strings.Cut(who, "/")
	return l.homes[machine]
}

func (l *ledger) cell(name string) *cellFact {
	if l.cells[name] == nil {
		l.cells[name] = new(cellFact)
	}
	return l.cells[name]
}

// isLost reports whether a cell is lost.
func (l *ledger) isLost(name string) bool {
	return l.cells[name] != nil && !l.cells[name].lost.IsZero()
}

// raised books that the store of a cell has another map.
func (l *ledger) raised(who, cell string, number int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.cell(cell); number > c.number {
		c.number = number
		l.harm = append(l.harm, harm{"map/raised", time.Now()})
		l.counts["map/raised"]++
		l.logLocked(who, "map "+strconv.FormatInt(number, 10)+" is in the store of "+cell)
	}
}

// lost books that a cell is lost.
func (l *ledger) lost(cell string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cell(cell).lost = time.Now()
	l.counts["cell/lost"]++
	l.logLocked("plan", "the cell "+cell+" is lost for good")
}

// forgets books that operators give a lost cell up: what it has on record is new elsewhere from now on, and is known to nobody.
func (l *ledger) forgets(cell string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cell(cell).given = true
	l.logLocked("operator", "gives the cell "+cell+" up")
	for _, rec := range l.ids {
		rec.lost = rec.lost || rec.cell == cell
	}
}

// placed checks that what a cell accepts as new belongs to it, by the map that its store has then.
func (l *ledger) placed(who string, rec *record, e *journal.Record) {
	c := l.cells[rec.cell]
	if rec.cell == "" || rec.past && e.Source == open {
		return
	}
	if e.CellMap != c.number {
		l.breaksLocked("nothing is accepted under an old map", "%s has stored %s under map %d, and the store of %s has map %d", who, rec.event, e.CellMap, rec.cell, c.number)
	}
	if e.Key == "" || ordered(e.Source) {
		return // it stays where it came, or is placed by what it is about
	}
	if owner := hookonce.Route(l.routes(c.number), e.Source, e.Key).Name; owner != rec.cell && owner != "" {
		l.breaksLocked("a key is stored by its owner", "%s has stored %s in %s, and by map %d it belongs to %s", who, rec.event, rec.cell, c.number, owner)
	}
}

// plannedMoves checks what a plan says of keys that move: those of events do, between the cells that it names and no others.
func (l *ledger) plannedMoves(p gateway.CellsPlan, to []hookonce.Cell) {
	l.mu.Lock()
	defer l.mu.Unlock()
	type way struct{ from, to string }
	named := map[way]bool{}
	for _, m := range p.Moves {
		named[way{m.From, m.To}] = true
		if !slices.ContainsFunc(to, func(c hookonce.Cell) bool { return c.Name == m.To && c.Weight > 0 }) {
			l.breaksLocked("a plan says what moves", "it has %.3f of the keys move to %s, which owns nothing by map %d", m.Share, m.To, p.To.Number)
		}
	}
	from := l.routes(p.From.Number)
	for name, e := range l.events {
		a, b := hookonce.Route(from, e.Source, name).Name, hookonce.Route(to, e.Source, name).Name
		if a != b && !named[way{a, b}] {
			l.breaksLocked("a plan says what moves", "%s moves from %s to %s, and the plan from map %d to %d has no such move: %v", name, a, b, p.From.Number, p.To.Number, p.Moves)
		}
	}
}

// excused reports whether an event may be on record a second time: operators have given up the cell that had it, or it is told
// of after it went past a store that was away, and the map changed meanwhile. It counts how often.
func (l *ledger) excused(old, rec *record, e *journal.Record) bool {
	switch {
	case old.lost:
		l.counts["cells/doubled in the window"]++
	case rec.past && e.Source == open && rec.cell != old.cell && l.disturbed(time.Now(), time.Since(e.ReceivedAt)+10*time.Minute, 0, "map/"):
		l.counts["cells/doubled past the fence"]++
	default:
		return false
	}
	return true
}

// mapSettles is how long a change of the map may have senders told to come again, and calmSince how long anything else may.
const (
	mapSettles = 15 * time.Second
	calmSince  = time.Minute
)

// reasoned checks that a sender is not turned away by a cell without a reason.
func (l *ledger) reasoned(f *fact, name string, got reply, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.cells) == 0 || f.Direct || f.Source == synchronous || l.skewed {
		return
	}
	now := time.Now()
	undecided := func(c *cellFact) bool { return !c.lost.IsZero() && !c.given }
	for _, c := range l.cells {
		if undecided(c) {
			return
		}
	}
	if l.disturbed(now, mapSettles, 0, "map/") || l.disturbed(now, calmSince, 0, "disk/", "process/", "wire/", "network/", "night", "clock/", "stall") {
		return
	}
	if l.crowded(now) {
		return
	}
	l.breaksLocked("a 503 has a reason", "%s was answered %d (%v), and nothing was disturbed", name, got.status, err)
}

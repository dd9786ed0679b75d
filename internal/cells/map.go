// Package cells divides events among several databases. A cell is one database with its gateways, and every key belongs to
// one of them, by a numbered map that all cells come to know of.
//
// [Cells.Place] says for the events of a request which are accepted here, and which by another cell, to which
// [Cells.Forward] hands the request as it came. No transaction spans two cells. Three rules make that one claim per key:
//
//   - Two cells act together only under the same map: whoever has the older one gets the newer one first, and stores it.
//   - A map that is stored is a fence ([journal.CellKeeper]): from then on nothing is accepted under an older one.
//   - A key is handled where it is on record. Before the owner by the newest map accepts one that another cell owned by an
//     earlier map, it asks that cell, which answers after its fence is as new as the question. It asks for as long as
//     that cell may remember the key.
//
// What is answered to a question was therefore accepted before the fence of the one who answers, or never will be there.
package cells

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/rendezvous"
)

// Cell is one of the cells of a map.
type Cell struct {
	Name   string `json:"name"`
	URL    string `json:"url"` // where its gateways listen for other cells
	Weight uint32 `json:"weight"`
}

// Lost is a cell that an operator gave up: it is asked nothing any more.
type Lost struct {
	Cell  string    `json:"cell"`
	Since time.Time `json:"since"` // what it acknowledged after that is known to nobody
}

// Map says which cell owns which events. It is not changed once it has a number.
type Map struct {
	Number   int64    `json:"number"`
	Previous string   `json:"previous,omitempty"` // the digest of the map before; empty in the first
	Cells    []Cell   `json:"cells"`              // by name
	ByScope  []string `json:"by_scope,omitempty"` // the sources whose events are placed by what they are about, by name
	Lost     []Lost   `json:"lost,omitempty"`     // by cell

	nodes   []rendezvous.Node
	byScope map[string]bool
	content string
	digest  string
	id      string // see Chain.ID
}

// Owner returns the name of the cell that an event belongs to; empty: any. It belongs by its key, or by its scope where the
// source's destinations keep an order, compare ranks or drop logical duplicates, so that those are in one cell. One without a
// key stays where it came, whatever its scope: handed on again it would be stored again.
func (m *Map) Owner(source, key, scope string) string {
	if key == "" {
		return ""
	}
	place := key
	if m.byScope[source] && scope != "" {
		place = scope
	}
	if i := rendezvous.Owner(m.nodes, source, place); i >= 0 {
		return m.nodes[i].Name
	}
	return ""
}

// cell returns the cell of that name.
func (m *Map) cell(name string) (Cell, bool) {
	i := slices.IndexFunc(m.Cells, func(c Cell) bool { return c.Name == name })
	if i < 0 {
		return Cell{}, false
	}
	return m.Cells[i], true
}

// lost reports whether a cell was given up.
func (m *Map) lost(name string) bool {
	return slices.ContainsFunc(m.Lost, func(l Lost) bool { return l.Cell == name })
}

// maxContent bounds the text of a map in bytes, and maxCells how many cells it has.
const (
	maxContent = 64 << 10
	maxCells   = 64
)

// parse reads a map from its content.
func parse(content string) (*Map, error) {
	if len(content) > maxContent {
		return nil, fmt.Errorf("cells: a map has %d bytes, %d at most", len(content), maxContent)
	}
	m := &Map{content: content, digest: digestOf(content), byScope: map[string]bool{}}
	if err := json.Unmarshal([]byte(content), m); err != nil {
		return nil, fmt.Errorf("cells: a map that cannot be read: %w", err)
	}
	if m.Number < 1 || len(m.Cells) == 0 || len(m.Cells) > maxCells {
		return nil, fmt.Errorf("cells: map %d has %d cells", m.Number, len(m.Cells))
	}
	m.id = fmt.Sprintf("%d %s", m.Number, m.digest)
	for _, c := range m.Cells {
		m.nodes = append(m.nodes, rendezvous.Node{Name: c.Name, Weight: c.Weight})
	}
	for _, s := range m.ByScope {
		m.byScope[s] = true
	}
	return m, nil
}

func digestOf(content string) string {
	d := sha256.Sum256([]byte(content))
	return hex.EncodeToString(d[:16])
}

// encode fills in the content and the digest.
func (m *Map) encode() (*Map, error) {
	slices.SortFunc(m.Cells, func(a, b Cell) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(m.ByScope)
	slices.SortFunc(m.Lost, func(a, b Lost) int { return cmp.Compare(a.Cell, b.Cell) })
	data, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return parse(string(data))
}

// Configured is a map as it stands in a configuration.
type Configured struct {
	Number  int64
	Cells   []Cell
	Sources []string // all that there are
	ByScope []string // those of them that are placed by scope
}

// ErrConflict says that there are two maps of one number.
var ErrConflict = errors.New("cells: two maps have one number and differ")

// conflict says how a configured map differs from the one of its number. What the configuration has no source for does not
// count.
func (c *Configured) conflict(m *Map) error {
	own := slices.Clone(c.Cells)
	slices.SortFunc(own, func(a, b Cell) int { return cmp.Compare(a.Name, b.Name) })
	if !slices.Equal(own, m.Cells) {
		return fmt.Errorf("%w: cells_map %d is on record with other cells (%s); raise cells_map to %d to introduce these", ErrConflict, m.Number, names(m.Cells), m.Number+1)
	}
	for _, s := range c.Sources {
		if by := slices.Contains(c.ByScope, s); by != m.byScope[s] {
			return fmt.Errorf("%w: the events of source %q belong to cells by their %s now, and did not when cells_map %d was introduced, because a destination keeps an order, compares ranks or drops logical duplicates, or does so no more; raise cells_map to %d",
				ErrConflict, s, map[bool]string{true: "scope", false: "key"}[by], m.Number, m.Number+1)
		}
	}
	return nil
}

func names(all []Cell) (text string) {
	for i, c := range all {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %s weight %d", c.Name, c.URL, c.Weight)
	}
	return text
}

// Chain are the maps that followed each other, from the oldest that is known to the newest. Each has the digest of the one
// before, so that equal digests of the newest say that all are equal. It is not changed.
type Chain struct {
	maps []*Map
}

// NewChain reads what a store has.
func NewChain(stored []journal.CellMap) (*Chain, error) {
	c := new(Chain)
	for _, s := range stored {
		m, err := parse(s.Content)
		if err != nil {
			return nil, err
		}
		if last := c.Newest(); last != nil && (m.Number != last.Number+1 || m.Previous != last.digest) {
			return nil, fmt.Errorf("%w: map %d does not follow map %d", ErrConflict, m.Number, last.Number)
		}
		if m.Number != s.Number {
			return nil, fmt.Errorf("%w: map %d is on record as %d", ErrConflict, m.Number, s.Number)
		}
		c.maps = append(c.maps, m)
	}
	return c, nil
}

// Newest returns the newest map, nil if there is none.
func (c *Chain) Newest() *Map {
	if c == nil || len(c.maps) == 0 {
		return nil
	}
	return c.maps[len(c.maps)-1]
}

// numbered returns the map of that number.
func (c *Chain) numbered(n int64) *Map {
	for _, m := range c.maps {
		if m.Number == n {
			return m
		}
	}
	return nil
}

// ID names the chain to another cell: the number and the digest of the newest map.
func (c *Chain) ID() string {
	m := c.Newest()
	if m == nil {
		return "0"
	}
	return m.id
}

// cells are those of all maps that were not given up, each as the newest map that has it says.
func (c *Chain) cells() (all []Cell) {
	for _, m := range slices.Backward(c.maps) {
		for _, o := range m.Cells {
			if !c.Newest().lost(o.Name) && !slices.ContainsFunc(all, func(p Cell) bool { return p.Name == o.Name }) {
				all = append(all, o)
			}
		}
	}
	return all
}

// contents are the maps as they are told to others.
func (c *Chain) contents() (all []string) {
	for _, m := range c.maps {
		all = append(all, m.content)
	}
	return all
}

// Next returns the map that follows, with what the configuration says. Cells that were given up stay so, unless it has them.
func (c *Chain) Next(next Configured, lost ...Lost) (*Map, error) {
	m := &Map{Number: 1, Cells: slices.Clone(next.Cells), ByScope: slices.Clone(next.ByScope)}
	if last := c.Newest(); last != nil {
		m.Number, m.Previous = last.Number+1, last.digest
		lost = append(lost, last.Lost...)
		for _, s := range last.ByScope {
			if !slices.Contains(next.Sources, s) {
				m.ByScope = append(m.ByScope, s)
			}
		}
	}
	for _, l := range lost {
		if _, back := m.cell(l.Cell); !back && !m.lost(l.Cell) {
			m.Lost = append(m.Lost, l)
		}
	}
	return m.encode()
}

// Forget returns the map that follows without a cell.
func (c *Chain) Forget(cell string, since time.Time) (*Map, error) {
	last := c.Newest()
	if last == nil {
		return nil, errors.New("cells: there is no map")
	}
	if all := c.cells(); !slices.ContainsFunc(all, func(o Cell) bool { return o.Name == cell }) {
		return nil, fmt.Errorf("cells: no map that counts has a cell %q; there are %s", cell, names(all))
	}
	next := Configured{Sources: last.ByScope, ByScope: last.ByScope}
	weight := uint32(0)
	for _, other := range last.Cells {
		if other.Name != cell {
			next.Cells = append(next.Cells, other)
			weight = max(weight, other.Weight)
		}
	}
	if weight == 0 {
		return nil, fmt.Errorf("cells: nobody would own anything without %q", cell)
	}
	return c.Next(next, Lost{Cell: cell, Since: since.UTC()})
}

// follow returns what another cell has and this chain has not, as maps for the store. It is nothing where the other one has less.
func (c *Chain) follow(theirs *Chain, now time.Time) ([]journal.CellMap, error) {
	last, other := c.Newest(), theirs.Newest()
	switch {
	case other == nil:
		return nil, nil
	case last != nil:
		low, of, in := last, theirs, "the other cell"
		if other.Number < last.Number {
			low, of, in = other, c, "this cell"
		}
		if same := of.numbered(low.Number); same == nil || same.digest != low.digest {
			return nil, fmt.Errorf("%w: map %d is another one in %s; maps have to be introduced with the same cells everywhere", ErrConflict, low.Number, in)
		}
	}
	var newer []journal.CellMap
	for _, m := range theirs.maps {
		if last == nil || m.Number > last.Number {
			newer = append(newer, journal.CellMap{Number: m.Number, Content: m.content, Since: now})
		}
	}
	return newer, nil
}

// chainOf reads maps that another cell told of.
func chainOf(contents []string) (*Chain, error) {
	var stored []journal.CellMap
	for _, text := range contents {
		m, err := parse(text)
		if err != nil {
			return nil, err
		}
		stored = append(stored, journal.CellMap{Number: m.Number, Content: text})
	}
	return NewChain(stored)
}

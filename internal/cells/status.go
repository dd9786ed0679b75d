package cells

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Status is how a cell stands among the others.
type Status struct {
	Self string
	Map  Map // its number is 0 if none is known
	// Peers are the other cells: those of the configuration where no map is known, of which any may own the keys.
	Peers []Peer
	// Told is the number of the map in the configuration.
	Told int64
	// Asked are the cells that have to be asked for keys, until those are forgotten that are remembered longest of all sources.
	Asked []Asked
}

// Peer is another cell.
type Peer struct {
	Cell
	Share  float64 // of the keys that it owns, from 0 to 1
	Fenced bool    // it accepts nothing under an earlier map than this cell's
	// Reached is what came of the last exchange; nil where it answered, or where there was none yet.
	Reached error
}

// Status says how the cell stands.
func (c *Cells) Status() Status {
	s := c.state.Load()
	out := Status{Self: c.opt.Self}
	told := c.told.Load()
	if told != nil {
		out.Told = told.Number
	}
	newest := s.chain.Newest()
	if newest == nil {
		if told != nil {
			for _, p := range others(told.Cells, c.opt.Self) {
				out.Peers = append(out.Peers, Peer{Cell: p, Reached: c.cameOf(p.Name)})
			}
		}
		return out
	}
	out.Map = *newest
	shares := newest.Shares()
	for _, p := range s.peers(c.opt.Self) {
		_, fenced := s.fencedAt(p.Name, newest.Number-1)
		out.Peers = append(out.Peers, Peer{Cell: p, Share: shares[p.Name], Fenced: fenced, Reached: c.cameOf(p.Name)})
	}
	longest := time.Duration(0)
	if told != nil {
		for _, source := range told.Sources {
			keep := c.opt.Remembered(source)
			if keep == 0 {
				longest = 0
				break
			}
			longest = max(longest, keep)
		}
	}
	out.Asked = s.asked(c.opt.Self, longest, s.clock(c.opt.Now()))
	return out
}

// cameOf is what came of the last exchange with a cell.
func (c *Cells) cameOf(cell string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reached[cell]
}

// Shares returns the share of the keys of each cell.
func (m *Map) Shares() map[string]float64 {
	sum := 0.
	for _, c := range m.Cells {
		sum += float64(c.Weight)
	}
	shares := map[string]float64{}
	for _, c := range m.Cells {
		shares[c.Name] = float64(c.Weight) / sum
	}
	return shares
}

// Move is a share of the keys that a change of the map moves.
type Move struct {
	From, To string
	Share    float64
}

// planKeys is how many keys a plan looks at.
const planKeys = 100_000

// Moves returns which shares of the keys would move from this map to another, the largest first, by looking at 100,000 keys that are
// the same each time: to within a third of a percent of all keys.
func (m *Map) Moves(to *Map) []Move {
	r := rand.New(rand.NewPCG(1, 1))
	count := map[[2]string]int{}
	for range planKeys {
		key := strconv.FormatUint(r.Uint64(), 36)
		if a, b := m.Owner("source", key, ""), to.Owner("source", key, ""); a != b {
			count[[2]string{a, b}]++
		}
	}
	var all []Move
	for way, n := range count {
		all = append(all, Move{way[0], way[1], float64(n) / planKeys})
	}
	slices.SortFunc(all, func(a, b Move) int {
		if a.Share != b.Share {
			if a.Share > b.Share {
				return -1
			}
			return 1
		}
		if a.From+a.To < b.From+b.To {
			return -1
		}
		return 1
	})
	return all
}

// Look reads the maps of the store, for somebody who looks on: nothing is introduced.
func Look(ctx context.Context, o Options) (*Cells, error) {
	c, err := read(ctx, o)
	if err == nil {
		c.told.Store(&o.Configured)
	}
	return c, err
}

// Reach exchanges maps with all other cells, so that [Cells.Status] says which of them answer.
func (c *Cells) Reach(ctx context.Context) { c.visitAll(ctx, c.state.Load().peers(c.opt.Self)) }

// Following is the map that would follow the newest with what is configured.
func (c *Cells) Following(told Configured) (*Map, error) { return c.state.Load().chain.Next(told) }

// Forget gives a cell up: what follows is a map without it, that the audit is about. Nobody asks it any more, so that what it
// has on record is new elsewhere.
func (c *Cells) Forget(ctx context.Context, cell string, since time.Time, audit journal.Audit) (*Map, error) {
	if cell == c.opt.Self {
		return nil, fmt.Errorf("cells: %q is the cell of this store; give it up from the store of another one", cell)
	}
	m, err := c.state.Load().chain.Forget(cell, since)
	if err != nil {
		return nil, err
	}
	if err := c.opt.Store.RaiseCellMap(ctx, journal.CellRaise{Cell: c.opt.Self, Maps: []journal.CellMap{{Number: m.Number, Content: m.content, Since: audit.At}}, Audit: &audit}); err != nil {
		return nil, err
	}
	if err := c.Refresh(ctx); err != nil {
		return nil, err
	}
	if now := c.state.Load().chain.numbered(m.Number); now == nil || now.digest != m.digest {
		return nil, fmt.Errorf("%w: somebody introduced map %d at this moment; look at it, and say it again", ErrConflict, m.Number)
	}
	return m, nil
}

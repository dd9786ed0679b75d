package journaltest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

var _ journal.CellKeeper = (*Memory)(nil)

// cellBook is what a store that is a cell keeps.
type cellBook struct {
	name      string // of the cell; empty: there is no map
	maps      []journal.CellMap
	confirmed []journal.CellConfirmation
}

// number is that of the newest map, 0 if there is none.
func (b *cellBook) number() int64 {
	if len(b.maps) == 0 {
		return 0
	}
	return b.maps[len(b.maps)-1].Number
}

// fenced refuses an entry that was placed by another map than the newest, unless it follows one of its key that was accepted
// in the same batch. Whether a copy alone may be accepted is asked where that is known.
func (m *Memory) fenced(e *journal.Record, before []*journal.Record, results []journal.Result) error {
	switch {
	case e.CellMap == journal.AnyCellMap, e.CellMap == journal.CopiesOnly, e.CellMap == m.cells.number():
		return nil
	case e.Key != "" && slices.ContainsFunc(before, func(b *journal.Record) bool {
		return b.Source == e.Source && b.Key == e.Key && results[slices.Index(before, b)].Err == nil
	}):
		return nil
	case e.CellMap == 0:
		return journal.ErrNoCells
	}
	return journal.ErrCellMap
}

// CellRecord implements [journal.CellKeeper].
func (m *Memory) CellRecord(ctx context.Context) (r journal.CellRecord, err error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return r, err
	}
	return journal.CellRecord{Maps: slices.Clone(m.cells.maps), Confirmations: slices.Clone(m.cells.confirmed), Now: m.clock()}, nil
}

func (m *Memory) clock() time.Time {
	if m.Now != nil {
		return m.Now()
	}
	return time.Now()
}

// CellName implements [journal.CellKeeper].
func (m *Memory) CellName(ctx context.Context) (string, error) {
	end, err := m.begin(ctx)
	defer end()
	return m.cells.name, err
}

// RaiseCellMap implements [journal.CellKeeper].
func (m *Memory) RaiseCellMap(ctx context.Context, r journal.CellRaise) error {
	end, err := m.begin(ctx)
	defer end()
	switch {
	case err != nil:
		return err
	case m.cells.name != "" && m.cells.name != r.Cell:
		return fmt.Errorf("%w: it is %q, and not %q", journal.ErrCellName, m.cells.name, r.Cell)
	case m.cells.number() == 0 && r.Fresh && len(m.events) > 0:
		return journal.ErrCellEvents
	}
	maps, newest := m.cells.maps, m.cells.number()
	for _, next := range r.Maps {
		same := slices.IndexFunc(m.cells.maps, func(c journal.CellMap) bool { return c.Number == next.Number })
		switch {
		case same >= 0 && m.cells.maps[same].Content != next.Content:
			return fmt.Errorf("%w: %d", journal.ErrOtherCellMap, next.Number)
		case next.Number <= m.cells.number():
			continue
		case newest > 0 && next.Number != newest+1:
			return fmt.Errorf("%w: map %d does not follow %d", journal.ErrCellMap, next.Number, newest)
		}
		maps, newest = append(maps, next), next.Number
	}
	if newest == m.cells.number() {
		return nil
	}
	m.cells.name, m.cells.maps = r.Cell, maps
	if r.Audit != nil {
		m.audit(*r.Audit)
	}
	return nil
}

// ConfirmCell implements [journal.CellKeeper].
func (m *Memory) ConfirmCell(ctx context.Context, c journal.CellConfirmation) error {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(m.cells.confirmed, func(o journal.CellConfirmation) bool { return o.Cell == c.Cell && o.Number == c.Number }) {
		return nil
	}
	if now := m.clock(); now.After(c.At) {
		c.At = now
	}
	m.cells.confirmed = append(m.cells.confirmed, c)
	slices.SortFunc(m.cells.confirmed, func(a, b journal.CellConfirmation) int {
		return cmp.Or(cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Number, b.Number))
	})
	return nil
}

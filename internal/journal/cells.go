package journal

import (
	"context"
	"errors"
	"time"
)

// CellKeeper is the side of a store that belongs to a cell: it keeps the maps that say which cell owns which events, and
// is the fence that nothing is accepted under an old one any more. Of the stores only Postgres has it; an event with a
// [Event.CellMap] is for such a store alone.
type CellKeeper interface {
	// CellRecord returns all that is kept of cells. It is read from the primary.
	CellRecord(ctx context.Context) (CellRecord, error)

	// RaiseCellMap stores the maps that are newer than the newest one, which follow it without a gap, and leaves the others
	// alone; a store without maps takes any number as the first. When it returns, everything that was accepted under an
	// earlier map can be read, and nothing more will be. An error that wraps [ErrCellMap] says that they do not follow. With
	// an audit, which may be nil, that is recorded in the same transaction, if anything was stored.
	RaiseCellMap(ctx context.Context, maps []CellMap, audit *Audit) error

	// ConfirmCell records since when a cell accepts nothing below a number, unless that is on record.
	ConfirmCell(ctx context.Context, c CellConfirmation) error
}

// CellRecord is what a store knows of cells.
type CellRecord struct {
	Maps          []CellMap // by number, without a gap
	Confirmations []CellConfirmation
}

// CellMap is a map of cells under its number. What it says is known to package cells.
type CellMap struct {
	Number  int64
	Content string
	Since   time.Time // when this store learned of it
}

// CellConfirmation says since when a cell is known to accept nothing under a map below Number.
type CellConfirmation struct {
	Cell   string
	Number int64
	At     time.Time
}

// CopiesOnly in [Event.CellMap] has an event accepted only if its key is on record.
const CopiesOnly = -1

// ErrCellMap says that an event was placed by a map that is not the store's newest, or that only a copy was to be accepted,
// and it is none. It was not stored: where it belongs has to be found anew.
var ErrCellMap = errors.New("journal: the event was placed by another map of cells than the store's")

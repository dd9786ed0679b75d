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

	// CellName returns the name of the cell that the store is, as the first map was stored with it; empty: the store has no map.
	// [UnreadCellName] says that there are maps and that the name may not be read.
	CellName(ctx context.Context) (string, error)

	// RaiseCellMap stores the maps that are newer than the newest one, which follow it without a gap, and holds the others
	// against those that are there; a store without maps takes any number as the first, and is the cell of that name from then
	// on. When it returns, everything that was accepted under an earlier map can be read, and nothing more will be. With an
	// audit, which may be nil, that is recorded in the same transaction, if anything was stored. Nothing is stored after an
	// error: [ErrCellMap] says that the maps do not follow, [ErrOtherCellMap] that another one has the number of one of them,
	// and [ErrCellName] that the store is another cell.
	RaiseCellMap(ctx context.Context, cell string, maps []CellMap, audit *Audit) error

	// ConfirmCell records since when a cell accepts nothing below a number, unless that is on record. A time that is before the
	// database's own is replaced by that: a clock that is late would end the asking early, for all.
	ConfirmCell(ctx context.Context, c CellConfirmation) error
}

// CellRecord is what a store knows of cells.
type CellRecord struct {
	Maps          []CellMap // by number, without a gap
	Confirmations []CellConfirmation
	Now           time.Time // the database's clock, when it was read
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

// UnreadCellName stands for the name of a cell that the store's role may not read.
const UnreadCellName = "?"

// Errors of maps.
var (
	// ErrOtherCellMap says that the store has another map under the number of one that was to be stored.
	ErrOtherCellMap = errors.New("journal: the store has another map of cells under this number")
	// ErrCellName says that the store is another cell than was said.
	ErrCellName = errors.New("journal: the store is another cell")
)

// CopiesOnly in [Event.CellMap] has an event accepted only if its key is on record.
const CopiesOnly = -1

// ErrCellMap says that an event was placed by a map that is not the store's newest, or that only a copy was to be accepted,
// and it is none. It was not stored: where it belongs has to be found anew.
var ErrCellMap = errors.New("journal: the event was placed by another map of cells than the store's")

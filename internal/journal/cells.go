package journal

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// CellKeeper is the side of a store that belongs to a cell: it keeps the maps that say which cell owns which events, and
// is the fence that nothing is accepted under an old one any more. Of the stores only Postgres has it; an event with a
// [Event.CellMap] is for such a store alone.
type CellKeeper interface {
	// CellRecord returns all that is kept of cells. It is read from the primary.
	CellRecord(ctx context.Context) (CellRecord, error)

	// CellName returns the name of the cell that the store is, as the first map was stored with it; empty: the store has no map.
	CellName(ctx context.Context) (string, error)

	// RaiseCellMap stores the maps that are newer than the newest one, which follow it without a gap, and holds the others
	// against those that are there; a store without maps takes any number as the first, and is the cell of that name from then
	// on. When it returns, everything that was accepted under an earlier map, or by who knows of none, can be read, and nothing
	// more will be. Nothing is stored after an error: [ErrCellMap] says that the maps do not follow, [ErrOtherCellMap] that
	// another one has the number of one of them, [ErrCellName] that the store is another cell, and [ErrCellEvents] that it
	// is not [CellRaise.Fresh].
	RaiseCellMap(ctx context.Context, r CellRaise) error

	// ConfirmCell records since when a cell accepts nothing below a number, unless that is on record. A time that is before the
	// database's own is replaced by that: a clock that is late would end the asking early, for all.
	ConfirmCell(ctx context.Context, c CellConfirmation) error
}

// CellRaise is what [CellKeeper.RaiseCellMap] stores.
type CellRaise struct {
	Cell string // that the store is
	Maps []CellMap
	// Fresh has a store that has no map refused unless it has no event either: others own keys by the first map.
	Fresh bool
	// Audit is recorded in the same transaction, if anything was stored. Nil: nothing is.
	Audit *Audit
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

// Errors of maps.
var (
	// ErrOtherCellMap says that the store has another map under the number of one that was to be stored.
	ErrOtherCellMap = errors.New("journal: the store has another map of cells under this number")
	// ErrCellName says that the store is another cell than was said.
	ErrCellName = errors.New("journal: the store is another cell")
	// ErrCellEvents says that a store that is to get its first map has events.
	ErrCellEvents = errors.New("journal: the store has events already")
)

// What [Event.CellMap] says beside a number.
const (
	// CopiesOnly has an event accepted only if its key is on record.
	CopiesOnly = -1
	// AnyCellMap has the store take it whatever its map is, and whether it has one: what it tells of has happened.
	AnyCellMap = -2
)

// ErrCellMap says that an event was placed by a map that is not the store's newest, or by none where there is one, or that only a
// copy was to be accepted, and it is none. It was not stored: where it belongs has to be found anew.
var ErrCellMap = errors.New("journal: the event was placed by another map of cells than the store's")

// ErrNoCells is the [ErrCellMap] of whoever knows of no cells.
var ErrNoCells = fmt.Errorf("%w: the store is a cell by now, and this gateway runs without cells; write the settings of cells into its file, and start it again", ErrCellMap)

package journaltest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// RunCells checks every sentence of the contract of [journal.CellKeeper], and of [journal.Event.CellMap], that one caller at a
// time can see. The stores of the factory have to be such.
func RunCells(t *testing.T, factory Factory) { runCases(t, factory, cellCases) }

var cellCases = []testCase{
	{"maps are kept by number without a gap, and one that is there never changes", func(c *suite) {
		c.raiseMaps(journal.CellRaise{Maps: cellMaps(4, 5)}, nil)
		c.raiseMaps(journal.CellRaise{Maps: cellMaps(7)}, journal.ErrCellMap)
		audit := &journal.Audit{At: c.now, By: "test", Reason: "lost", Action: journal.ActionForgetCell, Filter: "us"}
		other := cellMaps(5, 6)
		other[0].Content = "other"
		c.raiseMaps(journal.CellRaise{Maps: other, Audit: audit}, journal.ErrOtherCellMap)
		c.raiseMaps(journal.CellRaise{Cell: "us", Maps: cellMaps(5, 6), Audit: audit}, journal.ErrCellName)
		if r := c.cells(); len(r.Maps) != 2 {
			c.Errorf("after maps that were refused there are %+v", r.Maps)
		}
		for range 2 { // the second time changes nothing
			c.raiseMaps(journal.CellRaise{Maps: cellMaps(3, 5, 6), Audit: audit}, nil)
		}
		if r := c.cells(); len(r.Maps) != 3 || r.Maps[1].Content != "map 5" || r.Maps[2].Number != 6 || !r.Maps[0].Since.Equal(time.Unix(4, 0)) {
			c.Errorf("on record are %+v", r.Maps)
		}
		audits, err := c.store.Audits(c.Context(), 0, 10)
		c.ok("Audits", err)
		if len(audits) != 1 || audits[0].Filter != "us" {
			c.Errorf("audits %+v; want one", audits)
		}
	}},
	{"the first map says which cell the store is", func(c *suite) {
		for _, want := range []string{"", "eu"} {
			name, err := c.keeper().CellName(c.Context())
			c.ok("CellName", err)
			if name != want {
				c.Errorf("the store is the cell %q, want %q", name, want)
			}
			c.raiseMaps(journal.CellRaise{Maps: cellMaps(1)}, nil)
		}
	}},
	{"a first map that others own is for a store without events", func(c *suite) {
		c.stored("evt")
		c.raiseMaps(journal.CellRaise{Maps: cellMaps(1), Fresh: true}, journal.ErrCellEvents)
		c.fresh(c.entry("evt_2")) // it is no cell
		c.raiseMaps(journal.CellRaise{Maps: cellMaps(1)}, nil)
		c.raiseMaps(journal.CellRaise{Maps: cellMaps(1, 2), Fresh: true}, nil)
	}},
	{"what a cell confirms counts from the first time, and from the database's clock if that is later", func(c *suite) {
		late, early, began := time.Unix(9, 0), time.Now().Add(time.Hour).Truncate(time.Second), time.Now().Add(-time.Minute)
		for _, at := range []time.Time{late, early} {
			for number := int64(5); number <= 6; number++ {
				c.confirm(journal.CellConfirmation{Cell: at.UTC().Format("2006"), Number: number, At: at})
			}
		}
		c.confirm(journal.CellConfirmation{Cell: late.UTC().Format("2006"), Number: 5, At: early})
		r := c.cells()
		for i, o := range r.Confirmations {
			if i < 2 && (o.At.Before(began) || !o.At.Before(early)) || i >= 2 && !o.At.Equal(early) {
				c.Errorf("confirmed is %+v; want the first time, and no earlier one than the database's", o)
			}
		}
		if len(r.Confirmations) != 4 {
			c.Errorf("confirmed are %+v", r.Confirmations)
		}
		if r.Now.Before(began) || r.Now.After(early) {
			c.Errorf("the database's clock says %v", r.Now)
		}
	}},
	{"what was placed by another map, or by none, is refused by itself", refusesOtherMaps},
	{"without a map only who knows of none is taken", func(c *suite) {
		batch := []*journal.Record{c.placed("no map", 0), c.placed("a map", 1), c.placed("happened", journal.AnyCellMap), c.placed("copy", journal.CopiesOnly)}
		for i, r := range c.accept(batch...) {
			if refused := i%2 == 1; (r.Err != nil) != refused || refused != errors.Is(r.Err, journal.ErrCellMap) {
				c.Errorf("%q: %+v", batch[i].Key, r)
			}
		}
	}},
}

// refusesOtherMaps: its neighbours are stored, and so is what has happened.
func refusesOtherMaps(c *suite) {
	c.raiseMaps(journal.CellRaise{Maps: cellMaps(6, 7)}, nil)
	c.fresh(c.placed("known", 7))
	ordered := c.placed("ordered", 6) // takes another statement
	ordered.Resource, ordered.Ordered = "r", []string{"app"}
	batch := []*journal.Record{
		c.placed("new", 7), c.placed("old map", 6), c.placed("later map", 8), c.placed("happened", journal.AnyCellMap), c.placed("", 6), ordered,
		c.placed("known", journal.CopiesOnly), c.placed("unknown", journal.CopiesOnly), c.placed("known", 6), c.placed("new", 6), c.placed("\x00", 7),
		c.placed("no map", 0), c.placed("known", 0), c.placed("old map", 7),
	}
	results := c.accept(batch...)
	const refusedItself = 10
	for i, want := range []journal.Status{journal.Accepted, "", "", journal.Accepted, "", "", journal.Duplicate, "", journal.Duplicate, journal.Duplicate, "", "", journal.Duplicate, journal.Accepted} {
		r := results[i]
		if i == refusedItself {
			if r.Err == nil || errors.Is(r.Err, journal.ErrCellMap) {
				c.Errorf("a row that is refused for its content: %v", r.Err)
			}
			continue
		}
		if r.Status != want || (want == "") != errors.Is(r.Err, journal.ErrCellMap) || errors.Is(r.Err, journal.ErrNoCells) != (i == 11) {
			c.Errorf("%q under map %d: %q, %v; want %q", batch[i].Key, batch[i].CellMap, r.Status, r.Err, want)
		}
	}
	for _, number := range []int64{0, 6, 8} { // alone, a copy is refused as well: where it belongs has to be found anew
		if r := c.accept(c.placed("known", number))[0]; !errors.Is(r.Err, journal.ErrCellMap) {
			c.Errorf("a copy under map %d: %+v", number, r)
		}
	}
	known, err := c.store.Known(c.Context(), "billing", []string{"new", "old map", "later map", "happened", "no map", "ordered", "unknown"})
	c.ok("Known", err)
	if len(known) != 3 {
		c.Errorf("on record are %v; want what was accepted", known)
	}
}

func cellMaps(numbers ...int64) (maps []journal.CellMap) {
	for _, n := range numbers {
		maps = append(maps, journal.CellMap{Number: n, Content: fmt.Sprint("map ", n), Since: time.UnixMicro(n * 1e6)})
	}
	return maps
}

func (c *suite) keeper() journal.CellKeeper { return c.store.(journal.CellKeeper) }

// placed returns a fresh event that belongs here by a map.
func (c *suite) placed(key string, number int64) *journal.Record {
	return c.entry(key, func(e *journal.Record) { e.CellMap = number })
}

// raiseMaps stores maps of the cell eu, unless the raise names another one, and expects an error, or none.
func (c *suite) raiseMaps(r journal.CellRaise, want error) {
	c.Helper()
	if r.Cell == "" {
		r.Cell = "eu"
	}
	if err := c.keeper().RaiseCellMap(c.Context(), r); !errors.Is(err, want) {
		c.Errorf("raising %+v: %v, want %v", r.Maps, err, want)
	}
}

func (c *suite) confirm(o journal.CellConfirmation) {
	c.Helper()
	c.ok("ConfirmCell", c.keeper().ConfirmCell(c.Context(), o))
}

func (c *suite) cells() journal.CellRecord {
	c.Helper()
	r, err := c.keeper().CellRecord(c.Context())
	c.ok("CellRecord", err)
	return r
}

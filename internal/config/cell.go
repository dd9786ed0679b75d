package config

import (
	"math"
	"net/url"

	"github.com/hookonce/hookonce/internal/settings"
)

// Cell is one of the cells that events are divided among: a database with its gateways.
type Cell struct {
	Name string
	// URL is where its gateways listen for other cells.
	URL string
	// Weight is its share of the keys, in proportion to those of the others. 0: it owns none.
	Weight int

	origin settings.Layer
	at     settings.Place
}

// cellsKey is the list of cells.
const cellsKey = "cells"

// maxCells is how many cells there may be.
const maxCells = 64

// cellTable declares every setting of a cell.
var cellTable = settings.Table[Cell]{
	{Key: "name", Bind: func(c *Cell) settings.Value { return settings.Text(&c.Name, checkName) }},
	{Key: "url", Bind: func(c *Cell) settings.Value { return settings.URLLike(&c.URL, "https://hooks-eu.internal:8444") }},
	{Key: "weight", Default: "1", Bind: func(c *Cell) settings.Value { return settings.Count(&c.Weight, 0, math.MaxInt32) }},
}

// cellsTable declares the settings of the cell that a gateway belongs to.
var cellsTable = settings.Table[Config]{
	{Key: "cell", Help: "`name` of the cell that this gateway belongs to, one of cells",
		Bind: func(c *Config) settings.Value { return settings.Text(&c.Cell, checkName) }, Restart: true},
	{Key: "cells_map", Help: "`number` of the map that cells is; one more with every change",
		Bind: func(c *Config) settings.Value { return settings.Count(&c.CellsMap, 1, math.MaxInt32) }},
	{Key: "cell_listen", Help: "`host:port` that the gateways of other cells speak to",
		Bind: func(c *Config) settings.Value { return settings.Address(&c.CellListen) }, Restart: true},
	{Key: "cell_tls.cert", Help: "PEM `file` with the certificate that is shown to other cells",
		Bind: func(c *Config) settings.Value { return settings.File(&c.CellTLS.Cert, &c.CellTLS.pem.cert) }},
	{Key: "cell_tls.key", Help: "PEM `file` with the key of that certificate",
		Bind: func(c *Config) settings.Value { return settings.File(&c.CellTLS.Key, &c.CellTLS.pem.key) }},
	{Key: "cell_tls.ca", Help: "PEM `file` with the certificates that those of all cells are signed by, and nothing else is",
		Bind: func(c *Config) settings.Value { return settings.File(&c.CellTLS.CA, &c.CellTLS.pem.ca) }},
}

// where returns the place that a setting of the cell came from, or that of the cell.
func (c *Cell) where(key string) settings.Place { return c.origin.Where(c.at, key) }

func (c *Cell) changes(next *Cell) []settings.Change {
	return settings.Differ(c, next, cellTable, c.origin, next.origin)
}

// cell builds a cell from what the file says.
func (l *loader) cell(from section) Cell {
	c := Cell{at: from.at}
	c.origin = settings.Apply(l.Report, &c, cellTable, from.says)
	return c
}

// checkCells finds what cells lack. They go together, or there are none.
func checkCells(r *settings.Report, cfg *Config) {
	needed := []string{"cell", "cells_map", "cell_listen", "cell_tls.cert", "cell_tls.key", "cell_tls.ca"}
	some := len(cfg.Cells) > 0
	for _, key := range needed {
		some = some || cfg.Says(key)
	}
	if !some {
		return
	}
	at := cfg.where(needed...)
	if len(cfg.Cells) > 0 {
		at = cfg.Cells[0].at
	}
	for _, key := range needed {
		if !cfg.Says(key) {
			r.Fault(at, "cells: %s is missing; cells need cell, cells, cells_map, cell_listen and cell_tls with cert, key and ca (docs/cells.md)", key)
		}
	}
	if cfg.Store.Driver == SQLite {
		r.Fault(cfg.where("store"), "store: cells need Postgres, whose rows can be locked until a commit so that nothing is accepted under an old map; write a postgres:// URL, or remove cells")
	}
	checkCellList(r, cfg, at)
	for i := range cfg.Sources {
		if s := &cfg.Sources[i]; s.Mode == Idempotent {
			r.Warn(s.where("mode"), "mode: source %q keeps its keys in its own cell, and a client that comes again through another cell runs its request again; route its clients to one cell", s.Name)
		}
	}
}

// checkCellList looks at each cell, and at what they have together.
func checkCellList(r *settings.Report, cfg *Config, at settings.Place) {
	names := map[string]settings.Place{}
	weight := 0
	for i := range cfg.Cells {
		c := &cfg.Cells[i]
		for _, key := range []string{"name", "url"} {
			if !c.origin.Has(key) {
				r.Fault(c.at, "cells: a cell lacks its %s; write name, url and weight", key)
			}
		}
		if first, twice := names[c.Name]; twice && c.Name != "" {
			r.Fault(c.where("name"), "name: a cell called %q exists already, at %s; write another name", c.Name, first)
		}
		names[c.Name] = c.where("name")
		weight += c.Weight
		checkCellURL(r, c)
	}
	switch _, own := names[cfg.Cell]; {
	case len(cfg.Cells) == 0:
		r.Fault(at, "cells: there is none; list all cells with name, url and weight, this one too")
	case len(cfg.Cells) > maxCells:
		r.Fault(at, "cells: there are %d; write at most %d", len(cfg.Cells), maxCells)
	case weight == 0:
		r.Fault(at, "cells: no cell has a weight, so nobody would own anything; give one a weight")
	case cfg.Cell != "" && !own:
		r.Fault(cfg.where("cell"), "cell: %q is not among cells; add it there, with weight: 0 if it is to own nothing", cfg.Cell)
	}
}

func checkCellURL(r *settings.Report, c *Cell) {
	u, err := url.Parse(c.URL)
	if err != nil || c.URL == "" {
		return // reported already
	}
	if u.Scheme != "https" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		r.Fault(c.where("url"), "url: cells speak over TLS, at an address without a path; write one like https://hooks-eu.internal:8444")
	}
}

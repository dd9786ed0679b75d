package config

import (
	"strings"
	"testing"
)

const someCells = `
store: postgres://db.internal/hooks
cell: eu
cells_map: 1
cell_listen: 127.0.0.1:8444
cell_tls: {cert: c.pem, key: k.pem, ca: ca.pem}
cells:
- {name: eu, url: "https://hooks-eu.internal:8444"}
- {name: us, url: "https://hooks-us.internal:8444", weight: 0}
sources: [{name: orders, provider: hmac, secrets: ["literal-secret-of-orders"], to: "http://127.0.0.1:1/"}]
`

// Cells go together, and what they lack is said with its line and what to write.
func TestCells(t *testing.T) {
	for name, c := range map[string]struct{ old, with, want string }{
		"complete":       {"", "", ""},
		"one is missing": {"cells_map: 1\n", "", "hookonce.yaml:7:4: cells: cells_map is missing"},
		"a file":         {"postgres://db.internal/hooks", "sqlite:hooks.db", "hookonce.yaml:2:1: store: cells need Postgres"},
		"not listed":     {"cell: eu", "cell: ap", `hookonce.yaml:3:1: cell: "ap" is not among cells`},
		"twice":          {"name: us", "name: eu", `a cell called "eu" exists already, at hookonce.yaml:8`},
		"without TLS":    {"https://hooks-us", "http://hooks-us", "url: cells speak over TLS"},
		"a path":         {"us.internal:8444", "us.internal:8444/x", "at an address without a path"},
		"no weight":      {`eu.internal:8444"}`, `eu.internal:8444", weight: 0}`, "no cell has a weight"},
		"none":           {someCells[strings.Index(someCells, "cells:\n"):strings.Index(someCells, "sources:")], "", "cells: there is none"},
		"no name":        {"{name: us, ", "{", "a cell lacks its name"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := Load(Input{Path: "hookonce.yaml", Data: []byte(strings.Replace(someCells, c.old, c.with, 1)), NoSecrets: true})
			switch {
			case c.want == "" && (err != nil || len(cfg.Cells) != 2 || cfg.Cells[0].Weight != 1 || cfg.Cells[1].Weight != 0):
				t.Errorf("%+v, %v", cfg, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v; want %s", err, c.want)
			}
		})
	}
}

// A change of a cell is a change, and is shown.
func TestCellsChange(t *testing.T) {
	load := func(text string) *Config {
		cfg, err := Load(Input{Path: "hookonce.yaml", Data: []byte(text), NoSecrets: true})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	before := load(someCells)
	changes := before.Changes(load(strings.NewReplacer("weight: 0", "weight: 3", "cells_map: 1", "cells_map: 2").Replace(someCells)))
	if len(changes) != 2 || changes[0].Restart || changes[1].Restart {
		t.Errorf("%+v", changes)
	}
	if shown := before.Show(); !strings.Contains(shown, "https://hooks-us.internal:8444") || load(shown).CellsMap != 1 {
		t.Errorf("shown as\n%s", shown)
	}
}

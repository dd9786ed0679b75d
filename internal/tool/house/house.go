package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

const module = "github.com/hookonce/hookonce"

// room is one package.
type room struct {
	name     string   // its folder; "hookonce" for the module's root
	synopsis string   // the first sentence of its documentation
	on       []string // names of the rooms that it imports
}

// measure returns the packages of the module whose folder is dir, by name, as the go command knows them.
// Tests are no part of it.
func measure(dir string) ([]room, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Imports", "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("house: go list: %w", err)
	}
	var rooms []room
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Doc string
			Imports         []string
		}
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return rooms, nil
		}
		if err != nil {
			return nil, fmt.Errorf("house: go list: %w", err)
		}
		r := room{name: short(p.ImportPath), synopsis: p.Doc}
		for _, imp := range p.Imports {
			if imp == module || strings.HasPrefix(imp, module+"/") {
				r.on = append(r.on, short(imp))
			}
		}
		rooms = append(rooms, r)
	}
}

func short(importPath string) string {
	if importPath == module {
		return "hookonce"
	}
	return strings.TrimPrefix(importPath, module+"/")
}

// floor is a part of the picture.
type floor struct {
	title string
	holds func(r room) bool
}

// floors are the parts from the top down. A room is in the first that holds it.
var floors = []floor{
	{"Servers for tests, suites and tools", func(r room) bool {
		return strings.HasPrefix(r.name, "internal/testserver") || strings.HasPrefix(r.name, "internal/tool") ||
			strings.HasSuffix(r.name, "test")
	}},
	{"The binary", func(r room) bool { return strings.HasPrefix(r.name, "cmd/") }},
	{"What programs import", func(r room) bool { return !strings.Contains("/"+r.name+"/", "/internal/") }},
	{"Leaves: rooms that stand on nothing of ours", func(r room) bool { return len(r.on) == 0 }},
	{"Rooms of the gateway and of its commands", func(room) bool { return true }},
}

// page returns the text of docs/house.md.
func page(rooms []room) []byte {
	byName := map[string]room{}
	for _, r := range rooms {
		byName[r.name] = r
	}
	on := map[string][]room{}
	for _, r := range rooms {
		i := slices.IndexFunc(floors, func(f floor) bool { return f.holds(r) })
		on[floors[i].title] = append(on[floors[i].title], r)
	}
	var b bytes.Buffer
	b.WriteString(`# The house

<!-- Written by make docs from the packages' imports and documentation. Change those instead. -->

Each box is a package and each arrow an import. What another arrow already implies is left out, and so
are tests. What the rooms are for stands below the picture;
[internal/README.md](../internal/README.md) names them in the order in which an event passes.

`)
	b.WriteString("```mermaid\nflowchart TD\n")
	order := []int{1, 4, 2, 3}
	drawn := map[string]bool{}
	for _, i := range order {
		fmt.Fprintf(&b, "  subgraph f%d[\"%s\"]\n", i, floors[i].title)
		for _, r := range on[floors[i].title] {
			fmt.Fprintf(&b, "    %s[\"%s\"]\n", id(r.name), r.name)
			drawn[r.name] = true
		}
		b.WriteString("  end\n")
	}
	for _, r := range rooms {
		for _, to := range direct(r, byName) {
			if drawn[r.name] && drawn[to] {
				fmt.Fprintf(&b, "  %s --> %s\n", id(r.name), id(to))
			}
		}
	}
	b.WriteString("```\n")
	for _, i := range append(order, 0) {
		fmt.Fprintf(&b, "\n## %s\n\n| room | what it is for | stands on |\n|---|---|---|\n", floors[i].title)
		for _, r := range on[floors[i].title] {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.name, strings.ReplaceAll(r.synopsis, "|", `\|`), list(r.on))
		}
	}
	return b.Bytes()
}

// direct returns what r imports without the rooms that another of its imports stands on.
func direct(r room, byName map[string]room) []string {
	var kept []string
	for _, to := range r.on {
		implied := slices.ContainsFunc(r.on, func(other string) bool {
			return other != to && reaches(byName, other, to, map[string]bool{})
		})
		if !implied {
			kept = append(kept, to)
		}
	}
	return kept
}

func reaches(byName map[string]room, from, to string, seen map[string]bool) bool {
	if seen[from] {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(byName[from].on, func(next string) bool {
		return next == to || reaches(byName, next, to, seen)
	})
}

func id(name string) string { return strings.NewReplacer("/", "_", "-", "_").Replace(name) }

func list(names []string) string {
	slices.Sort(names)
	return strings.Join(names, ", ")
}

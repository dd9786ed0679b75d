package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutant is a fault that somebody could make.
type mutant struct {
	Name string
	// Law is what it breaks, and what is done wrong in its place: "3. ..." for a law of docs/guarantees.md, "outbox: ..." for
	// another promise.
	Law string
	// File is where, from the root of the module. It may be embedded.
	File string
	// Old stands in File once, and New takes its place.
	Old, New string
	// Kills are tests, each of which has to fail.
	Kills []test
}

// test is a test by its name, in a package from the root of the module; a part of one as TestA/b. One of several, as TestA|TestB,
// has to fail where chance decides which: a fault that two tests see has both among its Kills.
type test struct{ Package, Run string }

func (k test) String() string { return k.Package + " " + k.Run }

// names are those of the tests of which one has to fail, one as a rule.
func (k test) names() []string { return strings.Split(k.Run, "|") }

// pattern is what go test -run takes for these and for none whose name begins so.
func (k test) pattern() string {
	names := k.names()
	for i, name := range names {
		names[i] = "^" + strings.ReplaceAll(name, "/", "$/^") + "$"
	}
	return strings.Join(names, "|")
}

// mutants are all faults, those of one law together.
func mutants() []mutant {
	return slices.Concat(library, stores, gateway, cellular, simulated, simulatedCells)
}

// mark is what stands behind the law in Law.
func (m mutant) mark() string {
	if i := strings.IndexAny(m.Law, ".:"); i >= 0 {
		return m.Law[i : i+2]
	}
	return " "
}

// byLaw are all faults in the order of the laws, and of the other promises behind them.
func byLaw() []mutant {
	all := mutants()
	number := func(m mutant) int {
		law, _, _ := strings.Cut(m.Law, m.mark())
		n, err := strconv.Atoi(law)
		if err != nil {
			return math.MaxInt
		}
		return n
	}
	slices.SortStableFunc(all, func(a, b mutant) int { return cmp.Compare(number(a), number(b)) })
	return all
}

// seenBy names the tests for readers.
func (m mutant) seenBy() string {
	var tests []string
	for _, k := range m.Kills {
		names := "`" + strings.Join(k.names(), "` or `") + "`"
		if pkg := strings.TrimPrefix(k.Package, "./"); pkg != "." {
			names = pkg + " " + names
		}
		tests = append(tests, names)
	}
	return strings.Join(tests, ", ")
}

// planted returns the text of the file with the fault in it.
func (m mutant) planted(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(text), m.Old); n != 1 {
		return nil, fmt.Errorf("%s: the text that %s replaces stands there %d times, not once: %q", m.File, m.Name, n, m.Old)
	}
	return []byte(strings.Replace(string(text), m.Old, m.New, 1)), nil
}

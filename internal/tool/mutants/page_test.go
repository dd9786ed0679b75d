package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/pagetest"
)

var update = flag.Bool("update", false, "write the table of docs/guarantees.md")

// The page has every fault, under the law that it breaks.
func TestFaultsStandInAPage(t *testing.T) {
	var table strings.Builder
	table.WriteString("| law | what is done wrong | fault | tests that see it |\n|---|---|---|---|\n")
	for _, m := range byLaw() {
		law, wrong, _ := strings.Cut(m.Law, m.mark())
		fmt.Fprintf(&table, "| %s | %s | `%s` | %s |\n", law, wrong, m.Name, m.seenBy())
	}
	pagetest.Table(t, filepath.Join(root, "docs/guarantees.md"), "faults", table.String(), *update)
}

// Every law of the page has a fault that breaks it.
func TestEveryLawHasAFault(t *testing.T) {
	broken := map[string]bool{}
	for _, m := range mutants() {
		law, _, _ := strings.Cut(m.Law, m.mark())
		broken[law] = true
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	laws := 0
	for line := range strings.Lines(string(text)) {
		law, _, is := strings.Cut(strings.TrimPrefix(line, "| "), ". ")
		if is && strings.Trim(law, "0123456789") == "" && strings.HasPrefix(line, "| ") {
			if laws++; !broken[law] {
				t.Errorf("no fault breaks law %s", law)
			}
		}
	}
	if laws != 14 {
		t.Errorf("%d laws were found in the page", laws)
	}
}

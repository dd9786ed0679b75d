package tally_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/tally"
)

var update = flag.Bool("update", false, "write the page")

// TestWordsStandInAPage: every word that is counted stands in docs/operating.md with its meaning.
func TestWordsStandInAPage(t *testing.T) {
	var table strings.Builder
	table.WriteString("| word | of | what it counts |\n|---|---|---|\n")
	for _, w := range tally.Words() {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", w.What, w.Of, strings.TrimSuffix(w.Meaning, "."))
	}
	const page, mark = "../../docs/operating.md", "<!-- The words, written by make docs. -->\n\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), mark)
	old, after, ended := strings.Cut(rest, "\n## ")
	if !found || !ended {
		t.Fatalf("%s has no generated table of words", page)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+mark+table.String()+"\n## "+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != table.String() {
		t.Errorf("%s: the table is not what is counted: run make docs", page)
	}
}

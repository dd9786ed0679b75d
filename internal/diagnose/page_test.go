package diagnose_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/diagnose"
)

var update = flag.Bool("update", false, "write the page")

// TestCausesStandInAPage: every word stands in docs/verify.md with what it says.
func TestCausesStandInAPage(t *testing.T) {
	var table strings.Builder
	table.WriteString("| cause | what it says |\n|---|---|\n")
	for _, w := range diagnose.Words() {
		fmt.Fprintf(&table, "| `%s` | %s |\n", w.Word, w.Says)
	}
	const page, mark = "../../docs/verify.md", "<!-- The causes, written by make docs. -->\n\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), mark)
	old, after, _ := strings.Cut(rest, "\n## ")
	if after != "" {
		after = "\n## " + after
	}
	if !found {
		t.Fatalf("%s has no table of causes", page)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+mark+table.String()+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != table.String() {
		t.Errorf("%s: the table is not what the words say: run make docs", page)
	}
}

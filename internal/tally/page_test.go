package tally_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/pagetest"
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
	pagetest.Table(t, "../../docs/operating.md", "words", table.String(), *update)
}

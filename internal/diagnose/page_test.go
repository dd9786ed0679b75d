package diagnose_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/diagnose"
	"github.com/hookonce/hookonce/internal/pagetest"
)

var update = flag.Bool("update", false, "write the page")

// TestCausesStandInAPage: every word stands in docs/verify.md with what it says.
func TestCausesStandInAPage(t *testing.T) {
	var table strings.Builder
	table.WriteString("| cause | what it says |\n|---|---|\n")
	for _, w := range diagnose.Words() {
		fmt.Fprintf(&table, "| `%s` | %s |\n", w.Word, w.Says)
	}
	pagetest.Table(t, "../../docs/verify.md", "causes", table.String(), *update)
}

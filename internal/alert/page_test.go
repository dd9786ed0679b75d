package alert

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/pagetest"
)

var update = flag.Bool("update", false, "write the table of rules into its page")

// The page has each rule with what it goes by, as the code has it.
func TestRulesStandInAPage(t *testing.T) {
	var table strings.Builder
	table.WriteString("| rule | fires when | from | for | at most |\n|---|---|---|---|---|\n")
	for _, r := range Rules() {
		lasts := ""
		if r.For > 0 {
			lasts = span(r.For).String()
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", r.Name, r.When, r.Limit(), lasts, r.Severity)
	}
	pagetest.Table(t, "../../docs/alerts.md", "rules", table.String(), *update)
}

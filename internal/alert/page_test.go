package alert

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of rules into its page")

// The page has each rule with what it goes by, as the code has it.
func TestRulesStandInAPage(t *testing.T) {
	const file, begin = "../../docs/alerts.md", "| rule | fires when | from | for | at most |\n|---|---|---|---|---|\n"
	var table strings.Builder
	for _, r := range Rules() {
		lasts := ""
		if r.For > 0 {
			lasts = span(r.For).String()
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", r.Name, r.When, r.Limit(), lasts, r.Severity)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	if !ok {
		t.Fatalf("%s has no table of rules", file)
	}
	end := 0
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		end += len(line)
	}
	if rest[:end] == table.String() {
		return
	}
	if !*update {
		t.Fatalf("%s does not say what the rules are; run make docs", file)
	}
	if err := os.WriteFile(file, []byte(before+begin+table.String()+rest[end:]), 0o644); err != nil {
		t.Fatal(err)
	}
}

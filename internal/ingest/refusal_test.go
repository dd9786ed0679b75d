package ingest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestReasonsStandInAPage: docs/problems.md says of each reason when a request is refused for it, and to which type it belongs.
func TestReasonsStandInAPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]bool{}
	for _, p := range append(allRefusals(), errUnknownSource) {
		reasons[p.Reason] = true
		if row := fmt.Sprintf("\n| `%s` | `%s` | ", p.Reason, p.Type); !strings.Contains(string(page), row) {
			t.Errorf("docs/problems.md has no row %q", row)
		}
	}
	_, table, _ := strings.Cut(string(page), "\n| reason |")
	if rows := strings.Count(table, "\n| `"); rows != len(reasons) {
		t.Errorf("docs/problems.md has %d reasons of %d", rows, len(reasons))
	}
}

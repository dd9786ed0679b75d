package problem

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestTypesStandInAPage: docs/problems.md has a row for each type, with its status, its title and whether to send again, under an anchor of its
// name, which says when it is answered and what to do; and none for another.
func TestTypesStandInAPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, typ := range types {
		row := fmt.Sprintf("\n| <a id=%q></a>`%[1]s` | %d | %s | %s | ", typ.name, typ.status, typ.title, map[bool]string{true: "yes", false: "no"}[typ.retryable])
		_, rest, found := strings.Cut(text, row)
		line, _, _ := strings.Cut(rest, "\n")
		cells := strings.Split(line, " | ")
		if !found || len(cells) != 2 || cells[0] == "" {
			t.Errorf("docs/problems.md has no row %q with two cells more", row)
			continue
		}
	}
	if rows := strings.Count(text, `<a id="`); rows != len(types) {
		t.Errorf("docs/problems.md has %d rows for %d types", rows, len(types))
	}
}

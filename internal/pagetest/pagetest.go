// Package pagetest holds the tables of pages to what the code says of itself: a test makes the table, the page has it, and
// make docs writes it there.
package pagetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Table fails the test unless the page, a path, has the table, lines of Markdown, beneath the comment that says which, as in
// "<!-- The words, written by make docs. -->" for "words". With update it writes the table there.
func Table(t *testing.T, page, which, table string, update bool) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	mark := "<!-- The " + which + ", written by make docs. -->\n\n"
	before, rest, found := strings.Cut(string(text), mark)
	if !found {
		t.Fatalf("%s has no line %s", page, strings.TrimSpace(mark))
	}
	end := 0
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		end += len(line)
	}
	switch {
	case rest[:end] == table:
	case !update:
		t.Errorf("%s: the table of %s is not what the code says: run make docs", filepath.Base(page), which)
	default:
		if err := os.WriteFile(page, []byte(before+mark+table+rest[end:]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

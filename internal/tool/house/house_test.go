package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHouseIsFresh fails when a package or an import has changed and the page has not.
func TestHouseIsFresh(t *testing.T) {
	rooms, err := measure("../../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, page(rooms)) {
		t.Errorf("%s is not what the packages say; run make docs", file)
	}
}

// TestRoomsAreNamed demands a sentence of documentation from each package, and a place for each room of internal/
// in the list that a reader of that folder finds.
func TestRoomsAreNamed(t *testing.T) {
	rooms, err := measure("../../..")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rooms {
		if r.synopsis == "" {
			t.Errorf("%s has no package documentation", r.name)
		}
		inner, internal := strings.CutPrefix(r.name, "internal/")
		if internal && !strings.Contains(string(readme), "`"+inner+"`") {
			t.Errorf("internal/README.md does not name `%s`", inner)
		}
	}
}

func TestImpliedArrowsAreLeftOut(t *testing.T) {
	byName := map[string]room{
		"top":    {name: "top", on: []string{"middle", "ground", "beside"}},
		"middle": {name: "middle", on: []string{"ground"}},
		"ground": {name: "ground"},
		"beside": {name: "beside"},
	}
	got := strings.Join(direct(byName["top"], byName), " ")
	if got != "middle beside" {
		t.Errorf("direct = %q, want the middle and what is beside", got)
	}
}

// TestProseIsWrapped holds the lines of the pages that people write at 100 columns: code, tables, and addresses that
// cannot be divided aside. A row of a table stands once in its page: one of two would be changed alone some day.
func TestProseIsWrapped(t *testing.T) {
	const columns, short = 100, 60 // below which rows say little, and may be alike
	written, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(written, "../../../README.md", "../../../CHANGELOG.md", "../../../CONTRIBUTING.md", "../../../SECURITY.md", "../../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("<!-- Generated from ")) || bytes.Contains(text, []byte("<!-- Written by ")) {
			continue
		}
		code, rows := false, map[string]int{}
		lines := strings.Split(string(text), "\n")
		for i, line := range lines {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			long := utf8.RuneCountInString(line) > columns && strings.Contains(strings.TrimSpace(line), " ")
			if long && !code && !strings.HasPrefix(strings.TrimSpace(line), "|") {
				t.Errorf("%s:%d has %d columns, more than %d", filepath.Base(name), i+1, utf8.RuneCountInString(line), columns)
			}
			head := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|-") // tables may have the same columns
			if code || head || len(line) < short || !strings.HasPrefix(line, "|") {
				continue
			}
			if before := rows[line]; before > 0 {
				t.Errorf("%s:%d is the row of line %d again", filepath.Base(name), i+1, before)
			}
			rows[line] = i + 1
		}
	}
}

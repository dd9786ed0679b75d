package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
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

// pages are those that people read, written by hand or not.
func pages(t *testing.T) []string {
	t.Helper()
	written, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(written, "../../../README.md", "../../../CHANGELOG.md", "../../../CONTRIBUTING.md", "../../../SECURITY.md", "../../README.md")
}

// TestLinksLeadSomewhere follows every link from page to page: the file is there, and has the heading or the mark. The names of
// headings are those that GitHub gives them.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:\s]*)(#[^)\s]*)?\)`)
	of := map[string][]string{} // what was read once
	for _, name := range pages(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to := name
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(name), m[1])
			}
			there, err := os.Stat(to)
			switch {
			case err != nil:
				t.Errorf("%s: there is no %s", filepath.Base(name), m[1])
			case m[2] == "" || there.IsDir() || filepath.Ext(to) != ".md":
			default:
				if of[to] == nil {
					of[to] = anchors(t, to)
				}
				if slices.Contains(of[to], m[2][1:]) {
					continue
				}
				t.Errorf("%s: %s has no %s", filepath.Base(name), filepath.Base(to), m[2])
			}
		}
	}
}

// anchors are the names that a link can have behind # on a page.
func anchors(t *testing.T, page string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?:id|name)="([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	code, seen := false, map[string]int{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		if code || !strings.HasPrefix(line, "#") {
			continue
		}
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(strings.TrimSpace(strings.TrimLeft(line, "#")), "]"))
		if n := seen[name]; n > 0 {
			names = append(names, fmt.Sprint(name, "-", n))
		} else {
			names = append(names, name)
		}
		seen[name]++
	}
	return names
}

// TestProseIsWrapped holds the lines of the pages that people write at 100 columns: code, tables, and addresses that
// cannot be divided aside. A row of a table stands once in its page: one of two would be changed alone some day.
func TestProseIsWrapped(t *testing.T) {
	const columns, short = 100, 60 // below which rows say little, and may be alike
	for _, name := range pages(t) {
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

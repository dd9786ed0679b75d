package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPageNamesEverySetting: the page about the configuration has a row for each setting, with its
// default.
func TestPageNamesEverySetting(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(text), "## Every setting")
	global, rest, _ := strings.Cut(tables, "### Destinations")
	destinations, sources, _ := strings.Cut(rest, "### Sources")
	routes, _, _ := strings.Cut(string(text), "## Order")
	for _, f := range configTable {
		in, key := global, f.Key
		if name, ok := strings.CutPrefix(key, "delivery."); ok {
			if _, ok := destinationTable.Find(name); ok {
				in, key = destinations, name
			}
		}
		wantRow(t, in, key, f.Default)
	}
	for _, f := range destinationTable {
		wantRow(t, destinations, f.Key, f.Default)
	}
	for _, f := range sourceTable {
		wantRow(t, sources, f.Key, f.Default)
	}
	for _, f := range routeTable {
		wantRow(t, routes, f.Key, f.Default)
	}
}

// TestPageNamesWhatNeedsARestart: the page about operating lists the settings that a reload refuses, and no others.
func TestPageNamesWhatNeedsARestart(t *testing.T) {
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "\nThese settings need a restart: ")
	list, _, there := strings.Cut(list, ". ")
	if !there {
		t.Fatal("docs/operating.md has no list of the settings that need a restart")
	}
	var told, needed []string
	for _, name := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(list, -1) {
		told = append(told, name[1])
	}
	for _, f := range configTable {
		if f.Restart {
			needed = append(needed, f.Key)
		}
	}
	slices.Sort(told)
	slices.Sort(needed)
	if !slices.Equal(told, needed) {
		t.Errorf("docs/operating.md says that these need a restart:\n%q, and these do:\n%q", told, needed)
	}
}

// wantRow fails the test unless a row of a table begins with the setting, alone or with others, and has
// the default in its second column.
func wantRow(t *testing.T, tables, key, def string) {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\|([^|]*`" + regexp.QuoteMeta(key) + "`[^|]*)\\|([^|]*)\\|").FindStringSubmatch(tables)
	switch {
	case row == nil:
		t.Errorf("docs/configuration.md has no row for %s", key)
	case def != "" && !strings.Contains(row[2], "`"+def+"`"):
		t.Errorf("docs/configuration.md does not say that the default of %s is %s", key, def)
	}
}

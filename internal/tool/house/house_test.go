package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
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

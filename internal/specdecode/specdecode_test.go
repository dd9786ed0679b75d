package specdecode

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	yaml "github.com/goccy/go-yaml/parser"
	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/provider/spec"
)

// TestPlacesAreThoseOfTheDocument: a specification may be a part of a larger one.
func TestPlacesAreThoseOfTheDocument(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"\n\nname: acme\nverify: []\n", "4:9: verify: is missing: "},
		{"\n\nname: acme\nverifi: []\n", `4:1: there is no "verifi" here; did you mean "verify"?`},
	} {
		file, err := yaml.ParseBytes([]byte(c.text), 0)
		if err != nil {
			t.Fatal(err)
		}
		root := file.Docs[0].Body
		s, err := Decode(root)
		if err == nil {
			err = Locate(root, s.Validate())
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestEnumsAreTheConstants reads the constants from the source: a word that is missing from the list
// could not be written in YAML.
func TestEnumsAreTheConstants(t *testing.T) {
	got := map[string][]string{}
	for kind, list := range enums {
		got[kind.Name()] = slices.Sorted(slices.Values(list))
	}
	want := map[string][]string{}
	files, err := filepath.Glob("../../provider/spec/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			c, ok := n.(*ast.ValueSpec)
			if !ok || len(c.Values) != 1 {
				return true
			}
			kind, ok := c.Type.(*ast.Ident)
			if !ok || got[kind.Name] == nil {
				return true
			}
			word, err := strconv.Unquote(c.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			want[kind.Name] = append(want[kind.Name], word)
			return true
		})
	}
	for _, list := range want {
		slices.Sort(list)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "5m": 5 * time.Minute, "1h30m": 90 * time.Minute, "36h": 36 * time.Hour,
		"3d": 72 * time.Hour, "48h": 48 * time.Hour, "90d": 90 * day,
	} {
		got, err := parseDuration(text)
		if err != nil || got != want || spec.FormatDuration(got) != text {
			t.Errorf("%s: %v, %v, %s", text, got, err, spec.FormatDuration(got))
		}
	}
	for _, text := range []string{"", "d", "3", "-1d", "1d-1h", "1d25h", "99999d"} {
		if d, err := parseDuration(text); err == nil {
			t.Errorf("%q is taken for %v", text, d)
		}
	}
}

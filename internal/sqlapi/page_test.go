package sqlapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The page says what to claim for each meaning that a sender can give to a key that comes again: who goes by one that is missing there
// swallows events.
func TestPageNamesEveryRepeat(t *testing.T) {
	page, err := os.ReadFile("../../docs/sql.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\n| on repeat | what to do |\n")
	if !found {
		t.Fatal("docs/sql.md has no table of what to do on repeat")
	}
	table, _, _ := strings.Cut(rest, "\n\n")
	names := repeats(t)
	if len(names) < 4 {
		t.Errorf("the constants of spec.Repeat are %q; is the pattern still right?", names)
	}
	for _, name := range names {
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("docs/sql.md does not say what to do where a provider has on_repeat: %s", name)
		}
	}
}

// repeats are the constants of the type spec.Repeat, read from the source.
func repeats(t *testing.T) (names []string) {
	t.Helper()
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
			if kind, ok := c.Type.(*ast.Ident); !ok || kind.Name != "Repeat" {
				return true
			}
			name, err := strconv.Unquote(c.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
			return true
		})
	}
	return names
}

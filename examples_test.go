package hookonce_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/testskip"
)

// TestEntryPointsHaveExamples: whoever opens the documentation of a package finds how its functions are
// called, in code that is compiled, and run where it can be. An example is that of the function, or one of
// the package, or for a constructor one of the type.
func TestEntryPointsHaveExamples(t *testing.T) {
	testskip.Race(t)
	for _, name := range public(t) {
		p := readPackage(t, name)
		inPackage := called(p.Examples)
		for _, f := range p.Funcs {
			if len(f.Examples) == 0 && !inPackage[f.Name] {
				t.Errorf("%s.%s has no example", p.Name, f.Name)
			}
		}
		for _, typ := range p.Types {
			ofType := called(typ.Examples)
			for _, f := range typ.Funcs {
				if len(f.Examples) == 0 && !inPackage[f.Name] && !ofType[f.Name] && !isOption(typ) {
					t.Errorf("%s.%s has no example", p.Name, f.Name)
				}
			}
		}
	}
}

// public returns the packages that programs import, by their folders.
func public(t *testing.T) []string {
	t.Helper()
	var names []string
	for importPath := range listPackages(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
		private := func(folder string) bool { return strings.Contains("/"+name, folder) }
		if !slices.ContainsFunc([]string{"/internal/", "/cmd/", "/testdata/"}, private) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// isOption reports whether what the constructors of the type return is for the arguments of others, in
// whose examples it is.
func isOption(typ *doc.Type) bool { return strings.HasSuffix(typ.Name, "Option") }

// called returns the names of the functions that examples call.
func called(examples []*doc.Example) map[string]bool {
	names := map[string]bool{}
	for _, e := range examples {
		ast.Inspect(e.Code, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.SelectorExpr); ok {
					names[f.Sel.Name] = true
				}
			}
			return true
		})
	}
	return names
}

// readPackage returns the documentation of a package with its examples.
func readPackage(t *testing.T, name string) *doc.Package {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(".", name, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(fset, file, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	p, err := doc.NewFromFiles(fset, parsed, path(name))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

package testskip_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSkipsAreFound: scripts/unraced runs the tests by their names, which it finds above the calls of Race. A test with the call
// in a helper, or in a function within it, would be run nowhere. Long has the same place, where one sees it.
func TestSkipsAreFound(t *testing.T) {
	name, calls := regexp.MustCompile(`^(Test|Fuzz)`), map[string]int{}
	const root = "../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != root):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "testskip.") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		first := map[ast.Node]bool{} // the calls that tests begin with
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !name.MatchString(f.Name.Name) {
				continue
			}
			for _, s := range f.Body.List {
				s, ok := s.(*ast.ExprStmt)
				if !ok || mark(s.X) == "" {
					break
				}
				first[s.X] = true
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(ast.Expr); ok && mark(call) != "" {
				calls[mark(call)]++
				if !first[call] {
					t.Errorf("%s: testskip.%s(t), or (f), has to be what a test begins with", path, mark(call))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls["Race"] == 0 || calls["Long"] == 0 {
		t.Errorf("tests call %v: neither Race nor Long is without", calls)
	}
}

// Mark is the name of the function of this package that e calls, if it calls one.
func mark(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return ""
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := s.X.(*ast.Ident); !ok || x.Name != "testskip" {
		return ""
	}
	return s.Sel.Name
}

package racetest_test

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

// TestSkipsAreFound: scripts/unraced runs the tests by their names, which it finds above the calls. A call in a helper or in
// a function within a test would be run nowhere.
func TestSkipsAreFound(t *testing.T) {
	name, calls := regexp.MustCompile(`^(Test|Fuzz)`), 0
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
		if err != nil || !strings.Contains(string(text), "racetest.Skip") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		first := map[ast.Node]bool{} // the calls that tests begin with
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && name.MatchString(f.Name.Name) && len(f.Body.List) > 0 {
				if s, ok := f.Body.List[0].(*ast.ExprStmt); ok {
					first[s.X] = true
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isSkip(call.Fun) {
				calls++
				if !first[call] {
					t.Errorf("%s: racetest.Skip has to be the first statement of a test, for scripts/unraced to find its name", path)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls == 0 {
		t.Error("no test calls racetest.Skip")
	}
}

func isSkip(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "racetest" && s.Sel.Name == "Skip"
}

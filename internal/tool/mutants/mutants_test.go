package main

import (
	"errors"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// Each fault can be planted where it is said to be, and names tests that there are, so that make mutants has something to say
// when it is run.
func TestFaultsCanBePlanted(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutants() {
		t.Run(m.Name, func(t *testing.T) {
			if names[m.Name] || m.Name == "" || m.Law == "" {
				t.Errorf("a fault has a name of its own, and a law")
			}
			names[m.Name] = true
			text, err := m.planted(root)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(m.File, ".go") {
				if _, err := parser.ParseFile(token.NewFileSet(), m.File, text, parser.SkipObjectResolution); err != nil {
					t.Errorf("with the fault the file is no Go: %v", err)
				}
			}
			if m.Old == m.New || len(m.Kills) == 0 {
				t.Error("nothing is planted, or nothing is to see it")
			}
			for _, k := range m.Kills {
				for _, name := range k.names() {
					if !k.exists(t, name) {
						t.Errorf("%s has no test %s", k.Package, name)
					}
				}
			}
		})
	}
}

// exists reports whether the package has a test of this name.
func (k test) exists(t *testing.T, name string) bool {
	top, _, _ := strings.Cut(name, "/")
	has := regexp.MustCompile(`(?m)^func ` + top + `\(`)
	files, err := filepath.Glob(filepath.Join(root, k.Package, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if has.Match(text) {
			return true
		}
	}
	return false
}

// A fault names tests, and not what their names begin with; of several that are named as one, one is enough.
func TestNames(t *testing.T) {
	m := mutant{Kills: []test{{".", "TestA"}, {"./b", "TestB/part"}, {"./b", "TestC|TestD"}}}
	if got, want := m.seenBy(), "`TestA`, b `TestB/part`, b `TestC` or `TestD`"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	for i, want := range []string{"^TestA$", "^TestB$/^part$", "^TestC$|^TestD$"} {
		if got := m.Kills[i].pattern(); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// What a test says is found among the rest.
func TestComplaint(t *testing.T) {
	for out, want := range map[string]string{
		"=== RUN   TestA\n--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n        a_test.go:3: two of them\nFAIL\n": "TestA: a_test.go:3: two of them",
		"panic: boom\n\ngoroutine 1\n":     "panic: boom",
		"panic: test timed out after 5m\n": "panic: test timed out after 5m",
		"exit status 2\n":                  "exit status 2",
	} {
		if got := complaint([]byte(out)); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// A test that fails has seen the fault, one that passes has not, and one that took too long is looked at again.
func TestVerdict(t *testing.T) {
	ended := func(script string) error { return exec.Command("sh", "-c", script).Run() }
	for name, c := range map[string]struct {
		out             string
		ended           error
		seen            string
		slow, said, not bool // not: the test did not see it
	}{
		"passed":    {"PASS", nil, "", false, false, true},
		"failed":    {"--- FAIL: TestA (0.00s)\n    a_test.go:1: it is lost\nFAIL", ended("exit 1"), "TestA: a_test.go:1: it is lost", false, true, false},
		"timed out": {"panic: test timed out after 2m0s", ended("exit 2"), "panic: test timed out after 2m0s", true, true, false},
		"killed":    {"", ended("kill -9 $$"), "", true, true, false},
		"not begun": {"", errors.New("no such file"), "", false, false, false},
	} {
		seen, slow, err := verdict([]byte(c.out), c.ended)
		var alive *survivor
		if seen != c.seen || slow != c.slow || (err == nil) != c.said || errors.As(err, &alive) != c.not {
			t.Errorf("%s: seen %q, slow %v, %v", name, seen, slow, err)
		}
	}
}

package monitoring

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

var long = flag.Bool("long", false, "run what takes long, too")

const (
	ops   = "../../../ops/"
	docs  = "../../../docs/"
	page  = docs + "monitoring.md"
	rules = ops + "prometheus/hookonce.rules.yaml"
)

// rule is a rule of Prometheus; it has Record or Alert.
type rule struct {
	Record, Alert, Expr string
	For                 string
	Labels, Annotations map[string]string
}

type group struct {
	Name  string
	Rules []rule
}

func readGroups(t *testing.T) []group {
	t.Helper()
	var file struct{ Groups []group }
	if err := yaml.Unmarshal([]byte(read(t, rules)), &file); err != nil {
		t.Fatal(err)
	}
	return file.Groups
}

// alerts returns the rules that alert.
func alerts(t *testing.T) (all []rule) {
	t.Helper()
	for _, g := range readGroups(t) {
		for _, r := range g.Rules {
			if r.Alert != "" {
				all = append(all, r)
			}
		}
	}
	if len(all) < 30 {
		t.Fatalf("only %d rules that alert", len(all))
	}
	return all
}

// worlds is a file of tests for promtool.
type worlds struct {
	Order []string `yaml:"group_eval_order"`
	Tests []struct {
		Name   string
		Checks []struct {
			Want []struct {
				Labels string
			} `yaml:"exp_samples"`
		} `yaml:"promql_expr_test"`
	}
}

// testFiles are the files of tests, by name.
func testFiles(t *testing.T) map[string]worlds {
	t.Helper()
	names, err := filepath.Glob(ops + "prometheus/*.tests.yaml")
	if err != nil || len(names) < 4 {
		t.Fatalf("%v, %v", names, err)
	}
	all := map[string]worlds{}
	for _, name := range names {
		var w worlds
		if err := yaml.Unmarshal([]byte(read(t, name)), &w); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[filepath.Base(name)] = w
	}
	return all
}

// board is a dashboard of Grafana.
type board struct {
	SchemaVersion int
	Panels        []panel
	Annotations   struct{ List []struct{ Name, Expr string } }
	Templating    struct {
		List []struct {
			Name, Type string
			Query      json.RawMessage
		}
	}
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []struct{ Expr string }
	Datasource               struct{ UID string }
}

func readBoard(t *testing.T) board {
	t.Helper()
	var b board
	if err := json.Unmarshal([]byte(read(t, ops+"grafana/hookonce.json")), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

var (
	variable = regexp.MustCompile(`\$(\w+)`)
	values   = map[string]string{"__rate_interval": "5m", "job": ".*", "instance": ".*", "source": ".*", "destination": ".*"}
)

// filled returns the query of a panel with values for its variables.
func filled(t *testing.T, query string) string {
	t.Helper()
	return variable.ReplaceAllStringFunc(query, func(v string) string {
		value, known := values[v[1:]]
		if !known {
			t.Errorf("%s: there is no variable %s", query, v)
		}
		return value
	})
}

// query is one that the board asks, and where it stands.
type query struct{ where, expr string }

// queries returns all queries of the board.
func queries(t *testing.T) (all []query) {
	t.Helper()
	b := readBoard(t)
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			all = append(all, query{p.Title, filled(t, target.Expr)})
		}
	}
	for _, a := range b.Annotations.List {
		all = append(all, query{a.Name, filled(t, a.Expr)})
	}
	if len(all) < 50 {
		t.Fatalf("only %d queries", len(all))
	}
	return all
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// program returns the path of a program that these tests need.
func program(t *testing.T, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: no " + name)
	}
	path, err := throwaway.Program(name, name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs a program in a folder, and fails with what it says if that fails.
func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return string(out)
}

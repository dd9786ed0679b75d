package monitoring

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestBoard: each panel says what it shows, in a unit, at a place of its own, of the Prometheus that was chosen.
func TestBoard(t *testing.T) {
	b := readBoard(t)
	if b.SchemaVersion < 42 {
		t.Errorf("schemaVersion is %d, that of an old Grafana", b.SchemaVersion)
	}
	var names []string
	for _, v := range b.Templating.List {
		names = append(names, v.Name)
	}
	if want := []string{"datasource", "job", "instance", "source", "destination"}; !slices.Equal(names, want) {
		t.Errorf("the variables are %v, want %v", names, want)
	}
	ids, titles, taken := map[int]bool{}, map[string]bool{}, map[[2]int]string{}
	for _, p := range b.Panels {
		if ids[p.ID] || titles[p.Title] {
			t.Errorf("%s (%d) is there twice", p.Title, p.ID)
		}
		ids[p.ID], titles[p.Title] = true, true
		at := p.GridPos
		if at.W < 1 || at.H < 1 || at.X+at.W > 24 {
			t.Errorf("%s is at %+v, beyond the edge", p.Title, at)
		}
		for x := range at.W {
			for y := range at.H {
				cell := [2]int{at.X + x, at.Y + y}
				if taken[cell] != "" {
					t.Fatalf("%s is upon %s", p.Title, taken[cell])
				}
				taken[cell] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Description) < 20 || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("%s has no description, unit or query", p.Title)
		}
		if p.Datasource.UID != "${datasource}" {
			t.Errorf("%s asks %q", p.Title, p.Datasource.UID)
		}
	}
}

// TestQueriesAreQueries: promtool can read each query of the board.
func TestQueriesAreQueries(t *testing.T) {
	promtool := program(t, "promtool")
	var all []map[string]string
	for i, q := range queries(t) {
		all = append(all, map[string]string{"record": fmt.Sprintf("q%d", i), "expr": q.expr})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "board", "rules": all}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "board.yaml"), string(text))
	run(t, dir, promtool, "check", "rules", "board.yaml")
}

// TestMixin: jsonnet evaluates the mixin to what is in the files.
func TestMixin(t *testing.T) {
	jsonnet := program(t, "jsonnet")
	const ask = `local m = import 'mixin.libsonnet';
local names(groups) = [r.alert for g in groups for r in g.rules if std.objectHas(r, 'alert')];
local records(groups) = [r.record for g in groups for r in g.rules if std.objectHas(r, 'record')];
std.join(' ', [m._config.grafanaFolder, m.grafanaDashboards['hookonce.json'].uid,
  '' + std.length(names(m.prometheusAlerts.groups)), '' + std.length(records(m.prometheusAlerts.groups)),
  '' + std.length(names(m.prometheusRules.groups)), '' + std.length(records(m.prometheusRules.groups))])`
	got := strings.TrimSpace(run(t, ops+"mixin", jsonnet, "--string", "-e", ask))
	all := 0
	for _, g := range readGroups(t) {
		all += len(g.Rules)
	}
	n := len(alerts(t))
	if want := fmt.Sprintf("hookonce hookonce %d 0 0 %d", n, all-n); got != want {
		t.Errorf("the mixin has %q, want %q", got, want)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

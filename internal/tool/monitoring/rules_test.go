package monitoring

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/testskip"
)

// TestRules has promtool run the worlds in which the rules fire, or do not.
func TestRules(t *testing.T) {
	testskip.Long(t)
	promtool := program(t, "promtool")
	for name := range testFiles(t) {
		t.Run(name, func(t *testing.T) {
			if slow := strings.Contains(name, "storms") || strings.Contains(name, "weeks"); slow && !*long {
				t.Skip("it takes long: make ops runs it")
			}
			t.Parallel()
			run(t, ops+"prometheus", promtool, "test", "rules", name)
		})
	}
}

// TestEveryAlertIsTested: for each alert there is a world in which it fires with its severity, and in which it does not
// at another time.
func TestEveryAlertIsTested(t *testing.T) {
	fires, rests := map[string]bool{}, map[string]bool{}
	for _, file := range testFiles(t) {
		for _, w := range file.Tests {
			times := map[string]int{}
			for _, check := range w.Checks {
				for _, want := range check.Want {
					times[want.Labels]++
				}
			}
			for labels, n := range times {
				fires[labels] = true
				rests[labels] = rests[labels] || n < len(w.Checks)
			}
		}
	}
	for _, a := range alerts(t) {
		labels := fmt.Sprintf(`{alertname="%s",severity="%s"}`, a.Alert, a.Labels["severity"])
		if !fires[labels] {
			t.Errorf("%s fires in no world", labels)
		} else if !rests[labels] {
			t.Errorf("%s does not rest in the world in which it fires", labels)
		}
	}
}

// TestWorldsEvaluateInOrder: promtool evaluates groups at random, those first that are not listed. An alert would go by
// what was recorded a step before.
func TestWorldsEvaluateInOrder(t *testing.T) {
	var order []string
	for _, g := range readGroups(t) {
		order = append(order, g.Name)
	}
	for name, file := range testFiles(t) {
		if !slices.Equal(file.Order, order) {
			t.Errorf("%s: group_eval_order is %v, and the groups are %v", name, file.Order, order)
		}
	}
}

// TestAlertsStandInThePage: the page has a row for each alert, with its severity and what to do, to which the alert
// leads; and none for others.
func TestAlertsStandInThePage(t *testing.T) {
	text := read(t, page)
	severities := map[string][]string{}
	for _, a := range alerts(t) {
		severities[a.Alert] = append(severities[a.Alert], a.Labels["severity"])
		if want := "https://github.com/hookonce/hookonce/blob/main/docs/monitoring.md#" + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %q, want %q", a.Alert, a.Annotations["runbook_url"], want)
		}
		for _, name := range []string{"summary", "description"} {
			if a.Annotations[name] == "" {
				t.Errorf("%s has no %s", a.Alert, name)
			}
		}
		if !slices.Contains([]string{"page", "ticket", "info"}, a.Labels["severity"]) {
			t.Errorf("%s has the severity %q", a.Alert, a.Labels["severity"])
		}
	}
	rows := 0
	for line := range strings.Lines(text) {
		name, found := strings.CutPrefix(line, `| <a id="`)
		if !found {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(name, "|\n "), "|")
		id, title, _ := strings.Cut(cells[0], `"></a>`)
		title = strings.Trim(title, "` ")
		if strings.ToLower(title) != id || severities[title] == nil {
			t.Errorf("the page has a row for %s (%s), which is no alert", title, id)
		}
		for _, severity := range severities[title] {
			if !strings.Contains(cells[1], severity) {
				t.Errorf("the page does not say that %s may be a %s", title, severity)
			}
		}
		if len(cells) != 4 || strings.TrimSpace(cells[3]) == "" {
			t.Errorf("the page does not say what to do about %s", title)
		}
	}
	if rows != len(severities) {
		t.Errorf("the page has %d rows for %d alerts", rows, len(severities))
	}
}

// TestPageShowsAConfiguration: the sample for Prometheus is one, beside the file of rules.
func TestPageShowsAConfiguration(t *testing.T) {
	promtool := program(t, "promtool")
	_, rest, _ := strings.Cut(read(t, page), "```yml\n")
	sample, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page has no sample")
	}
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	write(t, token, "fake")
	write(t, filepath.Join(dir, "prometheus.yml"), strings.ReplaceAll(sample, "/run/secrets/prometheus", token))
	write(t, filepath.Join(dir, "hookonce.rules.yaml"), read(t, rules))
	if out := run(t, dir, promtool, "check", "config", "prometheus.yml"); !strings.Contains(out, "rules found") {
		t.Errorf("it loads no rules: %s", out)
	}
}

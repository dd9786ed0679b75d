package monitoring

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	word = regexp.MustCompile(`\bhookonce_[a-z_]+\b`) // files of packages have digits, metrics have none
	row  = regexp.MustCompile("(?m)^\\| `(hookonce_[a-z_]+)` \\| ([^|]*) \\|")
)

// metrics returns the names of all metrics that the program registers, and of their parts: from the table of the page,
// which TestMetricsStandInAPage of internal/gateway holds to what is registered.
func metrics(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(read(t, page), -1) {
		name := m[1]
		all[name] = true
		histogram := strings.HasSuffix(name, "_seconds") && !strings.HasSuffix(name, "_timestamp_seconds") || strings.HasSuffix(name, "_size")
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			all[name+part] = all[name+part] || histogram
		}
	}
	for _, m := range cellMetric.FindAllStringSubmatch(read(t, "../../cells/metrics.go"), -1) { // which a gateway without cells has not
		all[m[1]] = true
		all[m[1]+"_bucket"] = strings.HasSuffix(m[1], "_seconds")
	}
	maps.DeleteFunc(all, func(_ string, there bool) bool { return !there })
	if len(all) < 60 {
		t.Fatalf("only %d metrics were found; is the pattern still right?", len(all))
	}
	return all
}

// recorded returns the names that the rules record.
func recorded(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, g := range readGroups(t) {
		for _, r := range g.Rules {
			all[r.Record] = true
		}
	}
	return all
}

var series = regexp.MustCompile(`\b(?:[a-z_]+:)?hookonce_[a-z0-9_]+(?::[a-z0-9_]+)?`)

// TestRulesAndBoardNameMetrics: what is asked for is registered or recorded. A query for a metric that is not there has no
// error, and no answer.
func TestRulesAndBoardNameMetrics(t *testing.T) {
	known := metrics(t)
	maps.Copy(known, recorded(t))
	texts := map[string]string{rules: read(t, rules), "board": read(t, ops+"grafana/hookonce.json")}
	for name := range testFiles(t) {
		texts[name] = read(t, ops+"prometheus/"+name)
	}
	for where, text := range texts {
		text = strings.ReplaceAll(text, "hookonce_breaker_state|hookonce_journal_backlog", "hookonce_breaker_state hookonce_journal_backlog")
		found := series.FindAllString(text, -1)
		if len(found) == 0 {
			t.Errorf("%s: no names were found; is the pattern still right?", where)
		}
		for _, name := range found {
			if !known[name] {
				t.Errorf("%s names %s, which nobody exposes or records", where, name)
			}
		}
	}
}

// notMetrics are the other names in pages that begin likewise: roles, schemas and tables.
var notMetrics = []string{"hookonce_gateway", "hookonce_owner", "hookonce_before", "hookonce_goose_db_version", "hookonce_claims", "hookonce_deliveries", "hookonce_effects", "hookonce_lanes"}

// declared is a metric in the code of package hookonceprom, which is a module of its own.
var declared = regexp.MustCompile(`"(hookonce_[a-z_]+)", (?:Help: )?"`)

// cellMetric is a metric in the code of package cells.
var cellMetric = regexp.MustCompile(`Name: "(hookonce_cell_[a-z_]+)"`)

// TestPagesNameMetrics: a metric that a page names is registered, by the gateway or by package hookonceprom.
func TestPagesNameMetrics(t *testing.T) {
	known := metrics(t)
	for _, m := range declared.FindAllStringSubmatch(read(t, "../../../hookonceprom/metrics.go"), -1) {
		known[m[1]] = true
	}
	pages, err := filepath.Glob(docs + "*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range append(pages, "../../../README.md") {
		if filepath.Base(name) == "house.md" { // a drawing, whose boxes have such names
			continue
		}
		for _, metric := range word.FindAllString(read(t, name), -1) {
			found++
			begins := strings.HasSuffix(metric, "_") && slices.ContainsFunc(slices.Collect(maps.Keys(known)), func(m string) bool { return strings.HasPrefix(m, metric) })
			if !known[metric] && !begins && !slices.Contains(notMetrics, metric) && !strings.HasPrefix(metric, "hookonce_conformance_") {
				t.Errorf("%s names %s, which is no metric", filepath.Base(name), metric)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d names were found; is the pattern still right?", found)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([a-z./-]*)#([a-z0-9-]+)\)`)
	heading = regexp.MustCompile("(?m)^#+ (.*)$")
	id      = regexp.MustCompile(`<a id="([^"]+)">`)
	mark    = regexp.MustCompile("[^a-z0-9 _-]")
)

// TestPageLeadsSomewhere: each link of the page, and each to one of its parts, leads to what there is.
func TestPageLeadsSomewhere(t *testing.T) {
	anchors := func(name string) map[string]bool {
		all := map[string]bool{}
		text := read(t, name)
		for _, m := range heading.FindAllStringSubmatch(text, -1) {
			all[strings.ReplaceAll(mark.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
		}
		for _, m := range id.FindAllStringSubmatch(text, -1) {
			all[m[1]] = true
		}
		return all
	}
	check := func(from string, only string) (checked int) {
		for _, m := range link.FindAllStringSubmatch(read(t, docs+from), -1) {
			to := m[1]
			if to == "" {
				to = from
			}
			if only != "" && to != only {
				continue
			}
			checked++
			if _, err := os.Stat(docs + to); err != nil {
				t.Errorf("%s: %v", from, err)
			} else if !anchors(docs + to)[m[2]] {
				t.Errorf("%s leads to %s#%s, which is not there", from, to, m[2])
			}
		}
		return checked
	}
	if n := check("monitoring.md", ""); n < 10 {
		t.Errorf("only %d links were found; is the pattern still right?", n)
	}
	if check("operating.md", "monitoring.md") == 0 {
		t.Error("operating.md does not lead to the page")
	}
}

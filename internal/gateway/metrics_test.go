package gateway

import (
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/pagetest"
)

var update = flag.Bool("update", false, "write the table of metrics in docs/monitoring.md anew")

var described = regexp.MustCompile(`^Desc\{fqName: ("hookonce_[a-z_]+"), help: ("(?:[^"\\]|\\.)*"), .*constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// TestMetricsStandInAPage: every metric that a gateway exposes, counted already or not, stands in docs/monitoring.md.
// Package internal/tool/monitoring holds the rules, the board and the pages to that table.
func TestMetricsStandInAPage(t *testing.T) {
	rows := map[string]string{}
	onEveryStore(t, func(t *testing.T, store config.Store) {
		maps.Copy(rows, metricRows(t, store))
	})
	if len(rows) < 40 {
		t.Fatalf("only %d metrics were found; is the pattern still right?", len(rows))
	}
	table := "| metric | labels | what it says |\n|---|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		table += rows[name]
	}
	pagetest.Table(t, "../../docs/monitoring.md", "metrics", table, *update)
}

// metricRows returns the row of every metric of a gateway with a source of every mode, by name.
func metricRows(t *testing.T, store config.Store) map[string]string {
	cfg := configured(store, "http://127.0.0.1:9")
	for _, mode := range []string{config.Sync, config.Idempotent, config.Observe} {
		s := source(mode, "http://127.0.0.1:9")
		if s.Mode = mode; mode == config.Idempotent {
			s.Provider, s.Secrets = "", nil
		}
		cfg.Sources = append(cfg.Sources, s)
	}
	cfg.Tracing.Endpoint = "http://127.0.0.1:9"
	registry := prometheus.NewRegistry()
	g, err := Start(t.Context(), cfg, Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, g) })
	all := make(chan *prometheus.Desc)
	go func() {
		defer close(all)
		registry.Describe(all)
	}()
	rows := map[string]string{}
	for d := range all {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			t.Errorf("this metric is not of the usual form: %v", d)
			continue
		}
		name, nameErr := strconv.Unquote(m[1])
		help, helpErr := strconv.Unquote(m[2])
		if nameErr != nil || helpErr != nil || help == "" {
			t.Errorf("this metric does not say what it means: %v", d)
		}
		var labels []string
		for label := range strings.SplitSeq(m[3]+","+m[4], ",") {
			if label, _, _ = strings.Cut(label, "="); label != "" {
				labels = append(labels, "`"+label+"`")
			}
		}
		rows[name] = fmt.Sprintf("| `%s` | %s | %s |\n", name, strings.Join(labels, ", "), strings.TrimSuffix(help, "."))
	}
	return rows
}

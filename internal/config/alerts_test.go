package config

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/alert"
)

const alertsSource = `
sources:
  - {name: billing, provider: stripe, secrets: [whsec_fake-secret-of-it], to: "http://127.0.0.1:3000/", expect_every: 26h}
`

// The sample of the page changes the rules as the page says.
func TestAlertRules(t *testing.T) {
	page, err := os.ReadFile("../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "### Change a rule")
	_, rest, _ = strings.Cut(rest, "```yaml\n")
	sample, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/alerts.md has no sample")
	}
	cfg, err := Load(Input{Path: "hookonce.yaml", Data: []byte(sample + alertsSource)})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Sources[0].ExpectEvery != 26*time.Hour {
		t.Errorf("expect_every is %v", cfg.Sources[0].ExpectEvery)
	}
	set, rules := cfg.Alerts.Settings(), map[string]alert.Rule{}
	for _, r := range set.Rules() {
		rules[r.Name] = r
	}
	if r := rules["backlog_old"]; r.Threshold != 1800 || r.For != 5*time.Minute {
		t.Errorf("backlog_old: %+v", r)
	}
	if _, on := rules["one_again"]; on || rules["died"].Threshold != 50 || rules[alert.FirstAttemptsFail].Threshold != 0.01 || len(rules) != len(alert.Rules())-1 {
		t.Errorf("the rules are %+v", rules)
	}
	if shown := cfg.Show(); !strings.Contains(shown, "rule: backlog_old") {
		t.Errorf("it is not shown:\n%s", shown)
	}
}

// What cannot be a rule is refused, with what to do.
func TestAlertRulesThatCannotBe(t *testing.T) {
	for rule, says := range map[string]string{
		"{rule: no_such_rule}":                         "no_such_rule",
		"{threshold: 3}":                               "lacks its rule",
		"{rule: backlog_old, threshold: 5}":            "cannot be that of backlog_old",
		"{rule: died, threshold: 5m}":                  "cannot be that of died",
		"{rule: came_again, threshold: 5}":             "has none; remove it",
		"{rule: first_attempts_fail, threshold: 0.1}":  "alerts.budget",
		"{rule: died, for: soon}":                      "for",
		"{rule: died, for: 1m}, {rule: died, for: 2m}": "is changed already",
	} {
		_, err := Load(Input{Path: "hookonce.yaml", Data: []byte("alerts:\n  rules: [" + rule + "]\n" + alertsSource)})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want it to say %q", rule, err, says)
		}
	}
}

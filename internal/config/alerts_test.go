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
		"{rule: no_such_rule}":                         `"no_such_rule" is no rule; write `,
		"{rule: backlog_odl, threshold: 5m}":           `"backlog_odl" is no rule; did you mean "backlog_old"?`,
		"{threshold: 3}":                               "lacks its rule",
		"{rule: backlog_old, threshold: 5}":            `rule backlog_old: threshold: "5" is not a length of time`,
		"{rule: died, threshold: 5m}":                  `rule died: threshold: "5m" does not fit; write a number from 0.000001 to 1000000000, such as 50`,
		"{rule: came_again, threshold: 5}":             "rule came_again: it has no threshold; remove it",
		"{rule: first_attempts_fail, threshold: 0.1}":  "alerts.budget",
		"{rule: died, for: soon}":                      "for",
		"{rule: died, for: 1m}, {rule: died, for: 2m}": "is changed already",
	} {
		_, err := Load(Input{Path: "hookonce.yaml", Data: []byte("alerts:\n  rules: [" + rule + "]\n" + alertsSource)})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want it to say %q, and nothing else", rule, err, says)
		}
	}
}

// What is wrong with a value says what to write there, and not in another setting.
func TestValuesOfAlertsThatCannotBe(t *testing.T) {
	for written, says := range map[string]string{
		"alerts: {budget: 5}":                                                       "alerts.budget: \"5\" does not fit; write a share from 0.0001 to 0.05, such as 0.005",
		"alerts: {dashboard_url: hooks.internal}":                                   "write one like https://hooks.internal/",
		"tracing: {endpoint: collector}":                                            "write one like http://127.0.0.1:4318",
		"tracing: {endpoint: 'http://127.0.0.1:4318', secret: abc, header: X-Team}": "tracing.secret: a token does not belong into this file",
	} {
		_, err := Load(Input{Path: "hookonce.yaml", Data: []byte(written + "\n" + alertsSource)})
		if err == nil || !strings.HasSuffix(err.Error(), says) && !strings.Contains(err.Error(), says+";") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want it to say %q, and nothing else", written, err, says)
		}
	}
}

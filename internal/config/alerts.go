package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/settings"
)

// Alerts says what is looked for.
type Alerts struct {
	// Enabled is set if alerts are evaluated, recorded, counted, and told where somebody is to be told.
	Enabled bool
	// Name tells this installation from others that tell the same people. Empty: there are none.
	Name string
	// Budget is the share of first attempts that may fail.
	Budget float64
	// StoreCapacity is how many bytes the database may grow to, where the gateway cannot see the disk. Zero: nobody knows.
	StoreCapacity int64
	// Rules change rules.
	Rules []AlertRule
}

// AlertRule changes one rule.
type AlertRule struct {
	Rule    string
	Enabled bool
	// For and Threshold are as somebody wrote them. Empty: as the rule has it.
	For, Threshold string

	origin settings.Layer
	at     settings.Place
}

// rulesKey is the list of rules, below alerts.
const rulesKey = "rules"

// alertTable declares the settings of what is looked for.
var alertTable = settings.Table[Config]{
	{Key: "alerts.enabled", Default: "true", Help: "look for what is wrong, keep a record of it, and tell those of alerts.notify",
		Bind: func(c *Config) settings.Value { return settings.Bool(&c.Alerts.Enabled) }},
	{Key: "alerts.name", Help: "`name` of this installation, where others tell the same people; it is in every key, fingerprint and message",
		Bind: func(c *Config) settings.Value { return settings.Text(&c.Alerts.Name, checkName) }},
	{Key: "alerts.budget", Default: "0.005", Help: "`share` of first attempts that may fail before somebody is told",
		Bind: func(c *Config) settings.Value {
			return settings.Number(&c.Alerts.Budget, 0.0001, 0.05, "a share", "0.005")
		}},
	{Key: "alerts.store_capacity", Help: "`size` that the tables may grow to, where the gateway cannot see the disk: on Postgres",
		Bind: func(c *Config) settings.Value { return settings.Size(&c.Alerts.StoreCapacity, 1<<20, 1<<50) }},
}

// ruleTable declares every setting of a rule.
var ruleTable = settings.Table[AlertRule]{
	{Key: "rule", Bind: func(r *AlertRule) settings.Value { return settings.Text(&r.Rule, checkRule) }},
	{Key: "enabled", Default: "true", Bind: func(r *AlertRule) settings.Value { return settings.Bool(&r.Enabled) }},
	{Key: "for", Bind: func(r *AlertRule) settings.Value { return settings.Text(&r.For, checkFor) }},
	{Key: "threshold", Bind: func(r *AlertRule) settings.Value {
		return settings.Text(&r.Threshold, func(string) error { return nil })
	}},
}

func ruleNames() (names []string) {
	for _, r := range alert.Rules() {
		names = append(names, r.Name)
	}
	return names
}

func checkRule(s string) error {
	if names := ruleNames(); !slices.Contains(names, s) {
		return fmt.Errorf("%q is no rule%s", s, settings.Suggest(s, names))
	}
	return nil
}

func checkFor(s string) error {
	return settings.Duration(new(time.Duration), 0, settings.Day).Set(s)
}

// where returns the place that a setting of the rule came from, or that of the rule.
func (r *AlertRule) where(key string) settings.Place { return r.origin.Where(r.at, key) }

func (r *AlertRule) changes(next *AlertRule) []settings.Change {
	return settings.Differ(r, next, ruleTable, r.origin, next.origin)
}

// rule builds a rule from what the file says.
func (l *loader) rule(from section) AlertRule {
	r := AlertRule{at: from.at}
	r.origin = settings.Apply(l.Report, &r, ruleTable, from.says)
	return r
}

// threshold returns what is written in the unit of the rule.
func (r *AlertRule) threshold(unit alert.Unit) (float64, error) {
	if unit == alert.Seconds {
		var d time.Duration
		err := settings.Duration(&d, time.Second, 366*settings.Day).Set(r.Threshold)
		return d.Seconds(), err
	}
	var n float64
	err := settings.Number(&n, 1e-6, 1e9, "a number", "50").Set(r.Threshold)
	return n, err
}

// Settings returns the rules as they are changed, for package alert.
func (a *Alerts) Settings() alert.Settings {
	budget := a.Budget
	all := alert.Settings{alert.FirstAttemptsFail: {Threshold: &budget}}
	for _, r := range a.Rules {
		own := all[r.Rule]
		own.Off = !r.Enabled
		if r.For != "" {
			own.For = new(time.Duration)
			_ = settings.Duration(own.For, 0, settings.Day).Set(r.For) // checked
		}
		if n, err := r.threshold(unitOf(r.Rule)); r.Threshold != "" && err == nil {
			own.Threshold = &n
		}
		all[r.Rule] = own
	}
	return all
}

func unitOf(rule string) alert.Unit {
	all := alert.Rules()
	if i := slices.IndexFunc(all, func(r alert.Rule) bool { return r.Name == rule }); i >= 0 {
		return all[i].Unit
	}
	return ""
}

// checkAlerts looks for rules that are not named or named twice, and for thresholds that are none.
func checkAlerts(r *settings.Report, cfg *Config) {
	seen := map[string]settings.Place{}
	for i := range cfg.Alerts.Rules {
		own := &cfg.Alerts.Rules[i]
		if !own.origin.Has("rule") {
			r.Fault(own.at, "an element of alerts.rules lacks its rule; write rule: and a name such as backlog_old")
			continue
		}
		if own.Rule == "" {
			continue // reported already
		}
		if first, twice := seen[own.Rule]; twice {
			r.Fault(own.where("rule"), "rule %s: it is changed already, at %s; write all of it there", own.Rule, first)
		}
		seen[own.Rule] = own.where("rule")
		if own.Threshold == "" {
			continue
		}
		switch unit := unitOf(own.Rule); {
		case own.Rule == alert.FirstAttemptsFail:
			r.Fault(own.where("threshold"), "rule %s: its threshold is the setting alerts.budget; write it there", own.Rule)
		case unit == "":
			r.Fault(own.where("threshold"), "rule %s: it has no threshold; remove it", own.Rule)
		default:
			if _, err := own.threshold(unit); err != nil {
				r.Fault(own.where("threshold"), "rule %s: threshold: %v", own.Rule, err)
			}
		}
	}
}

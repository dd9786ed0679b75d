package letter_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/alerting"
	"github.com/hookonce/hookonce/internal/alerting/letter"
	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/notify"
	"github.com/hookonce/hookonce/internal/overview"
)

var update = flag.Bool("update", false, "write the golden files")

var now = time.Date(2026, 11, 23, 2, 55, 0, 0, time.UTC)

func ago(d time.Duration) time.Time    { return now.Add(-d) }
func since(d time.Duration) *time.Time { t := ago(d); return &t }

const dashboard = "https://hooks.internal/"

// worlds has for each rule what is wrong when it fires.
var worlds = map[string]func(*overview.Snapshot, *overview.SourceState, *overview.DestinationState){
	"store_away": func(s *overview.Snapshot, _ *overview.SourceState, _ *overview.DestinationState) {
		s.Store.Away = &overview.Trouble{Since: ago(2 * time.Minute), Error: "dial tcp 10.0.0.5:5432: connect: connection refused"}
	},
	"store_unwritable": func(s *overview.Snapshot, _ *overview.SourceState, _ *overview.DestinationState) {
		s.Store.Unwritable = &overview.Trouble{Since: ago(2 * time.Minute), Error: "cannot execute INSERT in a read-only transaction"}
	},
	"store_slow": func(s *overview.Snapshot, _ *overview.SourceState, _ *overview.DestinationState) {
		s.Store.CommitMS = 812
	},
	"store_unread": func(s *overview.Snapshot, _ *overview.SourceState, _ *overview.DestinationState) {
		s.Parts = []overview.Part{{Name: overview.PartOpen, Read: ago(20 * time.Minute), Error: "counting open work: timeout: context deadline exceeded"}}
	},
	"senders_refused": func(_ *overview.Snapshot, o *overview.SourceState, _ *overview.DestinationState) {
		o.Five.Ours, o.Five.OursBy = 214, map[string]int64{"row_refused": 200, "timeout": 14}
	},
	"secret_rotated": func(_ *overview.Snapshot, o *overview.SourceState, _ *overview.DestinationState) {
		o.LastVerified, o.FailedSince = ago(21*time.Minute), ago(20*time.Minute)
		o.Latest = overview.Intake{Received: 20, Unverified: map[string]int64{"signature_mismatch": 20}}
	},
	"clock_off": func(_ *overview.Snapshot, o *overview.SourceState, _ *overview.DestinationState) {
		o.LastVerified, o.FailedSince = ago(21*time.Minute), ago(20*time.Minute)
		o.Latest = overview.Intake{Received: 20, Unverified: map[string]int64{"timestamp_old": 20}}
	},
	"destination_failing": func(_ *overview.Snapshot, _ *overview.SourceState, d *overview.DestinationState) {
		d.Health = &fleet.Health{State: "ill", Since: since(41 * time.Minute), Error: "status 500"}
		d.Backlog, d.Oldest, d.Since = 1204, since(41*time.Minute), since(41*time.Minute)
		d.Failures = []overview.Failure{failure()}
	},
	"group_blocked": func(_ *overview.Snapshot, _ *overview.SourceState, d *overview.DestinationState) {
		d.Blocked = &overview.Blocked{Resource: "in_1QbT", Event: 924305118331207681, Waiting: 12}
	},
	"type_fails": func(_ *overview.Snapshot, _ *overview.SourceState, d *overview.DestinationState) {
		f := failure()
		f.Status, f.Error, f.Type, f.Dead = 422, "status 422", "charge.refunded", 3
		d.Failures, d.Dead = []overview.Failure{f}, 3
	},
	"paused": func(_ *overview.Snapshot, _ *overview.SourceState, d *overview.DestinationState) {
		d.Pause = &fleet.Pause{At: ago(26 * time.Hour), By: "ann", Reason: "migrating the ledger"}
		d.Backlog, d.Oldest, d.Since = 311, since(26*time.Hour), since(26*time.Hour)
	},
	"first_attempts_fail": func(_ *overview.Snapshot, _ *overview.SourceState, d *overview.DestinationState) {
		d.Hour, d.Five = overview.Outcomes{First: 1000, FirstFailed: 90, Done: 910}, overview.Outcomes{First: 100, FirstFailed: 10}
		d.Failures = []overview.Failure{failure()}
	},
	"died": func(_ *overview.Snapshot, _ *overview.SourceState, d *overview.DestinationState) {
		f := failure()
		f.Dead, f.Type = 19, ""
		d.Dead, d.Hour.Dead, d.Failures = 19, 19, []overview.Failure{f}
	},
	"backlog_old": func(_ *overview.Snapshot, _ *overview.SourceState, d *overview.DestinationState) {
		d.Backlog, d.Oldest, d.Since, d.DrainsIn = 40_000, since(35*time.Minute), since(35*time.Minute), new(5400.0)
	},
	"effects_doubled": func(s *overview.Snapshot, _ *overview.SourceState, _ *overview.DestinationState) {
		s.Reconciled = []overview.Reconciled{{At: ago(20 * time.Minute), Until: now.Add(time.Hour), Table: "payments", Doubled: 3, Surplus: 4, Sample: "evt_1QbT", Command: "hookonce reconcile effects --table payments"}}
	},
	"cell_away": func(s *overview.Snapshot, _ *overview.SourceState, _ *overview.DestinationState) {
		s.Cells = []overview.CellState{{Name: "us", Error: "dial tcp 10.0.0.7:8444: connect: connection refused"}}
	},
	"conflict": func(_ *overview.Snapshot, o *overview.SourceState, _ *overview.DestinationState) {
		o.Hour.Conflicts = 4
	},
	"unrouted": func(_ *overview.Snapshot, o *overview.SourceState, _ *overview.DestinationState) {
		o.Destinations, o.Day = []string{"ledger"}, overview.Routed{New: 212, Unrouted: 212}
	},
	"came_again": func(_ *overview.Snapshot, o *overview.SourceState, _ *overview.DestinationState) {
		o.ReseenFor, o.Five = 3, overview.Intake{Accepted: 100, Reseen: 60}
	},
	"never_arrived": func(_ *overview.Snapshot, o *overview.SourceState, _ *overview.DestinationState) {
		o.NeverArrived = &overview.Lost{Count: 3, First: ago(26 * time.Hour)}
	},
	"reconcile_late": func(_ *overview.Snapshot, o *overview.SourceState, _ *overview.DestinationState) {
		o.Compared = &overview.Compared{Every: 900, Through: ago(2 * time.Hour), Ended: ago(3 * time.Minute), Error: "listing events: the token was refused (403)"}
	},
	"silent_source": func(_ *overview.Snapshot, o *overview.SourceState, _ *overview.DestinationState) {
		o.LastVerified, o.Silence.Missing = ago(3*time.Hour), 41
	},
	"secret_ends": func(_ *overview.Snapshot, o *overview.SourceState, _ *overview.DestinationState) {
		until := now.Add(3 * 24 * time.Hour)
		o.Secrets = []overview.Secret{{Hour: 20}, {Until: &until, Hour: 180}}
	},
	"cleanup_late": func(s *overview.Snapshot, _ *overview.SourceState, _ *overview.DestinationState) {
		s.Since, s.Store.Cleaned = ago(72*time.Hour), ago(30*time.Hour)
	},
	"partitions_end": func(s *overview.Snapshot, _ *overview.SourceState, _ *overview.DestinationState) {
		s.Store.Partitioned = now.Add(20 * time.Hour)
	},
	"store_full": func(s *overview.Snapshot, _ *overview.SourceState, _ *overview.DestinationState) {
		s.Store.FreeBytes, s.Store.DailyBytes = 9<<30, 1<<30
	},
}

func failure() overview.Failure {
	return overview.Failure{Kind: "status", Status: 500, Error: "status 500", Count: 64, Since: ago(41 * time.Minute), Latest: ago(8 * time.Second), Source: "billing", Event: 924305118331207681, Type: "invoice.paid"}
}

// fired returns what the rule says in its world.
func fired(t *testing.T, rule string) alert.Alert {
	t.Helper()
	s := &overview.Snapshot{
		At: now, Since: ago(30 * 24 * time.Hour), Parts: []overview.Part{{Name: "tallies", Read: ago(2 * time.Minute)}}, Store: overview.StoreState{Cleaned: ago(time.Minute), Commits: 100, CommitMS: 2},
		Sources: []overview.SourceState{{Name: "billing", Provider: "stripe", Path: "/in/billing", LastVerified: now, Usual: overview.Baseline{Share: 0.01, Dispersion: 1, Hours: 168}}},
		Destinations: []overview.DestinationState{{
			Destination: fleet.Destination{Name: "ledger", Configured: true, URL: "https://ledger.internal/hooks", Health: &fleet.Health{State: "healthy"}},
			Hour:        overview.Outcomes{First: 1000, Attempts: 1000, Done: 1000},
		}},
	}
	worlds[rule](s, &s.Sources[0], &s.Destinations[0])
	all := alert.Judge(s).Alerts
	i := slices.IndexFunc(all, func(a alert.Alert) bool { return a.Rule == rule })
	if i < 0 {
		t.Fatalf("%s does not fire in its world: %+v", rule, all)
	}
	return all[i]
}

// notification returns what is told of an alert that began to fire an hour ago at most.
func notification(a alert.Alert, state alerting.State) alerting.Notification {
	n := alerting.Notification{
		Key: a.Fingerprint() + "#3", Fingerprint: a.Fingerprint(), Transition: 3, Rule: a.Rule, Subject: a.Subject, Severity: a.Severity, State: state,
		Headline: a.Headline, At: now, Fired: now.Add(-time.Minute), Since: a.Since, Count: a.Count, Sample: a.Sample, Action: a.Action, Gateway: "web-1",
	}
	if state != alerting.Firing {
		n.Fired = ago(4*time.Hour + time.Minute)
	}
	return n
}

func message(told ...alerting.Notification) alerting.Message {
	return alerting.Message{Key: "a key", Rule: told[0].Rule, Notifications: told}
}

// Every rule has texts, and they are as somebody read and approved them.
func TestTexts(t *testing.T) {
	for rule := range worlds {
		t.Run(rule, func(t *testing.T) {
			a := fired(t, rule)
			var all []string
			for _, state := range []alerting.State{alerting.Firing, alerting.Repeat, alerting.Resolved} {
				m := letter.Write(message(notification(a, state)), dashboard)
				check(t, m)
				all = append(all, m.Text)
			}
			golden(t, rule, strings.Join(all, "\n----\n\n"))
		})
	}
}

// check looks for what holds for all messages.
func check(t *testing.T, m *notify.Message) {
	t.Helper()
	if len(m.Title) > notify.MaxTitle || len(m.Title) < 10 || strings.ContainsAny(m.Title, "\r\n") {
		t.Errorf("a title of %d bytes: %q", len(m.Title), m.Title)
	}
	if !strings.HasPrefix(m.Text, m.Title+"\n") || strings.Contains(m.Text, "0001-01-01") || strings.ContainsAny(m.Text, "\r\t\x1b") {
		t.Errorf("a text:\n%s", m.Text)
	}
	if m.State != notify.Resolved && m.State != notify.Test && !regexp.MustCompile(`(?m)^(Type|Where): .`).MatchString(m.Text) {
		t.Errorf("there is no next step:\n%s", m.Text)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant:\n%s", file, got, want)
	}
}

// A rule that tells somebody has a world here.
func TestEveryRuleHasTexts(t *testing.T) {
	for _, r := range alert.Rules() {
		if worlds[r.Name] == nil && r.Severity != alert.Info && r.Name != alert.Unrecorded { // is no matter of a snapshot
			t.Errorf("%s has no text that anybody read", r.Name)
		}
	}
}

// One message tells of several subjects, those first that begin, and not all of them at length.
func TestSeveralSubjects(t *testing.T) {
	var told []alerting.Notification
	for i := range 40 {
		a := fired(t, "destination_failing")
		a.Subject = fmt.Sprintf("shop-%02d", i)
		state := alerting.Firing
		switch {
		case i < 2:
			state = alerting.Resolved
		case i < 4:
			state = alerting.Repeat
		}
		told = append(told, notification(a, state))
	}
	m := letter.Write(message(told...), "")
	check(t, m)
	if m.State != notify.Firing || len(m.Alerts) != 40 || len(m.Text) > 8000 || strings.Contains(m.Text, "Look:") {
		t.Errorf("%s, %d alerts, %d bytes:\n%s", m.State, len(m.Alerts), len(m.Text), m.Text)
	}
	golden(t, "several", m.Text)
	check(t, letter.Write(message(told[:2]...), dashboard))
}

// A message is as severe as the worst of what is not over, and begins with it, also where it is told again.
func TestTheWorstIsFirst(t *testing.T) {
	of := func(subject string, severity alert.Severity, state alerting.State) alerting.Notification {
		a := fired(t, "died")
		a.Subject, a.Severity, a.Headline = subject, severity, "Deliveries to "+subject+" are dead."
		return notification(a, state)
	}
	for name, c := range map[string]struct {
		told     []alerting.Notification
		severity string
		state    notify.State
		first    string
		title    string
	}{
		"a page goes on": {[]alerting.Notification{of("mail", alert.Ticket, alerting.Firing), of("ledger", alert.Page, alerting.Repeat), of("hub", alert.Ticket, alerting.Repeat)},
			"page", notify.Firing, "ledger", "STILL 2 x died: ledger, hub"},
		"a page is over":    {[]alerting.Notification{of("ledger", alert.Page, alerting.Resolved), of("mail", alert.Ticket, alerting.Repeat)}, "ticket", notify.Repeat, "mail", "STILL Deliveries to mail are dead"},
		"all are over":      {[]alerting.Notification{of("mail", alert.Ticket, alerting.Resolved), of("ledger", alert.Page, alerting.Resolved)}, "page", notify.Resolved, "ledger", "RESOLVED 2 x died: ledger, mail"},
		"one page of those": {[]alerting.Notification{of("mail", alert.Ticket, alerting.Firing), of("ledger", alert.Page, alerting.Firing)}, "page", notify.Firing, "ledger", "PAGE 2 x died: ledger, mail"},
	} {
		m := letter.Write(message(c.told...), dashboard)
		check(t, m)
		if m.Severity != c.severity || m.State != c.state || m.Alerts[0].Subject != c.first || m.Title != c.title {
			t.Errorf("%s: it is %s, %s, and says %q, first of %s", name, m.Severity, m.State, m.Title, m.Alerts[0].Subject)
		}
	}
}

// What strangers had a part in can neither begin a line nor move a cursor, and has no room to hide the rest.
func TestTextsOfStrangers(t *testing.T) {
	a := fired(t, "type_fails")
	evil := "x\r\nBcc: all@example.com\x1b[2J\u202e" + strings.Repeat("y", 10_000)
	a.Headline, a.Sample.Error, a.Sample.Type, a.Sample.Source = evil, evil, evil, evil
	m := letter.Write(message(notification(a, alerting.Firing)), dashboard)
	check(t, m)
	if strings.Contains(m.Text, "\nBcc") || strings.ContainsAny(m.Text, "\u202e") || len(m.Text) > 4000 {
		t.Errorf("%d bytes:\n%q", len(m.Text), m.Text)
	}
	for _, told := range m.Alerts {
		if strings.ContainsAny(told.Headline+told.Error+told.Type, "\r\n\x1b") {
			t.Errorf("%+v", told)
		}
	}
}

// No markup of a chat takes effect that is in what strangers chose, and programs get what was there.
func TestMarkupOfStrangers(t *testing.T) {
	for name, evil := range map[string]string{
		"mention in Slack":        "<!channel>",
		"person in Slack":         "<@U123>",
		"link in Slack":           "<https://evil.example|log in>",
		"entities":                "&lt;!channel&gt;",
		"mention in Discord":      "@everyone",
		"mention in Mattermost":   "@here @all",
		"link in Markdown":        "[log in](https://evil.example)",
		"picture in Markdown":     "![x](https://evil.example/x.png)",
		"code":                    "```x``` `y`",
		"bold, struck, hidden":    "**x** ~~y~~ ||z||",
		"mention in Teams":        "<at>everyone</at>",
		"HTML":                    `<a href="https://evil.example">log in</a>`,
		"channel, table, escapes": `#town-square | a \* b`,
	} {
		t.Run(name, func(t *testing.T) {
			a := fired(t, "type_fails")
			a.Headline = evil + " " + a.Headline
			a.Subject, a.Sample.Error, a.Sample.Type, a.Sample.Source, a.Action.Command = evil, evil, evil, evil, "hookonce events list --type '"+evil+"'"
			for _, state := range []alerting.State{alerting.Firing, alerting.Repeat, alerting.Resolved} {
				n := notification(a, state)
				n.Gateway = evil
				for _, told := range [][]alerting.Notification{{n}, {n, n}, slices.Repeat([]alerting.Notification{n}, 12)} {
					m := letter.Write(message(told...), "")
					if strings.ContainsAny(m.Title+m.Text, "<>@[]`*~|#&!\\") {
						t.Errorf("%s\n%s", m.Title, m.Text)
					}
					if m.Alerts[0].Type != evil || m.Alerts[0].Error != evil {
						t.Errorf("programs get %+v", m.Alerts[0])
					}
				}
			}
		})
	}
}

// A command is told as it is typed, or not at all: somebody pastes it at night.
func TestCommandsAreNotChanged(t *testing.T) {
	const effects = "hookonce reconcile effects --table orders --source billing"
	for name, c := range map[string]struct {
		command      string
		people, gets bool // as it is
	}{
		"plain":       {effects + " --where \"state = 'paid'\"", true, true},
		"a condition": {effects + " --where 'amount > 0'", false, true},
		"a product":   {effects + " --where 'n * 2 = 4'", false, true},
		"a variable":  {effects + " --database $DSN", false, true},
		"too long":    {effects + " --where \"" + strings.Repeat("state = 'paid' or ", 40) + "false\"", false, false},
		"two lines":   {effects + " --where \"a\nb\"", false, false},
	} {
		a := fired(t, "effects_doubled")
		a.Action.Command = c.command
		m := letter.Write(message(notification(a, alerting.Firing)), dashboard)
		check(t, m)
		for kind, told := range map[string]struct {
			command string
			whole   bool
		}{"people": {regexp.MustCompile(`(?m)^Type: (.*)$`).FindStringSubmatch(m.Text)[1], c.people}, "programs": {m.Alerts[0].Command, c.gets}} {
			if whole := told.command == c.command; whole != told.whole || !whole && !strings.HasPrefix(told.command, "hookonce status (") {
				t.Errorf("%s: %s get %q", name, kind, told.command)
			}
		}
	}
	a := fired(t, "effects_doubled")
	a.Subject = "sales.*"
	if m := letter.Write(message(notification(a, alerting.Firing)), dashboard); strings.Contains(m.Text, "alerts ack") || !strings.Contains(m.Text, "On it: hookonce status (") {
		t.Errorf("an alert is called otherwise than it is:\n%s", m.Text)
	}
}

// The test message says that it is one.
func TestOfAChannel(t *testing.T) {
	m := letter.Test("oncall", "", "web-1", dashboard, now)
	check(t, m)
	golden(t, "test", m.Text)
	if again := letter.Test("oncall", "", "web-1", dashboard, now.Add(time.Second)); again.Key == m.Key {
		t.Error("two tests are one message")
	}
}

// An installation that has a name says it, to people and to programs.
func TestInstallationIsNamed(t *testing.T) {
	n := alerting.Notification{Key: "eu-west:died/ledger@x#1", Fingerprint: "eu-west:died/ledger", Installation: "eu-west", Transition: 1, Rule: "died", Subject: "ledger",
		Severity: alert.Ticket, State: alerting.Firing, Headline: "1 delivery is given up at ledger.", Gateway: "web-1", Fired: now, At: now}
	m := letter.Write(alerting.Message{Key: n.Key, Rule: n.Rule, Notifications: []alerting.Notification{n}}, dashboard)
	if !strings.Contains(m.Text, "Told by the gateway on web-1 of eu-west,") || m.Alerts[0].Installation != "eu-west" || !strings.HasPrefix(m.Thread, n.Fingerprint) {
		t.Errorf("it is told %+v", m)
	}
	if !strings.Contains(m.Text, "hookonce alerts ack died/ledger ") {
		t.Errorf("the command is not what the alert is called inside: %s", m.Text)
	}
	if test := letter.Test("oncall", "eu-west", "web-1", dashboard, now); test.Alerts[0].Fingerprint != "eu-west:test/oncall" || test.Alerts[0].Installation != "eu-west" {
		t.Errorf("a test is told %+v", test)
	}
}

// The page shows a message as it is.
func TestPageShowsAMessage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	m := letter.Write(message(notification(fired(t, "destination_failing"), alerting.Firing)), dashboard)
	if !strings.Contains(string(page), "```text\n"+m.Text+"```") {
		t.Errorf("docs/alerts.md does not show\n%s", m.Text)
	}
}

package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/overview"
)

// alerts stands for what remembers alerts: one that fires, one that is about to, and one that is over.
type alerts struct {
	silences []journal.Silence
	ack      string
	mu       sync.Mutex // of tested
	tested   []string
	asked    int
	fails    bool
	history  []journal.AlertRecord
}

func (a *alerts) Alerts(context.Context) (*journal.AlertBook, error) {
	a.asked++
	if a.fails {
		return nil, errors.New("the store is away")
	}
	alert := func(rule, subject string, state journal.AlertState) journal.Alert {
		id := journal.AlertID{Rule: rule, Subject: subject}
		return journal.Alert{AlertID: id, State: state, Severity: "page", Since: now.Add(-time.Hour), Fired: now.Add(-time.Hour), Told: now.Add(-time.Minute),
			Body: []byte(`{"headline": "` + rule + ` it is", "count": 7, "action": {"label": "Mend it", "command": "hookonce doctor"}}`)}
	}
	fires := alert("destination_failing", "app", journal.AlertFiring)
	if a.ack != "" {
		fires.AckBy, fires.AckReason, _ = strings.Cut(a.ack, ": ")
		fires.AckAt = now
	}
	return &journal.AlertBook{Alerts: []journal.Alert{alert("died", "app", journal.AlertResolved), fires, alert("store_slow", "", journal.AlertPending)},
		Silences: a.silences, Waiting: map[string]int{"team": 3}}, nil
}

func (a *alerts) History(_ context.Context, f journal.AlertFilter, before int64, limit int) (records []journal.AlertRecord, _ error) {
	if a.history != nil {
		return a.history, nil
	}
	for id := int64(5); id > 0 && len(records) < limit; id-- {
		of := journal.AlertID{Rule: "destination_failing", Subject: fmt.Sprint("app", id%2)}
		if (before == 0 || id < before) && (f.Rule == "" || f.Rule == of.Rule) && (f.Subject == "" || f.Subject == of.Subject) {
			records = append(records, journal.AlertRecord{ID: id, AlertID: of, At: now, Event: journal.AlertFired, Severity: "page", Text: "it failed"})
		}
	}
	return records, nil
}

func (a *alerts) Acknowledge(_ context.Context, id journal.AlertID, by, reason string) error {
	if id != (journal.AlertID{Rule: "destination_failing", Subject: "app"}) {
		return journal.ErrNoAlert
	}
	a.ack = by + ": " + reason
	return nil
}

func (a *alerts) Silence(_ context.Context, s journal.Silence) (journal.Silence, error) {
	s.ID = int64(len(a.silences) + 1)
	a.silences = append(a.silences, s)
	return s, nil
}

func (a *alerts) Tried(context.Context) map[string]journal.AlertRecord {
	return map[string]journal.AlertRecord{
		"oncall": {At: now, Event: journal.AlertDelayed, Text: "oncall: it answered 500"}, // and nothing waits
		"team":   {At: now, Event: journal.AlertDelayed, Text: "team: it answered 403 Forbidden: no_service"},
		"gone":   {At: now, Event: journal.AlertNotTold, Text: "gone: 404"},
	}
}

func (a *alerts) Tested(ctx context.Context, channel, by, reason string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tested = append(a.tested, channel+" "+by+" "+reason)
	return nil
}

func (a *alerts) Unsilence(_ context.Context, id int64, _, _ string) error {
	if id != 1 || len(a.silences) == 0 {
		return journal.ErrNoAlert
	}
	a.silences = a.silences[1:]
	return nil
}

// What fires is listed with who looks after it, what is over is not, and each change needs a reason and an operator.
func TestAlerts(t *testing.T) {
	r := newRig(t)
	list := r.get("/api/v1/alerts")
	if got := fmt.Sprint(list["channels"]); got != "[map[kind:pagerduty name:oncall severities:[page] waiting:0] "+
		"map[failed:map[at:2026-11-21T12:00:00Z error:it answered 403 Forbidden: no_service] kind:slack name:team severities:[page ticket] waiting:3]]" {
		t.Errorf("channels %s", got)
	}
	all := list["alerts"].([]any)
	first := all[0].(map[string]any)
	if list["evaluated"] != true || len(all) != 2 || first["name"] != "destination_failing/app" || first["headline"] != "destination_failing it is" || first["acknowledged"] != nil || all[1].(map[string]any)["name"] != "store_slow" {
		t.Errorf("alerts %v", all)
	}
	r.post("/api/v1/alerts/acknowledge", map[string]any{"alert": "destination_failing/app", "reason": "restarting it"}, 200)
	r.post("/api/v1/alerts/acknowledge", map[string]any{"alert": "died/app", "reason": "restarting it"}, 404)
	r.post("/api/v1/alerts/acknowledge", map[string]any{"alert": "destination_failing/app", "reason": ""}, 422)
	r.post("/api/v1/alerts/acknowledge", map[string]any{"alert": "destination_failing/app", "reason": "a\nb"}, 422)
	s := r.post("/api/v1/alerts/silences", map[string]any{"alert": "destination_failing/*", "until": now.Add(time.Hour), "reason": "moving"}, 200)
	if s["alert"] != "destination_failing/*" || s["id"] != "1" || s["by"] != "local" {
		t.Errorf("a silence %v", s)
	}
	for _, body := range []map[string]any{
		{"alert": "died/app", "until": now, "reason": "moving"}, {"alert": "died/app", "until": now.Add(91 * 24 * time.Hour), "reason": "moving"},
		{"alert": "died/app", "until": now.Add(time.Hour)}, {"alert": "died/ap*", "until": now.Add(time.Hour), "reason": "moving"},
		{"alert": "dide/*", "until": now.Add(time.Hour), "reason": "moving"}, {"alert": "billing", "until": now.Add(time.Hour), "reason": "moving"}, // no rules
		{"alert": "die*", "until": now.Add(time.Hour), "reason": "moving"}, {"alert": "", "until": now.Add(time.Hour), "reason": "moving"},
	} {
		r.post("/api/v1/alerts/silences", body, 422)
	}
	first = r.get("/api/v1/alerts")["alerts"].([]any)[0].(map[string]any)
	if got := fmt.Sprint(first["acknowledged"], first["silenced"]); !strings.Contains(got, "restarting it") || !strings.Contains(got, "moving") {
		t.Errorf("it is looked after by %s", got)
	}
	r.post("/api/v1/alerts/silences/2/end", map[string]any{"reason": "moved"}, 404)
	r.post("/api/v1/alerts/silences/x/end", map[string]any{"reason": "moved"}, 404)
	r.post("/api/v1/alerts/silences/1/end", map[string]any{"reason": "moved"}, 200)
	if got := r.get("/api/v1/alerts")["silences"].([]any); len(got) != 0 {
		t.Errorf("silences %v", got)
	}
	for _, want := range []string{"done=acknowledged by=local reason=\"restarting it\"", "done=silenced", "done=unsilenced"} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, r.log)
		}
	}
}

// Only who may change things can have nobody told of them.
func TestAlertsAreForOperatorsToChange(t *testing.T) {
	r := newRig(t, api.Token{Name: "board", Secret: "a-fake-token-for-reading", Role: api.Read})
	read := func(method, path string, body any, want int) {
		t.Helper()
		req := request(method, path, body)
		req.Header.Set("Authorization", "Bearer a-fake-token-for-reading")
		r.expect(req, want)
	}
	read("GET", "/api/v1/alerts", nil, 200)
	read("POST", "/api/v1/alerts/acknowledge", map[string]any{"alert": "destination_failing/app", "reason": "x"}, 403)
	read("POST", "/api/v1/alerts/silences", map[string]any{"alert": "*", "until": now.Add(time.Hour), "reason": "x"}, 403)
	read("POST", "/api/v1/alerts/channels/oncall/test", map[string]any{"reason": "x"}, 403)
}

// The history comes in pages, of all alerts or of some.
func TestAlertHistory(t *testing.T) {
	r := newRig(t)
	page := r.get("/api/v1/alerts/history?limit=3")
	next := r.get("/api/v1/alerts/history?limit=3&cursor=" + fmt.Sprint(page["cursor"]))
	if len(page["history"].([]any)) != 3 || len(next["history"].([]any)) != 2 || next["cursor"] != nil {
		t.Errorf("%v and %v", page, next)
	}
	if got := r.get("/api/v1/alerts/history?alert=destination_failing/app1")["history"].([]any); len(got) != 3 {
		t.Errorf("of one: %v", got)
	}
	r.expect(request("GET", "/api/v1/alerts/history?alert=other&cursor="+fmt.Sprint(page["cursor"]), nil), 422)
}

// Who asks for what there is not is told what there is; what was silenced is called as in the list.
func TestAlertsThatThereAreNot(t *testing.T) {
	r := newRig(t)
	for path, says := range map[string]string{
		"acknowledge destination_failing/apq": "no alert that fires is called \"destination_failing/apq\"; did you mean \"destination_failing/app\"?",
		"acknowledge nothing":                 "no alert that fires is called \"nothing\"; hookonce alerts lists them",
		"silences/7/end":                      "there is no silence \"7\"; hookonce alerts lists them",
		"channels/tema/test":                  "this gateway has no channel \"tema\"; did you mean \"team\"?",
	} {
		path, name, _ := strings.Cut(path, " ")
		body := map[string]any{"reason": "x"}
		if name != "" {
			body["alert"] = name
		}
		if got := r.post("/api/v1/alerts/"+path, body, 404); got["detail"] != says {
			t.Errorf("%s: %v, want %q", path, got["detail"], says)
		}
	}
	if got := fmt.Sprint(r.expect(request("GET", "/api/v1/alerts/history?alert=backlog_odl", nil), 422)); !strings.Contains(got, `"backlog_odl" is no rule; did you mean "backlog_old"?`) {
		t.Errorf("%s", got)
	}
	if got := r.get("/api/v1/alerts/history?alert=backlog_old")["history"].([]any); len(got) != 0 {
		t.Errorf("%v", got)
	}
	r.alerts.history = []journal.AlertRecord{{AlertID: journal.AlertID{Rule: "died"}, At: now, Event: journal.AlertSilenced}}
	if got := fmt.Sprint(r.get("/api/v1/alerts/history")["history"]); !strings.Contains(got, "alert:died/*") {
		t.Errorf("%s", got)
	}
	if got := fmt.Sprint(r.expect(request("GET", "/api/v1/tail?source=nope", nil), 422)); !strings.Contains(got, `this gateway has no source "nope"; it has billing`) {
		t.Errorf("%s", got)
	}
}

// A test message says what the receiver said, and that it did not arrive is an answer.
func TestChannelsAreTested(t *testing.T) {
	r := newRig(t)
	body := map[string]any{"reason": "a new integration"}
	if got := fmt.Sprint(r.post("/api/v1/alerts/channels/oncall/test", body, 200)); got != "map[answer:202 Accepted arrived:true channel:oncall]" {
		t.Errorf("%s", got)
	}
	if got := fmt.Sprint(r.post("/api/v1/alerts/channels/team/test", body, 200)); !strings.Contains(got, "arrived:false") || !strings.Contains(got, "no_service") {
		t.Errorf("%s", got)
	}
	r.post("/api/v1/alerts/channels/nobody/test", body, 404)
	if len(r.alerts.tested) != 2 || r.alerts.tested[0] != "oncall local a new integration" {
		t.Errorf("on record are %q", r.alerts.tested)
	}
}

// The rules are told as they are configured, each with what it looks at; how alerts stand in the store does not matter.
func TestAlertRules(t *testing.T) {
	r := newRig(t)
	rules := alert.Settings{"backlog_old": {Off: true}}
	options := api.Options{
		Alerts: r.alerts, Channels: func() []api.Channel { return nil }, Now: func() time.Time { return now }, Rules: func() alert.Settings { return rules },
		Overview: func(context.Context) (*overview.Snapshot, error) {
			return &overview.Snapshot{At: now, Store: overview.StoreState{Commits: 9, CommitMS: 500}}, nil
		},
	}
	r.handler, r.alerts.fails = api.New(options), true
	list := r.get("/api/v1/alerts/rules")
	all := map[string]map[string]any{}
	for _, is := range list["rules"].([]any) {
		all[is.(map[string]any)["rule"].(string)] = is.(map[string]any)
	}
	if is := all["store_slow"]; len(all) != len(alert.Rules()) || list["evaluated"] != true || is["now"] != "500 ms on average of the last 9" || is["share"] != 2.0 || is["holds"] != true || is["limit"] != "250" || is["for_seconds"] != 120.0 {
		t.Errorf("of %d rules: %v", len(all), is)
	}
	if is := all["backlog_old"]; is["enabled"] != false || is["limit"] != "15m" {
		t.Errorf("off: %v", is)
	}
	options.Evaluated = func() bool { return false }
	r.handler, r.alerts.fails = api.New(options), false
	for _, path := range []string{"/api/v1/alerts/rules", "/api/v1/alerts"} {
		if got := r.get(path)["evaluated"]; got != false {
			t.Errorf("%s without alerts: %v", path, got)
		}
	}
}

// A receiver that says nothing keeps no question from being answered, and no more than two test messages wait for one.
func TestSilentReceiversKeepNobodyWaiting(t *testing.T) {
	r := newRig(t)
	sent, silent := make(chan struct{}), make(chan struct{})
	r.ring = func(context.Context) {
		sent <- struct{}{}
		<-silent
	}
	test := func() int {
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, request("POST", "/api/v1/alerts/channels/oncall/test", map[string]any{"reason": "x"}))
		return w.Code
	}
	codes := make(chan int, 2)
	for range 2 {
		go func() { codes <- test() }()
		<-sent
	}
	soon, cancel := context.WithTimeout(t.Context(), 15*time.Second) // of the 20 that it waited
	defer cancel()
	r.expect(request("GET", "/api/v1/alerts", nil).WithContext(soon), 200)
	if p := r.post("/api/v1/alerts/channels/oncall/test", map[string]any{"reason": "x"}, 503); !strings.Contains(fmt.Sprint(p["detail"]), "test messages are under way") {
		t.Errorf("a third one: %v", p)
	}
	close(silent)
	if a, b := <-codes, <-codes; a != 200 || b != 200 {
		t.Errorf("the answers are %d and %d", a, b)
	}
	r.ring = nil
	r.post("/api/v1/alerts/channels/oncall/test", map[string]any{"reason": "x"}, 200)
}

// A message that was sent is on record, even if who sent it went away meanwhile.
func TestSentTestsAreOnRecord(t *testing.T) {
	r := newRig(t)
	ctx, leave := context.WithCancel(t.Context())
	r.ring = func(context.Context) { leave() }
	req := request("POST", "/api/v1/alerts/channels/oncall/test", map[string]any{"reason": "x"}).WithContext(ctx)
	r.handler.ServeHTTP(httptest.NewRecorder(), req)
	if len(r.alerts.tested) != 1 {
		t.Errorf("on record are %q:\n%s", r.alerts.tested, r.log)
	}
}

// Page one says who looks after what, asks for it once in a while, and is there when the store is not.
func TestOverviewSaysWhoLooksAfterAlerts(t *testing.T) {
	r := newRig(t)
	clock := now
	h := api.New(api.Options{
		Alerts: r.alerts, Now: func() time.Time { return clock },
		Overview: func(context.Context) (*overview.Snapshot, error) { return &overview.Snapshot{At: clock}, nil },
	})
	r.handler = h
	r.alerts.ack = "ann: on it"
	for range 5 {
		if got := fmt.Sprint(r.get("/api/v1/overview")["attended"]); !strings.Contains(got, "alert:destination_failing/app") {
			t.Fatalf("attended %s", got)
		}
	}
	if r.alerts.asked != 1 {
		t.Errorf("asked %d times", r.alerts.asked)
	}
	r.alerts.fails, clock = true, clock.Add(time.Minute)
	if got := fmt.Sprint(r.get("/api/v1/overview")["attended"]); !strings.Contains(got, "ann") || r.alerts.asked != 2 {
		t.Errorf("without a store, asked %d times: %s", r.alerts.asked, got)
	}
}

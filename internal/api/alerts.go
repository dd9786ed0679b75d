package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/loglimit"
)

// Alerts is what the API needs of what remembers alerts.
type Alerts interface {
	Alerts(ctx context.Context) (*journal.AlertBook, error)
	History(ctx context.Context, f journal.AlertFilter, before int64, limit int) ([]journal.AlertRecord, error)
	Acknowledge(ctx context.Context, id journal.AlertID, by, reason string) error
	Silence(ctx context.Context, s journal.Silence) (journal.Silence, error)
	Unsilence(ctx context.Context, id int64, by, reason string) error
	Tried(ctx context.Context) map[string]journal.AlertRecord
	Tested(ctx context.Context, channel, by, reason string) error
}

// Channel is a way to tell people of alerts.
type Channel struct {
	Name       string   `json:"name"`
	Kind       string   `json:"kind" doc:"The scheme of its address, all else of which is a secret."`
	Severities []string `json:"severities" nullable:"false" doc:"What it is told of."`
	Waiting    int      `json:"waiting" doc:"How many things it has to be told of yet."`
	Failed     *Failed  `json:"failed,omitempty" doc:"Why it could not be told last. Missing: it could, or nothing was to be told for long."`
}

// Failed says why a channel could not be told.
type Failed struct {
	At     time.Time `json:"at" doc:"When that was put on record: of the tries for one alert, the first, second, fourth, eighth and so on are."`
	Error  string    `json:"error" doc:"Without any of the address; at most 300 bytes."`
	GaveUp bool      `json:"gave_up,omitempty" doc:"It is not tried again."`
}

// AlertState is an alert as it stands.
type AlertState struct {
	Name         string           `json:"name" doc:"Its rule and, after a slash, its subject: what it is called in requests."`
	Rule         string           `json:"rule"`
	Subject      string           `json:"subject,omitempty"`
	State        string           `json:"state" enum:"pending,firing"`
	Severity     string           `json:"severity" enum:"page,ticket,info"`
	Headline     string           `json:"headline"`
	Since        time.Time        `json:"since" doc:"When the state began."`
	Told         *time.Time       `json:"told,omitempty" doc:"When somebody was last to be told of it. Missing: nobody was."`
	Count        int64            `json:"count"`
	Action       alert.Action     `json:"action"`
	Cause        string           `json:"cause,omitempty" doc:"The alert that it follows from. It is not told while that fires."`
	Acknowledged *Acknowledgement `json:"acknowledged,omitempty"`
	Silenced     *AlertSilence    `json:"silenced,omitempty"`
}

// Acknowledgement says who is on it: an alert is not told again.
type Acknowledgement struct {
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// AlertSilence keeps alerts from being told for a while.
type AlertSilence struct {
	ID     string    `json:"id"`
	Alert  string    `json:"alert" doc:"Which: a rule and, after a slash, a subject, with a star for any."`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

// AlertList is what is remembered of alerts.
type AlertList struct {
	Evaluated bool           `json:"evaluated" doc:"If not, alerts.enabled is false at the gateway that was asked: what is listed is how it stood then."`
	Alerts    []AlertState   `json:"alerts" nullable:"false" doc:"Those that fire, and those that are about to: causes first, and the worst of them."`
	Silences  []AlertSilence `json:"silences" nullable:"false" doc:"Those that last."`
	Channels  []Channel      `json:"channels" nullable:"false"`
}

func (a *api) alerts(ctx context.Context, _ *struct{}) (*answer[AlertList], error) {
	var book *journal.AlertBook
	var tried map[string]journal.AlertRecord
	err := a.ask(ctx, readTime, func(ctx context.Context) (err error) {
		if book, err = a.opt.Alerts.Alerts(ctx); err == nil {
			tried = a.opt.Alerts.Tried(ctx)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	list := listOf(book, a.opt.Now())
	list.Evaluated = a.evaluated()
	for _, c := range a.opt.Channels() {
		c.Waiting = book.Waiting[c.Name]
		// Of a channel for which nothing waits what was delayed was told since, though that may be too long ago to be found.
		if last := tried[c.Name]; last.Event == journal.AlertDelayed && c.Waiting > 0 || last.Event == journal.AlertNotTold {
			_, why := last.Address()
			c.Failed = &Failed{last.At.UTC(), why, last.Event == journal.AlertNotTold}
		}
		list.Channels = append(list.Channels, c)
	}
	return &answer[AlertList]{list}, nil
}

func listOf(book *journal.AlertBook, now time.Time) AlertList {
	list := AlertList{Alerts: []AlertState{}, Silences: []AlertSilence{}, Channels: []Channel{}}
	for i := range book.Alerts {
		if book.Alerts[i].State != journal.AlertResolved {
			list.Alerts = append(list.Alerts, stateOf(book, &book.Alerts[i], now))
		}
	}
	slices.SortStableFunc(list.Alerts, func(a, b AlertState) int {
		return cmp.Or(cmp.Compare(min(len(a.Cause), 1), min(len(b.Cause), 1)), cmp.Compare(severityRank[a.Severity], severityRank[b.Severity]), a.Since.Compare(b.Since))
	})
	for i := range book.Silences {
		if s := &book.Silences[i]; now.Before(s.Until) {
			list.Silences = append(list.Silences, newSilence(s))
		}
	}
	return list
}

// severityRank puts what is worse first.
var severityRank = map[string]int{string(alert.Page): 0, string(alert.Ticket): 1, string(alert.Info): 2}

func stateOf(book *journal.AlertBook, of *journal.Alert, now time.Time) AlertState {
	var said alert.Alert
	_ = json.Unmarshal(of.Body, &said) // what another version wrote has at least a rule and a subject
	s := AlertState{
		Name: alertName(of.AlertID), Rule: of.Rule, Subject: of.Subject, State: string(of.State), Severity: of.Severity, Headline: said.Headline,
		Since: of.Since.UTC(), Count: said.Count, Action: said.Action, Cause: strings.TrimSuffix(of.Cause, "/"),
	}
	if !of.Told.IsZero() {
		told := of.Told.UTC()
		s.Told = &told
	}
	if of.AckBy != "" {
		s.Acknowledged = &Acknowledgement{of.AckBy, of.AckAt.UTC(), of.AckReason}
	}
	if silence := book.Silenced(of.AlertID, now); silence != nil {
		is := newSilence(silence)
		s.Silenced = &is
	}
	return s
}

func newSilence(s *journal.Silence) AlertSilence {
	return AlertSilence{journal.IDText(s.ID), silenceName(s.Rule, s.Subject), s.By, s.At.UTC(), s.Until.UTC(), s.Reason}
}

// silenceName is which alerts a silence is for.
func silenceName(rule, subject string) string { return anyOf(rule) + "/" + anyOf(subject) }

// anyOf stands in a silence for what it does not choose by.
func anyOf(s string) string {
	if s == "" {
		return "*"
	}
	return s
}

// alertName is what an alert is called: its rule and, if it has one, its subject after a slash.
func alertName(id journal.AlertID) string { return strings.TrimSuffix(id.Fingerprint(), "/") }

// readName is the reverse of alertName.
func readName(name string) journal.AlertID {
	rule, subject, _ := strings.Cut(name, "/")
	return journal.AlertID{Rule: rule, Subject: subject}
}

// AlertRules are the rules that alerts go by, at the gateway that was asked.
type AlertRules struct {
	Evaluated bool             `json:"evaluated" doc:"If not, alerts.enabled is false: whatever holds is neither recorded nor told."`
	At        time.Time        `json:"at" doc:"When what they look at was so."`
	Rules     []alert.Standing `json:"rules" nullable:"false" doc:"In the order in which one is told before another of the same severity."`
}

// alertRules answers from memory, as the overview does, of which it is.
func (a *api) alertRules(ctx context.Context, _ *struct{}) (*answer[AlertRules], error) {
	s, err := a.opt.Overview(ctx)
	if err != nil {
		return nil, a.problem(ctx, err)
	}
	return &answer[AlertRules]{AlertRules{a.evaluated(), s.At.UTC(), a.rules().Stand(s)}}, nil
}

func (a *api) evaluated() bool { return a.opt.Evaluated == nil || a.opt.Evaluated() }

// AlertRecord is something that happened to an alert.
type AlertRecord struct {
	ID       string    `json:"id"`
	At       time.Time `json:"at"`
	Alert    string    `json:"alert"`
	Event    string    `json:"event" doc:"fired, escalated, repeated, resolved, acknowledged, silenced, unsilenced, told, delayed or not told."`
	Severity string    `json:"severity,omitempty"`
	Text     string    `json:"text,omitempty" doc:"What was said, why somebody did it, or who was told."`
	By       string    `json:"by,omitempty" doc:"Who did it. Missing: the gateway."`
}

// AlertHistory is a part of what happened to alerts.
type AlertHistory struct {
	History []AlertRecord `json:"history" nullable:"false" doc:"Newest first."`
	Cursor  string        `json:"cursor,omitempty" doc:"Pass it to get the next page. Missing: this is the last."`
}

type alertHistoryInput struct {
	Alert  string `query:"alert" maxLength:"200" doc:"A rule, or a rule, a slash and a subject. Missing: all."`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Cursor string `query:"cursor" maxLength:"64" doc:"That of the page before."`
}

func (a *api) alertHistory(ctx context.Context, in *alertHistoryInput) (*answer[AlertHistory], error) {
	question := contextOf("alerts", in.Alert)
	from, err := decode(in.Cursor, question, "query.cursor")
	if err != nil {
		return nil, err
	}
	if !plain(in.Alert) {
		return nil, invalid("query.alert", "this is not readable text", nil)
	}
	id := readName(in.Alert)
	var records []journal.AlertRecord
	err = a.ask(ctx, readTime, func(ctx context.Context) (err error) {
		records, err = a.opt.Alerts.History(ctx, journal.AlertFilter{Rule: id.Rule, Subject: id.Subject}, from.at, in.Limit+1)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(records) == 0 && id.Rule != "" { // of a rule that there was once something may be on record
		if rules := ruleNames(); !slices.Contains(rules, id.Rule) {
			return nil, invalid("query.alert", fmt.Sprintf("%q is no rule%s", id.Rule, alert.Guess(id.Rule, rules)), nil)
		}
	}
	out := &answer[AlertHistory]{AlertHistory{History: []AlertRecord{}}}
	if len(records) > in.Limit {
		records = records[:in.Limit]
		out.Body.Cursor = cursor{at: records[in.Limit-1].ID}.encode(question)
	}
	for _, r := range records {
		name := alertName(r.AlertID)
		if r.Event == journal.AlertSilenced || r.Event == journal.AlertUnsilenced {
			name = silenceName(r.Rule, r.Subject)
		}
		out.Body.History = append(out.Body.History, AlertRecord{journal.IDText(r.ID), r.At.UTC(), name, string(r.Event), r.Severity, r.Text, r.By})
	}
	return out, nil
}

type acknowledgeInput struct {
	Body struct {
		Alert  string `json:"alert" minLength:"1" maxLength:"200" doc:"Its name: a rule and, after a slash, a subject."`
		Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for the audit log."`
	}
}

// AlertDone says what was changed.
type AlertDone struct {
	Alert string `json:"alert"`
	Done  string `json:"done" enum:"acknowledged,silenced,unsilenced"`
}

func ruleNames() (names []string) {
	for _, rule := range alert.Rules() {
		names = append(names, rule.Name)
	}
	return names
}

// noAlert says that none of that name fires.
func (a *api) noAlert(ctx context.Context, name string) error {
	book, err := a.opt.Alerts.Alerts(ctx)
	if err != nil {
		return err
	}
	var fire []string
	for i := range book.Alerts {
		if book.Alerts[i].State == journal.AlertFiring {
			fire = append(fire, alertName(book.Alerts[i].AlertID))
		}
	}
	return huma.Error404NotFound(fmt.Sprintf("no alert that fires is called %q%s", name, alert.Guess(name, fire)))
}

func noSilence(id string) error {
	return huma.Error404NotFound(fmt.Sprintf("there is no silence %q; hookonce alerts lists them", id))
}

func (a *api) acknowledge(ctx context.Context, in *acknowledgeInput) (*answer[AlertDone], error) {
	if err := readable(in.Body.Reason, in.Body.Alert); err != nil {
		return nil, err
	}
	err := a.ask(ctx, writeTime, func(ctx context.Context) error {
		err := a.opt.Alerts.Acknowledge(ctx, readName(in.Body.Alert), actor(ctx), in.Body.Reason)
		if errors.Is(err, journal.ErrNoAlert) {
			return a.noAlert(ctx, in.Body.Alert)
		}
		return err
	})
	return a.changedAlert(ctx, in.Body.Alert, "acknowledged", in.Body.Reason, err)
}

type silenceInput struct {
	Body struct {
		Alert  string    `json:"alert" minLength:"1" maxLength:"200" doc:"A rule and, after a slash, a subject; a star stands for any."`
		Until  time.Time `json:"until" doc:"In the future, at most 90 days."`
		Reason string    `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for the audit log."`
	}
}

// maxSilence is for how long nobody may want to hear of something: what is always wrong is disabled in the configuration.
const maxSilence = 90 * 24 * time.Hour

func (a *api) silence(ctx context.Context, in *silenceInput) (*answer[AlertSilence], error) {
	if err := readable(in.Body.Reason, in.Body.Alert); err != nil {
		return nil, err
	}
	now, until := a.opt.Now(), in.Body.Until
	if !until.After(now) || until.Sub(now) > maxSilence {
		return nil, invalid("body.until", "write a time in the future, at most 90 days from now", until)
	}
	rule, subject, chosen := strings.Cut(in.Body.Alert, "/")
	if !chosen && rule != "*" {
		subject = "" // a rule alone has no subject, and a silence without one is for any
	}
	s := journal.Silence{Rule: strings.TrimSuffix(rule, "*"), Subject: strings.TrimSuffix(subject, "*"), At: now, Until: until, By: actor(ctx), Reason: in.Body.Reason}
	if strings.HasSuffix(rule, "*") && s.Rule != "" || strings.HasSuffix(subject, "*") && s.Subject != "" {
		return nil, invalid("body.alert", "a star stands for all of a rule or of a subject, and not for a part", in.Body.Alert)
	}
	if rules := ruleNames(); s.Rule != "" && !slices.Contains(rules, s.Rule) { // it would silence nothing
		return nil, invalid("body.alert", fmt.Sprintf("%q is no rule%s; to hear nothing of a subject whatever the rule, write */%s", s.Rule, alert.Guess(s.Rule, rules), s.Rule), in.Body.Alert)
	}
	err := a.ask(ctx, writeTime, func(ctx context.Context) (err error) {
		s, err = a.opt.Alerts.Silence(ctx, s)
		return err
	})
	if _, err := a.changedAlert(ctx, in.Body.Alert, "silenced", in.Body.Reason, err); err != nil {
		return nil, err
	}
	return &answer[AlertSilence]{newSilence(&s)}, nil
}

type unsilenceInput struct {
	ID   string `path:"id" maxLength:"32"`
	Body struct {
		Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for the audit log."`
	}
}

func (a *api) unsilence(ctx context.Context, in *unsilenceInput) (*answer[AlertDone], error) {
	if err := readable(in.Body.Reason); err != nil {
		return nil, err
	}
	id, err := strconv.ParseInt(in.ID, 10, 64)
	if err != nil {
		return nil, noSilence(in.ID)
	}
	err = a.ask(ctx, writeTime, func(ctx context.Context) error {
		err := a.opt.Alerts.Unsilence(ctx, id, actor(ctx), in.Body.Reason)
		if errors.Is(err, journal.ErrNoAlert) {
			return noSilence(in.ID)
		}
		return err
	})
	return a.changedAlert(ctx, in.ID, "unsilenced", in.Body.Reason, err)
}

// readable reports texts of an operator that are none.
func readable(texts ...string) error {
	for _, text := range texts {
		if !plain(text) {
			return invalid("body", "this is not readable text", nil)
		}
	}
	return nil
}

// changedAlert says in the log and in the answer what an operator did.
func (a *api) changedAlert(ctx context.Context, name, done, reason string, err error) (*answer[AlertDone], error) {
	if err != nil {
		return nil, err
	}
	loglimit.Unbound(a.opt.Logger).LogAttrs(ctx, slog.LevelInfo, "api: an alert is acknowledged, silenced or not silenced any more", slog.String("alert", name),
		slog.String("done", done), slog.String("by", actor(ctx)), slog.String("reason", reason))
	a.attended.forget()
	return &answer[AlertDone]{AlertDone{name, done}}, nil
}

// ChannelTest is what came of a test message.
type ChannelTest struct {
	Channel string `json:"channel"`
	Arrived bool   `json:"arrived"`
	Answer  string `json:"answer" doc:"What the receiver said, or why it could not be told."`
}

type testInput struct {
	Name string `path:"name" maxLength:"64"`
	Body struct {
		Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for the audit log."`
	}
}

func (a *api) testChannel(ctx context.Context, in *testInput) (*answer[ChannelTest], error) {
	if err := readable(in.Body.Reason); err != nil {
		return nil, err
	}
	var known []string
	for _, c := range a.opt.Channels() {
		known = append(known, c.Name)
	}
	if !slices.Contains(known, in.Name) {
		return nil, huma.Error404NotFound(fmt.Sprintf("this gateway has no channel %q%s", in.Name, alert.Guess(in.Name, known)))
	}
	select {
	case a.tests <- struct{}{}:
		defer func() { <-a.tests }()
	default:
		return nil, retryLater("other test messages are under way; try again when they came to an end, in 15 seconds at most")
	}
	said, err := a.opt.TestChannel(ctx, in.Name)
	out := &answer[ChannelTest]{ChannelTest{in.Name, err == nil, said}}
	if err != nil {
		out.Body.Answer = err.Error()
	}
	// It was sent, whoever still waits for the answer.
	var failed error
	err = a.ask(context.WithoutCancel(ctx), recordTime, func(ctx context.Context) error {
		failed = a.opt.Alerts.Tested(ctx, in.Name, actor(ctx), in.Body.Reason)
		return nil
	})
	if err = errors.Join(failed, err); err != nil {
		a.opt.Logger.LogAttrs(ctx, slog.LevelWarn, "api: that a test message was sent is not on record", slog.Any("error", err))
	}
	loglimit.Unbound(a.opt.Logger).LogAttrs(ctx, slog.LevelInfo, "api: a test message was sent", slog.String("channel", in.Name), slog.Bool("arrived", out.Body.Arrived),
		slog.String("by", actor(ctx)), slog.String("reason", in.Body.Reason))
	return out, nil
}

// Attended says who looks after an alert.
type Attended struct {
	Alert        string           `json:"alert"`
	Acknowledged *Acknowledgement `json:"acknowledged,omitempty"`
	Silenced     *AlertSilence    `json:"silenced,omitempty"`
}

// attended remembers which alerts are looked after, so that however many ask, the store is asked once in a while.
type attended struct {
	asking sync.Mutex // one asks, and the others get what is known

	mu    sync.Mutex
	until time.Time
	known []Attended
}

const (
	attendedFor  = 2 * time.Second
	attendedTime = time.Second // for one question, which page one does not wait for longer
)

// get returns what is known. That the store is away changes nothing of it.
func (c *attended) get(ctx context.Context, o *Options) []Attended {
	c.mu.Lock()
	fresh, known := o.Now().Before(c.until), c.known
	c.mu.Unlock()
	if fresh || o.Alerts == nil || !c.asking.TryLock() {
		return known
	}
	defer c.asking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, attendedTime)
	defer cancel()
	book, err := o.Alerts.Alerts(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = o.Now().Add(attendedFor)
	if err != nil {
		return c.known
	}
	c.known = nil
	for _, s := range listOf(book, o.Now()).Alerts {
		if s.Acknowledged != nil || s.Silenced != nil {
			c.known = append(c.known, Attended{s.Name, s.Acknowledged, s.Silenced})
		}
	}
	return c.known
}

// forget has the store asked the next time.
func (c *attended) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
}

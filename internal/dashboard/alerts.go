package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/api"
)

// alertsView is what fires, who looks after it, who is told, how near the rules are, and what happened.
type alertsView struct {
	api.AlertList
	api.AlertHistory
	At     time.Time        `json:"at"`
	Rules  []alert.Standing `json:"rules"`
	Alert  string           `json:"-"` // whose history it is; empty: that of all
	Older  string           `json:"-"` // address of the next part
	Tested *api.ChannelTest `json:"tested,omitempty"`
	// Unread is why it is not known what happened. All else is shown without: it is in memory, and what concerns the store is
	// acknowledged here while that is away.
	Unread string `json:"history_unread,omitempty"`
}

// Spans are for how long somebody may want to hear nothing, in the words that the form has for them.
func (alertsView) Spans() []string { return []string{"1h", "4h", "12h", "24h", "168h"} }

func (d *dashboard) alerts(r *http.Request) (*page, error) {
	v := alertsView{Alert: r.URL.Query().Get("alert")}
	if err := d.get(r.Context(), "/alerts", nil, &v.AlertList); err != nil {
		return nil, err
	}
	var rules api.AlertRules
	if err := d.get(r.Context(), "/alerts/rules", nil, &rules); err != nil {
		return nil, err
	}
	v.At, v.Rules = rules.At, rules.Rules
	alert.Nearest(v.Rules)
	about := url.Values{"limit": {"50"}}
	for name, value := range map[string]string{"alert": v.Alert, "cursor": r.URL.Query().Get("cursor")} {
		if value != "" {
			about.Set(name, value)
		}
	}
	var why *Refusal
	if err := d.get(r.Context(), "/alerts/history", about, &v.AlertHistory); errors.As(err, &why) && why.Status == http.StatusServiceUnavailable {
		v.History, v.Unread = []api.AlertRecord{}, why.Error()
	} else if err != nil {
		return nil, err
	}
	if v.Cursor != "" {
		v.Older = query("/alerts", "alert", v.Alert, "cursor", v.Cursor)
	}
	commands := []command{{"List them", "hookonce alerts"}, {"How the rules stand", "hookonce alerts rules"}, {"What happened", strings.TrimSpace("hookonce alerts history " + named(v.Alert))}, {"Try who is told", "hookonce alerts test"}}
	return &page{Title: "Alerts", Place: "/alerts", Again: 10, Data: v, Commands: commands}, nil
}

// named is the name of an alert on a command line, nothing for none.
func named(alert string) string {
	if alert == "" {
		return ""
	}
	return quoted(alert)
}

// reasonOf is what a form says why.
func reasonOf(r *http.Request) string { return strings.TrimSpace(r.PostFormValue("reason")) }

func (d *dashboard) acknowledge(r *http.Request) (*page, error) {
	in := map[string]string{"alert": r.PostFormValue("alert"), "reason": reasonOf(r)}
	var done api.AlertDone
	if err := d.post(r.Context(), "/alerts/acknowledge", in, &done); err != nil {
		return nil, err
	}
	return &page{Data: done, To: "/alerts"}, nil
}

func (d *dashboard) silence(r *http.Request) (*page, error) {
	span, err := time.ParseDuration(r.PostFormValue("for"))
	if err != nil {
		return nil, refusal(http.StatusUnprocessableEntity, "for: write for how long, such as 4h")
	}
	in := map[string]any{"alert": r.PostFormValue("alert"), "until": d.opt.Now().Add(span).UTC(), "reason": reasonOf(r)}
	var done api.AlertSilence
	if err := d.post(r.Context(), "/alerts/silences", in, &done); err != nil {
		return nil, err
	}
	return &page{Data: done, To: "/alerts"}, nil
}

func (d *dashboard) unsilence(r *http.Request) (*page, error) {
	var done api.AlertDone
	if err := d.post(r.Context(), "/alerts/silences/"+segment(r.PostFormValue("id"))+"/end", map[string]string{"reason": reasonOf(r)}, &done); err != nil {
		return nil, err
	}
	return &page{Data: done, To: "/alerts"}, nil
}

// testChannel shows the page with what the receiver said.
func (d *dashboard) testChannel(r *http.Request) (*page, error) {
	var tested api.ChannelTest
	if err := d.post(r.Context(), "/alerts/channels/"+segment(r.PostFormValue("channel"))+"/test", map[string]string{"reason": reasonOf(r)}, &tested); err != nil {
		return nil, err
	}
	p, err := d.alerts(r)
	if err != nil {
		return nil, err
	}
	v := p.Data.(alertsView)
	v.Tested = &tested
	p.Data, p.Again = v, 0
	return p, nil
}

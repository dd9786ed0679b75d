package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
)

// Who looks at alerts sees why nobody hears of them.
func TestAlertsShowLastErrors(t *testing.T) {
	at := time.Date(2026, 11, 23, 8, 12, 0, 0, time.UTC)
	var out strings.Builder
	err := printAlerts(&env{out: &out}, &api.AlertList{Channels: []api.Channel{
		{Name: "oncall", Kind: "pagerduty", Severities: []string{"page"}, Waiting: 2, Failed: &api.Failed{At: at, Error: "it answered 401\x1b[2J Unauthorized"}},
		{Name: "old", Kind: "slack", Severities: []string{"page", "ticket"}, Failed: &api.Failed{At: at, Error: "no route to host", GaveUp: true}},
		{Name: "team", Kind: "smtp", Severities: []string{"ticket"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{
		"CHANNEL KIND TOLD OF WAITING LAST ERROR",
		"old slack page, ticket 0 2026-11-23 08:12:00Z, given up: no route to host",
		"team smtp ticket 0 -",
	} {
		if !strings.Contains("\n"+strings.Join(got, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if text := strings.Join(got, "\n"); !strings.Contains(text, "oncall pagerduty page 2 2026-11-23 08:12:00Z: it answered 401") || strings.Contains(text, "\x1b") {
		t.Errorf("it says %q", text)
	}
}

// Who looks at alerts while they are off learns that first, and not that nothing fires. A gateway of an older version does not say.
func TestAlertsSayThatTheyAreOff(t *testing.T) {
	const off = "Nothing is evaluated: alerts.enabled is false; what follows is how it stood.\n"
	for says, want := range map[string]string{
		`"evaluated": true, `:  "Nothing fires.\n",
		`"evaluated": false, `: off,
		``:                     "Nothing fires.\n",
	} {
		gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{"+says+`"alerts": [], "silences": [], "channels": []}`)
		}))
		defer gateway.Close()
		var out, log strings.Builder
		if status := execute(&env{args: []string{"hookonce", "alerts", "--admin", gateway.URL}, out: &out, err: &log}); status != 0 {
			t.Fatalf("exit status %d: %s", status, log.String())
		}
		if first, _, _ := strings.Cut(out.String(), "Nobody is told"); first != want {
			t.Errorf("of {%s} it says %q, want %q", says, first, want)
		}
	}
}

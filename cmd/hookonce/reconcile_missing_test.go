package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
)

// The command that recovers reads no more of the list than has what is missing, as far as that is known.
func TestMissingIsRecovered(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 21, 12, minute, 0, 500, time.UTC) }
	first, last := at(1), at(2)
	events := []api.MissingEvent{{Key: "evt_2", Happened: &last, Found: at(9)}, {Key: "evt_1", Happened: &first, Found: at(9)}}
	for want, list := range map[string]api.MissingList{
		"--source billing --since 2026-11-21T12:01:00Z --until 2026-11-21T12:02:01Z (": {Events: events},
		"--source billing --since 2026-11-21T12:01:00Z --until 2026-11-21T12:09:01Z (": {Events: append(events, api.MissingEvent{Entry: "7", Found: at(9)})},
		"--source billing --since 2026-11-21T12:01:00Z (":                              {Events: events, Beyond: 1},
		"--source billing --since TIME (":                                              {Beyond: 1},
	} {
		var out bytes.Buffer
		if err := printMissing(&env{out: &out}, "billing", &list); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("got %q, %v, want %q", &out, err, want)
		}
	}
}

// An empty list reassures only as far as somebody looked.
func TestNothingIsMissing(t *testing.T) {
	through := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for want, list := range map[string]api.MissingList{
		"Nothing is missing of what the sender made until 2026-11-21 12:00:00Z, except what the audit log names as not compared.\n":                {Through: &through},
		"No gateway has compared billing with what its sender made yet, so nobody knows what is missing; hookonce alerts says so if that lasts.\n": {},
		"Gateways do not compare billing with what its sender made, so nobody knows what is missing: it says nothing of it.\n": {
			Through: &through, NotCompared: "it says nothing of it"},
	} {
		var out bytes.Buffer
		if err := printMissing(&env{out: &out}, "billing", &list); err != nil || out.String() != want {
			t.Errorf("got %q, %v, want %q", &out, err, want)
		}
	}
}

// All that is dismissed is what the gateway listed, by the gateway's clock.
func TestDismissAllIsWhatWasListed(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		listed    api.MissingList
		dismissed int64
		says      string
	}{
		{api.MissingList{Events: []api.MissingEvent{{Key: "evt_1"}, {Key: "evt_2"}}, Beyond: 4, FoundBefore: at}, 5, "6 are missing at billing.\n5 dismissed.\n"},
		{api.MissingList{Events: []api.MissingEvent{{Key: "evt_1"}}, FoundBefore: at}, 0, "1 are missing at billing.\nwhat is missing at billing was found a moment ago; look at it with hookonce reconcile missing billing, and dismiss it in a minute\n"},
		{api.MissingList{FoundBefore: at}, 0, "0 are missing at billing.\nnothing of that is missing at billing; hookonce reconcile missing billing lists what is\n"},
	} {
		var asked api.Dismiss
		gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var answer any = c.listed
			if r.Method == http.MethodPost {
				answer = api.Dismissed{Dismissed: c.dismissed}
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
					t.Error(err)
				}
			}
			_ = json.NewEncoder(w).Encode(answer)
		}))
		var out bytes.Buffer
		execute(&env{args: []string{"hookonce", "reconcile", "dismiss", "billing", "--all", "--reason", "why", "--admin", gateway.URL}, out: &out, err: &out})
		gateway.Close()
		if want := (api.Dismiss{All: true, FoundBefore: at, Reason: "why"}); fmt.Sprint(asked) != fmt.Sprint(want) {
			t.Errorf("the gateway is asked for %+v, want %+v", asked, want)
		}
		if out.String() != c.says {
			t.Errorf("it says %q, want %q", &out, c.says)
		}
	}
}

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A search that the gateway stops goes on by itself, and says how far it has come; one that the gateway cannot go on
// with lists what was found, and says how to go on. An empty list never looks like "none" when it is not the whole.
func TestEventSearch(t *testing.T) {
	const (
		event = `{"id":"%s","source":"billing","key":"evt_%[1]s","state":"done","received_at":"2026-11-21T12:00:00Z","deliveries":[]}`
		part  = `{"events":[%s],"cursor":"%s","incomplete":true,"looked_to":"2026-11-21T1%d:00:00Z"}`
	)
	busy := `503 {"title":"x","status":503,"detail":"the store took too long"}`
	one := fmt.Sprintf(event, "1")
	for name, c := range map[string]struct {
		answers  []string // one after the other; the status first if it is not 200
		json     bool
		status   int
		out, err []string
		not      string
		asked    string // the cursors
	}{
		"it goes on": {
			answers: []string{fmt.Sprintf(part, "", "a", 3), fmt.Sprintf(part, one, "b", 2), `{"events":[` + fmt.Sprintf(event, "2") + `]}`},
			out:     []string{"evt_1", "evt_2"}, asked: ",a,b",
			err: []string{"Looked back to 2026-11-21 13:00:00Z, and found 0 so far; going on.\n", "Looked back to 2026-11-21 12:00:00Z, and found 1 so far"}, not: "No event",
		},
		"it is patient with a gateway that is busy": {
			answers: []string{fmt.Sprintf(part, one, "a", 3), busy, `{"events":[]}`},
			out:     []string{"evt_1"}, asked: ",a,a", not: "stopped",
		},
		"it gives up": {
			answers: []string{fmt.Sprintf(part, "", "a", 3), `500 {"title":"x","status":500,"detail":"out of order"}`},
			status:  exitFailure, asked: ",a",
			err: []string{"the search stopped early, at what was accepted at 2026-11-21 13:00:00Z: out of order; go on with --cursor a\n"}, not: "No event",
		},
		"it gives up, as JSON": {
			answers: []string{fmt.Sprintf(part, one, "a", 3), `500 {"title":"x","status":500,"detail":"out of order"}`},
			status:  exitFailure, json: true, asked: ",a",
			out: []string{`"key": "evt_1"`, `"cursor": "a"`, `"incomplete": true`, `"looked_to": "2026-11-21T13:00:00Z"`}, err: []string{"stopped early"},
		},
		"it did not begin": {answers: []string{busy}, status: exitFailure, err: []string{"the store took too long"}, not: "stopped early"},
		"there is nothing": {answers: []string{`{"events":[]}`}, err: []string{"No event matches.\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := c.answers[min(len(asked), len(c.answers)-1)]
				asked = append(asked, r.URL.Query().Get("cursor"))
				if status, body, is := strings.Cut(answer, " "); is && len(status) == 3 {
					w.Header().Set("Content-Type", "application/problem+json")
					var code int
					fmt.Sscan(status, &code)
					w.WriteHeader(code)
					answer = body
				}
				fmt.Fprint(w, answer)
			}))
			defer server.Close()
			var out, log bytes.Buffer
			args := []string{"hookonce", "events", "list", "--admin", server.URL, "--limit", "5"}
			if c.json {
				args = append(args, "--json")
			}
			if got := execute(&env{args: args, out: &out, err: &log}); got != c.status {
				t.Errorf("exit status %d, want %d: %s", got, c.status, &log)
			}
			for _, want := range c.out {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in %s", want, &out)
				}
			}
			for _, want := range c.err {
				if !strings.Contains(log.String(), want) {
					t.Errorf("%q is not in %s", want, &log)
				}
			}
			if c.not != "" && strings.Contains(log.String(), c.not) {
				t.Errorf("%q is in %s", c.not, &log)
			}
			if got := strings.Join(asked, ","); got != c.asked {
				t.Errorf("asked with the cursors %q, want %q", got, c.asked)
			}
		})
	}
}

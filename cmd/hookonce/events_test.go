package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
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

// A replay of many goes on until the gateway says that this was all: while it counts, and while it replays. What fails in the middle
// says what was done before.
func TestReplayToTheEnd(t *testing.T) {
	const counts, audit = `{"deliveries":2,"dry_run":true`, `{"deliveries":2,"forced":1,"audit":"7"`
	const busy = "busy"
	for name, c := range map[string]struct {
		answers []string // one after the other; an empty one is an error
		flags   []string
		status  int
		asked   string // in a dry run or not, what is left alone that was done since, and with which cursor
		said    []string
		not     string
	}{
		"in one part":            {answers: []string{counts + "}", audit + "}"}, asked: "true:,false:", said: []string{"2 deliveries begin again, 1 of them although they are done.\nEntry 7 of"}},
		"in parts":               {answers: []string{counts + `,"cursor":"a"}`, counts + "}", audit + `,"cursor":"b"}`, audit + `,"cursor":"c"}`, audit + "}"}, asked: "true:,true:a,false:,false:b,false:c", said: []string{"6 deliveries begin again, 3 of them"}},
		"to several":             {answers: []string{counts + `,"cursor":"a","destinations":{"shop":1,"mail":1}}`, counts + `,"destinations":{"shop":2}}`}, flags: []string{"--dry-run"}, asked: "true:,true:a", said: []string{"4 deliveries would begin again, 0 of them although they are done.\nOf these mail gets 1, shop gets 3.\n"}},
		"to nobody":              {answers: []string{counts + `,"cursor":"a","nowhere":{"old":2}}`, counts + `,"nowhere":{"old":1,"crm":1}}`}, flags: []string{"--dry-run"}, asked: "true:,true:a", said: []string{"1 to crm are left alone, because no gateway delivers there: configure it again,", "3 to old are left alone"}},
		"to one that is named":   {answers: []string{counts + `,"destinations":{"shop":2}}`}, flags: []string{"--dry-run", "--destination", "shop"}, asked: "true:", said: []string{"2 deliveries would begin again"}, not: "gets"},
		"it fails":               {answers: []string{counts + "}", audit + `,"cursor":"b"}`, ""}, status: exitFailure, asked: "true:,false:,false:b", said: []string{"2 deliveries begin again", "out of order; run the same command again for the rest"}},
		"nothing done":           {answers: []string{counts + "}", ""}, status: exitFailure, asked: "true:,false:", said: []string{"out of order\n"}},
		"it is busy":             {answers: []string{counts + "}", audit + `,"cursor":"b"}`, busy, audit + "}"}, asked: "true:,false:,false:b,false:b", said: []string{"4 deliveries begin again"}},
		"it is busy, with force": {answers: []string{counts + "}", audit + `,"cursor":"b"}`, busy}, flags: []string{"--force"}, status: exitFailure, asked: "true:,false:,false:b", said: []string{"too long; the same command"}},
		"it is busy, with force, and leaves alone what is done": {
			answers: []string{counts + `,"begun":"2026-11-21T12:00:00Z"}`, audit + `,"cursor":"b"}`, busy, audit + "}"}, flags: []string{"--force"},
			asked: "true:,false:2026-11-21T12:00:00Z,false:2026-11-21T12:00:00Zb,false:2026-11-21T12:00:00Zb", said: []string{"4 deliveries begin again"},
		},
		"busy at once": {answers: []string{counts + "}", busy}, status: exitFailure, asked: "true:,false:", said: []string{"too long\n"}},
		// What is done by now would be chosen again.
		"it fails, with force": {
			answers: []string{counts + "}", audit + `,"cursor":"b"}`, ""}, flags: []string{"--force", "--since", "2h", "--until", "2026-11-21"}, status: exitFailure,
			asked: "true:,false:,false:b", said: []string{"2 deliveries begin again", "without an answer, add --cursor b, and write --since 20", ", and write --until 2026-11-21T00:00:00Z\n"}, not: "run the same",
		},
		"what no route wanted fails": {
			answers: []string{counts + "}", audit + `,"cursor":"b"}`, ""}, flags: []string{"--force", "--unrouted"}, status: exitFailure,
			asked: "true:,false:,false:b", said: []string{"run the same command again for the rest"},
		},
		"it goes on":             {answers: []string{audit + `,"cursor":"c"}`, audit + "}"}, flags: []string{"--force", "--cursor", "b"}, asked: "false:b,false:c", said: []string{"4 deliveries begin again"}},
		"it goes on, and counts": {answers: []string{counts + "}"}, flags: []string{"--cursor", "b", "--dry-run"}, asked: "true:", said: []string{"2 deliveries would begin again"}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var body api.ReplayMany
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Filter.State != "dead" || body.Reason != "fixed" {
					t.Errorf("it was asked %+v, %v", body, err)
				}
				before := ""
				if !body.DoneBefore.IsZero() {
					before = body.DoneBefore.Format(time.RFC3339)
				}
				asked = append(asked, fmt.Sprintf("%t:%s%s", body.DryRun, before, body.Cursor))
				answer := c.answers[min(len(asked), len(c.answers))-1]
				switch answer {
				case "":
					w.WriteHeader(http.StatusInternalServerError)
					answer = `{"title":"x","status":500,"detail":"out of order"}`
				case busy:
					w.WriteHeader(http.StatusServiceUnavailable)
					answer = `{"title":"x","status":503,"detail":"the store took too long"}`
				}
				fmt.Fprint(w, answer)
			}))
			defer server.Close()
			var text bytes.Buffer
			args := []string{"hookonce", "events", "replay", "--admin", server.URL, "--state", "dead", "--reason", "fixed", "--yes"}
			args = append(args, c.flags...)
			if got := execute(&env{args: args, out: &text, err: &text}); got != c.status {
				t.Errorf("exit status %d, want %d: %s", got, c.status, &text)
			}
			for _, want := range c.said {
				if !strings.Contains(text.String(), want) {
					t.Errorf("%q is not in %s", want, &text)
				}
			}
			if c.not != "" && strings.Contains(text.String(), c.not) {
				t.Errorf("%q is in %s", c.not, &text)
			}
			if got := strings.Join(asked, ","); got != c.asked {
				t.Errorf("it was asked %q, want %q", got, c.asked)
			}
		})
	}
}

// Where nobody answers it is not known whether a replay has begun, and nobody is sent to ask for it once more.
func TestReplayWithoutAnAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), `"dry_run":true`) {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, `{"deliveries":2,"dry_run":true}`)
	}))
	defer server.Close()
	for name, c := range map[string]struct {
		flags []string
		known bool
	}{
		"many, with force": {[]string{"--state", "done", "--force", "--yes"}, false},
		"one, with force":  {[]string{"820674996354416641", "--force"}, false},
		"many":             {[]string{"--state", "dead", "--yes"}, true}, // what began is not dead any more
	} {
		var text bytes.Buffer
		args := append([]string{"hookonce", "events", "replay", "--admin", server.URL, "--reason", "fixed"}, c.flags...)
		if got := execute(&env{args: args, out: &text, err: &text}); got != exitFailure || strings.Contains(text.String(), "it is not known whether anything is delivered again") == c.known {
			t.Errorf("%s: exit status %d: %s", name, got, &text)
		}
	}
}

// A replay that somebody breaks off says how to go on.
func TestReplayIsInterrupted(t *testing.T) {
	interrupt := sync.OnceFunc(func() { // a second one would end the process
		if self, err := os.FindProcess(os.Getpid()); err != nil || self.Signal(os.Interrupt) != nil {
			t.Error("the process cannot interrupt itself")
		}
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"dry_run":true`) {
			fmt.Fprint(w, `{"deliveries":2,"dry_run":true}`)
			return
		}
		interrupt()
		fmt.Fprint(w, `{"deliveries":2,"forced":2,"audit":"7","cursor":"b"}`) // there is always more
	}))
	defer server.Close()
	var text bytes.Buffer
	args := []string{"hookonce", "events", "replay", "--admin", server.URL, "--state", "done", "--force", "--reason", "fixed", "--yes"}
	if got := execute(&env{args: args, out: &text, err: &text}); got != exitFailure || !strings.Contains(text.String(), "the replay was interrupted; ") || !strings.Contains(text.String(), "--cursor b\n") {
		t.Errorf("exit status %d: %s", got, &text)
	}
}

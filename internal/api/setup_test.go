package api_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/refusals"
	"github.com/hookonce/hookonce/internal/tail"
)

// now is when every test asks.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// rig is the API in front of the reference model.
type rig struct {
	*testing.T
	model   *journaltest.Memory
	records journal.Store // in place of the model, if set before the first request
	ids     *journal.IDs
	handler http.Handler
	guard   *api.Guard
	log     *logText
	metrics *prometheus.Registry
	refused *refusals.Log
	alerts  *alerts
	clock   time.Time     // of the guard
	later   time.Duration // than now, by the clock of all else
	feed    *tail.Feed
	form    api.Form              // of payloads
	ring    func(context.Context) // what sends test messages, if set
}

// engine does what the journal does for the API, without the rest of it.
type engine struct {
	*journaltest.Memory
	journal.Store
}

func (e engine) Replay(ctx context.Context, r journal.Replay, limit int) (journal.Replayed, error) {
	return e.Store.Replay(ctx, r, limit)
}

func (e engine) SetPaused(ctx context.Context, p journal.Pause, paused bool) (bool, error) {
	return e.Store.SetPaused(ctx, p, paused)
}

func (e engine) Stats(ctx context.Context) (journal.Stats, error) { return e.Memory.Stats(ctx) }

// newRig returns the API behind a guard with the tokens.
func newRig(t *testing.T, tokens ...api.Token) *rig {
	r := &rig{T: t, model: journaltest.NewMemory(), ids: journal.NewIDs(1, 0), refused: refusals.NewLog("billing"), alerts: &alerts{}}
	r.records = r.model
	r.serve(tokens...)
	return r
}

// logText is a log that timers write to as well, of lines that were held back.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// in returns the rig for a test inside the test.
func (r *rig) in(t *testing.T) *rig {
	inner := *r
	inner.T = t
	return &inner
}

// serve builds the handler anew.
func (r *rig) serve(tokens ...api.Token) {
	r.feed = tail.New(r.records, func() time.Time { return now })
	r.Cleanup(r.feed.Close)
	r.log, r.metrics, r.clock = new(logText), prometheus.NewRegistry(), now
	log := slog.New(slog.NewTextHandler(r.log, nil))
	r.guard = api.NewGuard(tokens, api.GuardOptions{Logger: log, Registerer: r.metrics, Now: func() time.Time { return r.clock }})
	r.handler = r.guard.Protect(api.New(api.Options{
		Journal: engine{r.model, r.records},
		Records: r.records,
		Sources: func() []api.Source {
			return []api.Source{{Name: "billing", Provider: "stripe", Path: "/in/billing", Destinations: []string{"app"}}}
		},
		Refusals: r.refused,
		Self:     journal.Gateway{ID: "self", Host: "web-1", PID: 7, Version: "test", Since: now},
		Targets: func() []fleet.Target {
			probe := now.Add(4 * time.Second)
			ill := fleet.Health{State: "ill", Since: &now, Error: "connection refused", Probe: &probe, Limit: 1}
			return []fleet.Target{{Name: "app", URL: "http://127.0.0.1:3000/", Health: ill},
				{Name: "audit", URL: "http://127.0.0.1:4000/", Health: fleet.Health{State: "healthy", Limit: 64}, Ordered: true}}
		},
		Field:    field,
		Tail:     r.feed,
		Payloads: func() api.Form { return cmp.Or(r.form, api.FormOff) },
		Alerts:   r.alerts,
		Channels: func() []api.Channel {
			return []api.Channel{{Name: "oncall", Kind: "pagerduty", Severities: []string{"page"}}, {Name: "team", Kind: "slack", Severities: []string{"page", "ticket"}}}
		},
		TestChannel: func(ctx context.Context, name string) (string, error) {
			switch {
			case r.ring != nil:
				r.ring(ctx)
			case name == "team":
				return "", errors.New("it answered 403 Forbidden: no_service")
			}
			return "202 Accepted", nil
		},
		Logger:  log,
		Version: "test",
		Now:     func() time.Time { return now.Add(r.later) },
	}))
}

// field reads members of JSON objects, from events of every source but the one that sends no such things.
func field(source, name string) (api.Reader, error) {
	member, is := strings.CutPrefix(name, "json:$.")
	if !is || source == "opaque" {
		return nil, fmt.Errorf("%q: %s has no such field", name, source)
	}
	return func(_, body []byte) string {
		var members map[string]string
		_ = json.Unmarshal(body, &members) // what is none has none
		return members[member]
	}, nil
}

// accept stores an event and brings its deliveries into a state.
func (r *rig) accept(key string, state journal.State, edit ...func(*journal.Record)) int64 {
	r.Helper()
	e := &journal.Record{ID: r.ids.Next(now), Event: &journal.Event{
		Source: "billing", Key: key, Type: "invoice.paid",
		Digest: []byte(key), Header: []byte("A: b\r\n"), Body: []byte(`{}`),
		Destinations: []string{"app"}, ReceivedAt: now,
	}}
	for _, f := range edit {
		f(e)
	}
	ctx := r.Context()
	if _, err := r.model.Accept(ctx, []*journal.Record{e}, now, now.Add(time.Minute)); err != nil {
		r.Fatal(err)
	}
	if state == journal.Pending {
		return e.ID
	}
	r.finish(state, now.Add(-time.Second))
	return e.ID
}

// finish has what is due tried, beginning at that time, and returns how many deliveries that were.
func (r *rig) finish(state journal.State, started time.Time) int {
	r.Helper()
	ctx := r.Context()
	work, err := r.model.Take(ctx, now, now.Add(time.Minute), journal.Wanted{Deliveries: 10})
	if err != nil {
		r.Fatal(err)
	}
	for _, w := range work {
		if state == journal.Processing {
			continue
		}
		o := journal.Outcome{Held: w.Held, State: state, Status: 500, Error: "status 500", Started: started,
			Duration: 1500 * time.Microsecond, Due: now.Add(time.Hour), Excerpt: []byte("oh\xff")}
		if _, err := r.model.Finish(ctx, []journal.Outcome{o}); err != nil {
			r.Fatal(err)
		}
	}
	return len(work)
}

// request returns one from this machine.
func request(method, path string, body any) *http.Request {
	var text []byte
	switch b := body.(type) {
	case nil:
	case string:
		text = []byte(b)
	default:
		text, _ = json.Marshal(b)
	}
	req := httptest.NewRequest(method, path, bytes.NewReader(text))
	req.Host, req.RemoteAddr = "127.0.0.1:8081", "127.0.0.1:50000"
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

// send serves a request and reads the answer, which is JSON.
func (r *rig) send(req *http.Request) (*httptest.ResponseRecorder, map[string]any) {
	r.Helper()
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	var answer map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		r.Fatalf("%s %s answered %d %q: %v", req.Method, req.URL, w.Code, w.Body, err)
	}
	return w, answer
}

// get expects an answer of 200.
func (r *rig) get(path string) map[string]any {
	r.Helper()
	return r.expect(request("GET", path, nil), http.StatusOK)
}

// post expects an answer of this status.
func (r *rig) post(path string, body any, status int) map[string]any {
	r.Helper()
	return r.expect(request("POST", path, body), status)
}

// expect expects an answer of this status: problem details, if that is an error.
func (r *rig) expect(req *http.Request, status int) map[string]any {
	r.Helper()
	w, answer := r.send(req)
	if w.Code != status {
		r.Fatalf("%s %s answered %d %v, want %d", req.Method, req.URL, w.Code, answer, status)
	}
	want := "application/json"
	if status >= 400 {
		want = "application/problem+json"
		if answer["detail"] == "" || answer["title"] != http.StatusText(status) || answer["status"] != float64(status) {
			r.Errorf("%s %s: the problem is %v", req.Method, req.URL, answer)
		}
	}
	if got := w.Header().Get("Content-Type"); got != want {
		r.Errorf("%s %s: Content-Type %s, want %s", req.Method, req.URL, got, want)
	}
	return answer
}

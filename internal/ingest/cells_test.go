package ingest_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
)

// twoCells returns a door of the cell b, which owns all events of billing, and one of the cell a, which hands them on to it. asking
// and asked change the protocols that a asks for and that b reads, and taken is told what b says to a; all may be nil.
func twoCells(tb testing.TB, at func(*cells.Cells) *ingest.Handler, asking, asked func(protocols []string) []string, taken func(cells.Outcome)) (owner, near *ingest.Handler) {
	tb.Helper()
	var server http.Handler
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked != nil {
			r.Header["Upgrade"] = asked(r.Header["Upgrade"])
		}
		server.ServeHTTP(w, r)
	}))
	tb.Cleanup(listener.Close)
	open := func(self string) *cells.Cells {
		c, err := cells.Open(context.Background(), cells.Options{
			Self: self, Store: &maps{name: self}, Now: time.Now, Logger: slog.New(slog.DiscardHandler), Peers: peers(func(r *http.Request) (*http.Response, error) {
				if asking != nil {
					r.Header["Upgrade"] = asking(r.Header["Upgrade"])
				}
				return http.DefaultTransport.RoundTrip(r)
			}),
			Known:      func(context.Context, string, []string) (map[string]journal.Known, error) { return nil, nil },
			Remembered: func(string) time.Duration { return time.Hour },
			Configured: cells.Configured{Number: 1, Cells: []cells.Cell{{Name: "a", URL: "http://a.invalid"}, {Name: "b", URL: listener.URL, Weight: 1}}, Sources: []string{"billing"}},
		})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(c.Close)
		return c
	}
	c := open("b")
	owner = at(c)
	server = c.Handler(func(ctx context.Context, hop *cells.Hop, r *cells.Request) cells.Outcome {
		o := owner.Handed(ctx, hop, r)
		if taken != nil {
			taken(o)
		}
		return o
	})
	return owner, at(open("a"))
}

// peers carries what a cell says to others.
type peers func(*http.Request) (*http.Response, error)

func (f peers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A sender is told the same at every door, also where only one of two cells knows of answers that have counts alone. Between two
// that do, the ordinary answer is one.
func TestAnswersAreTheSameAtEveryDoor(t *testing.T) {
	t.Parallel()
	accepted, copied, conflict := journal.Result{Status: journal.Accepted}, journal.Result{Status: journal.Duplicate}, journal.Result{Status: journal.Conflict}
	older := func(protocols []string) []string { return protocols[:1] } // all that it says, and all that it reads
	for version, c := range map[string]struct {
		asking, asked func([]string) []string
		brief         bool
	}{"both are new": {nil, nil, true}, "the door is older": {older, nil, false}, "the owner is older": {nil, older, false}} {
		for name, c2 := range map[string]struct {
			body     string
			results  []journal.Result
			provider testProvider
			whole    bool // the answer is not the ordinary one
		}{
			"a new event":                 {`{"id":"evt_1 <é>"}`, []journal.Result{accepted}, testProvider{}, false},
			"a copy":                      {`{"id":"evt_1"}`, []journal.Result{copied}, testProvider{}, false},
			"a batch":                     {`[{"id":"evt_1"},{"id":"evt_2"},{"id":"evt_3"}]`, []journal.Result{copied, accepted, conflict}, testProvider{}, false},
			"an answer of the provider's": {`{"id":"evt_1"}`, []journal.Result{conflict}, testProvider{ok: hookonce.Answer{Status: 202, Body: []byte("[accepted]")}}, true},
		} {
			var outcomes []cells.Outcome
			owner, near := twoCells(t, func(c *cells.Cells) *ingest.Handler {
				return newGate(t, func(o *ingest.Options) {
					o.Cells, o.Journal, o.Sources[0].Provider = c, stub{results: c2.results}, c2.provider
				}).Handler
			}, c.asking, c.asked, func(o cells.Outcome) { outcomes = append(outcomes, o) })
			want, got := serve(owner, request("billing", c2.body)), serve(near, request("billing", c2.body))
			if got.Code != want.Code || got.Body.String() != want.Body.String() || !reflect.DeepEqual(got.Header(), want.Header()) {
				t.Errorf("%s, %s: %d %v %q; at the owner's door %d %v %q", version, name, got.Code, got.Header(), got.Body, want.Code, want.Header(), want.Body)
			}
			if len(outcomes) != 1 || outcomes[0].Answer == nil || (outcomes[0].Answer.Status == 0) != (c.brief && !c2.whole) {
				t.Errorf("%s, %s: the owner answers %+v", version, name, outcomes)
			}
		}
	}
}

// An owner that takes for a handshake what is an event elsewhere does not acknowledge it: nothing is stored.
func TestHandshakesAreNotHandedOn(t *testing.T) {
	g := newGate(t, func(o *ingest.Options) { o.Cells = new(cells.Cells) })
	body := `{"challenge":"x"}`
	o := g.Handed(context.Background(), &cells.Hop{From: "a", To: "b", Map: "1 x", Part: "1 0123"}, &cells.Request{
		Source: "billing", Method: "POST", Host: "h", Target: "/in/billing", Address: "1.2.3.4", Header: http.Header{signatureHeader: {sign(body)}}, Body: []byte(body),
	})
	if o.Answer != nil {
		t.Errorf("one event is meant, nothing is stored, and it is answered %d, counts %q", o.Answer.Status, o.Answer.Counts)
	}
}

package ingest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
)

func TestAnswers(t *testing.T) {
	g := newGate(t, nil)
	for _, c := range []struct{ name, body, verdict, want string }{
		{"first copy", `{"id":"a"}`, "accepted", `{"status":"accepted","key":"a"}`},
		{"second copy", `{"id":"a"}`, "duplicate", `{"status":"duplicate","key":"a"}`},
		{"other content", `{"id":"a","type":"x"}`, "conflict", `{"status":"conflict","key":"a"}`},
		{"no key", `{"type":"x"}`, "unkeyed", `{"status":"unkeyed"}`},
		{"a key that JSON must escape", `{"id":"\"<é"}`, "accepted", `{"status":"accepted","key":"\"\u003cé"}`},
		{"not JSON", `hello`, "unkeyed", `{"status":"unkeyed"}`},
		{"batch, partly known", `[{"id":"a"},{"id":"b"},{"id":"b","type":"x"},{}]`, "accepted",
			`{"status":"accepted","accepted":1,"duplicate":1,"conflict":1,"unkeyed":1}`},
		{"batch, wholly known", `[{"id":"a"},{"id":"b"}]`, "duplicate",
			`{"status":"duplicate","accepted":0,"duplicate":2,"conflict":0,"unkeyed":0}`},
		{"batch with a conflict", `[{"id":"a"},{"id":"b","type":"y"}]`, "conflict",
			`{"status":"conflict","accepted":0,"duplicate":1,"conflict":1,"unkeyed":0}`},
		{"empty batch", `[]`, "accepted",
			`{"status":"accepted","accepted":0,"duplicate":0,"conflict":0,"unkeyed":0}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantAnswer(t, g.send("billing", c.body), 200, c.verdict, c.want+"\n")
		})
	}
}

func TestProviderRequiresItsOwnAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		ok     hookonce.Answer
		status int
		body   string
	}{
		{"any 200 will do", hookonce.Answer{Status: 200}, 200, `{"status":"accepted","key":"a"}` + "\n"},
		{"a body", hookonce.Answer{Status: 200, ContentType: "text/plain", Body: []byte("[accepted]")}, 200, "[accepted]"},
		{"a body of the provider's own type", hookonce.Answer{ContentType: "text/xml", Body: []byte("<Response/>")}, 200, "<Response/>"},
		{"a status", hookonce.Answer{Status: 204}, 204, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t, func(o *ingest.Options) { o.Sources[0].Provider = testProvider{ok: c.ok} })
			w := g.send("billing", `{"id":"a"}`)
			wantAnswer(t, w, c.status, "accepted", c.body)
			if got := w.Header().Get("Content-Type"); c.ok.ContentType != "" && got != c.ok.ContentType {
				t.Errorf("Content-Type = %q, want %q", got, c.ok.ContentType)
			}
		})
	}
}

func TestHandshakeIsAnsweredAsInertText(t *testing.T) {
	g := newGate(t, nil)
	w := g.send("billing", `{"challenge":"<script>alert(1)</script>"}`)
	wantAnswer(t, w, 200, "", "<script>alert(1)</script>")
	if got := w.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("Content-Type = %q", got)
	}
	if got := w.Header().Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("X-Content-Type-Options = %q", got)
	}
	if g.model.Events() != 0 {
		t.Error("a handshake was stored")
	}
}

func TestEntryCarriesWhatTheAppNeeds(t *testing.T) {
	g := newGate(t, nil)
	r := request("billing", `{"id":"a","type":"paid"}`)
	r.Header.Set("Content-Encoding", "identity")
	r.Header.Set("Authorization", "Bearer not-a-real-token")
	serve(g, r)
	w := g.receive(t)
	if w.Source != "billing" || w.Key != "a" || w.Type != "paid" || w.Destination != "app" || string(w.Body) != `{"id":"a","type":"paid"}` {
		t.Errorf("work = %+v, body %q", w, w.Body)
	}
	header := string(w.Header)
	for _, want := range []string{"Content-Type: application/json\r\n", "Content-Encoding: identity\r\n", signatureHeader + ": " + sign(string(w.Body)) + "\r\n"} {
		if !strings.Contains(header, want) {
			t.Errorf("the stored header lacks %q:\n%s", want, header)
		}
	}
	if strings.Contains(header, "not-a-real-token") {
		t.Errorf("credentials were stored:\n%s", header)
	}
}

func TestURLAsItIsSeen(t *testing.T) {
	for _, want := range []string{"http://gw.test/in/billing?a=1", "http://gw.test/in/billing", "https://gw.test/in/billing?a=1"} {
		t.Run(want, func(t *testing.T) {
			spy := &urlSpy{}
			g := newGate(t, func(o *ingest.Options) { o.Sources[0].Provider = spy })
			r := request("billing", `{"id":"a"}`)
			target, err := http.NewRequest(http.MethodPost, want, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.URL.RawQuery, r.Host = target.URL.RawQuery, "gw.test"
			r.URL.Scheme, r.URL.Host = "", ""
			if target.URL.Scheme == "https" {
				r.TLS = tlsState
			}
			serve(g, r)
			if spy.url != want {
				t.Errorf("URL = %q, want %q", spy.url, want)
			}
		})
	}
}

func TestMetricsCountBySource(t *testing.T) {
	g := newGate(t, nil)
	for _, body := range []string{`{"id":"a"}`, `{"id":"a"}`, `{"id":"a","type":"x"}`, `{}`, `[{"id":"b"},{"id":"c"}]`} {
		g.send("billing", body)
	}
	unsigned := request("billing", `{"id":"d"}`)
	unsigned.Header.Del(signatureHeader)
	serve(g, unsigned)
	g.send("nowhere", `{}`)

	const want = `
# HELP hookonce_received_total Requests received.
# TYPE hookonce_received_total counter
hookonce_received_total{source="billing"} 6
hookonce_received_total{source="orders"} 0
# HELP hookonce_events_total Events, by what became of them: accepted (stored as new under a key), duplicate (the key was stored before, with the same content), conflict (with other content), unkeyed (stored without a key: copies cannot be recognised), unprotected (delivered past the store while it was unavailable).
# TYPE hookonce_events_total counter
hookonce_events_total{source="billing",status="accepted"} 3
hookonce_events_total{source="billing",status="conflict"} 1
hookonce_events_total{source="billing",status="duplicate"} 1
hookonce_events_total{source="billing",status="unkeyed"} 1
hookonce_events_total{source="billing",status="unprotected"} 0
hookonce_events_total{source="orders",status="accepted"} 0
hookonce_events_total{source="orders",status="conflict"} 0
hookonce_events_total{source="orders",status="duplicate"} 0
hookonce_events_total{source="orders",status="unkeyed"} 0
hookonce_events_total{source="orders",status="unprotected"} 0
`
	if err := testutil.GatherAndCompare(g.metrics, strings.NewReader(want), "hookonce_received_total", "hookonce_events_total"); err != nil {
		t.Error(err)
	}
	rejected := gather(t, g, "hookonce_rejected_total")
	for labels, n := range rejected {
		want := 0.0
		if labels == "signature_missing,billing" || labels == "unknown_source," {
			want = 1
		}
		if n != want {
			t.Errorf("hookonce_rejected_total{%s} = %v, want %v", labels, n, want)
		}
	}
	if len(rejected) < 20 {
		t.Errorf("only %d children exist before they are needed", len(rejected))
	}
}

// TestOurFaultIs503 holds law 9: whatever goes wrong on our side is a retryable 503.
func TestOurFaultIs503(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		reason string
	}{
		{"queue full", journal.ErrFull, "queue_full"},
		{"closed", journal.ErrClosed, "closing"},
		{"store down", errors.Join(journal.ErrUnavailable, errors.New("connection refused")), "store"},
		{"unknown outcome", hookonce.ErrUnknownOutcome, "timeout"},
		{"anything else", errors.New("surprise"), "internal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t, func(o *ingest.Options) { o.Journal = stub{err: c.err} })
			w := g.send("billing", `{"id":"a"}`)
			wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), 503, c.reason)
			if strings.Contains(w.Body.String(), "surprise") || strings.Contains(w.Body.String(), "refused") {
				t.Errorf("the sender reads our error: %s", w.Body)
			}
		})
	}
	t.Run("too few results", func(t *testing.T) {
		g := newGate(t, func(o *ingest.Options) { o.Journal = stub{} })
		w := g.send("billing", `{"id":"a"}`)
		wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), 503, "internal")
	})
	t.Run("panic in the provider", func(t *testing.T) {
		g := newGate(t, nil)
		w := g.send("billing", `{"panic":"boom"}`)
		wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), 503, "panic")
	})
	t.Run("panic in the journal", func(t *testing.T) {
		g := newGate(t, func(o *ingest.Options) { o.Journal = struct{ ingest.Journal }{} })
		w := g.send("billing", `{"id":"a"}`)
		wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), 503, "panic")
	})
	// That it cannot be told whether a request is authentic may be a stranger's doing; that the secrets have ended is ours.
	for name, c := range map[string]struct {
		err           error
		reason, level string
	}{
		"a key that cannot be fetched":     {errors.New("the sender's key \"kid\" is not there"), "undecided", "WARN"},
		"a key that is not there in time":  {fmt.Errorf("fetching: %w", context.DeadlineExceeded), "undecided", "WARN"},
		"a sender whose secrets all ended": {fmt.Errorf("verify 1: %w", hookonce.ErrNoSecret), "internal", "ERROR"},
		"one that is not authentic":        {&hookonce.RejectError{Reason: hookonce.ReasonSignatureMissing}, "signature_missing", "WARN"},
	} {
		t.Run(name, func(t *testing.T) {
			var buffer bytes.Buffer
			g := newGate(t, func(o *ingest.Options) {
				logged(&buffer)(o)
				o.Sources[0].Provider = failingProvider{err: c.err}
			})
			w := g.send("billing", `{"id":"a"}`)
			status := 503
			if c.reason == "signature_missing" {
				status = 401
			}
			wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), status, c.reason)
			if after := w.Header().Get("Retry-After"); (after != "") != (status == 503) {
				t.Errorf("Retry-After %q", after)
			}
			if l := lines(t, &buffer); len(l) != 1 || l[0]["level"] != c.level || l[0]["error"] == nil {
				t.Errorf("it logs %v, want one line at %s", l, c.level)
			}
		})
	}
}

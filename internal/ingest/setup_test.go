package ingest_test

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

const (
	testSecret      = "not-a-real-secret"
	signatureHeader = "X-Test-Signature"
)

// testProvider signs the body with HMAC and keeps its events as {"id", "type"}, alone or in an array.
type testProvider struct{ ok hookonce.Answer }

func (p testProvider) Profile() hookonce.Profile {
	return hookonce.Profile{Name: "test", Acknowledgement: p.ok}
}

func sign(body string) string {
	mac := hmac.New(sha256.New, []byte(testSecret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

func (testProvider) Open(r *hookonce.Request) (*hookonce.Verified, error) {
	signatures := r.Header[signatureHeader]
	switch {
	case len(signatures) == 0:
		return nil, &hookonce.RejectError{Reason: hookonce.ReasonSignatureMissing, Detail: signatureHeader + " is missing"}
	case len(signatures) > 1:
		return nil, &hookonce.RejectError{Reason: hookonce.ReasonSignatureMalformed, Detail: signatureHeader + " appears twice"}
	case !hmac.Equal([]byte(signatures[0]), []byte(sign(string(r.Body)))):
		return nil, &hookonce.RejectError{Reason: hookonce.ReasonSignatureMismatch, Detail: "want hexadecimal SHA-256"}
	}
	if at, err := time.Parse(time.RFC3339, r.Header.Get("X-Test-Time")); err == nil && at.Before(r.Now.Add(-5*time.Minute)) {
		return nil, &hookonce.RejectError{Reason: hookonce.ReasonTimestampOld, Detail: "older than 5m"}
	} else if err == nil && at.After(r.Now.Add(5*time.Minute)) {
		return nil, &hookonce.RejectError{Reason: hookonce.ReasonTimestampFuture, Detail: "more than 5m ahead"}
	}
	return split(r), nil
}

func split(r *hookonce.Request) *hookonce.Verified {
	var one struct {
		ID, Type, Challenge, Panic, Scope, Logical string
		Rank                                       *int64
	}
	var many []json.RawMessage
	switch {
	case json.Unmarshal(r.Body, &many) == nil:
		d := &hookonce.Verified{}
		for _, item := range many {
			d.Events = append(d.Events, split(&hookonce.Request{Header: r.Header, Body: item}).Events...)
		}
		return d
	case json.Unmarshal(r.Body, &one) != nil:
		return &hookonce.Verified{
			Events:     []hookonce.Event{{Body: r.Body, Header: r.Header}},
			Unreadable: errors.New("not JSON"),
		}
	case one.Panic != "":
		panic(one.Panic)
	case one.Challenge != "":
		return &hookonce.Verified{Handshake: &hookonce.Answer{Status: 200, ContentType: "text/html", Body: []byte(one.Challenge)}}
	}
	var rank hookonce.Rank
	if one.Rank != nil {
		rank = hookonce.Version(*one.Rank)
	}
	sum := sha256.Sum256(r.Body)
	return &hookonce.Verified{Events: []hookonce.Event{{
		Key: one.ID, Type: one.Type, KeySigned: true, Digest: sum[:16], Body: r.Body, Header: r.Header,
		Scope: one.Scope, Rank: rank, Logical: one.Logical,
	}}}
}

// gate is an ingest handler on an engine in memory.
type gate struct {
	*ingest.Handler
	model   *journaltest.Memory
	faulty  *journaltest.Faulty
	journal *engine.Engine
	metrics *prometheus.Registry
}

// newGate serves the sources "billing" and "orders". Change adapts the options before they are used.
func newGate(t *testing.T, change func(*ingest.Options)) *gate {
	t.Helper()
	model := journaltest.NewMemory()
	faulty := journaltest.NewFaulty(model)
	j, err := engine.New(faulty, journaltest.Options(engine.Options{DoneKeys: journaltest.NoDoneKeys}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := j.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	g := &gate{model: model, faulty: faulty, journal: j, metrics: prometheus.NewRegistry()}
	o := ingest.Options{
		Sources: []ingest.Source{
			sourceTo("billing", testProvider{}),
			sourceTo("orders", testProvider{}),
		},
		Journal:    j,
		Registerer: g.metrics,
	}
	if change != nil {
		change(&o)
	}
	g.Handler = ingest.New(complete(o))
	return g
}

// sourceTo is a source whose events go to the destination "app".
func sourceTo(name string, p hookonce.Provider) ingest.Source {
	return ingest.Source{Name: name, Provider: p, MaxBody: 1 << 20, Deadline: 10 * time.Second, Routes: []ingest.Route{{To: []string{"app"}}}}
}

const (
	bodyTimeout   = 10 * time.Second
	acceptTimeout = 5 * time.Second
)

// complete gives the options that a test does not care about.
func complete(o ingest.Options) ingest.Options {
	o.MaxReading = cmp.Or(o.MaxReading, 128<<20)
	o.MaxQueued = cmp.Or(o.MaxQueued, math.MaxInt)
	o.MaxQueuedBytes = cmp.Or(o.MaxQueuedBytes, math.MaxInt64)
	o.BodyTimeout = cmp.Or(o.BodyTimeout, bodyTimeout)
	o.AcceptTimeout = cmp.Or(o.AcceptTimeout, acceptTimeout)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	return o
}

// request is a signed POST of body to a source.
func request(source, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, ingest.PathPrefix+source, strings.NewReader(body))
	r.Header.Set(signatureHeader, sign(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// send posts a signed body and returns the answer.
func (g *gate) send(source, body string) *httptest.ResponseRecorder {
	return serve(g, request(source, body))
}

// receive takes the next work from the journal and finishes it.
func (g *gate) receive(t *testing.T) *journal.Work {
	t.Helper()
	select {
	case w := <-g.journal.Work():
		g.journal.Finish(journal.Outcome{Held: w.Held, State: journal.Done})
		return w
	case <-time.After(time.Minute):
		t.Fatal("no work came out of the journal")
		return nil
	}
}

// wantAnswer compares status, verdict and body.
func wantAnswer(t *testing.T, w *httptest.ResponseRecorder, status int, verdict, body string) {
	t.Helper()
	if w.Code != status || w.Header().Get("Hookonce-Status") != verdict || w.Body.String() != body {
		t.Errorf("answered %d, Hookonce-Status %q, %q\nwant %d, %q, %q",
			w.Code, w.Header().Get("Hookonce-Status"), w.Body, status, verdict, body)
	}
}

// wantProblem checks that an answer is the problem with the given reason, and says nothing else.
func wantProblem(t *testing.T, status int, h http.Header, body []byte, wantStatus int, reason string) {
	t.Helper()
	var p struct {
		Type, Title, Detail, Reason string
		Status                      int
	}
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("the answer (status %d) is not problem details: %v in %q", status, err, body)
	}
	if status != wantStatus || p.Status != wantStatus || p.Reason != reason {
		t.Errorf("answered %d, problem %+v; want %d, reason %q", status, p, wantStatus, reason)
	}
	if got := h.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type = %q", got)
	}
	if !strings.HasPrefix(p.Type, "urn:hookonce:problem:") || p.Title == "" || p.Detail == "" {
		t.Errorf("incomplete problem: %+v", p)
	}
	if again := h.Get("Retry-After") != ""; again != (wantStatus == http.StatusServiceUnavailable || wantStatus == http.StatusTooManyRequests) {
		t.Errorf("Retry-After = %q on a %d", h.Get("Retry-After"), status)
	}
	if h.Get("Hookonce-Status") != "" {
		t.Errorf("a refused request is labelled %q", h.Get("Hookonce-Status"))
	}
}

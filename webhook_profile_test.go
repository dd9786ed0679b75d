package hookonce_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// particular is a sender that greets with GET and HEAD, has statuses of its own, and says by
// which secret it was recognised.
type particular struct {
	sender
	coalesce bool
	covers   string
}

func (particular) Profile() hookonce.Profile {
	return hookonce.Profile{Name: "sender", Methods: []string{"GET", "HEAD"}, Rejected: 403, NotReady: 500}
}

func (p particular) Open(req *hookonce.Request) (*hookonce.Verified, error) {
	switch {
	case req.Method != http.MethodPost && len(req.Body) > 0:
		return nil, errors.New("a greeting was read")
	case req.Method != http.MethodPost && req.Header.Get("Sig") == "ok":
		return &hookonce.Verified{Handshake: &hookonce.Answer{ContentType: "text/html", Body: []byte("<hi>"), Header: map[string]string{"X-Hook-Secret": "c", "Set-Cookie": "c=1"}}}, nil
	case req.Method != http.MethodPost:
		return nil, &hookonce.RejectError{Reason: hookonce.ReasonHandshakeRefused, Status: http.StatusMethodNotAllowed}
	case string(req.Body) == "teapot":
		return nil, &hookonce.RejectError{Reason: hookonce.ReasonHandshakeRefused, Status: http.StatusTeapot}
	}
	d, err := p.sender.Open(req)
	if d != nil {
		d.Proof = hookonce.Proof{Covers: p.covers, Secret: 2}
		for i := range d.Events {
			d.Events[i].Coalesce = p.coalesce
		}
	}
	return d, err
}

func serveParticular(t *testing.T, p particular, handle handleFunc, opts ...hookonce.WebhookOption) *httptest.Server {
	quiet := hookonce.WithLogger(slog.New(slog.DiscardHandler))
	s := httptest.NewServer(hookonce.Webhook(memstore.New(), p.Profile().Name, p, handle, append([]hookonce.WebhookOption{quiet}, opts...)...))
	t.Cleanup(s.Close)
	return s
}

func exchange(t *testing.T, s *httptest.Server, method, sig, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, s.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Sig", sig)
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

func TestWebhookAnswersAsTheProviderWants(t *testing.T) {
	fail := func(context.Context, *memstore.Tx, *hookonce.Event) error { return errors.New("no") }
	s := serveParticular(t, particular{}, fail)
	for _, c := range []struct {
		name, method, sig, body string
		status                  int
		allow                   string
	}{
		{"a greeting", "GET", "ok", "", 200, ""},
		{"a greeting whose body is nothing to us", "GET", "ok", "x", 200, ""},
		{"a greeting without a body", "HEAD", "ok", "", 200, ""},
		{"a GET that is no greeting", "GET", "", "", 405, "POST, GET, HEAD"},
		{"a method that is no greeting", "PUT", "ok", "a 1", 405, "POST, GET, HEAD"},
		{"not authentic", "POST", "forged", "a 1", 403, ""},
		{"a rejection with a status of its own", "POST", "ok", "teapot", 418, ""},
		{"not done", "POST", "ok", "a 1", 500, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, body := exchange(t, s, c.method, c.sig, c.body)
			if res.StatusCode != c.status || res.Header.Get("Allow") != c.allow {
				t.Errorf("answered %d, Allow %q: %s; want %d, %q", res.StatusCode, res.Header.Get("Allow"), body, c.status, c.allow)
			}
			if c.status == 500 && res.Header.Get("Retry-After") == "" {
				t.Error("a failure of ours without Retry-After")
			}
			if c.method == "HEAD" && body != "" {
				t.Errorf("HEAD was answered %q", body)
			}
		})
	}
}

// What a handshake echoes is never a page, whatever the provider calls it.
func TestWebhookGreetsAsInertText(t *testing.T) {
	res, body := exchange(t, serveParticular(t, particular{}, succeed), "GET", "ok", "")
	if body != "<hi>" || res.Header.Get("Content-Type") != "text/plain; charset=utf-8" || res.Header.Get("X-Content-Type-Options") != "nosniff" ||
		res.Header.Get("X-Hook-Secret") != "c" || res.Header.Get("Set-Cookie") != "" {
		t.Errorf("answered %q with %v", body, res.Header)
	}
}

func succeed(context.Context, *memstore.Tx, *hookonce.Event) error { return nil }

// An event that only says that something changed is handled each time: what was handled before may
// have been read before the change.
func TestWebhookHandlesCoalescingEventsEachTime(t *testing.T) {
	var l ledger
	var seen []string
	s := serveParticular(t, particular{coalesce: true}, l.handle, hookonce.WithObserver(func(_ context.Context, o hookonce.Observation) {
		seen = append(seen, o.Status)
	}))
	for range 2 {
		if res, body := exchange(t, s, "POST", "ok", "a 1"); res.StatusCode != 200 || res.Header.Get("Hookonce-Status") != "accepted" {
			t.Errorf("answered %d %q: %s", res.StatusCode, res.Header.Get("Hookonce-Status"), body)
		}
	}
	l.want(t, "a#0", "a#0")
	if strings.Join(seen, " ") != "accepted accepted" {
		t.Errorf("observed %q", seen)
	}
}

// A permanent failure without a claim is on no record, and cannot be acknowledged.
func TestWebhookKeepsCoalescingEventsThatFail(t *testing.T) {
	s := serveParticular(t, particular{coalesce: true}, func(context.Context, *memstore.Tx, *hookonce.Event) error {
		return hookonce.Permanent(errors.New("no"))
	})
	if res, _ := exchange(t, s, "POST", "ok", "a 1"); res.StatusCode != 500 {
		t.Errorf("answered %d", res.StatusCode)
	}
}

// Which secret matched is seen by whoever wants to retire one, and what is not signed by everybody.
func TestWebhookTellsTheProof(t *testing.T) {
	for covers, labelled := range map[string]bool{"body": false, "nonce": true} {
		t.Run(covers, func(t *testing.T) {
			var log strings.Builder
			var seen hookonce.Observation
			s := serveParticular(t, particular{covers: covers}, succeed,
				hookonce.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
				hookonce.WithObserver(func(_ context.Context, o hookonce.Observation) { seen = o }))
			exchange(t, s, "POST", "ok", "a 1")
			if seen.Proof != (hookonce.Proof{Covers: covers, Secret: 2}) {
				t.Errorf("observed %+v", seen.Proof)
			}
			if !strings.Contains(log.String(), "secret=2") || strings.Contains(log.String(), "covers="+covers) != labelled {
				t.Errorf("logged %s", log.String())
			}
		})
	}
}

func TestWebhookAddsTheQueryToThePublicURL(t *testing.T) {
	for _, c := range []struct{ public, query, want string }{
		{"https://public.test/hook", "", "https://public.test/hook"},
		{"https://public.test/hook", "a=1", "https://public.test/hook?a=1"},
		{"https://public.test/hook?b=2", "b=2", "https://public.test/hook?b=2"},
	} {
		spy := &urlSpy{}
		h := hookonce.Webhook(memstore.New(), "sender", spy, succeed, hookonce.WithPublicURL(c.public), hookonce.WithLogger(slog.New(slog.DiscardHandler)))
		r := httptest.NewRequest(http.MethodPost, "http://inside.test/x?"+c.query, strings.NewReader("a 1"))
		h.ServeHTTP(httptest.NewRecorder(), r)
		if spy.url != c.want {
			t.Errorf("URL = %q, want %q", spy.url, c.want)
		}
	}
}

type urlSpy struct {
	sender
	url string
}

func (s *urlSpy) Open(r *hookonce.Request) (*hookonce.Verified, error) {
	s.url = r.URL
	return s.sender.Open(r)
}

// touchy is a sender for which a 4xx is final, unless it is the status in rejected.
type touchy struct {
	particular
	rejected int
}

func (p touchy) Profile() hookonce.Profile {
	return hookonce.Profile{Name: "sender", Rejected: p.rejected}
}

// What such a sender is answered has it come again, and says when.
func TestWebhookShowsATouchyProviderNoFinal4xx(t *testing.T) {
	quiet := hookonce.WithLogger(slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		p         hookonce.Provider
		sig, body string
		status    int
		again     bool
	}{
		{touchy{rejected: 503}, "ok", "too large", 503, true},
		{touchy{rejected: 503}, "forged", "a 1", 503, true},
		{touchy{rejected: 429}, "ok", "too large", 429, true},
		{touchy{rejected: 429}, "forged", "a 1", 429, true},
		{particular{}, "ok", "too large", 413, false},
		{particular{}, "forged", "a 1", 403, false},
	} {
		s := httptest.NewServer(hookonce.Webhook(memstore.New(), c.p.Profile().Name, c.p, succeed, quiet, hookonce.WithMaxBody(4)))
		res, body := exchange(t, s, "POST", c.sig, c.body)
		if res.StatusCode != c.status || (res.Header.Get("Retry-After") != "") != c.again {
			t.Errorf("%s %s: answered %d, Retry-After %q: %s; want %d", c.sig, c.body, res.StatusCode, res.Header.Get("Retry-After"), body, c.status)
		}
		s.Close()
	}
}

// getter is a sender whose events come with GET: their content is the query.
type getter struct{ url string }

func (*getter) Profile() hookonce.Profile {
	return hookonce.Profile{Name: "getter", Methods: []string{"GET"}}
}

func (g *getter) Open(req *hookonce.Request) (*hookonce.Verified, error) {
	g.url = req.URL
	_, query, _ := strings.Cut(req.URL, "?")
	return &hookonce.Verified{Events: []hookonce.Event{{Provider: "getter", Key: query, Body: []byte(query), Header: req.Header}}}, nil
}

// TestWebhookTakesEventsWithGET: the query of a request belongs to the URL that the sender calls, where that has one of its own, too.
func TestWebhookTakesEventsWithGET(t *testing.T) {
	for _, c := range []struct{ registered, query, want string }{
		{"https://shop.example/in", "a=1", "https://shop.example/in?a=1"},
		{"https://shop.example/in", "", "https://shop.example/in"},
		{"https://shop.example/in?shop=7", "shop=7&a=1", "https://shop.example/in?shop=7&a=1"},
		{"https://shop.example/in?shop=7", "shop=7", "https://shop.example/in?shop=7"},
		{"https://shop.example/in?shop=7", "shop=77", "https://shop.example/in?shop=7"},
		{"https://shop.example/in?shop=7", "a=1", "https://shop.example/in?shop=7"},
	} {
		g, handled := &getter{}, 0
		h := hookonce.Webhook(memstore.New(), "getter", g, func(context.Context, *memstore.Tx, *hookonce.Event) error {
			handled++
			return nil
		}, hookonce.WithPublicURL(c.registered), hookonce.WithLogger(slog.New(slog.DiscardHandler)))
		for range 2 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://10.0.0.7/x?"+c.query, nil))
			if w.Code != http.StatusOK {
				t.Errorf("%+v: %d %s", c, w.Code, w.Body)
			}
		}
		_, query, _ := strings.Cut(c.want, "?")
		if g.url != c.want || query != "" && handled != 1 {
			t.Errorf("%+v: the provider saw %s, and the handler ran %d times", c, g.url, handled)
		}
	}
}

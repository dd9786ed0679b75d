package ingest_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/provider"
)

// particular is a provider that greets with GET and HEAD and has statuses of its own.
type particular struct {
	testProvider
	proof hookonce.Proof
}

func (particular) Profile() hookonce.Profile {
	return hookonce.Profile{Name: "test", Methods: []string{"GET", "HEAD"}, Rejected: 403, NotReady: 429}
}

func (p particular) Open(r *hookonce.Request) (*hookonce.Verified, error) {
	switch {
	case r.Method != http.MethodPost && len(r.Body) > 0:
		return nil, errors.New("a greeting was read")
	case r.Method != http.MethodPost && strings.HasSuffix(r.URL, "?challenge"):
		return &hookonce.Verified{Handshake: &hookonce.Answer{ContentType: "text/html", Body: []byte("<hi>"), Header: map[string]string{"X-Hook-Secret": "c", "Set-Cookie": "c=1"}}}, nil
	case r.Method != http.MethodPost:
		return nil, &hookonce.RejectError{Reason: hookonce.ReasonHandshakeRefused, Status: http.StatusMethodNotAllowed}
	}
	d, err := p.testProvider.Open(r)
	if d != nil {
		d.Proof = p.proof
	}
	return d, err
}

func TestAnswersAsTheProviderWants(t *testing.T) {
	const event = `{"id":"a"}`
	g := newGate(t, func(o *ingest.Options) {
		o.Sources[0].Provider = particular{}
		o.Journal = stub{err: journal.ErrFull}
	})
	server := httptest.NewServer(g)
	defer server.Close()
	for _, c := range []struct {
		name, method, query, body, signature string
		status                               int
		allow, retry, contentType            string
	}{
		{"a greeting", "GET", "?challenge", "", "", 200, "", "", "text/plain; charset=utf-8"},
		{"a greeting whose body is nothing to us", "GET", "?challenge", "x", "", 200, "", "", "text/plain; charset=utf-8"},
		{"a greeting without a body", "HEAD", "?challenge", "", "", 200, "", "", "text/plain; charset=utf-8"},
		{"a GET that is no greeting", "GET", "", "", "", 405, "POST, GET, HEAD", "", "application/problem+json"},
		{"a method that is no greeting", "PUT", "?challenge", event, sign(event), 405, "POST, GET, HEAD", "", "application/problem+json"},
		{"not authentic", "POST", "", event, "forged", 403, "", "", "application/problem+json"},
		{"not durable", "POST", "", event, sign(event), 429, "", "5", "application/problem+json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req, err := http.NewRequest(c.method, server.URL+"/in/billing"+c.query, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set(signatureHeader, c.signature)
			res, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			h := res.Header
			if res.StatusCode != c.status || h.Get("Allow") != c.allow || h.Get("Retry-After") != c.retry || h.Get("Content-Type") != c.contentType {
				t.Errorf("answered %d %v: %s; want %+v", res.StatusCode, h, body, c)
			}
			if c.method == "HEAD" && len(body) > 0 {
				t.Errorf("HEAD was answered %q", body)
			}
			if h.Get("X-Content-Type-Options") != "nosniff" {
				t.Error("browsers may guess what this is")
			}
		})
	}
}

// TestEventsWithGET: what a GET says is stored as the form of a POST, its type with it, once for both.
func TestEventsWithGET(t *testing.T) {
	const fields = "AccountSid=AC1&MessageSid=SM1&MessageStatus=sent"
	j := &keeping{}
	twilio := provider.Twilio("https://shop.example/in/billing", "fake-token")
	g := newGate(t, func(o *ingest.Options) { o.Sources[0].Provider, o.Journal = twilio, j })
	sign := func(text string) string {
		h := hmac.New(sha1.New, []byte("fake-token"))
		h.Write([]byte(text))
		return base64.StdEncoding.EncodeToString(h.Sum(nil))
	}
	get := httptest.NewRequest(http.MethodGet, ingest.PathPrefix+"billing?"+fields, strings.NewReader("what counts for nothing"))
	get.Header.Set("X-Twilio-Signature", sign("https://shop.example/in/billing?"+fields))
	if w := serve(g, get); w.Code != 204 {
		t.Fatalf("answered %d: %s", w.Code, w.Body)
	}
	ev := j.events[0]
	if string(ev.Body) != fields || !strings.Contains(string(ev.Header), "Content-Type: application/x-www-form-urlencoded\r\n") {
		t.Errorf("stored %q with %q", ev.Body, ev.Header)
	}
	changed := httptest.NewRequest(http.MethodGet, ingest.PathPrefix+"billing?"+strings.Replace(fields, "sent", "read", 1), nil)
	changed.Header = get.Header
	if w := serve(g, changed); w.Code != 401 || len(j.events) != 1 {
		t.Errorf("another query is answered %d", w.Code)
	}
}

// TestHandshakeIsAnsweredInItsHeader: with what a stranger may have there, and nothing else.
func TestHandshakeIsAnsweredInItsHeader(t *testing.T) {
	g := newGate(t, func(o *ingest.Options) { o.Sources[0].Provider = particular{} })
	w := serve(g, httptest.NewRequest(http.MethodGet, ingest.PathPrefix+"billing?challenge", nil))
	if h := w.Header(); w.Code != 200 || h.Get("X-Hook-Secret") != "c" || h.Get("Set-Cookie") != "" {
		t.Errorf("answered %d %v", w.Code, h)
	}
}

// A rejection that names its status wins over the provider's usual one.
func TestRejectionHasItsOwnStatus(t *testing.T) {
	g := newGate(t, func(o *ingest.Options) { o.Sources[0].Provider = particular{} })
	r := httptest.NewRequest(http.MethodGet, ingest.PathPrefix+"billing", nil)
	w := serve(g, r)
	wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), 405, hookonce.ReasonHandshakeRefused)
	if n := gather(t, g, "hookonce_rejected_total")[hookonce.ReasonHandshakeRefused+",billing"]; n != 1 {
		t.Errorf("counted %v times", n)
	}
}

// Which secret matched is counted always, from zero, and logged where there are several.
func TestRotationIsSeen(t *testing.T) {
	for _, c := range []struct {
		name    string
		secrets int
		proof   hookonce.Proof
		counted map[string]float64
		logged  []string
		silent  []string
	}{
		{"the second of two", 2, hookonce.Proof{Covers: "body", Secret: 2},
			map[string]float64{"1,billing": 0, "2,billing": 1}, []string{`"secret":2`}, []string{"covers"}},
		{"the only one", 1, hookonce.Proof{Covers: "body", Secret: 1},
			map[string]float64{"1,billing": 1}, nil, []string{`"secret"`, "covers"}},
		{"one that is not configured", 2, hookonce.Proof{Secret: 3}, map[string]float64{"1,billing": 0, "2,billing": 0}, nil, nil},
		{"a signature over nothing of the body", 1, hookonce.Proof{Covers: "nonce", Secret: 1},
			map[string]float64{"1,billing": 1}, []string{`"covers":"nonce"`}, []string{`"secret"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			g := newGate(t, func(o *ingest.Options) {
				o.Sources[0].Provider, o.Sources[0].Secrets = particular{proof: c.proof}, c.secrets
				logged(&log)(o)
			})
			g.send("billing", `{"id":"a"}`)
			counted := gather(t, g, "hookonce_verified_total")
			for labels, n := range c.counted {
				if got, there := counted[labels]; !there || got != n {
					t.Errorf("hookonce_verified_total{%s} = %v, %v; want %v", labels, got, there, n)
				}
			}
			if len(counted) != len(c.counted)+1 { // and orders
				t.Errorf("counted %v", counted)
			}
			for _, text := range c.logged {
				if !strings.Contains(log.String(), text) {
					t.Errorf("the log lacks %s: %s", text, &log)
				}
			}
			for _, text := range c.silent {
				if strings.Contains(log.String(), text) {
					t.Errorf("the log has %s: %s", text, &log)
				}
			}
		})
	}
}

// touchy is a provider for which a 4xx is final, unless it is the status in rejected. It sends its
// secret along.
type touchy struct {
	testProvider
	rejected int
}

func (p touchy) Profile() hookonce.Profile {
	return hookonce.Profile{Name: "test", Rejected: p.rejected, SecretHeaders: []string{"X-Fake-Token"}}
}

// What such a provider is answered has it come again, and says when (see wantProblem).
func TestATouchyProviderSeesNoFinal4xx(t *testing.T) {
	for _, rejected := range []int{503, 429} {
		g := newGate(t, func(o *ingest.Options) {
			o.Sources[0].Provider, o.Sources[0].MaxBody = touchy{rejected: rejected}, 16
			o.Sources[1].Provider, o.Sources[1].MaxBody = particular{}, 16
		})
		for source, statuses := range map[string][2]int{"billing": {rejected, rejected}, "orders": {413, 403}} {
			w := serve(g, request(source, `{"id":"longer than sixteen bytes"}`))
			wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), statuses[0], "too_large")
			forged := request(source, `{"id":"a"}`)
			forged.Header.Set(signatureHeader, "forged")
			w = serve(g, forged)
			wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), statuses[1], hookonce.ReasonSignatureMismatch)
		}
		w := serve(g, httptest.NewRequest(http.MethodPut, ingest.PathPrefix+"billing", nil))
		wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), 405, "method")
	}
}

func TestTheSecretIsNotStored(t *testing.T) {
	j := &keeper{}
	g := newGate(t, func(o *ingest.Options) { o.Journal, o.Sources[0].Provider = j, touchy{} })
	r := request("billing", `{"id":"a"}`)
	r.Header.Set("X-Fake-Token", "not-a-real-token")
	r.Header.Set("X-Other", "kept")
	if w := serve(g, r); w.Code != 200 {
		t.Fatalf("answered %d: %s", w.Code, w.Body)
	}
	if header := string(j.entries[0].Header); strings.Contains(header, "not-a-real-token") || !strings.Contains(header, "X-Other: kept\r\n") {
		t.Errorf("stored %q", header)
	}
}

// keeper is a journal that remembers what it was given.
type keeper struct{ entries []*journal.Event }

func (k *keeper) Accept(_ context.Context, entries []*journal.Event) ([]journal.Result, error) {
	k.entries = append(k.entries, entries...)
	return []journal.Result{{Status: journal.Accepted, ID: 1}}, nil
}

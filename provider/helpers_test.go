package provider

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

var now = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

// secretFor returns an obviously fake secret in the form that the specification wants.
func secretFor(s Spec) string {
	switch s.Verify[0].Key {
	case KeyWhsec:
		return "whsec_ZmFrZSBzZWNyZXQgZm9yIHRlc3Rz"
	case KeyHex:
		return "00112233445566778899aabbccddeeff"
	case KeyBase64:
		return "ZmFrZSBzZWNyZXQgZm9yIHRlc3Rz"
	}
	return "fake-secret-for-tests"
}

// build returns the provider of that name in the catalogue, with a fake secret.
func buildFake(t testing.TB, name string) *Provider {
	t.Helper()
	spec, ok := Lookup(name)
	if !ok {
		t.Fatalf("no provider %q", name)
	}
	p, err := New(spec, Settings{Secrets: []string{secretFor(spec)}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// signed returns a request with that body and those headers, signed by p at now.
func signed(t testing.TB, p *Provider, body string, headers ...string) *hookonce.Request {
	t.Helper()
	req := &hookonce.Request{Method: "POST", URL: "https://shop.example/in", Header: http.Header{}, Body: []byte(body), Now: now}
	if id := p.verifiers[0].id; id != nil {
		req.Header.Set(id.text, "msg_1")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	return req
}

// one opens the request and returns its only event.
func one(t testing.TB, p *Provider, req *hookonce.Request) hookonce.Event {
	t.Helper()
	d, err := p.Open(req)
	if err != nil {
		t.Fatalf("%s: %v", p.Name(), err)
	}
	if len(d.Events) != 1 || d.Reply != nil {
		t.Fatalf("%s: %d events, reply %v", p.Name(), len(d.Events), d.Reply)
	}
	return d.Events[0]
}

// reason opens the request and returns why it was rejected.
func reason(t testing.TB, p *Provider, req *hookonce.Request) *hookonce.RejectError {
	t.Helper()
	d, err := p.Open(req)
	var rej *hookonce.RejectError
	if !errors.As(err, &rej) || d != nil {
		t.Fatalf("%s: not rejected: %v, %v", p.Name(), d, err)
	}
	return rej
}

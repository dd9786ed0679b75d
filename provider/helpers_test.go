package provider

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

var now = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

// secretFor returns an obviously fake secret in the form that the specification wants.
func secretFor(s spec.Spec) string {
	switch v := s.Verify[0]; {
	case s.Name == "aws-sns":
		return "arn:aws:sns:eu-central-1:123456789012:example"
	case s.Name == "circle":
		return "wallets:TEST_API_KEY:fake:fake"
	case s.Name == "ebay" || s.Name == "plaid":
		return "sandbox:fake-client:fake-secret"
	case s.Name == "braintree":
		return "fake-public:fake-private"
	case s.Name == "contentful":
		return strings.Repeat("fake", 16)
	case s.Name == "app-store":
		return "production:com.example.shop"
	case s.Name == "azure-event-grid-entra":
		return "00000000-0000-4000-8000-000000001001:api://example"
	case s.Name == "google-play" || s.Name == "google-pubsub":
		return "push@example.iam.gserviceaccount.com:https://shop.example/in"
	case s.Name == "kinde":
		return "https://example.kinde.com"
	case v.Kind == spec.Basic:
		return "fake-user:fake-password"
	case v.Key == spec.KeyPEM:
		return fakePublicPEM
	case v.Kind == spec.ECDSA && v.Key == spec.KeyBase64:
		return fakePublicSPKI
	case v.Kind == spec.Ed25519 && v.Key == spec.KeyBase64:
		return "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	case decoded(s):
		return "whsec_ZmFrZSBzZWNyZXQgZm9yIHRlc3Rz"
	case v.Key == spec.KeyHex:
		return "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	case v.Key == spec.KeyBase64:
		return "ZmFrZSBzZWNyZXQgZm9yIHRlc3Rz"
	}
	return "fake-secret-for-tests-that-is-long-enough"
}

// decoded reports whether the usual secret has base64 after whsec_. GitLab's usual one is still the secret token.
func decoded(s spec.Spec) bool {
	key := s.Verify[0].Key
	return key == spec.KeyWhsec || key == spec.KeyWhsecOnly && s.Name != "gitlab"
}

// otherSecretFor returns another one, for senders that share theirs.
func otherSecretFor(s spec.Spec) string {
	switch v := s.Verify[0]; {
	case s.Name == "braintree":
		return "fake-public:other-private"
	case s.Name == "contentful":
		return strings.Repeat("else", 16)
	case v.Kind == spec.Basic:
		return "fake-user:other-password"
	case decoded(s):
		return "whsec_b3RoZXIgc2VjcmV0IGZvciB0ZXN0cw"
	case v.Key == spec.KeyHex:
		return strings.Repeat("ff", 32)
	case v.Key == spec.KeyBase64:
		return "b3RoZXIgc2VjcmV0IGZvciB0ZXN0cw=="
	}
	return "other-secret-for-tests-that-is-long-enough"
}

// fake returns the provider of that name in the catalogue, with a fake secret.
func fake(t testing.TB, name string) *spec.Provider {
	t.Helper()
	s, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return fakeWith(t, s, spec.Secrets(secretFor(s))...)
}

// fakeWith returns the provider with those secrets.
func fakeWith(t testing.TB, s spec.Spec, secrets ...spec.Secret) *spec.Provider {
	t.Helper()
	p, err := spec.New(s, spec.Settings{Secrets: secrets, URL: "https://shop.example/in"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// signed returns a request with that body and those headers, signed by p at now.
func signed(t testing.TB, p *spec.Provider, body string, headers ...string) *hookonce.Request {
	t.Helper()
	req := &hookonce.Request{Method: "POST", URL: "https://shop.example/in", Header: http.Header{}, Body: []byte(body), Now: now}
	if id, ok := strings.CutPrefix(string(p.Spec().Verify[0].ID), "header:"); ok {
		req.Header.Set(id, "msg_1")
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
func one(t testing.TB, p *spec.Provider, req *hookonce.Request) hookonce.Event {
	t.Helper()
	events := all(t, p, req)
	if len(events) != 1 {
		t.Fatalf("%s: %d events", p.Name(), len(events))
	}
	return events[0]
}

// all opens the request and returns its events.
func all(t testing.TB, p *spec.Provider, req *hookonce.Request) []hookonce.Event {
	t.Helper()
	d, err := p.Open(req)
	if err != nil {
		t.Fatalf("%s: %v", p.Name(), err)
	}
	if d.Handshake != nil {
		t.Fatalf("%s: a handshake: %s", p.Name(), d.Handshake.Body)
	}
	sameOneByOne(t, p, req, d)
	return d.Events
}

// sameOneByOne opens the request for a caller that takes the events one by one, who must get the same.
func sameOneByOne(t testing.TB, p *spec.Provider, req *hookonce.Request, want *hookonce.Verified) {
	t.Helper()
	lazy := *req
	lazy.Lazy = true
	d, err := p.Open(&lazy)
	if err != nil {
		t.Fatalf("%s: %v", p.Name(), err)
	}
	if batches := p.Spec().Split != nil && d.Unreadable == nil; (d.Batch != nil) != batches || batches && d.Events != nil {
		t.Fatalf("%s: batch %v and %d events", p.Name(), d.Batch, len(d.Events))
	}
	for range 2 { // as often as it is asked for
		var got []hookonce.Event
		size := int64(0)
		for ev := range d.All() {
			got = append(got, *ev)
			size += int64(len(ev.Body))
		}
		if d.Len() != len(want.Events) || d.Batch != nil && d.Batch.Size != size {
			t.Errorf("%s: %d events of %d bytes are announced, %d of %d come", p.Name(), d.Len(), d.Batch.Size, len(got), size)
		}
		if diff := cmp.Diff(want.Events, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: one by one the events are others (-at once +one by one):\n%s", p.Name(), diff)
		}
	}
	for range d.All() {
		break // and no more than is asked for
	}
}

// reason opens the request and returns why it was rejected.
func reason(t testing.TB, p *spec.Provider, req *hookonce.Request) *hookonce.RejectError {
	t.Helper()
	d, err := p.Open(req)
	var rej *hookonce.RejectError
	if !errors.As(err, &rej) || d != nil {
		t.Fatalf("%s: not rejected: %v, %v", p.Name(), d, err)
	}
	return rej
}

// Public keys whose private halves were thrown away.
const (
	fakePublicPEM = `-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEArwy3iXuKBa+JnYptke7v
uuOwdh4e1+dJKTkcutIF9Axgw6RDyED7vzTTvYw1FT4E+lmv+YgjkBg/TOVhgZHY
9eyF+CsWPDJDj1TPF7CmASgbksQyJuVHTOIOoklrBoI2+u48cb4bZqT6c9BxzcNf
ZhPmvYDdoSG8oK4gkO5K7i5Kkd2zij4xf3orjyf++RVxgjCBGdffIEGLx1SE2YEF
z/f9+ESXOZiUXpNAEMSPKJxQmKxVQjSc5y8JzRtDnEEFLNmheVcCffe48NZaXmjr
PcCUwTJaOlyanKdKg/byH4pniJxtxWu6W7dtsuzo9D+vbrhQqRkDf9psVrsGrolV
AwIDAQAB
-----END PUBLIC KEY-----`
	fakePublicSPKI = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE/a3glM880dWcd0xmaIOugkMuVXxNKES5OMs6dx5a8lbinFUjpdGWHnmILO3ImzMFT008h+Bm1FPb73CfPousQA=="
)

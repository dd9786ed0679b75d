package provider

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// every calls f for each provider of the catalogue.
func every(t *testing.T, f func(*testing.T, spec.Spec, *spec.Provider)) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			s, _ := Lookup(name)
			f(t, s, fake(t, name))
		})
	}
}

func TestEveryProviderIsDocumented(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, _ *spec.Provider) {
		if s.Title == "" || s.Secret == "" || len(s.Traps) == 0 {
			t.Error("title, secret or traps are missing")
		}
		if s.Example.Body == "" && s.Example.Form == "" {
			t.Error("the example is missing")
		}
		if strings.ToLower(s.Name) != s.Name || strings.ContainsAny(s.Name, "_. ") {
			t.Errorf("the name %q is not lower case joined by hyphens", s.Name)
		}
		for _, trap := range s.Traps {
			if strings.TrimSpace(trap) != trap || len(trap) < 20 || strings.HasSuffix(trap, ".") {
				t.Errorf("trap %q is not a phrase", trap)
			}
		}
	})
}

// TestEverySourceIsWellFormed: what is sourced says where, and what is not says so.
func TestEverySourceIsWellFormed(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, _ *spec.Provider) {
		if len(s.Sources) == 0 && s.Name != "hmac" {
			t.Error("no sources")
		}
		for _, src := range s.Sources {
			known := slices.Contains([]spec.Confidence{spec.Stated, spec.Reported, spec.NotSourced}, src.Confidence)
			if !known || src.Fact == "" || (src.Where == "") != (src.Confidence == spec.NotSourced) {
				t.Errorf("%+v", src)
			}
		}
	})
}

// TestEveryGapIsAdmitted: a provider without a key, or whose retries are unknown, says so in its
// sources.
func TestEveryGapIsAdmitted(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, _ *spec.Provider) {
		admits := func(what string) bool {
			return slices.ContainsFunc(s.Sources, func(src spec.Source) bool {
				return src.Confidence == spec.NotSourced && strings.Contains(src.Fact, what)
			})
		}
		if len(s.Event.Key) == 0 && s.Dedup.OnRepeat != spec.Off && !admits("key") {
			t.Error("it has no key, and does not say that none is known")
		}
		if s.Name != "hmac" && s.Limits.Retry == 0 && s.Dedup.Retry != spec.NotSent && !admits("retr") && !admits("sent again") {
			t.Error("it has no window of retries, and does not say that none is known")
		}
	})
}

// TestEveryProviderAsksAgain: when we are at fault nobody is told that the request was wrong. Many
// senders drop the event then, or disable the webhook. Secrets that nobody renewed are our fault.
func TestEveryProviderAsksAgain(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		req := &hookonce.Request{Method: "POST", URL: "https://shop.example/in", Header: http.Header{}, Body: []byte(s.Example.Body), Now: now}
		if s.Imitable() {
			req = sent(t, p, "101", "")
		}
		out := fakeWith(t, s, spec.Secret{Text: secretFor(s), Until: now})
		if _, err := out.Open(req); err == nil || errors.Is(err, hookonce.ErrUnverified) {
			t.Errorf("a secret that has run out: %v", err)
		}
	})
}

// TestEveryKeyCanBeKept: the retention that is the default covers every sender.
func TestEveryKeyCanBeKept(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, _ *spec.Provider) {
		if keep := s.Limits.Keep(); keep > 90*day {
			t.Errorf("keys must be kept for %v", keep)
		}
	})
}

func TestEverySampleRoundTrips(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		if !s.Imitable() {
			header, body := s.Sample(spec.Sample{ID: "a", Time: now})
			if err := p.Sign(&hookonce.Request{URL: "https://shop.example/in", Header: header, Body: body, Now: now}); err == nil {
				t.Error("it signs without the sender's private key")
			}
			return
		}
		keys := map[string]int{}
		for _, id := range []string{"101", "102", "101"} {
			ev := one(t, p, sent(t, p, id, ""))
			keys[ev.Key]++
			if len(s.Event.Type) > 0 && ev.Type == "" && s.Name != "x" || // posts of X have no type of their own
				ev.Provider != s.Name {
				t.Errorf("type %q of %s", ev.Type, ev.Provider)
			}
			if !ev.Time.IsZero() && ev.Time.Sub(now).Abs() >= time.Second {
				t.Errorf("time %v, want %v", ev.Time, now)
			}
		}
		switch keyed := len(s.Event.Key) > 0; {
		case keyed && (len(keys) != 2 || keys[""] > 0):
			t.Errorf("two ids, one of them twice, are the keys %v", keys)
		case !keyed && keys[""] != 3:
			t.Errorf("it has no key, and makes %v", keys)
		}
	})
}

// TestEveryProviderRefusesForgeries changes the presence of the signature, the secret and the body.
func TestEveryProviderRefusesForgeries(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		bare := &hookonce.Request{Method: "POST", URL: "https://shop.example/in", Header: http.Header{}, Body: []byte(`{"id":"1"}`), Now: now}
		if d, err := p.Open(bare); err == nil {
			t.Errorf("a request without a signature is accepted: %+v", d)
		}
		if !s.Imitable() {
			return
		}
		reason(t, p, sent(t, fakeWith(t, s, spec.Secrets(otherSecretFor(s))...), "101", ""))
		req := sent(t, p, "101", "")
		d, err := p.Open(req)
		if err != nil {
			t.Fatal(err)
		}
		if d.Proof.Covers == string(spec.CoversBody) {
			req.Body = bytes.Replace(req.Body, []byte("101"), []byte("102"), 1)
			if bytes.Contains(req.Body, []byte("102")) {
				reason(t, p, req)
			}
			req.Body = append(req.Body, ' ')
			reason(t, p, req)
		}
	})
}

// sent returns a sample of the provider's event with that id and type, signed at now.
func sent(t testing.TB, p *spec.Provider, id, kind string) *hookonce.Request {
	t.Helper()
	return sentAs(t, p, spec.Sample{ID: id, Type: kind, Time: now})
}

// sentAs returns that sample, signed at now.
func sentAs(t testing.TB, p *spec.Provider, of spec.Sample) *hookonce.Request {
	t.Helper()
	header, body := p.Spec().Sample(of)
	req := &hookonce.Request{Method: "POST", URL: "https://shop.example/in", Header: header, Body: body, Now: now}
	if p.Name() == "twilio-events" { // whoever calls puts the hash of the body into the URL
		sum := sha256.Sum256(body)
		req.URL += "?bodySHA256=" + hex.EncodeToString(sum[:])
	}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	return req
}

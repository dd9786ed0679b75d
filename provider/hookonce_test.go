package provider

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/internal/httpsig/httpsigtest"
	"github.com/hookonce/hookonce/provider/spec"
)

const (
	gatewaySecret = "whsec_ZmFrZSBzZWNyZXQgb2YgdGhlIGFwcA=="
	gatewayPlain  = "another fake secret, byte for byte"
)

// delivered returns a delivery of the gateway, signed with the secrets.
func delivered(t *testing.T, id string, secrets ...string) *hookonce.Request {
	t.Helper()
	p := Hookonce(secrets...)
	header, body := p.Spec().Sample(spec.Sample{ID: id, Version: 3, Time: now})
	req := &hookonce.Request{Method: http.MethodPost, Header: header, Body: body, Now: now}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	return req
}

func TestHookonceReadsWhatTheGatewaySays(t *testing.T) {
	req := delivered(t, "evt_1", gatewaySecret)
	h := req.Header
	for name, value := range map[string]string{
		"Hookonce-Tenant": "acct%2F1%20%C3%A9", "Hookonce-Sender-Attempt-Id": "d_1", "Hookonce-Logical": "1:a2:bc", "Hookonce-Digest": "00ff",
		"Hookonce-Attempt": "4", "Hookonce-Logical-Duplicate-Of": "evt_0", "Hookonce-Stale": "true", "Hookonce-Forced": "true", "Hookonce-Unprotected": "true",
	} {
		h.Set(name, value)
	}
	p := Hookonce(gatewaySecret)
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	d, err := p.Open(req)
	if err != nil || len(d.Events) != 1 || d.Proof != (hookonce.Proof{Covers: "body", Secret: 1}) {
		t.Fatalf("%+v, %v", d, err)
	}
	got := d.Events[0]
	got.Body, got.Header = nil, nil
	want := hookonce.Event{
		Source: "billing", Provider: "standard", Key: "evt_1", KeyOrigin: "header:Hookonce-Key", KeySigned: true, AttemptID: "d_1",
		Type: "invoice.paid", Time: now, Resource: "in_1001", Tenant: "acct/1 é", Digest: []byte{0, 255}, Logical: "1:a2:bc",
		Version: "3", Scope: "in_1001", Rank: hookonce.Version(3),
		Gateway: hookonce.Gateway{IdempotencyKey: "billing:evt_1", Attempt: 4, FirstSeen: now, LogicalDuplicateOf: "evt_0", Stale: true, Forced: true, Unprotected: true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// An event without a key of its sender's has the gateway's, which the signature covers.
func TestHookonceKeyThatStandsIn(t *testing.T) {
	p := Hookonce(gatewaySecret)
	req := delivered(t, "evt_1", gatewaySecret)
	req.Header.Del("Hookonce-Key")
	req.Header.Del("Hookonce-Key-Signed")
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	d, err := p.Open(req)
	if err != nil {
		t.Fatal(err)
	}
	if ev := d.Events[0]; ev.Key != "billing:evt_1" || ev.KeyOrigin != "header:Idempotency-Key" || !ev.KeySigned {
		t.Errorf("%+v", ev)
	}
}

// relayed returns an effect as a relay posts it, signed.
func relayed(t *testing.T, p *HookonceProvider) *hookonce.Request {
	t.Helper()
	req := &hookonce.Request{Method: http.MethodPost, URL: gatewayURL, Body: []byte(`{"to":"a@b.example"}`), Now: now, Header: http.Header{
		"Idempotency-Key": {"0123456789abcdef0123456789abcdef"}, "Hookonce-Effect": {"mail.re%C3%A7u"}, "Hookonce-Attempt": {"3"},
		"Hookonce-Source": {"billing"}, "Hookonce-Key": {"evt_1"},
	}}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	return req
}

// TestHookonceTakesAnEffectForItself: and not for the event that asked for it, in whichever way it
// is signed, and nobody who carries it can make it that, or a delivery of the gateway an effect.
func TestHookonceTakesAnEffectForItself(t *testing.T) {
	key := httpsigtest.Of(httpsig.Ed25519)
	for name, c := range map[string]struct{ sender, receiver *HookonceProvider }{
		"Standard Webhooks": {Hookonce(gatewaySecret), Hookonce(gatewaySecret)},
		"HTTP message signatures": {
			HookonceHTTP(HookonceHTTPConfig{Keys: []string{key.Private}, AsSender: true}), HookonceHTTP(HookonceHTTPConfig{Keys: []string{key.Public}}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := relayed(t, c.sender)
			d, err := c.receiver.Open(req)
			if err != nil || len(d.Events) != 1 {
				t.Fatalf("%+v, %v", d, err)
			}
			got, digest := d.Events[0], sha256.Sum256(req.Body)
			got.Body, got.Header = nil, nil
			want := hookonce.Event{
				Key: "0123456789abcdef0123456789abcdef", KeyOrigin: "header:Idempotency-Key", KeySigned: true, Type: "mail.reçu", Digest: digest[:],
				Gateway: hookonce.Gateway{IdempotencyKey: "0123456789abcdef0123456789abcdef", Attempt: 3},
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%+v\nwant %+v", got, want)
			}
			for forgery, forge := range map[string]func(h http.Header){
				"another key":    func(h http.Header) { h.Set("Idempotency-Key", "f123456789abcdef0123456789abcdef") },
				"no key":         func(h http.Header) { h.Del("Idempotency-Key") },
				"another effect": func(h http.Header) { h.Set("Hookonce-Effect", "mail.reminder") },
				"no effect":      func(h http.Header) { h.Del("Hookonce-Effect") },
			} {
				req := relayed(t, c.sender)
				forge(req.Header)
				if d, err := c.receiver.Open(req); !errors.Is(err, hookonce.ErrUnverified) {
					t.Errorf("%s: %+v, %v", forgery, d, err)
				}
			}
			delivery := &hookonce.Request{Method: http.MethodPost, URL: gatewayURL, Now: now}
			delivery.Header, delivery.Body = c.sender.Spec().Sample(spec.Sample{ID: "evt_1", Time: now})
			if err := c.sender.Sign(delivery); err != nil {
				t.Fatal(err)
			}
			delivery.Header.Set("Hookonce-Effect", "mail.reminder")
			if d, err := c.receiver.Open(delivery); !errors.Is(err, hookonce.ErrUnverified) {
				t.Errorf("a delivery that is called an effect: %+v, %v", d, err)
			}
		})
	}
}

// An effect that nothing recognises is refused, also when it is signed: the event that asked for it
// does not stand in.
func TestHookonceRefusesAnEffectWithoutAKey(t *testing.T) {
	p := Hookonce(gatewaySecret)
	req := relayed(t, p)
	req.Header.Del("Idempotency-Key")
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	var rej *hookonce.RejectError
	if d, err := p.Open(req); !errors.As(err, &rej) || rej.Reason != hookonce.ReasonSignatureMalformed || !strings.Contains(err.Error(), "Idempotency-Key must say which effect") {
		t.Errorf("%+v, %v", d, err)
	}
}

// Whoever carries a delivery can change none of what the application goes by: neither the body nor the headers, nor
// put the headers of one delivery in front of the body of another, nor send it later.
func TestHookonceRefusesForgeries(t *testing.T) {
	p := Hookonce(gatewaySecret)
	for name, c := range map[string]struct {
		forge  func(req *hookonce.Request)
		reason string
	}{
		"another body":          {func(r *hookonce.Request) { r.Body = append(r.Body, ' ') }, hookonce.ReasonSignatureMismatch},
		"another key":           {func(r *hookonce.Request) { r.Header.Set("Hookonce-Key", "evt_2") }, hookonce.ReasonSignatureMismatch},
		"no key":                {func(r *hookonce.Request) { r.Header.Del("Hookonce-Key") }, hookonce.ReasonSignatureMismatch},
		"another source":        {func(r *hookonce.Request) { r.Header.Set("Hookonce-Source", "b") }, hookonce.ReasonSignatureMismatch},
		"another rank":          {func(r *hookonce.Request) { r.Header.Set("Hookonce-Rank", "version:9") }, hookonce.ReasonSignatureMismatch},
		"another idempotency":   {func(r *hookonce.Request) { r.Header.Set("Idempotency-Key", "billing:evt_2") }, hookonce.ReasonSignatureMismatch},
		"something more":        {func(r *hookonce.Request) { r.Header.Set("Hookonce-Forced", "true") }, hookonce.ReasonSignatureMismatch},
		"said twice":            {func(r *hookonce.Request) { r.Header.Add("Hookonce-Key", "evt_2") }, hookonce.ReasonSignatureMismatch},
		"another message":       {func(r *hookonce.Request) { r.Header.Set("Webhook-Id", "msg_2") }, hookonce.ReasonSignatureMismatch},
		"another time":          {func(r *hookonce.Request) { r.Header.Set("Webhook-Timestamp", fmt.Sprint(now.Unix()+1)) }, hookonce.ReasonSignatureMismatch},
		"no time":               {func(r *hookonce.Request) { r.Header.Set("Webhook-Timestamp", "soon") }, hookonce.ReasonTimestampMissing},
		"an hour later":         {func(r *hookonce.Request) { r.Now = now.Add(time.Hour) }, hookonce.ReasonTimestampOld},
		"an hour early":         {func(r *hookonce.Request) { r.Now = now.Add(-time.Hour) }, hookonce.ReasonTimestampFuture},
		"headers not signed":    {func(r *hookonce.Request) { r.Header.Del("Hookonce-Signature") }, hookonce.ReasonSignatureMissing},
		"body not signed":       {func(r *hookonce.Request) { r.Header.Del("Webhook-Signature") }, hookonce.ReasonSignatureMissing},
		"the secret of another": {func(r *hookonce.Request) { *r = *delivered(t, "evt_1", gatewayPlain) }, hookonce.ReasonSignatureMismatch},
		"headers of another": {func(r *hookonce.Request) {
			other := delivered(t, "evt_2", gatewaySecret)
			for _, name := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
				other.Header[name] = r.Header[name]
			}
			r.Header = other.Header
		}, hookonce.ReasonSignatureMismatch},
		"the signed headers as the body": {func(r *hookonce.Request) {
			r.Body = []byte("hookonce-headers-v1\n")
			r.Header["Webhook-Signature"] = r.Header["Hookonce-Signature"]
		}, hookonce.ReasonSignatureMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			req := delivered(t, "evt_1", gatewaySecret)
			c.forge(req)
			d, err := p.Open(req)
			var rej *hookonce.RejectError
			if !errors.As(err, &rej) || d != nil || rej.Reason != c.reason {
				t.Errorf("%v, %v; want %s", d, err, c.reason)
			}
		})
	}
}

// Whoever has the secret can sign nonsense, and is refused.
func TestHookonceRefusesNonsense(t *testing.T) {
	p := Hookonce(gatewaySecret)
	for name, value := range map[string]string{
		"Hookonce-Source": "", "Hookonce-Key": "%zz", "Hookonce-Rank": "height:3", "Hookonce-Time": "today", "Hookonce-First-Seen": "x",
		"Hookonce-Digest": "xyz", "Hookonce-Attempt": "many", "Hookonce-Effect": "%zz",
	} {
		req := delivered(t, "evt_1", gatewaySecret)
		req.Header.Set(name, value)
		if err := p.Sign(req); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Open(req); !errors.Is(err, hookonce.ErrUnverified) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// While a secret is replaced either side may know one of them or both.
func TestHookonceRotates(t *testing.T) {
	for _, c := range []struct {
		signed, known []string
		secret        int
	}{
		{[]string{gatewaySecret}, []string{gatewaySecret}, 1},
		{[]string{gatewaySecret, gatewayPlain}, []string{gatewaySecret}, 1},
		{[]string{gatewaySecret, gatewayPlain}, []string{gatewayPlain}, 1},
		{[]string{gatewaySecret}, []string{gatewayPlain, gatewaySecret}, 2},
	} {
		d, err := Hookonce(c.known...).Open(delivered(t, "evt_1", c.signed...))
		if err != nil || d.Proof.Secret != c.secret {
			t.Errorf("signed with %d, known %d: %+v, %v", len(c.signed), len(c.known), d, err)
		}
	}
}

func TestHookonceWantsSecrets(t *testing.T) {
	for _, secrets := range [][]string{nil, {""}, {"whsec_"}, {"whsec_not base64"}, {gatewaySecret, ""}} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, "provider hookonce") || strings.Contains(said, "not base64 at") {
					t.Errorf("%d secrets: %s", len(secrets), said)
				}
			}()
			Hookonce(secrets...)
		}()
	}
	if text := fmt.Sprintf("%v %+v %#v %s", Hookonce(gatewaySecret), Hookonce(gatewaySecret), Hookonce(gatewaySecret), Hookonce(gatewaySecret)); strings.Contains(text, "fake") || strings.Contains(text, "[]") {
		t.Errorf("it prints %s", text)
	}
}

// What any provider of the catalogue takes, an application behind the gateway takes.
func TestHookonceTakesEveryBody(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		if p.Profile().MaxBody > Hookonce(gatewaySecret).Profile().MaxBody {
			t.Errorf("it sends up to %d bytes", p.Profile().MaxBody)
		}
	})
}

func FuzzHookonce(f *testing.F) {
	f.Add("Hookonce-Rank", "version:3")
	f.Add("Hookonce-Time", "2026-01-02T03:04:05.000000006Z")
	f.Add("Hookonce-Key", "%C3")
	f.Add("Idempotency-Key", "")
	f.Add("Hookonce-Effect", "mail.receipt")
	p := Hookonce(gatewaySecret)
	f.Fuzz(func(t *testing.T, name, value string) {
		req := delivered(t, "evt_1", gatewaySecret)
		req.Header.Set(name, value)
		if err := p.Sign(req); err != nil {
			t.Fatal(err)
		}
		d, err := p.Open(req)
		if err == nil && (d.Events[0].Key == "" || d.Events[0].Source == "" && req.Header.Get("Hookonce-Effect") == "") || err != nil && !errors.Is(err, hookonce.ErrUnverified) {
			t.Fatalf("%q: %q: %+v, %v", name, value, d, err)
		}
	})
}

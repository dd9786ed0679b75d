package provider

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// TestSampleSignOpen takes every provider's sample through its signer and its verifier.
func TestSampleSignOpen(t *testing.T) {
	for _, name := range Names() {
		for _, c := range []struct{ id, kind string }{
			{"id_1", ""}, {"id_2", "order.paid"}, {"9", "order"}, {`a"b\c`, "x.y.z"}, {"", ""},
		} {
			p := buildFake(t, name)
			spec := p.Spec()
			header, body := spec.Sample(c.id, c.kind, now)
			if !json.Valid(body) {
				t.Fatalf("%s: the sample is not JSON: %s", name, body)
			}
			req := &hookonce.Request{Method: "POST", URL: "https://shop.example/in", Header: header, Body: body, Now: now}
			if c.id == "" && p.verifiers[0].id != nil {
				if err := p.Sign(req); err == nil {
					t.Errorf("%s: signed a request without the identifier", name)
				}
				continue
			}
			if err := p.Sign(req); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			ev := one(t, p, req)
			want := c.kind
			if want == "" {
				want = spec.Example.Type
			}
			if ev.Type != want {
				t.Errorf("%s: type %q, want %q", name, ev.Type, want)
			}
			if c.id == "" && ev.Key != "" || c.id != "" && !strings.Contains(ev.Key, c.id) {
				t.Errorf("%s: key %q for the id %q", name, ev.Key, c.id)
			}
			if !ev.Time.IsZero() && !ev.Time.Equal(now) {
				t.Errorf("%s: time %v, want %v", name, ev.Time, now)
			}
		}
	}
}

func TestSamplesOfTwoIDsAreTwoEvents(t *testing.T) {
	for _, name := range Names() {
		p := buildFake(t, name)
		keys := map[string]bool{}
		for _, id := range []string{"a", "b", "a"} {
			header, body := p.Spec().Sample(id, "", now)
			req := &hookonce.Request{URL: "https://shop.example/in", Header: header, Body: body, Now: now}
			if err := p.Sign(req); err != nil {
				t.Fatal(err)
			}
			keys[one(t, p, req).Key] = true
		}
		if len(keys) != 2 {
			t.Errorf("%s: keys %v", name, keys)
		}
	}
}

// TestHMACSamplesFollowTheConfiguration: the sample has the id where the key is looked for.
func TestHMACSamplesFollowTheConfiguration(t *testing.T) {
	for _, c := range []HMACConfig{
		{},
		{Key: []Value{"json:$.event.id"}, Type: "json:$.event.type", Time: Moment{"json:$.event.at", RFC3339}},
		{Key: []Value{"header:X-Event-Id"}, Type: "header:X-Event-Type", Header: "X-Hub-Signature", Prefix: "sha1=", Hash: SHA1},
		{Key: []Value{"json:$.shop", "json:$.order.id"}, Time: Moment{"json:$.at", Millis}, Hash: SHA512, Encoding: Base64},
		{Encoding: Base64URL, KeyForm: KeyHex, Time: Moment{"json:$.at", Seconds}},
		{Key: []Value{"json:$.id", "json:$.id.deeper?"}},
	} {
		c.Secrets = []string{"00112233"}
		p := HMAC(c)
		header, body := p.Spec().Sample("id_1", "order.refunded", now)
		req := &hookonce.Request{Header: header, Body: body, Now: now}
		if err := p.Sign(req); err != nil {
			t.Fatal(err)
		}
		if ev := one(t, p, req); ev.Key == "" && len(c.Key) < 2 || ev.Type != "order.refunded" || c.Time.In != "" && !ev.Time.Equal(now) {
			t.Errorf("%+v: %+v", c, ev)
		}
	}
}

func TestSignNeedsWhatItSigns(t *testing.T) {
	if err := Square("", "fake").Sign(&hookonce.Request{}); err == nil || !strings.Contains(err.Error(), "URL") {
		t.Error(err)
	}
	if err := Standard("whsec_AAAA").Sign(&hookonce.Request{}); err == nil || !strings.Contains(err.Error(), "Webhook-Id") {
		t.Error(err)
	}
	req := &hookonce.Request{Now: now}
	if err := Stripe("fake").Sign(req); err != nil || req.Header.Get("Stripe-Signature") == "" {
		t.Error(err)
	}
}

func TestSignReplacesItsOwnHeadersOnly(t *testing.T) {
	p := Slack("fake")
	req := signed(t, p, `{"event_id":"1"}`, "X-Slack-Signature", "old", "X-Slack-Request-Timestamp", "1", "X-Other", "kept")
	one(t, p, req)
	if req.Header.Get("X-Other") != "kept" || len(req.Header["X-Slack-Signature"]) != 1 {
		t.Error(req.Header)
	}
}

// TestConcurrentUse runs one provider from many goroutines, with good and bad requests.
func TestConcurrentUse(t *testing.T) {
	p, err := Build("stripe", Settings{Secrets: []string{"one", "two"}})
	if err != nil {
		t.Fatal(err)
	}
	good := signed(t, Stripe("two"), `{"id":"evt_1"}`)
	bad := signed(t, Stripe("three"), `{"id":"evt_1"}`)
	done := make(chan error)
	for range 8 {
		go func() {
			for range 200 {
				if d, err := p.Open(good); err != nil || d.Events[0].Key != "evt_1" {
					done <- err
					return
				}
				if _, err := p.Open(bad); err == nil {
					done <- http.ErrAbortHandler
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestTimestampRoundTrip(t *testing.T) {
	for _, u := range []Unit{Seconds, Millis, RFC3339} {
		if at, ok := u.parse(u.format(now)); !ok || !at.Equal(now) {
			t.Errorf("%s: %v %v", u, at, ok)
		}
	}
	if at, ok := RFC3339.parse("9999-12-31T23:59:59.9Z"); !ok || at.After(latest.Add(time.Second)) {
		t.Error(at, ok)
	}
}

package provider

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider/spec"
)

// usual are the providers whose samples carry one event, signed with an HMAC in a header.
var usual = []string{"github", "hmac", "paddle", "shopify", "slack", "square", "standard", "stripe", "svix"}

// TestSampleSignOpen takes every provider's sample through its signer and its verifier.
func TestSampleSignOpen(t *testing.T) {
	testskip.Race(t)
	for _, name := range usual {
		for _, c := range []struct{ id, kind string }{
			{"id_1", ""}, {"id_2", "order.paid"}, {"9", "order"}, {`a"b\c`, "x.y.z"}, {"", ""},
		} {
			p := fake(t, name)
			description := p.Spec()
			header, body := description.Sample(spec.Sample{ID: c.id, Type: c.kind, Time: now})
			if !json.Valid(body) {
				t.Fatalf("%s: the sample is not JSON: %s", name, body)
			}
			req := &hookonce.Request{Method: "POST", URL: "https://shop.example/in", Header: header, Body: body, Now: now}
			if c.id == "" && p.Spec().Verify[0].ID != "" {
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
				want = description.Example.Type
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
	testskip.Race(t)
	for _, name := range usual {
		p := fake(t, name)
		keys := map[string]bool{}
		for _, id := range []string{"a", "b", "a"} {
			header, body := p.Spec().Sample(spec.Sample{ID: id, Time: now})
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
		{Key: []spec.Value{"json:$.event.id"}, Type: "json:$.event.type", Time: at("json:$.event.at", spec.RFC3339)},
		{Key: []spec.Value{"header:X-Event-Id"}, Type: "header:X-Event-Type", Header: "X-Hub-Signature", Prefix: "sha1=", Hash: spec.SHA1},
		{Key: []spec.Value{"json:$.shop", "json:$.order.id"}, Time: at("json:$.at", spec.Millis), Hash: spec.SHA512, Encoding: spec.Base64},
		{Encoding: spec.Base64URL, KeyForm: spec.KeyHex, Time: at("json:$.at", spec.Seconds)},
		{Key: []spec.Value{"json:$.id", "json:$.id.deeper?"}},
		{Key: []spec.Value{"json:$.items[0].id"}},
		{Key: []spec.Value{"json:$.a[2][1].id", "json:$.a[0]"}, Type: "json:$.a[2][0]"},
		{Key: []spec.Value{"json:$[0].id"}, Type: "json:$[0].type"},
	} {
		c.Secrets = []string{"00112233"}
		p := HMAC(c)
		header, body := p.Spec().Sample(spec.Sample{ID: "id_1", Type: "order.refunded", Time: now})
		req := &hookonce.Request{Header: header, Body: body, Now: now}
		if err := p.Sign(req); err != nil {
			t.Fatal(err)
		}
		keyed := !slices.Contains(c.Key, "json:$.id.deeper?") // an id cannot be a text and have members
		if ev := one(t, p, req); (ev.Key != "") != keyed || ev.Type != "order.refunded" || c.Time.In != "" && !ev.Time.Equal(now) {
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
	p, err := Build("stripe", spec.Settings{Secrets: spec.Secrets("one", "two")})
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

// TestSamplesOfAttempts: deliveries of one event have one key and one digest, although bodies say which they are, where that
// is known. The page on testing names the providers.
func TestSamplesOfAttempts(t *testing.T) {
	testskip.Race(t)
	var differ []string
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		sample := func(attempt int64) spec.Sample { return spec.Sample{ID: "101", Attempt: attempt, Time: now} }
		_, first := s.Sample(sample(1))
		if _, unnumbered := s.Sample(sample(0)); string(first) != string(unnumbered) {
			t.Error("a sample without a number is not the first")
		}
		_, second := s.Sample(sample(2))
		if !s.Imitable() || string(first) == string(second) {
			return
		}
		differ = append(differ, s.Name)
		a, b := one(t, p, sentAs(t, p, sample(1))), one(t, p, sentAs(t, p, sample(2)))
		if a.Key == "" || a.Key != b.Key || string(a.Digest) != string(b.Digest) || len(s.Event.Attempt) > 0 && a.SenderAttempt == b.SenderAttempt {
			t.Errorf("%s %x %q, %s %x %q", a.Key, a.Digest, a.SenderAttempt, b.Key, b.Digest, b.SenderAttempt)
		}
	})
	if want := []string{"coinbase-commerce", "docusign", "hubspot", "hubspot-legacy", "intercom", "stripe"}; !slices.Equal(differ, want) {
		t.Errorf("the bodies of %v differ, not of %v", differ, want)
	}
}

// TestSamplesAreAboutAnObject: samples of one object have one scope and keys of their own, whatever the
// object; those of two objects have two. Where the event is its own object nothing can be asked for.
func TestSamplesAreAboutAnObject(t *testing.T) {
	testskip.Race(t)
	var own []string
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		if !s.Imitable() || len(s.Event.Resource) == 0 || len(s.Event.Key) == 0 {
			return
		}
		about := func(id, object string) hookonce.Event {
			return one(t, p, sentAs(t, p, spec.Sample{ID: id, Object: object, Time: now}))
		}
		usual := about("101", "")
		if s.Example.Object == "" {
			if usual.Resource != "" && usual.Resource != about("102", "").Resource {
				own = append(own, s.Name)
			} else if usual.Resource != "" {
				t.Errorf("all samples are about %q", usual.Resource)
			}
			return
		}
		if !strings.Contains(usual.Resource, s.Example.Object) {
			t.Errorf("the sample is about %q, not about %q", usual.Resource, s.Example.Object)
		}
		scopes, keys := map[string]bool{}, map[string]bool{}
		for _, id := range []string{"101", "102"} {
			for _, n := range []uint64{12, 1e12 - 1} {
				ev := about(id, s.Example.NumberedObject(n))
				scopes[ev.Scope], keys[ev.Key] = true, true
			}
		}
		if len(scopes) != 2 || scopes[""] || scopes[usual.Scope] {
			t.Errorf("two objects have the scopes %v", scopes)
		}
		if keys[""] || len(keys) < 2 {
			t.Errorf("keys %v", keys)
		}
	})
	t.Logf("the event is its own object at %v", own)
}

package provider

import (
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/provider/spec"
)

// TestWhatIsNotSignedIsNotTrusted changes what "signed" requests of some senders do not protect. They
// pass, as they must, and say how little that proves.
func TestWhatIsNotSignedIsNotTrusted(t *testing.T) {
	for _, c := range []struct {
		provider, body, old, changed string
		covers                       spec.Coverage
	}{
		{"mailgun", `{"signature":{"token":"a"},"event-data":{"id":"a","timestamp":1,"event":"opened"}}`, "opened", "failed", spec.CoversNonce},
		{"adyen", `{"notificationItems":[{"NotificationRequestItem":{"additionalData":{},"pspReference":"P","eventCode":"CAPTURE","success":"true","reason":"ok"}}]}`,
			`"reason":"ok"`, `"reason":"no"`, spec.CoversFields},
		{"gitlab", `{"object_kind":"push"}`, "push", "note", spec.CoversNothing},
		{"postmark", `{"RecordType":"Open","MessageID":"m"}`, "Open", "Link", spec.CoversNothing},
		{"auth0", `{"log_id":"1","data":{}}`, `"1"`, `"2"`, spec.CoversNothing},
		{"ms-graph", `{"value":[{"subscriptionId":"s","id":"1"}]}`, `"1"`, `"2"`, spec.CoversNothing},
	} {
		p := fake(t, c.provider)
		req := signed(t, p, c.body, "Idempotency-Key", "k")
		req.Body = []byte(strings.Replace(string(req.Body), c.old, c.changed, 1))
		d, err := p.Open(req)
		if err != nil {
			t.Fatalf("%s: %v", c.provider, err)
		}
		if d.Proof.Covers != string(c.covers) {
			t.Errorf("%s: the proof covers %q, want %q", c.provider, d.Proof.Covers, c.covers)
		}
		if ev := d.Events[0]; ev.Key == "" || ev.KeySigned {
			t.Errorf("%s: key %q, signed %v", c.provider, ev.Key, ev.KeySigned)
		}
	}
	// Of Adyen's items the eight fields are covered.
	p := fake(t, "adyen")
	req := signed(t, p, `{"notificationItems":[{"NotificationRequestItem":{"additionalData":{},"pspReference":"P","eventCode":"CAPTURE","success":"true"}}]}`)
	req.Body = []byte(strings.Replace(string(req.Body), `"true"`, `"false"`, 1))
	reason(t, p, req)
}

// TestURLsAreTheRegisteredOnes: behind a proxy a request's own URL is not what the sender signed.
func TestURLsAreTheRegisteredOnes(t *testing.T) {
	const secret, registered = "fake-secret", "https://shop.example/in"
	for name, build := range map[string]func(url string, secrets ...string) *spec.Provider{
		"hubspot": HubSpot, "hubspot-legacy": HubSpotLegacy, "square": Square, "trello": Trello, "twilio": Twilio,
	} {
		p := build(registered, secret)
		req := sent(t, p, "101", "")
		req.URL = "http://10.0.0.7:8080/in"
		if ev := one(t, p, req); ev.Key == "" {
			t.Errorf("%s: no key", name)
		}
		reason(t, build("", secret), req)
	}
}

// TestRewrittenJSONIsNotWhatWasSigned: senders' own samples verify JSON that was read and written again.
func TestRewrittenJSONIsNotWhatWasSigned(t *testing.T) {
	for name, headers := range map[string][]string{"sentry": {"Request-ID", "r1", "Sentry-Hook-Timestamp", "1"}, "zoom": nil} {
		p := fake(t, name)
		body := `{"action": "created", "event": "e", "event_ts": 1, "payload": {"title": "caf\u00e9"}, "n": 1.0}`
		req := signed(t, p, body, headers...)
		if ev := one(t, p, req); ev.Key == "" || ev.KeySigned != (name == "zoom") {
			t.Errorf("%s: key %q, signed %v", name, ev.Key, ev.KeySigned)
		}
		for _, rewritten := range []string{strings.ReplaceAll(body, " ", ""), strings.Replace(body, `\u00e9`, "é", 1), strings.Replace(body, "1.0", "1", 1)} {
			req.Body = []byte(rewritten)
			reason(t, p, req)
		}
	}
}

// TestOneHeaderManySenders: the same header with the same secret is another scheme elsewhere.
func TestOneHeaderManySenders(t *testing.T) {
	const secret, whsec = "fake", "whsec_ZmFrZSBzZWNyZXQgZm9yIHRlc3Rz"
	reason(t, Intercom(secret), signed(t, Bitbucket(secret), `{}`))
	reason(t, Bitbucket(secret), signed(t, Intercom(secret), `{}`))
	reason(t, Typeform(secret), signed(t, Mollie(secret), `{}`))
	reason(t, Standard(whsec), signed(t, GoCardless(whsec), `{"events":[]}`))
	reason(t, GoCardless(whsec), signed(t, Standard(whsec), `{"events":[]}`))
}

// TestGitLabTokens: nothing is signed, and the proof says so.
func TestGitLabTokens(t *testing.T) {
	p := GitLab("fake-token")
	req := signed(t, p, `{"object_kind":"push"}`, "Idempotency-Key", "k1")
	if d, err := p.Open(req); err != nil || d.Proof.Covers != string(spec.CoversNothing) {
		t.Fatalf("%+v, %v", d, err)
	}
	for _, token := range []string{"fake-toke", "fake-tokens", "Fake-Token"} {
		req.Header.Set("X-Gitlab-Token", token)
		reason(t, p, req)
	}
}

// TestTimesAreAdvisory: of two changes within the granularity of a clock, or of two clocks, the later time
// need not be the later state. Only versions are an order, and Stripe says so in as many words.
func TestTimesAreAdvisory(t *testing.T) {
	var versions []string
	every(t, func(t *testing.T, s spec.Spec, _ *spec.Provider) {
		switch {
		case s.Order == nil:
		case s.Order.Unit == "" && !s.Order.Advisory:
			versions = append(versions, s.Name)
		case !s.Order.Advisory:
			t.Errorf("orders by %s, which is a time", s.Order.By)
		}
	})
	if want := []string{"adyen-platform", "square"}; !slices.Equal(versions, want) {
		t.Errorf("ordered by a version: %v, want %v", versions, want)
	}
	p, keys := fake(t, "stripe"), map[string]bool{}
	for _, id := range []string{"evt_1", "evt_2"} { // within one second
		ev := one(t, p, signed(t, p, `{"id":"`+id+`","type":"customer.subscription.updated","created":1770091506,"data":{"object":{"id":"sub_1"}}}`))
		keys[ev.Key] = true
	}
	if len(keys) != 2 {
		t.Errorf("keys %v", keys)
	}
}

package provider

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// TestMalformedHeaders lists, for each format, what can be wrong with the headers and the reason that
// is reported. SIG stands for the genuine signature, T for the signed time.
func TestMalformedHeaders(t *testing.T) {
	const (
		missing   = hookonce.ReasonSignatureMissing
		malformed = hookonce.ReasonSignatureMalformed
		mismatch  = hookonce.ReasonSignatureMismatch
		noTime    = hookonce.ReasonTimestampMissing
	)
	zeros := strings.Repeat("0", 64)
	cases := []struct {
		provider, header string
		values           []string
		want             string // empty: accepted
	}{
		{"stripe", "Stripe-Signature", nil, missing},
		{"stripe", "Stripe-Signature", []string{""}, missing},
		{"stripe", "Stripe-Signature", []string{"garbage"}, malformed},
		{"stripe", "Stripe-Signature", []string{",,,="}, malformed},
		{"stripe", "Stripe-Signature", []string{"t=T"}, malformed},
		{"stripe", "Stripe-Signature", []string{"t=T,v1="}, malformed},
		{"stripe", "Stripe-Signature", []string{"t=T,v1=zz"}, malformed},
		{"stripe", "Stripe-Signature", []string{"t=T,v0=SIG"}, malformed},
		{"stripe", "Stripe-Signature", []string{"t=T,V1=SIG"}, malformed},
		{"stripe", "Stripe-Signature", []string{"v1=SIG"}, noTime},
		{"stripe", "Stripe-Signature", []string{"t=,v1=SIG"}, noTime},
		{"stripe", "Stripe-Signature", []string{"t=soon,v1=SIG"}, noTime},
		{"stripe", "Stripe-Signature", []string{"t=-1,v1=SIG"}, noTime},
		{"stripe", "Stripe-Signature", []string{"t=+T,v1=SIG"}, noTime},
		{"stripe", "Stripe-Signature", []string{"t=T.0,v1=SIG"}, noTime},
		{"stripe", "Stripe-Signature", []string{"t=T,t=1,v1=SIG"}, malformed},
		{"stripe", "Stripe-Signature", []string{"t=0T,v1=SIG"}, noTime},
		{"stripe", "Stripe-Signature", []string{"t=99999999999999999999999999,v1=SIG"}, mismatch},
		{"stripe", "Stripe-Signature", []string{"t=T,v1=" + zeros}, mismatch},
		{"stripe", "Stripe-Signature", []string{"t=T,v1=SIG", "t=T,v1=" + zeros}, malformed},
		{"stripe", "Stripe-Signature", []string{"t=T,v1=SIG", "t=T,v1=SIG"}, ""},
		{"stripe", "Stripe-Signature", []string{"t=T,v1=" + zeros + ",v1=zz,v1=SIG,v0=x,who=knows"}, ""},
		{"stripe", "Stripe-Signature", []string{"v1=SIG, t=T"}, ""},

		{"github", "X-Hub-Signature-256", nil, missing},
		{"github", "X-Hub-Signature-256", []string{"SIG"}, malformed},
		{"github", "X-Hub-Signature-256", []string{"sha1=SIG"}, malformed},
		{"github", "X-Hub-Signature-256", []string{"sha256=sha256=SIG"}, malformed},
		{"github", "X-Hub-Signature-256", []string{"sha256=SIG,sha256=SIG"}, malformed},
		{"github", "X-Hub-Signature-256", []string{"sha256=" + zeros}, mismatch},

		{"shopify", "X-Shopify-Hmac-Sha256", nil, missing},
		{"shopify", "X-Shopify-Hmac-Sha256", []string{"SIG="}, malformed},
		{"shopify", "X-Shopify-Hmac-Sha256", []string{zeros}, malformed},
		{"shopify", "X-Shopify-Hmac-Sha256", []string{strings.Repeat("A", 43) + "="}, mismatch},

		{"square", "X-Square-Hmacsha256-Signature", nil, missing},
		{"square", "X-Square-Hmacsha256-Signature", []string{"?"}, malformed},

		{"slack", "X-Slack-Signature", nil, missing},
		{"slack", "X-Slack-Signature", []string{"v1=SIG"}, malformed},
		{"slack", "X-Slack-Request-Timestamp", nil, noTime},
		{"slack", "X-Slack-Request-Timestamp", []string{"now"}, noTime},
		{"slack", "X-Slack-Request-Timestamp", []string{"T", "1"}, malformed},
		{"slack", "X-Slack-Request-Timestamp", []string{"1"}, mismatch},

		{"standard", "Webhook-Signature", nil, missing},
		{"standard", "Webhook-Signature", []string{"SIG"}, malformed},
		{"standard", "Webhook-Signature", []string{"v1a,SIG"}, malformed},
		{"standard", "Webhook-Signature", []string{"v2,SIG v1,AAAA"}, malformed},
		{"standard", "Webhook-Signature", []string{"v1a,xyz v1,AAAA  v1,SIG"}, ""},
		{"standard", "Webhook-Id", nil, missing},
		{"standard", "Webhook-Id", []string{"msg_1", "msg_2"}, malformed},
		{"standard", "Webhook-Id", []string{"msg_2"}, mismatch},
		{"standard", "Webhook-Timestamp", nil, noTime},

		{"svix", "Svix-Signature", []string{"v1;SIG"}, malformed},
		{"svix", "Svix-Id", []string{"msg_2"}, mismatch},

		{"paddle", "Paddle-Signature", []string{"ts=T,h1=SIG"}, malformed},
		{"paddle", "Paddle-Signature", []string{"h1=SIG"}, noTime},
		{"paddle", "Paddle-Signature", []string{"ts=T;h1=" + zeros + ";h1=SIG"}, ""},

		{"hmac", "X-Signature", nil, missing},
		{"hmac", "X-Signature", []string{"SIG "}, ""}, // as net/http would trim it
		{"hmac", "X-Signature", []string{strings.Repeat("G", 64)}, malformed},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s/%s/%.60q", c.provider, c.header, c.values), func(t *testing.T) {
			p := fake(t, c.provider)
			req := signed(t, p, `{"id":"1","event_id":"1"}`)
			sig := genuine(p, req)
			fill := strings.NewReplacer("SIG", sig, "T", fmt.Sprint(now.Unix()))
			req.Header.Del(c.header)
			for _, text := range c.values {
				req.Header.Add(c.header, fill.Replace(text))
			}
			if c.want == "" {
				one(t, p, req)
				return
			}
			rej := reason(t, p, req)
			if rej.Reason != c.want {
				t.Errorf("got %v, want %s", rej, c.want)
			}
			mustNotLeak(t, p, rej, sig)
		})
	}
}

// genuine returns the signature in a request that p has signed.
func genuine(p *spec.Provider, req *hookonce.Request) string {
	where := p.Spec().Verify[0].Signature
	line := req.Header.Get(strings.TrimPrefix(string(where.In), "header:"))
	if where.Prefix == "" {
		return line
	}
	return line[strings.LastIndex(line, where.Prefix)+len(where.Prefix):]
}

// mustNotLeak checks that a rejection contains neither the secret nor the expected signature.
func mustNotLeak(t *testing.T, p *spec.Provider, rej *hookonce.RejectError, signature string) {
	t.Helper()
	for _, secret := range []string{secretFor(p.Spec()), "ZmFrZSBzZWNyZXQ", "fake secret", signature} {
		if secret != "" && strings.Contains(rej.Error(), secret) {
			t.Errorf("the rejection %q contains %q", rej, secret)
		}
	}
}

func TestToleranceAppliesToTheSignedTime(t *testing.T) {
	for _, name := range usual {
		p := fake(t, name)
		v := p.Spec().Verify[0].Time
		if v == nil || v.Past == 0 {
			continue
		}
		for _, c := range []struct {
			late time.Duration
			want string
		}{
			{0, ""}, {v.Past, ""}, {-v.Future, ""},
			{v.Past + time.Second, hookonce.ReasonTimestampOld},
			{-v.Future - time.Second, hookonce.ReasonTimestampFuture},
			{100 * 365 * day, hookonce.ReasonTimestampOld},
		} {
			req := signed(t, p, `{"id":"1"}`)
			req.Now = now.Add(c.late)
			_, err := p.Open(req)
			got := ""
			if err != nil {
				got = reason(t, p, req).Reason
			}
			if got != c.want {
				t.Errorf("%s: %v late: %q, want %q", name, c.late, got, c.want)
			}
		}
	}
}

func TestToleranceCanBeSet(t *testing.T) {
	s, _ := Lookup("paddle")
	p, err := spec.New(s, spec.Settings{Secrets: spec.Secrets("fake"), Tolerance: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	req := signed(t, p, `{"event_id":"1"}`)
	req.Now = now.Add(2 * time.Minute)
	if rej := reason(t, p, req); rej.Reason != hookonce.ReasonTimestampOld {
		t.Error(rej)
	}
	if again, _ := Lookup("paddle"); again.Verify[0].Time.Past != 0 || s.Verify[0].Time.Past != 0 {
		t.Error("the setting changed the specification it was applied to")
	}
}

func TestEverySecretIsTried(t *testing.T) {
	for _, name := range usual {
		s, _ := Lookup(name)
		old := fake(t, name)
		fresh := map[spec.KeyForm]string{spec.KeyWhsec: "whsec_AAAA", spec.KeyUTF8: "another", "": "another"}[s.Verify[0].Key]
		both, err := spec.New(s, spec.Settings{Secrets: spec.Secrets(fresh, secretFor(s))})
		if err != nil {
			t.Fatal(err)
		}
		only, err := spec.New(s, spec.Settings{Secrets: spec.Secrets(fresh)})
		if err != nil {
			t.Fatal(err)
		}
		req := signed(t, old, `{"id":"1"}`)
		one(t, both, req)
		if rej := reason(t, only, req); rej.Reason != hookonce.ReasonSignatureMismatch {
			t.Errorf("%s: %v", name, rej)
		}
	}
}

// TestIdentifierComesFromTheHeaderThatIsSigned replays a request that was signed under Svix's header
// names with an identifier of the attacker's choice under the other name.
func TestIdentifierComesFromTheHeaderThatIsSigned(t *testing.T) {
	secret := "whsec_AAAA"
	req := signed(t, Svix(secret), `{}`)
	req.Header.Set("webhook-id", "msg_forged")
	req.Header.Set("webhook-timestamp", fmt.Sprint(now.Unix()))
	req.Header.Set("webhook-signature", "v1,"+strings.Repeat("A", 43)+"=")
	for _, p := range []*spec.Provider{Standard(secret), Svix(secret)} {
		ev := one(t, p, req)
		if ev.Key != "msg_1" || ev.KeyOrigin != "header:svix-id" || !ev.KeySigned {
			t.Errorf("%s: key %q from %s, signed %v", p.Name(), ev.Key, ev.KeyOrigin, ev.KeySigned)
		}
	}
}

// TestTheFirstSignatureThatIsThereIsReported: where a request can be signed in several ways, the reason
// is about the way that the sender used.
func TestTheFirstSignatureThatIsThereIsReported(t *testing.T) {
	p := Standard("whsec_AAAA")
	wrong := "v1," + strings.Repeat("A", 43) + "="
	for _, c := range []struct{ usual, other, want, header string }{
		{"", "", hookonce.ReasonSignatureMissing, "Webhook-Signature"},
		{"", wrong, hookonce.ReasonSignatureMismatch, "Svix-Signature"},
		{"nonsense", "", hookonce.ReasonSignatureMalformed, "Webhook-Signature"},
		{"nonsense", wrong, hookonce.ReasonSignatureMalformed, "Webhook-Signature"},
	} {
		req := &hookonce.Request{Header: http.Header{}, Body: []byte("{}"), Now: now}
		for name, line := range map[string]string{"webhook": c.usual, "svix": c.other} {
			req.Header.Set(name+"-id", "msg_1")
			req.Header.Set(name+"-timestamp", fmt.Sprint(now.Unix()))
			req.Header.Set(name+"-signature", line)
		}
		if rej := reason(t, p, req); rej.Reason != c.want || !strings.Contains(rej.Detail, c.header) {
			t.Errorf("%+v: %v", c, rej)
		}
	}
}

// TestSquareEmptyBody: an SDK calls every signature over an empty body valid.
func TestSquareEmptyBody(t *testing.T) {
	p := Square("https://shop.example/square", "fake")
	req := &hookonce.Request{Header: http.Header{}, Now: now}
	req.Header.Set("x-square-hmacsha256-signature", strings.Repeat("A", 43)+"=")
	if rej := reason(t, p, req); rej.Reason != hookonce.ReasonSignatureMismatch {
		t.Error(rej)
	}
}

func TestSquareNeedsTheRegisteredURL(t *testing.T) {
	sender := Square("https://shop.example/square", "fake")
	req := signed(t, sender, `{"event_id":"e1"}`)
	req.URL = "http://10.0.0.7:8080/square" // what is seen behind a proxy
	if ev := one(t, sender, req); ev.Key != "e1" {
		t.Error(ev.Key)
	}
	if rej := reason(t, Square("", "fake"), req); !strings.Contains(rej.Detail, "URL") {
		t.Error(rej)
	}
	req.URL = ""
	if rej := reason(t, Square("", "fake"), req); !strings.Contains(rej.Detail, "not configured") {
		t.Error(rej)
	}
}

func TestNilHeader(t *testing.T) {
	for _, name := range usual {
		p := fake(t, name)
		if rej := reason(t, p, &hookonce.Request{}); rej.Reason != hookonce.ReasonSignatureMissing {
			t.Errorf("%s: %v", name, rej)
		}
	}
}

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
	for _, name := range []string{"sentry", "zoom", "workos"} {
		p := fake(t, name)
		body := `{"action": "created", "event": "e", "event_ts": 1, "payload": {"title": "caf\u00e9"}, "n": 1.0}`
		req := signed(t, p, body)
		one(t, p, req)
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

// TestBraintreeSignsOnceForAStranger: everybody knows the public key, which is in the answer to a
// challenge, and can repeat it. The payload is signed once, however often.
func TestBraintreeSignsOnceForAStranger(t *testing.T) {
	p := Braintree("pub:priv")
	claiming := func(entries int) *hookonce.Request {
		form := url.Values{"bt_payload": {"QQ=="}, "bt_signature": {strings.TrimSuffix(strings.Repeat("pub|0&", entries), "&")}}
		return &hookonce.Request{Method: "POST", Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, Body: []byte(form.Encode()), Now: now}
	}
	const most = 256 // there is one for each key of the account
	few, many := claiming(2), claiming(most)
	one := testing.AllocsPerRun(10, func() { reason(t, p, few) })
	if n := testing.AllocsPerRun(10, func() { reason(t, p, many) }); n > one+10 {
		t.Errorf("%v allocations for 2 entries, %v for %d", one, n, most)
	}
	if why := reason(t, p, claiming(most+1)); why.Reason != hookonce.ReasonSignatureMalformed {
		t.Error(why)
	}
}

// TestOneCertificateHasOneAddress: it is fetched once, however its address is spelt.
func TestOneCertificateHasOneAddress(t *testing.T) {
	p, n, request := snsWorld(t)
	for address, ok := range map[string]bool{
		snsCert: true,
		"https://SNS.EU-central-1.amazonAWS.com/SimpleNotificationService-1.pem": true,
		"HTTPS://sns.eu-central-1.amazonaws.com/SimpleNotificationService-1.pem": true,
		snsCert + "?": false,
		snsCert + "#": false,
		"https://sns.eu-central-1.amazonaws.com:443/SimpleNotificationService-1.pem": false,
		"https://sns.eu-central-1.amazonaws.com/%53impleNotificationService-1.pem":   false,
		"https://sns.eu-central-1.amazonaws.com//SimpleNotificationService-1.pem":    false,
		"https://sns.eu-central-1.amazonaws.com/./SimpleNotificationService-1.pem":   false,
	} {
		if _, err := p.Open(request("2", map[string]any{"Type": "Notification", "SigningCertURL": address})); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if asked := n.asked.Load(); asked != 1 {
		t.Errorf("%d fetches of one certificate", asked)
	}
}

// What somebody who got hold of one genuine request can make of it.

// TestAdyenItemsAreReadByAllAlike: Go's encoding/json, and others, take "Success" for "success".
func TestAdyenItemsAreReadByAllAlike(t *testing.T) {
	p := fake(t, "adyen")
	const before, after = `{"live":"false","notificationItems":[`, `]}`
	genuine := string(signed(t, p, before+`{"NotificationRequestItem":{"additionalData":{},"amount":{"currency":"EUR","value":1000},`+
		`"eventCode":"AUTHORISATION","merchantAccountCode":"Shop","merchantReference":"","pspReference":"8515","success":"false"}}`+after).Body)
	item := strings.TrimSuffix(strings.TrimPrefix(genuine, before), after)
	const evil = `{"NotificationRequestItem":{"pspReference":"9999","success":"true"}}`
	for name, body := range map[string]string{
		"a field":             strings.Replace(genuine, `"success":"false"`, `"success":"false","Success":"true"`, 1),
		"a field left out":    strings.Replace(genuine, `"success":"false"`, `"success":"false","OriginalReference":"9999"`, 1),
		"a part of the sum":   strings.Replace(genuine, `"value":1000`, `"value":1000,"Value":999999`, 1),
		"the whole item":      before + `{"notificationRequestItem":{"success":"true"},` + item[1:] + after,
		"all items":           strings.TrimSuffix(genuine, "}") + `,"NotificationItems":[` + evil + `]}`,
		"items in an object":  `{"notificationItems":{"0":` + evil + `},` + item[1:],
		"items of a stranger": before + evil + "," + item + after,
	} {
		if body == genuine {
			t.Fatalf("%s: nothing is changed", name)
		}
		reason(t, p, &hookonce.Request{Method: "POST", Header: http.Header{}, Body: []byte(body), Now: now})
	}
}

// TestTheURLEndsWhereItIsRegistered: what is signed after the URL cannot be moved into its query.
func TestTheURLEndsWhereItIsRegistered(t *testing.T) {
	const registered = "https://shop.example/in?shop=1"
	for _, name := range []string{"square", "hubspot", "trello"} {
		s, _ := Lookup(name)
		p, err := spec.New(s, spec.Settings{Secrets: spec.Secrets(secretFor(s)), URL: registered})
		if err != nil {
			t.Fatal(err)
		}
		req := sent(t, p, "101", "")
		req.URL = registered
		one(t, p, req)
		genuine := req.Body
		for _, cut := range []int{1, len(genuine) / 2, len(genuine) - 1, len(genuine)} {
			req.URL, req.Body = registered+string(genuine[:cut]), genuine[cut:]
			reason(t, p, req)
		}
	}
}

// TestTwilioFormsCanNotBecomeTheURL: in a URL that held the form, the text of a message could name the
// hash of another body.
func TestTwilioFormsCanNotBecomeTheURL(t *testing.T) {
	const registered = "https://shop.example/in?t=1"
	s, _ := Lookup("twilio")
	p, err := spec.New(s, spec.Settings{Secrets: spec.Secrets(secretFor(s)), URL: registered})
	if err != nil {
		t.Fatal(err)
	}
	evil := []byte("From=%2B1555&MessageSid=SMevil&SmsStatus=received&Body=pay")
	sum := sha256.Sum256(evil)
	text := "&bodySHA256=" + hex.EncodeToString(sum[:]) + "&x="
	form := url.Values{"AccountSid": {"AC1"}, "Body": {text}, "From": {"+1555"}, "MessageSid": {"SM1"}, "SmsStatus": {"received"}}
	req := signed(t, p, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	req.URL = registered
	one(t, p, req)
	req.URL, req.Body = registered+"AccountSidAC1Body"+text+"From+1555MessageSidSM1SmsStatusreceived", evil
	reason(t, p, req)
}

// TestBodiesThatBeginAnywhereAreRefused: the signature has nothing between the time, or the URL, and the
// body. A cut body has no key, and would pass through however often it is sent.
func TestBodiesThatBeginAnywhereAreRefused(t *testing.T) {
	const sent, discord, sendgrid = "1770091506", `{"id":"1","type":2,"data":{"n":7}}`, `[{"sg_event_id":"a","event":"delivered"}]` + "\r\n"
	public, key := newEd25519(t)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(&ec.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(sent + sendgrid))
	signature, err := ecdsa.SignASN1(rand.Reader, ec, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, secret, sigHeader, signature, timeHeader, body string }{
		{"discord", public, "X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(key, []byte(sent+discord))), "X-Signature-Timestamp", discord},
		{"discord-interactions", public, "X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(key, []byte(sent+discord))), "X-Signature-Timestamp", discord},
		{"sendgrid", base64.StdEncoding.EncodeToString(spki), "X-Twilio-Email-Event-Webhook-Signature", base64.StdEncoding.EncodeToString(signature),
			"X-Twilio-Email-Event-Webhook-Timestamp", sendgrid},
	} {
		p, err := Build(c.name, spec.Settings{Secrets: spec.Secrets(c.secret)})
		if err != nil {
			t.Fatal(err)
		}
		text := sent + c.body
		for _, cut := range []int{len(sent), 0, 1, len(sent) - 1, len(sent) + 1, len(sent) + 4, len(text) - 3, len(text)} {
			req := &hookonce.Request{Method: "POST", Header: http.Header{}, Body: []byte(text[cut:]), Now: now}
			req.Header.Set(c.sigHeader, c.signature)
			req.Header.Set(c.timeHeader, text[:cut])
			if cut == len(sent) {
				one(t, p, req)
			} else {
				reason(t, p, req)
			}
		}
	}
	p, err := Build("square", spec.Settings{Secrets: spec.Secrets("fake")}) // with the URL of the request
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"event_id":"e","type":"payment.updated"}`
	req := signed(t, p, body)
	for cut := range len(body) + 1 {
		req.URL, req.Body = "https://shop.example/in"+body[:cut], []byte(body[cut:])
		if cut == 0 {
			one(t, p, req)
		} else {
			reason(t, p, req)
		}
	}
}

// TestTwilioFieldsAreNotAdded: a second value of a field counts for some parsers, and no key is believed
// to be signed, because names and values run into each other.
func TestTwilioFieldsAreNotAdded(t *testing.T) {
	const form = "AccountSid=AC1&Body=hello&From=%2B1555&MessageSid=SM1&MessageStatus=delivered"
	p := Twilio("https://shop.example/in", "token")
	at := func(body string) *hookonce.Request {
		req := twilioRequest(t, "https://shop.example/in", form)
		req.Body = []byte(body)
		return req
	}
	one(t, p, at(form))
	for _, body := range []string{form + "&Body=pay", form + "&MessageSid=SM2", form + "&MessageSid=SM0", form + "&To="} {
		reason(t, p, at(body))
	}
	d, err := p.Open(at("AccountSid=AC1&Body=hello&From=%2B1555&MessageSid=SM1MessageStatusdelivered&SmsStatus="))
	if err == nil {
		t.Errorf("a field is added: %+v", d)
	}
	d, err = p.Open(at("AccountSid=AC1&Body=helloFrom%2B1555&MessageSid=SM1&MessageStatus=delivered"))
	if err != nil || d.Proof.Covers != string(spec.CoversFields) || d.Events[0].KeySigned {
		t.Errorf("two fields in one are believed: %+v, %v", d, err)
	}
	// The query of a URL does not become a field.
	req := twilioRequest(t, "https://shop.example/in?order=1", "Body=hello")
	req.URL, req.Body = "https://shop.example/in", []byte("%3Forder=1Bodyhello")
	if why := reason(t, p, req); why.Reason != hookonce.ReasonSignatureMismatch && why.Reason != hookonce.ReasonSignatureMalformed {
		t.Error(why)
	}
}

// TestTwilioHashesAreAtAnEndOfTheQuery: between other parameters one could be the text of a message.
func TestTwilioHashesAreAtAnEndOfTheQuery(t *testing.T) {
	body := []byte(`{"a":1}`)
	sum := sha256.Sum256(body)
	hash := "bodySHA256=" + hex.EncodeToString(sum[:])
	for query, ok := range map[string]bool{hash: true, "a=1&" + hash: true, hash + "&a=1": true, "a=1&" + hash + "&b=2": false, "a=1": false} {
		req := &hookonce.Request{Method: "POST", URL: "https://shop.example/in?" + query, Header: http.Header{}, Body: body, Now: now}
		req.Header.Set("X-Twilio-Signature", twilioSignature(req.URL))
		for _, p := range []*spec.Provider{Twilio("", "token"), TwilioEvents("", "token")} {
			if _, err := p.Open(req); (err == nil) != ok {
				t.Errorf("%s: %s: %v", p.Name(), query, err)
			}
		}
	}
	reason(t, TwilioEvents("https://shop.example/in", "token"), twilioRequest(t, "https://shop.example/in", "a=1"))
}

// TestGrafanaIsNotDowngraded: what is signed with a time is not the signature of a body that begins with that time.
func TestGrafanaIsNotDowngraded(t *testing.T) {
	p := Grafana("fake-secret")
	const body = `{"status":"firing","groupKey":"g"}`
	for age := range 2 { // the time of which is good, and too long ago
		req := signed(t, p, body)
		ts := req.Header.Get("X-Grafana-Alerting-Timestamp")
		if ts == "" {
			t.Fatal("no time is signed")
		}
		req.Header.Del("X-Grafana-Alerting-Timestamp")
		req.Body = []byte(ts + ":" + body)
		req.Now = now.Add(time.Duration(age) * time.Hour)
		reason(t, p, req)
	}
	h := hmac.New(sha256.New, []byte("fake-secret"))
	h.Write([]byte(body))
	one(t, p, &hookonce.Request{Method: "POST", Body: []byte(body), Now: now, Header: http.Header{"X-Grafana-Alerting-Signature": {hex.EncodeToString(h.Sum(nil))}}})
}

// TestHubSpotIsNotDowngraded: the older signatures, which come along, sign no time.
func TestHubSpotIsNotDowngraded(t *testing.T) {
	p, old := fake(t, "hubspot"), fake(t, "hubspot-legacy")
	both := func() *hookonce.Request {
		req := sent(t, p, "101", "")
		if err := old.Sign(req); err != nil { // adds the header of version 2
			t.Fatal(err)
		}
		return req
	}
	one(t, p, both())
	one(t, old, both())
	late, stripped, wrong := both(), both(), both()
	late.Now = now.Add(48 * time.Hour)
	stripped.Header.Del("X-HubSpot-Signature-V3")
	wrong.Header.Set("X-HubSpot-Signature-V3", strings.Repeat("A", 43)+"=")
	for req, want := range map[*hookonce.Request]string{
		late: hookonce.ReasonTimestampOld, stripped: hookonce.ReasonSignatureMissing, wrong: hookonce.ReasonSignatureMismatch,
	} {
		if why := reason(t, p, req); why.Reason != want {
			t.Errorf("%v, want %s", why, want)
		}
	}
}

// TestAFormIsSaidToBeOneOnce: where the header says twice what the body is, there is no telling whether it is a form, and
// a scheme that signs the fields of one accepts nothing.
func TestAFormIsSaidToBeOneOnce(t *testing.T) {
	c, err := scheme.Braintree().Compile("pub:priv")
	if err != nil {
		t.Fatal(err)
	}
	for p, req := range map[*spec.Provider]*hookonce.Request{
		Twilio(twilioURL, "token"): twilioRequest(t, twilioURL, "MessageSid=SM1&MessageStatus=sent"),
		Braintree("pub:priv"):      braintreePayload(t, c, "<notification><kind>check</kind></notification>"),
	} {
		one(t, p, req)
		req.Header.Add("Content-Type", "application/json")
		reason(t, p, req)
		req.Header["Content-Type"][1] = req.Header.Get("Content-Type") // the same, twice
		one(t, p, req)
	}
}

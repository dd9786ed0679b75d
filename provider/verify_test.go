package provider

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
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

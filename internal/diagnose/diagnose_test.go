package diagnose_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/diagnose"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

var now = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

const address = "https://shop.example/in/hooks"

// secrets are those of the schemes that are tried, obviously fake.
var secrets = map[string]string{
	"standard": "whsec_ZmFrZSBzZWNyZXQgZm9yIHRlc3Rz", "svix": "whsec_ZmFrZSBzZWNyZXQgZm9yIHRlc3Rz", "stripe": "whsec_fakeSecretForTests0123456789",
	"twilio": "00112233445566778899aabbccddeeff", "slack": "8f742231b10e8888abcd99yyyzzz85a5",
}

// bodies are written as these senders do, or may. The others are the catalogue's examples.
var bodies = map[string]string{
	"stripe":   "{\n  \"id\": \"evt_1\",\n  \"object\": \"event\",\n  \"data\": {\n    \"object\": {\n      \"description\": \"Käse/Brot\",\n      \"amount\": 4200\n    }\n  },\n  \"type\": \"charge.succeeded\"\n}",
	"github":   `{"zen":"Keep it logically awesome.","hook_id":1,"hook":{"type":"App","active":true,"events":["push"]}}`,
	"standard": `{"type":"order.paid","timestamp":"2026-02-03T04:05:06Z","data":{"id":"1001","note":"a\/b \u00e4"}}`,
	"slack":    `{"type":"event_callback","event_id":"Ev1","event":{"type":"message","text":"<@U1> hi"}}`,
	"shopify":  `{"id":1,"title":"IPod <Nano>","vendor":"Apple","tags":["a","b"]}`,
}

func secretOf(name string) string {
	if s := secrets[name]; s != "" {
		return s
	}
	return "fake-secret-for-tests-that-is-long-enough"
}

// capture returns a genuine request of a sender, which is verified as it stands.
func capture(t testing.TB, name string) *diagnose.Capture {
	t.Helper()
	c := genuine(name)
	p, err := spec.New(c.Spec, c.Settings)
	if err == nil {
		_, err = p.Open(c.Request)
	}
	if err != nil {
		t.Fatalf("%s: the request is to be genuine: %v", name, err)
	}
	return c
}

// genuine makes a request as a sender does.
func genuine(name string) *diagnose.Capture {
	known, err := provider.Lookup(name)
	if err != nil {
		panic(err)
	}
	c := &diagnose.Capture{Spec: known, Settings: spec.Settings{Secrets: spec.Secrets(secretOf(name)), URL: address}, Arrived: true}
	c.Request = &hookonce.Request{Method: http.MethodPost, URL: address, Now: now}
	c.Request.Header, c.Request.Body = known.Sample(spec.Sample{ID: "evt_1", Time: now})
	if text := bodies[name]; text != "" {
		c.Request.Body = []byte(text)
	}
	p, err := spec.New(known, c.Settings)
	if err == nil {
		err = p.Sign(c.Request)
	}
	if err != nil {
		panic(err)
	}
	return c
}

// why breaks nothing more: it says why the capture is not verified.
func why(t testing.TB, c *diagnose.Capture) diagnose.Cause {
	t.Helper()
	var err error
	if c.Provider, err = spec.New(c.Spec, c.Settings); err == nil {
		_, err = c.Provider.Open(c.Request)
	}
	if err == nil {
		return diagnose.Cause{}
	}
	return c.Why(err)
}

// TestEverySender: what is tried does not depend on who sent it.
func TestEverySender(t *testing.T) {
	testskip.Race(t)
	tried := 0
	for _, name := range provider.Names() {
		known, err := provider.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		c := imitation(t, known)
		if c == nil {
			continue
		}
		tried++
		right := c.Settings.Secrets[0].Text
		c.Settings.Secrets = spec.Secrets(`"` + right + `"`)
		if got := why(t, c); got.Word != diagnose.SecretQuoted || !got.Proven {
			t.Errorf("%s: a secret in quotes: %+v", name, got)
		}
		c.Settings.Secrets = spec.Secrets(right)
		c.Request.Body = append(c.Request.Body, '\n')
		if got := why(t, c); got.Word != "" && (got.Word != diagnose.BodyLineBreak || !got.Proven) {
			t.Errorf("%s: a line break more: %+v", name, got)
		}
	}
	if tried < 50 {
		t.Errorf("%d senders were tried", tried)
	}
}

// imitation returns a genuine request of a sender, or nil if nobody but the sender can sign.
func imitation(t testing.TB, known spec.Spec) *diagnose.Capture {
	t.Helper()
	if !known.Imitable() {
		return nil
	}
	for _, secret := range []string{"fake-secret-for-tests-that-is-long-enough", "whsec_ZmFrZSBzZWNyZXQgZm9yIHRlc3Rz", "fake-user:fake-password", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"} {
		c := &diagnose.Capture{Spec: known, Settings: spec.Settings{Secrets: spec.Secrets(secret), URL: address}, Arrived: true}
		c.Request = &hookonce.Request{Method: http.MethodPost, URL: address, Now: now}
		c.Request.Header, c.Request.Body = known.Sample(spec.Sample{ID: "evt_1", Time: now})
		p, err := spec.New(known, c.Settings)
		if err != nil || p.Sign(c.Request) != nil {
			continue
		}
		if _, err := p.Open(c.Request); err == nil {
			return c
		}
	}
	t.Logf("%s cannot be imitated with these secrets", known.Name)
	return nil
}

// TestNotDecided: where nothing was rejected there is no cause.
func TestNotDecided(t *testing.T) {
	c := capture(t, "stripe")
	if got := c.Why(nil); got != (diagnose.Cause{}) {
		t.Errorf("%+v", got)
	}
	if got := c.Why(errors.New("a key cannot be fetched")); got != (diagnose.Cause{}) {
		t.Errorf("%+v", got)
	}
}

// FuzzWhy: nothing is called proven that no change verifies, whatever came, and no secret is shown. The signature is made with a
// key that nobody has.
func FuzzWhy(f *testing.F) {
	f.Add("stripe", "fake-secret-fake-secret", "t=1770091506,v1=00", []byte("{\"a\":\"b\"}\n"), address)
	f.Add("github", "\"fake-secret-fake-secret\"", "sha256=00", []byte("\ufeff{}"), "")
	f.Add("twilio", "fake-secret-fake-secret", "AAAA", []byte("a=b&c=d"), "http://shop.example:8080/in?x=y")
	f.Add("adyen", "fake-secret-fake-secret", "", []byte(`{"notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":"AA=="}}}]}`), "://")
	f.Add("hmac", "fake-secret-fake-secret", "v1,AA", []byte("4\r\nabcd\r\n0\r\n\r\n"), address)
	f.Fuzz(func(t *testing.T, name, secret, signature string, body []byte, url string) {
		known, err := provider.Lookup(name)
		if err != nil || !known.Imitable() || len(secret) < 16 || len(body) > 1<<16 {
			return
		}
		for _, v := range known.WithDefaults().Verify {
			if v.Covers == spec.CoversNothing {
				return // the secret is sent along, and may be in what came
			}
		}
		c := &diagnose.Capture{Spec: known, Settings: spec.Settings{Secrets: spec.Secrets(secret)}, Arrived: true}
		c.Request = &hookonce.Request{Method: http.MethodPost, URL: url, Header: http.Header{}, Body: body, Now: now}
		for _, header := range []string{"Stripe-Signature", "X-Hub-Signature-256", "X-Twilio-Signature", "Webhook-Signature", "X-Signature", "Webhook-Timestamp"} {
			c.Request.Header.Set(header, signature)
		}
		c.Request.Header.Set("Webhook-Id", "msg_1")
		got := why(t, c)
		if got.Proven {
			t.Fatalf("%+v", got)
		}
		if strings.Contains(got.Text+got.Mend, secret) {
			t.Fatalf("the secret is in %+v", got)
		}
	})
}

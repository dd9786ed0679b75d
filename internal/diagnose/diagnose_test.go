package diagnose_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/diagnose"
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

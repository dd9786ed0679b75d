package provider

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// vector is a signed request that a provider or its SDK published.
type vector struct {
	Provider string            `json:"provider"`
	Source   string            `json:"source"`
	Secret   string            `json:"secret"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	Body     []byte            `json:"body_b64"`
	Now      int64             `json:"now_unix"`
}

func (v vector) request() *hookonce.Request {
	req := &hookonce.Request{Method: "POST", URL: v.URL, Header: http.Header{}, Body: v.Body, Now: time.Unix(v.Now, 0)}
	for name, text := range v.Headers {
		req.Header.Set(name, text)
	}
	return req
}

// generic says how the senders that are not in the catalogue are described to HMAC.
var generic = map[string]HMACConfig{
	"adyen_platform":    {Header: "HmacSignature", KeyForm: KeyHex, Encoding: Base64},
	"circleci":          {Header: "circleci-signature", Prefix: "v1="},
	"coinbase_commerce": {Header: "X-CC-Webhook-Signature", Key: []Value{"json:$.event.id"}, Type: "json:$.event.type"},
	"pagerduty":         {Header: "X-PagerDuty-Signature", Prefix: "v1=", Key: []Value{"json:$.event.id"}, Type: "json:$.event.event_type"},
}

func (v vector) open(t *testing.T, req *hookonce.Request) (*hookonce.Delivery, error) {
	t.Helper()
	return v.provider(t).Open(req)
}

func (v vector) provider(t testing.TB) *Provider {
	t.Helper()
	spec, ok := Lookup(v.Provider)
	if !ok {
		c, known := generic[v.Provider]
		if !known {
			t.Fatalf("no provider for the vector of %s", v.Provider)
		}
		c.Name = v.Provider
		spec = c.Spec()
	}
	p, err := New(spec, Settings{Secrets: []string{v.Secret}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func vectors(t testing.TB) []vector {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 13 {
		t.Fatalf("only %d vectors", len(all))
	}
	return all
}

func TestVectorsVerify(t *testing.T) {
	// What is known about the events in the vectors: key, type and whether the body can be read.
	want := map[string][]struct {
		key, kind string
		readable  bool
	}{
		"github":            {{"", "", false}},
		"shopify":           {{"", "", true}},
		"square":            {{"ac3ac95b-f97d-458c-a6e6-18981597e05f", "webhooks.test_notification", true}, {"", "", true}},
		"standard":          {{"msg_p5jXN8AQM9LWM0D4loKWxJek", "", true}},
		"svix":              {{"msg_p5jXN8AQM9LWM0D4loKWxJek", "", true}},
		"slack":             {{"TvBP7LRED7", "app_mention", true}},
		"paddle":            {{"evt_01hsdn97563968dy0szkmgjwh3", "price.created", true}},
		"pagerduty":         {{"01BWDWL3NYY7LUFPZCC28QUCMK", "incident.priority_updated", true}},
		"coinbase_commerce": {{"24934862-d980-46cb-9402-43c81b0cdba6", "charge:created", true}},
		"circleci":          {{"", "", false}, {"", "", false}},
		"adyen_platform":    {{"", "", false}},
	}
	seen := map[string]int{}
	for _, v := range vectors(t) {
		d, err := v.open(t, v.request())
		if err != nil {
			t.Errorf("%s (%s): %v", v.Provider, v.Source, err)
			continue
		}
		w := want[v.Provider][seen[v.Provider]]
		seen[v.Provider]++
		if len(d.Events) != 1 || d.Reply != nil {
			t.Fatalf("%s: %d events, reply %v", v.Provider, len(d.Events), d.Reply)
		}
		ev := d.Events[0]
		if ev.Key != w.key || ev.Type != w.kind || (d.Unreadable == nil) != w.readable {
			t.Errorf("%s: key %q type %q unreadable %v, want %+v", v.Provider, ev.Key, ev.Type, d.Unreadable, w)
		}
	}
}

// TestMutationsAreRejected changes every byte of the body and of the headers that carry the signature
// and what it covers, in several ways each.
func TestMutationsAreRejected(t *testing.T) {
	for _, v := range vectors(t) {
		p := v.provider(t)
		for name := range v.Headers {
			for i, mutant := range mutants([]byte(v.request().Header.Get(name))) {
				req := v.request()
				req.Header.Set(name, string(mutant))
				mustReject(t, p, req, "%s: mutation %d of %s: %q", v.Provider, i, name, mutant)
			}
		}
		for i, mutant := range mutants(v.Body) {
			req := v.request()
			req.Body = mutant
			mustReject(t, p, req, "%s: mutation %d of the body", v.Provider, i)
		}
		if v.Provider == "square" {
			for i, mutant := range mutants([]byte(v.URL)) {
				req := v.request()
				req.URL = string(mutant)
				mustReject(t, p, req, "%s: mutation %d of the URL", v.Provider, i)
			}
		}
	}
}

// mutants returns b with one byte changed, at every place (one bit, the case, the next byte), and b
// with one byte removed.
func mutants(b []byte) [][]byte {
	var out [][]byte
	for i := range b {
		for _, c := range []byte{b[i] ^ 0x01, b[i] ^ 0x20, b[i] ^ 0x80, b[i] + 1} {
			m := append([]byte(nil), b...)
			m[i] = c
			out = append(out, m)
		}
		out = append(out, append(append([]byte(nil), b[:i]...), b[i+1:]...))
	}
	return out
}

func mustReject(t *testing.T, p *Provider, req *hookonce.Request, format string, args ...any) {
	t.Helper()
	d, err := p.Open(req)
	var rej *hookonce.RejectError
	if err == nil || d != nil || !errors.As(err, &rej) || !errors.Is(err, hookonce.ErrUnverified) {
		t.Errorf("not rejected (%v): "+format, append([]any{err}, args...)...)
	}
}

func TestWrongSecretIsAMismatch(t *testing.T) {
	for _, v := range vectors(t) {
		other := v
		other.Secret = map[bool]string{true: "whsec_AAAA", false: "00ff"}[len(v.Secret) > 6 && v.Secret[:6] == "whsec_"]
		_, err := other.open(t, v.request())
		var rej *hookonce.RejectError
		if !errors.As(err, &rej) || rej.Reason != hookonce.ReasonSignatureMismatch {
			t.Errorf("%s: %v", v.Provider, err)
		}
	}
}

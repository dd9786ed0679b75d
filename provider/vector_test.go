package provider

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider/spec"
)

// vector is a signed request that a provider or its SDK published, or that was made as they say and is accepted by the
// SDK.
type vector struct {
	Provider string            `json:"provider"`
	Method   string            `json:"method"`
	Source   string            `json:"source"`
	Secret   string            `json:"secret"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	Body     []byte            `json:"body_b64"`
	Now      int64             `json:"now_unix"`
}

// names are the catalogue's names where the vectors have others.
var names = map[string]string{
	"standard_webhooks": "standard", "adyen_platform": "adyen-platform", "coinbase_commerce": "coinbase-commerce",
	"hubspot_v1": "hubspot-legacy", "hubspot_v2": "hubspot-legacy",
}

func (v vector) request() *hookonce.Request {
	req := &hookonce.Request{Method: v.Method, URL: v.URL, Header: http.Header{}, Body: slices.Clone(v.Body), Now: time.Unix(v.Now, 0)}
	for name, text := range v.Headers {
		req.Header.Set(name, text)
	}
	return req
}

func (v vector) provider(t testing.TB) *spec.Provider {
	t.Helper()
	name := v.Provider
	if other, ok := names[name]; ok {
		name = other
	}
	secret := strings.NewReplacer("public=", "", " private=", ":", "webhook_id=", "").Replace(v.Secret)
	p, err := Build(name, spec.Settings{Secrets: spec.Secrets(secret), URL: v.URL})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// vectors returns those that can be verified. PayPal's certificate was not published with its vector: see
// TestPayPalMessage.
func vectors(t testing.TB) []vector {
	t.Helper()
	return slices.DeleteFunc(published(t), func(v vector) bool { return v.Provider == "paypal" })
}

func published(t testing.TB) []vector {
	t.Helper()
	files, err := filepath.Glob("testdata/vectors*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var all []vector
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var some []vector
		if err := json.Unmarshal(text, &some); err != nil {
			t.Fatal(file, err)
		}
		all = append(all, some...)
	}
	return all
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Provider, func(t *testing.T) {
			if _, err := v.provider(t).Open(v.request()); err != nil {
				t.Errorf("%s: %v", v.Source, err)
			}
		})
	}
}

// hints are headers that no signature covers and that nothing is decided by.
var hints = []string{"Content-Type", "X-HubSpot-Signature-Version"}

// TestMutatedVectors changes every byte of the body and of every other header that the vector has.
func TestMutatedVectors(t *testing.T) {
	testskip.Race(t)
	for _, v := range vectors(t) {
		t.Run(v.Provider, func(t *testing.T) {
			p := v.provider(t)
			d, err := p.Open(v.request())
			if err != nil {
				t.Fatal(err)
			}
			if d.Proof.Covers == string(spec.CoversBody) {
				for i := range v.Body {
					req := v.request()
					req.Body[i] ^= 1
					reason(t, p, req)
				}
			}
			for name, text := range v.Headers {
				for i := range text {
					changed := []byte(text)
					changed[i] ^= 1
					req := v.request()
					req.Header.Set(name, string(changed))
					if d, err := p.Open(req); err == nil && !slices.Contains(hints, name) {
						t.Errorf("%s with %q is accepted: %v", name, changed, d.Events[0].Key)
					}
				}
			}
		})
	}
}

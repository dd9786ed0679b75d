package gateway

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
)

// FuzzDestination: what the configuration accepts can be delivered to. Everything else would be found
// only when the gateway starts, and without its line.
func FuzzDestination(f *testing.F) {
	f.Add("https://user:p@ledger.internal:8443/hooks?a=b", "whsec_c2VjcmV0", "X-Team", "payments", "Cookie", "1.5", "422")
	f.Add("http://127.0.0.1:1/", "plain", "Authorization", "Bearer x", "X-A", "1000000", "410")
	f.Add("http://[::1]/", "whsec_", "Webhook-Id", "a\tb", "", "0.001", "300")
	f.Fuzz(func(t *testing.T, url, secret, header, value, drop, rate, permanent string) {
		quoted := func(s string) string {
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		file := `{"destinations": [{"name": "ledger", "url": ` + quoted(url) + `, "secrets": [` + quoted(secret) + `],
			"headers": {` + quoted(header) + `: ` + quoted(value) + `}, "drop_headers": [` + quoted(drop) + `],
			"rate": ` + quoted(rate) + `, "permanent": [` + quoted(permanent) + `]}],
			"sources": [{"name": "billing", "provider": "hmac", "secrets": ["fake"], "routes": [{"to": "ledger"}]}]}`
		cfg, err := config.Load(config.Input{Path: "f", Data: []byte(file)})
		if err != nil {
			return
		}
		w, err := wire(cfg, nil)
		if err != nil {
			t.Fatalf("accepted, and yet: %v\n%s", err, file)
		}
		if _, err := deliver.New(deliver.Options{Destinations: w.deliver.Destinations, Now: time.Now, Registerer: prometheus.NewRegistry()}); err != nil {
			t.Errorf("accepted, and yet: %v\n%s", err, file)
		}
	})
}

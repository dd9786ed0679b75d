package provider

import (
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// stripeRequest returns a signed Stripe event of about size bytes.
func stripeRequest(t testing.TB, p *Provider, size int) *hookonce.Request {
	t.Helper()
	now := time.Unix(1_760_000_000, 0)
	header, body := p.Spec().Sample("evt_1", "", now)
	text := strings.Replace(string(body), "Order 1001", "Order 1001 "+strings.Repeat("x", max(0, size-len(body))), 1)
	req := &hookonce.Request{Method: "POST", Header: header, Body: []byte(text), Now: now}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	return req
}

func BenchmarkStripeOpen(b *testing.B) {
	p := Stripe("whsec_benchmark")
	req := stripeRequest(b, p, 2048)
	b.SetBytes(int64(len(req.Body)))
	b.ReportAllocs()
	for b.Loop() {
		d, err := p.Open(req)
		if err != nil || d.Events[0].Key != "evt_1" {
			b.Fatal(err)
		}
	}
}

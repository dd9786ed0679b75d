package oracle

import (
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v84"
	"github.com/stripe/stripe-go/v84/webhook"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// stripeEvent returns a signed event of 2 KB, of the version that stripe-go insists on.
func stripeEvent(t testing.TB) *hookonce.Request {
	t.Helper()
	p := provider.Stripe(secret)
	header, body := p.Spec().Sample(spec.Sample{ID: "evt_1", Time: time.Now()})
	text := strings.Replace(string(body), "2025-09-30.clover", stripe.APIVersion, 1)
	text = strings.Replace(text, "Order 1001", strings.Repeat("Order 1001. ", (2048-len(text))/12), 1)
	req := &hookonce.Request{Method: "POST", Header: header, Body: []byte(text), Now: time.Now()}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	return req
}

func ours(t testing.TB, req *hookonce.Request) func() {
	p := provider.Stripe(secret)
	return func() {
		d, err := p.Open(req)
		if err != nil || d.Events[0].Key == "" {
			t.Fatal(err)
		}
	}
}

func stripes(t testing.TB, req *hookonce.Request) func() {
	return func() {
		ev, err := webhook.ConstructEvent(req.Body, req.Header.Get("Stripe-Signature"), secret)
		if err != nil || ev.ID == "" {
			t.Fatal(err)
		}
	}
}

// TestStripeAllocations: what is measured by BenchmarkStripe, as far as it is the same on every machine.
func TestStripeAllocations(t *testing.T) {
	req := stripeEvent(t)
	mine, theirs := testing.AllocsPerRun(100, ours(t, req)), testing.AllocsPerRun(100, stripes(t, req))
	if mine >= theirs {
		t.Errorf("%v allocations here, %v in stripe-go", mine, theirs)
	}
}

// BenchmarkStripe verifies and reads the same event here and with stripe-go.
func BenchmarkStripe(b *testing.B) {
	req := stripeEvent(b)
	for _, c := range []struct {
		name string
		run  func()
	}{{"hookonce", ours(b, req)}, {"stripe-go", stripes(b, req)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(req.Body)))
			for b.Loop() {
				c.run()
			}
		})
	}
}

package cells

import (
	"net/http"
	"slices"
	"testing"
)

// BenchmarkHanded writes and reads what goes from cell to cell of one event: a request of 2 KB, and its answer.
func BenchmarkHanded(b *testing.B) {
	hop := &Hop{From: "berlin", To: "madrid", Map: "3 0123456789abcdef0123456789abcdef", Part: "1 0123456789abcdef0123456789abcdef"}
	r := &Request{
		Source: "stripe", Method: "POST", TLS: true, Host: "hooks.example.com", Target: "/in/stripe", Address: "192.0.2.1", Body: make([]byte, 2048),
		Header: http.Header{
			"Content-Type": {"application/json"}, "Content-Length": {"2048"}, "User-Agent": {"Stripe/1.0 (+https://stripe.com/docs/webhooks)"}, "Accept": {"*/*"},
			"Accept-Encoding": {"gzip"}, "Cache-Control": {"no-cache"}, "Stripe-Signature": {"t=1700000000,v1=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
		},
	}
	o := Outcome{Answer: &Answer{Status: 200, Header: http.Header{"Content-Type": {"application/json"}, "Hookonce-Result": {"accepted"}}, Body: []byte(`{"result":"accepted"}`), Counts: "1,0,0,0,0"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := readHanded(slices.Concat(handed(nil, hop, r), r.Body)[1:]); err != nil {
			b.Fatal(err)
		}
		if _, err := readAnswer(o.text()[1:]); err != nil {
			b.Fatal(err)
		}
	}
}

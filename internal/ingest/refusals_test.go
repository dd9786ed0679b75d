package ingest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/refusals"
	"github.com/hookonce/hookonce/provider"
)

// What was refused is remembered with what was wrong and what recognises the body, and with nothing that was secret.
func TestRefusalsAreRemembered(t *testing.T) {
	g := newGate(t, nil)
	wantAnswer(t, g.send("billing", `{"id":"a"}`), 200, "accepted", `{"status":"accepted","key":"a"}`+"\n")
	if last, total := g.Refusals().Of("billing"); len(last) != 0 || total != 0 {
		t.Fatalf("an accepted request is remembered: %+v", last)
	}
	const planted = "planted-secret"
	body := `{"id":"` + planted + `"}`
	r := request("billing", body)
	r.Header = http.Header{signatureHeader: {planted}, "Authorization": {"Bearer " + planted}, "Cookie": {planted}}
	r.URL.Path, r.URL.RawQuery = "/in/billing/", "token="+planted
	if w := serve(g, r); w.Code != 401 {
		t.Fatalf("status %d", w.Code)
	}
	unsigned := request("billing", body)
	unsigned.Header.Del(signatureHeader)
	serve(g, unsigned)
	serve(g, request("nobody/"+planted, body))
	last, total := g.Refusals().Of("billing")
	if len(last) != 2 || total != 2 {
		t.Fatalf("it remembers %d of %d", len(last), total)
	}
	sum := sha256.Sum256([]byte(body))
	want := refusals.Body{Read: true, Length: int64(len(body)), SHA256: hex.EncodeToString(sum[:])}
	if m := last[1]; m.Reason != "signature_mismatch" || m.Words != "want hexadecimal SHA-256" || m.Body != want || !m.Unverified ||
		fmt.Sprint(m.Headers) != "[Authorization Cookie "+signatureHeader+"]" || m.Method != "POST" || m.Status != 401 {
		t.Errorf("it remembers %+v", m)
	}
	if m := last[0]; m.Reason != "signature_missing" {
		t.Errorf("it remembers %+v", m)
	}
	unknown, _ := g.Refusals().Of("")
	if len(unknown) != 1 || unknown[0].Reason != "unknown_source" || unknown[0].Body.Read || unknown[0].Unverified {
		t.Errorf("of an unknown path it remembers %+v", unknown)
	}
	if text := fmt.Sprintf("%+v %+v", last, unknown); strings.Contains(text, planted) {
		t.Errorf("what was secret is remembered: %s", text)
	}
}

// A request that was refused says the key that it would have had, whatever it was refused for, and nothing longer than a key:
// who looks for an event finds that it arrived.
func TestRefusalsSayTheKey(t *testing.T) {
	g := newGate(t, func(o *ingest.Options) {
		o.Sources[0].Provider = provider.GitHub("fake-secret")
		o.Sources[1].Provider = provider.GitHub("fake-secret")
		o.Sources[1].Allow = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
	})
	long := strings.Repeat("k", 2*hookonce.MaxKeyLen)
	for _, c := range []struct{ source, method, key, reason, want string }{
		{"billing", "POST", "guid-1", "signature_missing", "guid-1"},
		{"orders", "POST", "guid-2", "address", "guid-2"},
		{"billing", "POST", "", "signature_missing", ""},
		{"billing", "POST", long, "signature_missing", hookonce.NormalKey(long)},
		{"billing", "DELETE", "guid-3", "method", ""},
	} {
		r := request(c.source, `{"action":"opened"}`)
		r.Method, r.Header = c.method, http.Header{"X-Github-Delivery": {c.key}}
		serve(g, r)
		last, _ := g.Refusals().Of(c.source)
		if len(last) == 0 || last[0].Reason != c.reason || last[0].UnverifiedKey != c.want {
			t.Errorf("%+v: it remembers %+v", c, last)
		}
	}
	if n := g.model.Events(); n != 0 {
		t.Errorf("%d events are stored", n)
	}
}

// A body is known as far as it was read, and nothing is said of one that nobody looked at.
func TestRefusalsOfBodies(t *testing.T) {
	g := newGate(t, func(o *ingest.Options) {
		o.Sources[0].MaxBody = 4
		o.Sources[1].Allow = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
	})
	of := func(source, method, body string, change func(*http.Request)) *http.Request {
		r := request(source, body)
		r.Method = method
		if change != nil {
			change(r)
		}
		return r
	}
	unknownLength := func(r *http.Request) { r.ContentLength = -1 }
	broken := func(first string) func(*http.Request) {
		return func(r *http.Request) {
			r.ContentLength, r.Body = 4, io.NopCloser(strings.NewReader(first))
		}
	}
	for name, c := range map[string]struct {
		request *http.Request
		reason  string
		want    refusals.Body
	}{
		"one byte too many":                {of("billing", "POST", "12345", unknownLength), "too_large", refusals.BodyOf([]byte("12345"))},
		"broken off":                       {of("billing", "POST", "", broken("12")), "truncated", refusals.BodyOf([]byte("12"))},
		"empty, and not authentic":         {of("billing", "POST", "", func(r *http.Request) { r.Header.Del(signatureHeader) }), "signature_missing", refusals.BodyOf(nil)},
		"announced as too large":           {of("billing", "POST", "12345", nil), "too_large", refusals.Body{}},
		"broken off before its first byte": {of("billing", "POST", "", broken("")), "truncated", refusals.Body{}},
		"a method that is not taken":       {of("billing", "PUT", "1234", nil), "method", refusals.Body{}},
		"an address that is not allowed":   {of("orders", "POST", "1234", nil), "address", refusals.Body{}},
	} {
		t.Run(name, func(t *testing.T) {
			source := strings.TrimPrefix(c.request.URL.Path, ingest.PathPrefix)
			serve(g, c.request)
			last, _ := g.Refusals().Of(source)
			if len(last) == 0 || last[0].Reason != c.reason || last[0].Body != c.want {
				t.Errorf("it remembers %+v", last)
			}
		})
	}
}

package ingest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/refusals"
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

// A body that was not read whole is known as far as it was.
func TestRefusalsOfBodies(t *testing.T) {
	g := newGate(t, func(o *ingest.Options) { o.Sources[0].MaxBody = 4 })
	serve(g, request("billing", "12345"))
	streamed := request("billing", "12345")
	streamed.ContentLength = -1
	serve(g, streamed)
	last, _ := g.Refusals().Of("billing")
	if len(last) != 2 || last[0].Reason != "too_large" || last[0].Body.Length != 5 || last[1].Body.Length != 0 {
		t.Errorf("it remembers %+v", last)
	}
}

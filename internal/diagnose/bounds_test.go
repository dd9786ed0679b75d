package diagnose

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// TestWorkIsBounded: whatever is captured, no more is tried than the package says.
func TestWorkIsBounded(t *testing.T) {
	testskip.Race(t)
	big := append([]byte(`{"a":"`), bytes.Repeat([]byte("x"), 6<<20)...)
	big = append(big, `"}`...)
	many := http.Header{"X-Forwarded-Host": {"other.example"}, "X-Original-Uri": {"/other?a=b"}, "Forwarded": {"host=third.example"}}
	for i := range 200 {
		many["X-Signature-"+strings.Repeat("A", i)] = []string{strings.Repeat("0", 64)}
	}
	for name, body := range map[string][]byte{"big": big, "nested": []byte(strings.Repeat("[", 100_000)), "small": []byte(`{"a":"ä/<"}`), "form": bytes.Repeat([]byte("a=b&"), 10_000)} {
		for _, sender := range []string{"github", "square", "twilio"} {
			known, err := provider.Lookup(sender)
			if err != nil {
				t.Fatal(err)
			}
			header := many.Clone()
			for _, carrier := range carriers(known) {
				header.Set(carrier, "sha256="+strings.Repeat("0", 64))
			}
			c := Capture{
				Spec: known.WithDefaults(), Settings: spec.Settings{Secrets: spec.Secrets(strings.Repeat("fake:secret,", 40), "another-fake-secret"), URL: "https://shop.example/in?a=b"},
				Request: &hookonce.Request{Method: http.MethodPost, URL: "http://10.0.0.1:3000/in?c=d", Header: header, Body: body, Now: time.Unix(1770091506, 0)},
			}
			s := newSearch(c)
			began := time.Now()
			if found, ok := s.run(); ok {
				t.Errorf("%s, %s: %+v", name, sender, found)
			}
			if s.attempts == 0 || s.attempts > 4000 || s.hashed > 512<<20 {
				t.Errorf("%s, %s: %d attempts, %d bytes", name, sender, s.attempts, s.hashed)
			}
			t.Logf("%s, %s: %d attempts, %d MiB, %v", name, sender, s.attempts, s.hashed>>20, time.Since(began).Round(time.Millisecond))
		}
	}
}

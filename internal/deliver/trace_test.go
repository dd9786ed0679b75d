package deliver

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

const exampleTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" // of the W3C's recommendation

func TestValidTrace(t *testing.T) {
	for _, c := range []struct {
		name, value string
		valid       bool
	}{
		{"the standard's", exampleTrace, true},
		{"not sampled", exampleTrace[:53] + "00", true},
		{"a later version", "cc" + exampleTrace[2:], true},
		{"a later version that says more", "cc" + exampleTrace[2:] + "-what-the-future-says", true},
		{"a later version with a longer flag", "cc" + exampleTrace[2:] + "0", false},
		{"version 00 says no more", exampleTrace + "-more", false},
		{"forbidden version", "ff" + exampleTrace[2:], false},
		{"upper case", strings.ToUpper(exampleTrace), false},
		{"no trace", "00-" + strings.Repeat("0", 32) + exampleTrace[35:], false},
		{"no parent", exampleTrace[:36] + strings.Repeat("0", 16) + "-01", false},
		{"short", exampleTrace[:54], false},
		{"not hexadecimal", "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01", false},
		{"other separators", strings.ReplaceAll(exampleTrace, "-", "_"), false},
		{"empty", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := validTrace(c.value); got != c.valid {
				t.Errorf("validTrace(%q) = %t", c.value, got)
			}
		})
	}
}

// FuzzTrace: whatever the sender sent, the destination gets one valid trace context: the sender's own or
// one of ours, without the state of the sender's.
func FuzzTrace(f *testing.F) {
	f.Add(exampleTrace, "vendor=1", "billing:evt_1")
	f.Add("", "vendor=1", "billing:evt_1")
	f.Add("00-x", "", "a#1")
	form := regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$`)
	f.Fuzz(func(t *testing.T, sent, state, key string) {
		h := http.Header{traceparent: {sent}, tracestate: {state}}
		setTrace(h, key)
		got := h[traceparent]
		if len(got) != 1 || !form.MatchString(got[0]) && got[0] != sent || !validTrace(got[0]) {
			t.Fatalf("%q became %q", sent, got)
		}
		if kept := h[tracestate] != nil; kept != (got[0] == sent) {
			t.Fatalf("%q became %q, state kept: %t", sent, got, kept)
		}
		other := http.Header{}
		setTrace(other, key)
		if got[0] != sent && other[traceparent][0][:36] != got[0][:36] {
			t.Fatalf("two traces for one event: %q and %q", got, other)
		}
	})
}

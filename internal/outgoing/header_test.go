package outgoing_test

import (
	"net/url"
	"testing"

	"github.com/hookonce/hookonce/internal/outgoing"
)

func FuzzHeaderSafe(f *testing.F) {
	for _, s := range []string{"", "evt_1", "é", "a b", "%", "%41", "\x00\r\n", "\xff", "sha256:00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		safe := outgoing.HeaderSafe(s)
		for i := range len(safe) {
			if safe[i] <= ' ' || safe[i] > '~' {
				t.Fatalf("HeaderSafe(%q) = %q", s, safe)
			}
		}
		if back, err := url.PathUnescape(safe); err != nil || back != s {
			t.Fatalf("HeaderSafe(%q) = %q, which reads back as %q, %v", s, safe, back, err)
		}
	})
}

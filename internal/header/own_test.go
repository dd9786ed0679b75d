package header

import (
	"net/url"
	"testing"
	"time"
)

func FuzzSafe(f *testing.F) {
	for _, s := range []string{"", "evt_1", "é", "a b", "%", "%41", "\x00\r\n", "\xff", "sha256:00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		safe := Safe(s)
		for i := range len(safe) {
			if safe[i] <= ' ' || safe[i] > '~' {
				t.Fatalf("Safe(%q) = %q", s, safe)
			}
		}
		if back, err := url.PathUnescape(safe); err != nil || back != s {
			t.Fatalf("Safe(%q) = %q, which reads back as %q, %v", s, safe, back, err)
		}
	})
}

// Facts are lines, whatever is in them, and what is empty makes none.
func TestFacts(t *testing.T) {
	f := Facts("X: 1\r\n")
	f.Add(HookonceTenant, "a\r\nHookonce-Key: b é%")
	f.Add(HookonceResource, "")
	f.AddTime(HookonceTime, time.Time{})
	f.AddTime(HookonceTime, time.Date(2026, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 3600)))
	const want = "X: 1\r\nHookonce-Tenant: a%0D%0AHookonce-Key:%20b%20%C3%A9%25\r\nHookonce-Time: 2026-01-02T02:04:05.000006Z\r\n"
	if string(f) != want {
		t.Errorf("%q, want %q", f, want)
	}
}

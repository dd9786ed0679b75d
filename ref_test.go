package hookonce_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
)

func TestJoinKey(t *testing.T) {
	if a, b := hookonce.JoinKey("ab", "c"), hookonce.JoinKey("a", "bc"); a == b {
		t.Errorf("different parts give one key %q", a)
	}
	// Without an end to the length, "1"+"1"+"19"+y reads like "11"+...: lengths that run into contents.
	y := "abcdefghi9jklmnopqr"
	if a, b := hookonce.JoinKey("1", y), hookonce.JoinKey("19"+y[:9], y[10:]); a == b {
		t.Errorf("different parts give one key %q", a)
	}
	if k := hookonce.JoinKey("shop", "", "1"); k != "" {
		t.Errorf("a missing part gives key %q, want none", k)
	}
	if k := hookonce.JoinKey("evt_1"); k != "evt_1" {
		t.Errorf("a single part gives key %q, want it unchanged", k)
	}
}

func TestNormalKey(t *testing.T) {
	long := strings.Repeat("k", hookonce.MaxKeyLen)
	for _, key := range []string{"", "evt_1", long, "clé"} {
		if got := hookonce.NormalKey(key); got != key {
			t.Errorf("NormalKey(%q) = %q, want it unchanged", key, got)
		}
	}
	seen := map[string]string{}
	for _, key := range []string{long + "k", long + "l", "a\x00b", "a\nb", "\xff", "\xfe", hookonce.NormalKey(long + "k")} {
		got := hookonce.NormalKey(key)
		if err := (hookonce.Ref{Source: "s", Key: got}).Validate(); err != nil {
			t.Errorf("NormalKey(%q): %v", key, err)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q have one key", key, other)
		}
		seen[got] = key
	}
}

func TestRefValidate(t *testing.T) {
	for _, r := range []hookonce.Ref{{}, {Key: "k"}, {Source: "s\x00"}, {Source: "s", Key: "\xff"}, {Source: "s", Key: strings.Repeat("k", 256)}} {
		if err := r.Validate(); !errors.Is(err, hookonce.ErrInvalidRef) {
			t.Errorf("%q: %v, want ErrInvalidRef", r, err)
		}
	}
	if err := (hookonce.Ref{Source: "s"}).Validate(); err != nil {
		t.Errorf("an unkeyed reference is valid: %v", err)
	}
}

func FuzzJoinKey(f *testing.F) {
	f.Add("ab", "c", "a", "bc")
	f.Add("1:a", "b", "1", "a1:b")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		one, two := hookonce.NormalKey(hookonce.JoinKey(a, b)), hookonce.NormalKey(hookonce.JoinKey(c, d))
		if one != "" && one == two && (a != c || b != d) {
			t.Errorf("(%q, %q) and (%q, %q) have one key %q", a, b, c, d, one)
		}
	})
}

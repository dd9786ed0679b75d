package journal_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// A pattern means the same as a regular expression in which * is .* and everything else is itself.
func FuzzMatchType(f *testing.F) {
	for _, seed := range [][2]string{
		{"invoice.*", "invoice.paid"}, {"*", ""}, {"", ""}, {"a*a", "a"}, {"*.paid", "invoice.paid"}, {"a*b*c", "abcbc"},
		{"*ab*ab*", "abab"}, {"*aba*aba*", "ababa"}, {"a**b", "ab"}, {"[a]*", "[a]b"}, {"ä*", "äö"}, {"*\n*", "a\nb"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, kind string) {
		parts := strings.Split(pattern, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		re, err := regexp.Compile(`(?s)^` + strings.Join(parts, ".*") + `$`)
		if err != nil {
			return // not UTF-8
		}
		if got, want := journal.MatchType(pattern, kind), re.MatchString(kind); got != want {
			t.Errorf("MatchType(%q, %q) = %v, want %v", pattern, kind, got, want)
		}
	})
}

// An identifier tells when its event was accepted.
func TestIDTime(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 123_000_000, time.UTC)
	for range 3 {
		if got := journal.IDTime(journal.NewIDs(7, 0).Next(at)); !got.Equal(at) {
			t.Errorf("IDTime = %v, want %v", got, at)
		}
	}
}

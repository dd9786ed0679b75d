package journaltest

import (
	"regexp"
	"strings"
	"testing"
)

func TestMemoryRecords(t *testing.T) { RunRecords(t, memoryFixture) }

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
		if got, want := matchType(pattern, kind), re.MatchString(kind); got != want {
			t.Errorf("matchType(%q, %q) = %v, want %v", pattern, kind, got, want)
		}
	})
}

package journal_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/journal"
)

// A pattern means the same as a regular expression in which * is .* and everything else is itself; none matches all.
func FuzzMatchType(f *testing.F) {
	for _, seed := range [][2]string{
		{"invoice.*", "invoice.paid"}, {"*", ""}, {"", ""}, {"a*a", "a"}, {"*.paid", "invoice.paid"}, {"a*b*c", "abcbc"},
		{"*ab*ab*", "abab"}, {"*aba*aba*", "ababa"}, {"a**b", "ab"}, {"[a]*", "[a]b"}, {"ä*", "äö"}, {"*\n*", "a\nb"}, {"", "any"},
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
		filter := journal.Filter{Type: pattern}
		if got, want := filter.MatchType(kind), pattern == "" || re.MatchString(kind); got != want {
			t.Errorf("%q matches %q: %v, want %v", pattern, kind, got, want)
		}
	})
}

package ingest

import (
	"slices"
	"testing"

	"github.com/hookonce/hookonce/internal/tally"
)

// Whatever a request is refused for has a word of its own, and no word is about what nothing is refused for.
func TestEveryRefusalHasAWord(t *testing.T) {
	var want []tally.What
	for _, p := range append(allRefusals(), errUnknownSource) {
		want = append(want, tally.Rejected(p.Reason))
	}
	slices.Sort(want)
	got := tally.Match("rejected:*")
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("tallies have the words\n%v, and requests are refused for\n%v", got, want)
	}
	for status := range messages {
		what := words[status]
		if len(tally.Match(string(what))) != 1 {
			t.Errorf("%s is counted as %q, which is no word", status, what)
		}
	}
}

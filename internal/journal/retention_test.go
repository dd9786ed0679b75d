package journal_test

import (
	"slices"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// A source that is kept for ever is kept longer than any other, and than all sources that are kept for a time.
func TestRetentionForEver(t *testing.T) {
	for _, c := range []struct {
		usual, a, b time.Duration // 0: for ever
		longer      []string
		longest     time.Duration
	}{
		{7, 7, 3, nil, 7},
		{7, 30, 3, []string{"a"}, 30},
		{7, 30, 60, []string{"a", "b"}, 60},
		{7, 0, 3, []string{"a"}, 0},
		{7, 30, 0, []string{"a", "b"}, 0},
		{0, 30, 0, nil, 0},
		{0, 30, 60, nil, 0},
	} {
		all := func(d time.Duration) journal.Period {
			return journal.Period{IDs: d, Bodies: d, Attempts: d, Answers: d}
		}
		r := &journal.Retention{Period: all(c.usual), Sources: map[string]journal.Period{"a": all(c.a), "b": all(c.b)}}
		for range 20 { // in whatever order the sources come
			for _, k := range journal.Kinds() {
				if got := r.Longer(k); !slices.Equal(got, c.longer) {
					t.Fatalf("%+v: %v are kept longer", c, got)
				}
				if got := r.Longest(k); got != c.longest {
					t.Fatalf("%+v: the longest are kept for %d", c, got)
				}
			}
		}
	}
}

// A negative period is none, wherever it stands.
func TestRetentionValidate(t *testing.T) {
	if err := (&journal.Retention{Sources: map[string]journal.Period{"a": {}}}).Validate(); err != nil {
		t.Errorf("for ever: %v", err)
	}
	negative := map[string]journal.Period{"ids": {IDs: -1}, "bodies": {Bodies: -1}, "attempts": {Attempts: -1}, "answers": {Answers: -1}}
	for name, p := range negative {
		for where, r := range map[string]*journal.Retention{"of all": {Period: p}, "of a source": {Sources: map[string]journal.Period{"a": p}}} {
			if r.Validate() == nil {
				t.Errorf("%s %s", name, where)
			}
		}
	}
	if (&journal.Retention{Audits: -1}).Validate() == nil {
		t.Error("audits")
	}
}

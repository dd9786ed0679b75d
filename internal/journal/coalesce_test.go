package journal_test

import (
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

func TestCoalesceKey(t *testing.T) {
	if key := journal.CoalesceKey(""); key != "" || journal.Coalesces(key) {
		t.Errorf("no key became %q", key)
	}
	seen := map[string]string{}
	for _, key := range []string{"a", "b", strings.Repeat("k", hookonce.MaxKeyLen), strings.Repeat("k", hookonce.MaxKeyLen-1), "sha256:" + strings.Repeat("0", 64)} {
		stored := journal.CoalesceKey(key)
		if err := (hookonce.Ref{Source: "billing", Key: stored}).Validate(); err != nil || !journal.Coalesces(stored) {
			t.Errorf("%q became %q: %v", key, stored, err)
		}
		if other, twice := seen[stored]; twice {
			t.Errorf("%q and %q share %q", key, other, stored)
		}
		seen[stored] = key
		// Whatever a sender writes, it cannot be the key of an event that coalesces.
		for _, sent := range []string{key, stored} {
			if journal.Coalesces(hookonce.NormalKey(sent)) {
				t.Errorf("%q passes for a key that coalesces", sent)
			}
		}
	}
}

package storetest

import (
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
)

// RunGuards checks that a store tells newer from older, and moves named state machines, in the caller's
// transaction and between transactions at once. The stores that cfg opens must implement
// [hookonce.Guards].
//
// A store may refuse a transaction for the sake of another one, as databases do that serialize: the suite
// then rolls back and tries again. What it never accepts is a wrong answer.
func RunGuards[Tx any](t *testing.T, cfg TxConfig[Tx]) {
	cfg.cases(t, "newer", newerCases[Tx]())
	cfg.cases(t, "transition", transitionCases[Tx]())
	cfg.cases(t, "purge guards", purgeGuardCases[Tx]())
	cfg.cases(t, "concurrent guards", concurrentGuardCases[Tx]())
}

// guards returns the store as one that has guards.
func (f *txFixture[Tx]) guards(t testing.TB) hookonce.Guards[Tx] {
	t.Helper()
	g, ok := f.TxStore.(hookonce.Guards[Tx])
	if !ok {
		t.Fatalf("%T is no hookonce.Guards", f.TxStore)
	}
	return g
}

// awkwardNames are different names that a store could take for one another.
func awkwardNames() []string {
	return []string{"a", "A", "a ", " a", "ä", "a\u0308", "ss", "ß", "1", "01", "a%", "a_", "'", "\\", "\U0001F512",
		strings.Repeat("n", hookonce.MaxKeyLen), strings.Repeat("n", hookonce.MaxKeyLen-1)}
}

// invalidNames cannot be stored, as far as names are concerned.
func invalidNames() map[string]string {
	return map[string]string{
		"NUL": "a\x00b", "not UTF-8": "a\xff", "a line break": "a\nb", "256 bytes": strings.Repeat("n", hookonce.MaxKeyLen+1),
	}
}

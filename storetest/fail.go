package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
)

var errDeclined = errors.New("card declined")

func failCases() []leaseCase {
	return []leaseCase{
		{"frees the claim", failFrees},
		{"may be repeated", failRepeated},
		{"lets the next copy try again", failRedriven},
		{"works after the lease, if nobody took over", failLate},
		{"needs the current token", failStale},
		{"does not apply to done work", failDone},
		{"needs a claim", failMissing},
		{"keeps what can be kept of the text", failText},
		{"is remembered after success", failRemembered},
	}
}

func failFrees(t *testing.T, f *fixture) {
	for state, dead := range map[hookonce.State]bool{hookonce.StateFailed: false, hookonce.StateDead: true} {
		want := claim(t, f, request(string(state)), hookonce.Acquired)
		f.clock.Advance(time.Second)
		ok(t, f.Fail(t.Context(), want, hookonce.Failure{Err: errDeclined, Dead: dead}))
		want.Verdict, want.State, want.Lease, want.UpdatedAt = 0, state, time.Time{}, f.clock.Now()
		want.LastError = errDeclined.Error()
		same(t, "stored claim", lookup(t, f, want.Ref), want)
	}
}

func failRepeated(t *testing.T, f *fixture) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	ok(t, f.Fail(t.Context(), c, hookonce.Failure{Err: errDeclined}))
	f.clock.Advance(time.Second)
	unchanged(t, f, c.Ref, func() { ok(t, f.Fail(t.Context(), c, hookonce.Failure{Err: errDeclined})) })
}

func failRedriven(t *testing.T, f *fixture) {
	first := claim(t, f, request("evt_1"), hookonce.Acquired)
	ok(t, f.Fail(t.Context(), first, hookonce.Failure{Err: errDeclined}))
	f.clock.Advance(time.Second)
	second := claim(t, f, request("evt_1"), hookonce.Acquired)
	want := first
	want.Token, want.Lease, want.UpdatedAt = 2, f.clock.Now().Add(lease), f.clock.Now()
	want.LastError = errDeclined.Error()
	same(t, "second attempt", second, want)
	claim(t, f, request("evt_1"), hookonce.Busy)

	ok(t, f.Fail(t.Context(), second, hookonce.Failure{Err: errDeclined, Dead: true}))
	if third := claim(t, f, request("evt_1"), hookonce.Acquired); third.Token != 3 {
		t.Fatalf("dead work was tried again with token %d, want 3", third.Token)
	}
}

func failLate(t *testing.T, f *fixture) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	f.clock.Advance(2 * lease)
	ok(t, f.Fail(t.Context(), c, hookonce.Failure{Err: errDeclined}))
	stored(t, f, c.Ref, hookonce.StateFailed, 1)
}

func failStale(t *testing.T, f *fixture) {
	old := claim(t, f, request("evt_1"), hookonce.Acquired)
	f.clock.Advance(2 * lease)
	current := claim(t, f, request("evt_1"), hookonce.Acquired)
	unchanged(t, f, old.Ref, func() {
		refuses(t, f.Fail(t.Context(), old, hookonce.Failure{Err: errDeclined}), hookonce.ErrStale)
	})
	ok(t, f.Fail(t.Context(), current, hookonce.Failure{}))
	refuses(t, f.Fail(t.Context(), old, hookonce.Failure{}), hookonce.ErrStale)
}

func failDone(t *testing.T, f *fixture) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	ok(t, f.Complete(t.Context(), c))
	unchanged(t, f, c.Ref, func() {
		refuses(t, f.Fail(t.Context(), c, hookonce.Failure{Err: errDeclined, Dead: true}), hookonce.ErrStale)
	})
}

func failMissing(t *testing.T, f *fixture) {
	c := hookonce.Claim{Ref: request("evt_1").Ref, Token: 1}
	refuses(t, f.Fail(t.Context(), c, hookonce.Failure{Err: errDeclined}), hookonce.ErrNotFound)
	absent(t, f, c.Ref)
}

// awkwardTexts are errors whose text cannot be stored as it is, with the beginning that must remain.
func awkwardTexts() map[string]string {
	lock := "\U0001F512"
	return map[string]string{
		strings.Repeat("x", hookonce.MaxErrorLen+1):             strings.Repeat("x", hookonce.MaxErrorLen),
		"ab" + strings.Repeat(lock, hookonce.MaxErrorLen):       "ab" + strings.Repeat(lock, (hookonce.MaxErrorLen-2)/4),
		"upstream sent \xff":                                    "upstream sent ",
		"upstream sent \x00 and more":                           "upstream sent ",
		strings.Repeat("\xff", 3*hookonce.MaxErrorLen):          "",
		"it's 100% \\ \"quoted\"\n" + strings.Repeat("?$1", 10): "it's 100% \\ \"quoted\"\n" + strings.Repeat("?$1", 10),
	}
}

// kept checks that text is what may remain of an error that starts with want.
func kept(t testing.TB, text, want string) {
	t.Helper()
	if !utf8.ValidString(text) || strings.Contains(text, "\x00") || len(text) > hookonce.MaxErrorLen {
		t.Fatalf("stored %d bytes of error text: %q", len(text), text)
	}
	if !strings.HasPrefix(text, want) {
		t.Fatalf("stored %q, want it to start with %q", text, want)
	}
}

func failText(t *testing.T, f *fixture) {
	for text, want := range awkwardTexts() {
		c := claim(t, f, request("evt_1"), hookonce.Acquired)
		ok(t, f.Fail(t.Context(), c, hookonce.Failure{Err: errors.New(text)}))
		kept(t, lookup(t, f, c.Ref).LastError, want)
	}
}

func failRemembered(t *testing.T, f *fixture) {
	ok(t, f.Fail(t.Context(), claim(t, f, request("evt_1"), hookonce.Acquired), hookonce.Failure{Err: errDeclined}))
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	ok(t, f.Complete(t.Context(), c))
	if got := stored(t, f, c.Ref, hookonce.StateDone, 2); got.LastError != errDeclined.Error() {
		t.Fatalf("the last failure is forgotten: %#v", got)
	}
}

package storetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
)

func completeCases() []leaseCase {
	return []leaseCase{
		{"ends the work", completeEnds},
		{"may be repeated", completeRepeated},
		{"works after the lease, if nobody took over", completeLate},
		{"needs the current token", completeStale},
		{"does not apply to failed work", completeFailed},
		{"needs a claim", completeMissing},
	}
}

func completeEnds(t *testing.T, f *fixture) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	f.clock.Advance(time.Second)
	ok(t, f.Complete(t.Context(), c))
	want := c
	want.Verdict, want.State, want.Lease, want.UpdatedAt = 0, hookonce.StateDone, time.Time{}, f.clock.Now()
	same(t, "stored claim", lookup(t, f, c.Ref), want)
}

func completeRepeated(t *testing.T, f *fixture) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	ok(t, f.Complete(t.Context(), c))
	f.clock.Advance(time.Second)
	unchanged(t, f, c.Ref, func() { ok(t, f.Complete(t.Context(), c)) })
}

func completeLate(t *testing.T, f *fixture) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	f.clock.Advance(2 * lease)
	ok(t, f.Complete(t.Context(), c))
	stored(t, f, c.Ref, hookonce.StateDone, 1)
}

func completeStale(t *testing.T, f *fixture) {
	old := claim(t, f, request("evt_1"), hookonce.Acquired)
	f.clock.Advance(2 * lease)
	current := claim(t, f, request("evt_1"), hookonce.Acquired)
	unchanged(t, f, old.Ref, func() {
		for _, token := range []int64{old.Token, 0, -1, current.Token + 1} {
			c := current
			c.Token = token
			refuses(t, f.Complete(t.Context(), c), hookonce.ErrStale)
		}
	})
	ok(t, f.Complete(t.Context(), current))
	refuses(t, f.Complete(t.Context(), old), hookonce.ErrStale)
	stored(t, f, old.Ref, hookonce.StateDone, 2)
}

func completeFailed(t *testing.T, f *fixture) {
	for _, dead := range []bool{false, true} {
		c := claim(t, f, request(map[bool]string{false: "failed", true: "dead"}[dead]), hookonce.Acquired)
		ok(t, f.Fail(t.Context(), c, hookonce.Failure{Dead: dead}))
		unchanged(t, f, c.Ref, func() { refuses(t, f.Complete(t.Context(), c), hookonce.ErrStale) })
	}
}

func completeMissing(t *testing.T, f *fixture) {
	c := hookonce.Claim{Ref: request("evt_1").Ref, Token: 1}
	refuses(t, f.Complete(t.Context(), c), hookonce.ErrNotFound)
	absent(t, f, c.Ref)
}

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

func extendCases() []leaseCase {
	return []leaseCase{
		{"moves the lease", extendMoves},
		{"works after the lease, if nobody took over", extendLate},
		{"gives a deadline to a claim without one", extendUnlimited},
		{"needs the current token", extendStale},
		{"does not apply to finished work", extendFinished},
		{"needs a claim", extendMissing},
		{"needs a positive duration", extendNegative},
	}
}

func extendMoves(t *testing.T, f *fixture) {
	want := claim(t, f, request("evt_1"), hookonce.Acquired)
	f.clock.Advance(lease / 2)
	got, err := f.Extend(t.Context(), want, lease)
	ok(t, err)
	want.Lease, want.UpdatedAt = f.clock.Now().Add(lease), f.clock.Now()
	same(t, "extended claim", got, want)
	want.Verdict = 0
	same(t, "stored claim", lookup(t, f, want.Ref), want)

	f.clock.Advance(lease * 3 / 4) // past the first lease, before the second
	claim(t, f, request("evt_1"), hookonce.Busy)
	ok(t, f.Complete(t.Context(), got))
}

func extendLate(t *testing.T, f *fixture) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	f.clock.Advance(2 * lease)
	ok(t, errorOf(f.Extend(t.Context(), c, lease)))
	claim(t, f, request("evt_1"), hookonce.Busy)
}

func extendUnlimited(t *testing.T, f *fixture) {
	req := request("evt_1")
	req.Lease = 0
	c := claim(t, f, req, hookonce.Acquired)
	ok(t, errorOf(f.Extend(t.Context(), c, lease)))
	f.clock.Advance(lease)
	claim(t, f, req, hookonce.Acquired)
}

func extendStale(t *testing.T, f *fixture) {
	old := claim(t, f, request("evt_1"), hookonce.Acquired)
	f.clock.Advance(2 * lease)
	claim(t, f, request("evt_1"), hookonce.Acquired)
	unchanged(t, f, old.Ref, func() {
		refuses(t, errorOf(f.Extend(t.Context(), old, time.Hour)), hookonce.ErrStale)
	})
}

func extendFinished(t *testing.T, f *fixture) {
	finish := map[string]func(hookonce.Claim) error{
		"done":   func(c hookonce.Claim) error { return f.Complete(t.Context(), c) },
		"failed": func(c hookonce.Claim) error { return f.Fail(t.Context(), c, hookonce.Failure{}) },
		"dead":   func(c hookonce.Claim) error { return f.Fail(t.Context(), c, hookonce.Failure{Dead: true}) },
	}
	for state, end := range finish {
		c := claim(t, f, request(state), hookonce.Acquired)
		ok(t, end(c))
		unchanged(t, f, c.Ref, func() {
			refuses(t, errorOf(f.Extend(t.Context(), c, lease)), hookonce.ErrStale)
		})
	}
}

func extendMissing(t *testing.T, f *fixture) {
	c := hookonce.Claim{Ref: request("evt_1").Ref, Token: 1}
	refuses(t, errorOf(f.Extend(t.Context(), c, lease)), hookonce.ErrNotFound)
	absent(t, f, c.Ref)
}

func extendNegative(t *testing.T, f *fixture) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	unchanged(t, f, c.Ref, func() {
		for _, d := range []time.Duration{0, -time.Second} {
			if _, err := f.Extend(t.Context(), c, d); err == nil {
				t.Fatalf("extended by %v", d)
			}
		}
	})
}

// late is a handler's error after which others get to the key before the trace is left: a store asks
// for the error's text between the rollback and the trace.
type late struct{ meanwhile func() }

func newLate(meanwhile func()) error { return &late{sync.OnceFunc(meanwhile)} }

func (e *late) Error() string {
	e.meanwhile()
	return "the connection broke"
}

// lateTrace is what becomes of the trace of a first attempt, by what happened meanwhile. What
// happened meanwhile began afresh, so its tokens start with 1 as well.
type lateTrace[Tx any] struct {
	name       string
	meanwhile  func(t *testing.T, f *txFixture[Tx])
	failed     hookonce.State // that is stored in the end when the attempt failed,
	gaveUp     hookonce.State // and when it failed for good
	token      int64
	unrecorded bool // the key belongs to somebody else, so that neither giving up nor an effect outside is on record
}

func lateTraces[Tx any]() []lateTrace[Tx] {
	fail := func(failures ...error) func(*testing.T, *txFixture[Tx]) {
		return func(t *testing.T, f *txFixture[Tx]) {
			for _, failure := range failures {
				_, err := f.run(t.Context(), request("evt_1"), failure)
				if !errors.Is(err, failure) {
					t.Fatalf("error is %v, want %v", err, failure)
				}
			}
		}
	}
	const failed, dead, processing, done = hookonce.StateFailed, hookonce.StateDead, hookonce.StateProcessing, hookonce.StateDone
	gaveUp := hookonce.Permanent(errDeclined)
	reached := func(t *testing.T, f *txFixture[Tx]) {
		req := otherContent("evt_1")
		ctx := hookonce.ContextWithPin(t.Context(), req.Ref)
		hookonce.PinRequest(ctx)
		refuses(t, errorOf(f.run(ctx, req, errDeclined)), errDeclined)
		if c := stored(t, f, req.Ref, failed, 1); c.Pinned != 1 {
			t.Fatalf("it is not pinned: %#v", c)
		}
	}
	return []lateTrace[Tx]{
		{"nothing", func(*testing.T, *txFixture[Tx]) {}, failed, dead, 1, false},
		{"a copy failed", fail(errDeclined), failed, dead, 1, false},
		{"a copy was given up", fail(gaveUp), dead, dead, 1, false},
		{"copies failed twice", fail(errDeclined, errDeclined), failed, failed, 2, true},
		{"a copy failed and was then given up", fail(errDeclined, gaveUp), dead, dead, 2, true},
		{"a copy is done", fail(nil), done, done, 1, true},
		{"other content reached the outside", reached, failed, failed, 1, true},
		{"a worker took a lease", leaseMeanwhile[Tx], processing, processing, 1, true},
		{"a worker let its lease run out", func(t *testing.T, f *txFixture[Tx]) {
			leaseMeanwhile(t, f)
			f.clock.Advance(2 * lease)
		}, processing, processing, 1, true},
	}
}

func leaseMeanwhile[Tx any](t *testing.T, f *txFixture[Tx]) {
	claim(t, f, request("evt_1"), hookonce.Acquired)
}

func lateCases[Tx any]() (cases []txCase[Tx]) {
	fails := func(_ context.Context, err error) error { return err }
	reaches := func(ctx context.Context, err error) error { hookonce.PinRequest(ctx); return err }
	givesUp := func(_ context.Context, err error) error { return hookonce.Permanent(err) }
	for _, l := range lateTraces[Tx]() {
		cases = append(cases,
			txCase[Tx]{"failed, meanwhile " + l.name, func(t *testing.T, f *txFixture[Tx]) {
				l.check(t, f, fails, l.failed, false)
			}},
			txCase[Tx]{"failed after it had reached the outside, meanwhile " + l.name, func(t *testing.T, f *txFixture[Tx]) {
				l.check(t, f, reaches, l.failed, l.unrecorded || l.failed == hookonce.StateDead)
			}},
			txCase[Tx]{"given up, meanwhile " + l.name, func(t *testing.T, f *txFixture[Tx]) {
				l.check(t, f, givesUp, l.gaveUp, l.unrecorded)
			}})
	}
	return cases
}

func (l lateTrace[Tx]) check(t *testing.T, f *txFixture[Tx], end func(context.Context, error) error, state hookonce.State, lost bool) {
	var digest []byte // that somebody pinned the claim to
	failure := newLate(func() {
		l.meanwhile(t, f)
		if c, err := f.Lookup(t.Context(), request("evt_1").Ref); err == nil && c.Pinned != 0 {
			digest = c.Digest
		}
	})
	ctx := hookonce.ContextWithPin(t.Context(), request("evt_1").Ref)
	_, err := f.run(ctx, request("evt_1"), end(ctx, failure))
	refuses(t, err, failure)
	if errors.Is(err, hookonce.ErrTraceLost) != lost {
		t.Fatalf("error is %v; want ErrTraceLost: %v", err, lost)
	}
	c := stored(t, f, request("evt_1").Ref, state, l.token)
	if digest != nil && !bytes.Equal(c.Digest, digest) {
		t.Fatalf("the trace replaced the content %q that the claim was pinned to (%#v)", digest, c)
	}
}

package storetest

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

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
	_, err := f.Extend(t.Context(), c, lease)
	ok(t, err)
	claim(t, f, request("evt_1"), hookonce.Busy)
}

func extendUnlimited(t *testing.T, f *fixture) {
	req := request("evt_1")
	req.Lease = 0
	c := claim(t, f, req, hookonce.Acquired)
	_, err := f.Extend(t.Context(), c, lease)
	ok(t, err)
	f.clock.Advance(lease)
	claim(t, f, req, hookonce.Acquired)
}

func extendStale(t *testing.T, f *fixture) {
	old := claim(t, f, request("evt_1"), hookonce.Acquired)
	f.clock.Advance(2 * lease)
	claim(t, f, request("evt_1"), hookonce.Acquired)
	unchanged(t, f, old.Ref, func() {
		_, err := f.Extend(t.Context(), old, time.Hour)
		refuses(t, err, hookonce.ErrStale)
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
			_, err := f.Extend(t.Context(), c, lease)
			refuses(t, err, hookonce.ErrStale)
		})
	}
}

func extendMissing(t *testing.T, f *fixture) {
	c := hookonce.Claim{Ref: request("evt_1").Ref, Token: 1}
	_, err := f.Extend(t.Context(), c, lease)
	refuses(t, err, hookonce.ErrNotFound)
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

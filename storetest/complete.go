package storetest

import (
	"testing"
	"time"

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

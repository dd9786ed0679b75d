package storetest

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

func takeoverCases() []leaseCase {
	return []leaseCase{
		{"an expired lease is taken over", takeoverExpired},
		{"a lease holds until it ends, to the microsecond", takeoverExact},
		{"a claim without a deadline is never stolen", takeoverUnlimited},
		{"a negative lease has already expired", takeoverNegative},
		{"other content is a conflict", takeoverConflict},
	}
}

func takeoverExpired(t *testing.T, f *fixture) {
	want := claim(t, f, request("evt_1"), hookonce.Acquired)
	for token := int64(2); token < 5; token++ {
		f.clock.Advance(lease)
		want.Token, want.Lease, want.UpdatedAt = token, f.clock.Now().Add(lease), f.clock.Now()
		same(t, "taken over", claim(t, f.another(), request("evt_1"), hookonce.Acquired), want)
	}
}

func takeoverExact(t *testing.T, f *fixture) {
	claim(t, f, request("evt_1"), hookonce.Acquired)
	f.clock.Advance(lease - time.Microsecond)
	claim(t, f, request("evt_1"), hookonce.Busy)
	f.clock.Advance(time.Microsecond)
	claim(t, f, request("evt_1"), hookonce.Acquired)
}

func takeoverUnlimited(t *testing.T, f *fixture) {
	req := request("evt_1")
	req.Lease = 0
	c := claim(t, f, req, hookonce.Acquired)
	if !c.Lease.IsZero() {
		t.Fatalf("a claim without a deadline has the lease %v", c.Lease)
	}
	f.clock.Advance(10 * 365 * 24 * time.Hour)
	unchanged(t, f, req.Ref, func() { claim(t, f, request("evt_1"), hookonce.Busy) })
	ok(t, f.Complete(t.Context(), c))
}

func takeoverNegative(t *testing.T, f *fixture) {
	req := request("evt_1")
	req.Lease = -time.Second
	claim(t, f, req, hookonce.Acquired)
	if c := claim(t, f, req, hookonce.Acquired); c.Token != 2 {
		t.Fatalf("token is %d, want 2", c.Token)
	}
}

func takeoverConflict(t *testing.T, f *fixture) {
	claim(t, f, request("evt_1"), hookonce.Acquired)
	f.clock.Advance(lease)
	conflict(t, claim(t, f, otherContent("evt_1"), hookonce.Acquired), true)
	f.clock.Advance(lease)
	conflict(t, claim(t, f, otherContent("evt_1"), hookonce.Acquired), false)
}

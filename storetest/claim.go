package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

func claimCases() []leaseCase {
	return []leaseCase{
		{"a fresh key is won", claimFresh},
		{"a held key is busy", claimHeld},
		{"a done key is a duplicate", claimDone},
		{"sources do not share keys", claimSources},
		{"keys are compared byte by byte", claimBytes},
		{"the longest key fits", claimLongest},
		{"what cannot be stored is refused", claimInvalid},
		{"no key, no claim", claimUnkeyed},
		{"other content is a conflict", claimConflict},
		{"no digest, no conflict", claimNoDigest},
		{"other content after a failure is a conflict", claimConflictAfterFailure},
		{"what a later copy lacks is kept", claimKeeps},
		{"an ended context claims nothing", claimCancelled},
	}
}

func claimFresh(t *testing.T, f *fixture) {
	req := request("evt_1")
	got := claim(t, f, req, hookonce.Acquired)
	want := hookonce.Claim{
		Ref: req.Ref, Verdict: hookonce.Acquired, State: hookonce.StateProcessing, Token: 1,
		Lease: f.clock.Now().Add(lease), Type: req.Type, Digest: req.Digest,
		FirstSeen: f.clock.Now(), UpdatedAt: f.clock.Now(),
	}
	same(t, "claim", got, want)
}

func claimHeld(t *testing.T, f *fixture) {
	req := request("evt_1")
	want := claim(t, f, req, hookonce.Acquired)
	want.Verdict = hookonce.Busy
	f.clock.Advance(lease / 2)
	unchanged(t, f, req.Ref, func() {
		same(t, "busy claim", claim(t, f.another(), req, hookonce.Busy), want)
	})
}

func claimDone(t *testing.T, f *fixture) {
	req := request("evt_1")
	ok(t, f.Complete(t.Context(), claim(t, f, req, hookonce.Acquired)))
	want := lookup(t, f, req.Ref)
	want.Verdict = hookonce.Duplicate
	f.clock.Advance(100 * lease)
	unchanged(t, f, req.Ref, func() {
		same(t, "duplicate claim", claim(t, f.another(), req, hookonce.Duplicate), want)
	})
}

func claimSources(t *testing.T, f *fixture) {
	a, b := request("evt_1"), request("evt_1")
	b.Source = "shop"
	ok(t, f.Complete(t.Context(), claim(t, f, a, hookonce.Acquired)))
	claim(t, f, b, hookonce.Acquired)
	claim(t, f, a, hookonce.Duplicate)
	stored(t, f, b.Ref, hookonce.StateProcessing, 1)
}

func claimBytes(t *testing.T, f *fixture) {
	for _, key := range []string{
		"a", "A", "a ", " a", "ä", "Ä", "a\u0308", "ss", "ß", "1", "01", "1.0", "a%", "a_", "'", "\\", "\U0001F512",
	} {
		c := claim(t, f, request(key), hookonce.Acquired)
		if c.Token != 1 || c.Key != key {
			t.Fatalf("key %q was taken for another one: %#v", key, c)
		}
		ok(t, f.Complete(t.Context(), c))
	}
}

func claimLongest(t *testing.T, f *fixture) {
	for _, key := range []string{
		strings.Repeat("k", hookonce.MaxKeyLen),
		strings.Repeat("k", hookonce.MaxKeyLen-1) + "l",
		strings.Repeat("\U0001F512", hookonce.MaxKeyLen/4),
	} {
		req := request(key)
		req.Source = strings.Repeat("s", hookonce.MaxKeyLen)
		claim(t, f, req, hookonce.Acquired)
		stored(t, f, req.Ref, hookonce.StateProcessing, 1)
	}
}

func claimInvalid(t *testing.T, f *fixture) {
	for name, ref := range invalidRefs() {
		_, err := f.Claim(t.Context(), hookonce.ClaimRequest{Ref: ref, Lease: lease})
		if err == nil {
			t.Fatalf("%s: accepted", name)
		}
		refuses(t, err, hookonce.ErrInvalidRef)
		absent(t, f, ref)
	}
}

func claimUnkeyed(t *testing.T, f *fixture) {
	req := request("")
	for range 2 {
		c := claim(t, f, req, hookonce.Unkeyed)
		if c.State != "" || c.Token != 0 {
			t.Fatalf("an unkeyed claim has state %q and token %d", c.State, c.Token)
		}
		absent(t, f, req.Ref)
		refuses(t, f.Complete(t.Context(), c), hookonce.ErrNotFound)
	}
}

func claimConflict(t *testing.T, f *fixture) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	conflict(t, c, false)
	conflict(t, claim(t, f, request("evt_1"), hookonce.Busy), false)
	conflict(t, claim(t, f, otherContent("evt_1"), hookonce.Busy), true)
	ok(t, f.Complete(t.Context(), c))
	conflict(t, claim(t, f, request("evt_1"), hookonce.Duplicate), false)
	unchanged(t, f, c.Ref, func() {
		conflict(t, claim(t, f, otherContent("evt_1"), hookonce.Duplicate), true)
	})
}

func claimNoDigest(t *testing.T, f *fixture) {
	none := request("evt_1")
	none.Digest = nil
	claim(t, f, none, hookonce.Acquired)
	conflict(t, claim(t, f, request("evt_1"), hookonce.Busy), false)

	none = request("evt_2")
	none.Digest = []byte{}
	claim(t, f, request("evt_2"), hookonce.Acquired)
	conflict(t, claim(t, f, none, hookonce.Busy), false)
}

func claimConflictAfterFailure(t *testing.T, f *fixture) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	ok(t, f.Fail(t.Context(), c, hookonce.Failure{}))
	c = claim(t, f, otherContent("evt_1"), hookonce.Acquired)
	conflict(t, c, true)
	same(t, "the content that is worked on is the stored one",
		hookonce.Claim{Digest: lookup(t, f, c.Ref).Digest}, hookonce.Claim{Digest: otherContent("").Digest})
	ok(t, f.Complete(t.Context(), c))
	conflict(t, claim(t, f, otherContent("evt_1"), hookonce.Duplicate), false)
	conflict(t, claim(t, f, request("evt_1"), hookonce.Duplicate), true)
}

func claimKeeps(t *testing.T, f *fixture) {
	req := request("evt_1")
	ok(t, f.Fail(t.Context(), claim(t, f, req, hookonce.Acquired), hookonce.Failure{}))
	bare := hookonce.ClaimRequest{Ref: req.Ref, Lease: lease}
	c := claim(t, f, bare, hookonce.Acquired)
	conflict(t, c, false)
	if c.Type != req.Type || string(c.Digest) != string(req.Digest) {
		t.Fatalf("type %q and digest %q are lost: %#v", req.Type, req.Digest, c)
	}
}

func claimCancelled(t *testing.T, f *fixture) {
	req := request("evt_1")
	if c, err := f.Claim(ended(t), req); err == nil {
		t.Fatalf("claimed %#v under a context that had ended", c)
	}
	absent(t, f, req.Ref)
}

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

func lookupCases() []leaseCase {
	return []leaseCase{
		{"shows what is stored", lookupFields},
		{"shows what is not filled in as empty", lookupBare},
		{"knows what it does not know", lookupMissing},
	}
}

func lookupFields(t *testing.T, f *fixture) {
	want := claim(t, f, request("evt_1"), hookonce.Acquired)
	claim(t, f, otherContent("evt_1"), hookonce.Busy)
	want.Verdict = 0
	same(t, "looked up", lookup(t, f.another(), want.Ref), want)
}

func lookupBare(t *testing.T, f *fixture) {
	ref := request("evt_1").Ref
	claim(t, f, hookonce.ClaimRequest{Ref: ref}, hookonce.Acquired)
	same(t, "looked up", lookup(t, f, ref), hookonce.Claim{
		Ref: ref, State: hookonce.StateProcessing, Token: 1, FirstSeen: f.clock.Now(), UpdatedAt: f.clock.Now(),
	})
}

func lookupMissing(t *testing.T, f *fixture) {
	claim(t, f, request("evt_1"), hookonce.Acquired)
	for _, ref := range []hookonce.Ref{
		{Source: "billing", Key: "evt_2"}, {Source: "shop", Key: "evt_1"}, {Source: "billing"},
	} {
		refuses(t, errorOf(f.Lookup(t.Context(), ref)), hookonce.ErrNotFound)
	}
	for _, ref := range invalidRefs() {
		absent(t, f, ref)
	}
}

package storetest

import (
	"context"
	"strings"
	"testing"

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

// invalidRefs cannot be stored.
func invalidRefs() map[string]hookonce.Ref {
	return map[string]hookonce.Ref{
		"no source":             {Source: "", Key: "evt_1"},
		"NUL in the key":        {Source: "billing", Key: "evt\x00_1"},
		"NUL in the source":     {Source: "bill\x00ing", Key: "evt_1"},
		"key not UTF-8":         {Source: "billing", Key: "evt_\xff"},
		"source not UTF-8":      {Source: "billing\xc3", Key: "evt_1"},
		"key of 256 bytes":      {Source: "billing", Key: strings.Repeat("k", hookonce.MaxKeyLen+1)},
		"source of 256 bytes":   {Source: strings.Repeat("s", hookonce.MaxKeyLen+1), Key: "evt_1"},
		"line break in the key": {Source: "billing", Key: "evt\n1"},
		"bad source, no key":    {Source: "bill\x00ing", Key: ""},
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
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := request("evt_1")
	if c, err := f.Claim(ctx, req); err == nil {
		t.Fatalf("claimed %#v under a context that had ended", c)
	}
	absent(t, f, req.Ref)
}

package storetest

import (
	"testing"

	"github.com/hookonce/hookonce"
)

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
		_, err := f.Lookup(t.Context(), ref)
		refuses(t, err, hookonce.ErrNotFound)
	}
	for _, ref := range invalidRefs() {
		absent(t, f, ref)
	}
}

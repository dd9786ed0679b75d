package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hookonce/hookonce"
)

// lease is the lease that cases claim with, unless they are about leases.
const lease = time.Minute

// request asks for a key with a lease.
func request(key string) hookonce.ClaimRequest {
	return hookonce.ClaimRequest{
		Ref: hookonce.Ref{Source: "billing", Key: key}, Type: "invoice.paid",
		Digest: []byte("0123456789abcdef"), Lease: lease,
	}
}

// otherContent is request with another digest.
func otherContent(key string) hookonce.ClaimRequest {
	r := request(key)
	r.Digest = []byte("fedcba9876543210")
	return r
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// refuses checks that err wraps target.
func refuses(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error is %v, want one that wraps %q", err, target)
	}
}

// claim claims and checks the verdict.
func claim(t testing.TB, s hookonce.Store, req hookonce.ClaimRequest, want hookonce.Verdict) hookonce.Claim {
	t.Helper()
	c, err := s.Claim(t.Context(), req)
	ok(t, err)
	verdict(t, c, want)
	return c
}

func verdict(t testing.TB, c hookonce.Claim, want hookonce.Verdict) {
	t.Helper()
	if c.Verdict != want {
		t.Fatalf("verdict is %q, want %q (claim %#v)", c.Verdict, want, c)
	}
}

func lookup(t testing.TB, s hookonce.Store, ref hookonce.Ref) hookonce.Claim {
	t.Helper()
	c, err := s.Lookup(t.Context(), ref)
	ok(t, err)
	return c
}

// absent checks that nothing is stored under ref. A reference that cannot be stored may also be
// refused as such.
func absent(t testing.TB, s hookonce.Store, ref hookonce.Ref) {
	t.Helper()
	c, err := s.Lookup(t.Context(), ref)
	if !errors.Is(err, hookonce.ErrNotFound) && !errors.Is(err, hookonce.ErrInvalidRef) {
		t.Fatalf("Lookup(%q) = %#v, %v; want ErrNotFound", ref, c, err)
	}
}

// stored checks the state and the token under ref, and returns the claim.
func stored(t testing.TB, s hookonce.Store, ref hookonce.Ref, state hookonce.State, token int64) hookonce.Claim {
	t.Helper()
	c := lookup(t, s, ref)
	if c.State != state || c.Token != token {
		t.Fatalf("stored claim is %s with token %d, want %s with token %d (%#v)", c.State, c.Token, state, token, c)
	}
	return c
}

// same compares claims; an empty digest is as good as none.
func same(t testing.TB, what string, got, want hookonce.Claim) {
	t.Helper()
	if d := diff(got, want); d != "" {
		t.Fatalf("%s: -got +want\n%s", what, d)
	}
}

func diff(got, want any) string { return cmp.Diff(got, want, cmpopts.EquateEmpty()) }

// unchanged runs f and checks that the claim under ref is what it was before.
func unchanged(t testing.TB, s hookonce.Store, ref hookonce.Ref, f func()) {
	t.Helper()
	before := lookup(t, s, ref)
	f()
	same(t, "the stored claim was changed", lookup(t, s, ref), before)
}

// conflict checks the flag.
func conflict(t testing.TB, c hookonce.Claim, want bool) {
	t.Helper()
	if c.Conflict != want {
		t.Fatalf("conflict is %v, want %v (claim %#v)", c.Conflict, want, c)
	}
}

// effects checks how often each effect happened.
func (f *txFixture[Tx]) effects(t testing.TB, want map[string]int) {
	t.Helper()
	got, err := f.db.Effects(t.Context())
	ok(t, err)
	if d := diff(got, want); d != "" {
		t.Fatalf("effects: -got +want\n%s", d)
	}
}

func contains(t testing.TB, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Fatalf("%q does not say %q", text, want)
	}
}

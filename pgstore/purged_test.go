package pgstore_test

import (
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
)

// A claim that waits sees the one before as it was. If that was finished and purged when the wait is over,
// the key is new, and nothing of the old claim is left in the new one.
func TestClaimOfWhatIsPurgedMeanwhile(t *testing.T) {
	store, pool := newStore(t)
	req := request("evt_1")
	req.Digest, req.Type = []byte("one"), "paid"
	c, err := store.Claim(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Fail(t.Context(), c, hookonce.Failure{}); err != nil {
		t.Fatal(err)
	}
	other, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lock := "SELECT pg_advisory_xact_lock(" + claimsql.KeyLock(`"hookonce".`, "$1::text", "$2::text") + ")"
	if _, err := other.Exec(t.Context(), lock, req.Source, req.Key); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		claim hookonce.Claim
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		c, err := store.Claim(t.Context(), hookonce.ClaimRequest{Ref: req.Ref, Digest: []byte("two")})
		answered <- answer{c, err}
	}()
	for waiting := false; !waiting; {
		err := other.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)").Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	mustExec(t, pool, "DELETE FROM hookonce.claims")
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := <-answered
	if a.err != nil || a.claim.Verdict != hookonce.Acquired || a.claim.Token != 1 || a.claim.Type != "" || a.claim.Conflict {
		t.Fatalf("claimed %+v, %v; want a new claim", a.claim, a.err)
	}
	stored, err := store.Lookup(t.Context(), req.Ref)
	if err != nil || stored.Token != 1 || string(stored.Digest) != "two" || stored.Type != "" {
		t.Fatalf("stored %+v, %v", stored, err)
	}
}

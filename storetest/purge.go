package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

func purgeCases() []leaseCase {
	return []leaseCase{
		{"deletes old done work", purgeOld},
		{"deletes no more than the limit", purgeLimit},
		{"never deletes open work", purgeOpen},
		{"lets the key be claimed anew", purgeReclaim},
	}
}

func purge(t testing.TB, s hookonce.Store, before time.Time, limit, want int) {
	t.Helper()
	n, err := s.Purge(t.Context(), before, limit)
	ok(t, err)
	if n != want {
		t.Fatalf("Purge deleted %d claims, want %d", n, want)
	}
}

// finish claims and completes a key.
func finish(t testing.TB, s hookonce.Store, key string) hookonce.Ref {
	t.Helper()
	c := claim(t, s, request(key), hookonce.Won)
	ok(t, s.Complete(t.Context(), c))
	return c.Ref
}

func purgeOld(t *testing.T, f *fixture) {
	old := finish(t, f, "old")
	f.clock.Advance(time.Second)
	recent := finish(t, f, "recent")
	purge(t, f, f.clock.Now().Add(-time.Second), 10, 0) // the bound itself stays
	purge(t, f, f.clock.Now(), 10, 1)
	absent(t, f, old)
	stored(t, f, recent, hookonce.StateDone, 1)
}

func purgeLimit(t *testing.T, f *fixture) {
	for i := range 5 {
		finish(t, f, fmt.Sprint("evt_", i))
	}
	f.clock.Advance(time.Second)
	purge(t, f, f.clock.Now(), 0, 0)
	purge(t, f, f.clock.Now(), 3, 3)
	purge(t, f, f.clock.Now(), 3, 2)
	purge(t, f, f.clock.Now(), 3, 0)
}

func purgeOpen(t *testing.T, f *fixture) {
	held := claim(t, f, request("held"), hookonce.Won)
	failed := claim(t, f, request("failed"), hookonce.Won)
	ok(t, f.Fail(t.Context(), failed, hookonce.Failure{}))
	dead := claim(t, f, request("dead"), hookonce.Won)
	ok(t, f.Fail(t.Context(), dead, hookonce.Failure{Dead: true}))
	f.clock.Advance(10 * 365 * 24 * time.Hour)
	purge(t, f, f.clock.Now(), 100, 0)
	stored(t, f, held.Ref, hookonce.StateProcessing, 1)
	stored(t, f, failed.Ref, hookonce.StateFailed, 1)
	stored(t, f, dead.Ref, hookonce.StateDead, 1)
}

func purgeReclaim(t *testing.T, f *fixture) {
	ref := finish(t, f, "evt_1")
	f.clock.Advance(time.Second)
	purge(t, f, f.clock.Now(), 1, 1)
	c := claim(t, f, otherContent("evt_1"), hookonce.Won)
	conflict(t, c, false)
	if c.Token != 1 || !c.FirstSeen.Equal(f.clock.Now()) {
		t.Fatalf("%s remembers what was purged: %#v", ref, c)
	}
}

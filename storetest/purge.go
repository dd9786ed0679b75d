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
		{"one source, or all but some", purgeSources},
		{"what Once took goes by itself only", purgeOnce},
		{"what a gateway claimed goes by its source only", purgeService},
		{"failed work goes where it is asked for", purgeFailed},
		{"counts, and deletes nothing", purgeDry},
		{"refuses what makes no sense", purgeInvalid},
		{"a time that no clock can have shown is no age", purgeClocks},
	}
}

func purge(t testing.TB, s hookonce.Store, before time.Time, limit, want int) {
	t.Helper()
	purgeOf(t, s, hookonce.PurgeRequest{Before: before, Limit: limit}, want)
}

func purgeOf(t testing.TB, s hookonce.Purger, req hookonce.PurgeRequest, want int) {
	t.Helper()
	n, err := s.Purge(t.Context(), req)
	ok(t, err)
	if n != want {
		t.Fatalf("Purge deleted %d, want %d: %+v", n, want, req)
	}
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
	held := claim(t, f, request("held"), hookonce.Acquired)
	failed := claim(t, f, request("failed"), hookonce.Acquired)
	ok(t, f.Fail(t.Context(), failed, hookonce.Failure{}))
	dead := claim(t, f, request("dead"), hookonce.Acquired)
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
	c := claim(t, f, otherContent("evt_1"), hookonce.Acquired)
	conflict(t, c, false)
	if c.Token != 1 || !c.FirstSeen.Equal(f.clock.Now()) {
		t.Fatalf("%s remembers what was purged: %#v", ref, c)
	}
}

// finishIn claims and completes a key of the given source.
func finishIn(t testing.TB, f *fixture, source, key string) hookonce.Ref {
	t.Helper()
	req := request(key)
	req.Source = source
	c := claim(t, f, req, hookonce.Acquired)
	ok(t, f.Complete(t.Context(), c))
	return c.Ref
}

func purgeSources(t *testing.T, f *fixture) {
	sources := []string{"b", "c", "c2", "on", "once", "onces"}
	refs := map[string]hookonce.Ref{}
	for _, s := range append(sources, awkwardNames()...) {
		refs[s] = finishIn(t, f, s, "evt_1")
	}
	f.clock.Advance(time.Second)
	req := before(f.clock.Now(), 100)
	req.Source = "c"
	purgeOf(t, f, req, 1)
	absent(t, f, refs["c"])
	purgeOf(t, f, req, 0)
	req.Source, req.Except = "", append([]string{"c2", "nobody's"}, awkwardNames()...)
	purgeOf(t, f, req, 4)
	for _, s := range append([]string{"c2"}, awkwardNames()...) {
		stored(t, f, refs[s], hookonce.StateDone, 1)
	}
	for _, s := range awkwardNames() {
		purgeOf(t, f, hookonce.PurgeRequest{Source: s, Before: f.clock.Now(), Limit: 100}, 1)
		absent(t, f, refs[s])
	}
	req.Except = []string{}
	purgeOf(t, f, req, 1)
}

func purgeOnce(t *testing.T, f *fixture) {
	fee, bonus, event := finishIn(t, f, "once:fee", "payout_1"), finishIn(t, f, "once:bonus", "user_1"), finishIn(t, f, "billing", "evt_1")
	f.clock.Advance(10 * 365 * 24 * time.Hour)
	purge(t, f, f.clock.Now(), 100, 1)
	absent(t, f, event)
	stored(t, f, fee, hookonce.StateDone, 1)
	stored(t, f, bonus, hookonce.StateDone, 1)
	again := finishIn(t, f, "fee", "payout_1")
	f.clock.Advance(time.Second)
	purgeOf(t, f, hookonce.PurgeRequest{Kind: hookonce.PurgeOnce, Source: "fee", Before: f.clock.Now(), Limit: 100}, 1)
	absent(t, f, fee)
	stored(t, f, again, hookonce.StateDone, 1)
	purgeOf(t, f, hookonce.PurgeRequest{Kind: hookonce.PurgeOnce, Except: []string{"bonus"}, Before: f.clock.Now(), Limit: 100}, 0)
	purgeOf(t, f, hookonce.PurgeRequest{Kind: hookonce.PurgeOnce, Before: f.clock.Now(), Limit: 100}, 1)
	absent(t, f, bonus)
	stored(t, f, again, hookonce.StateDone, 1)
}

// purgeService: how long a gateway's claims are kept is the gateway's to say.
func purgeService(t *testing.T, f *fixture) {
	const service = "gateway:charges"
	done, event := finishIn(t, f, service, "key_1"), finishIn(t, f, "charges", "key_1")
	pinned := request("key_2")
	pinned.Source = service
	failed := claim(t, f, pinned, hookonce.Acquired)
	ok(t, f.Fail(t.Context(), failed, hookonce.Failure{Pin: true}))
	f.clock.Advance(10 * 365 * 24 * time.Hour)
	req := hookonce.PurgeRequest{Before: f.clock.Now(), Limit: 100}
	purgeOf(t, f, req, 1)
	absent(t, f, event)
	req.Kind = hookonce.PurgeFailed
	purgeOf(t, f, req, 0)
	stored(t, f, done, hookonce.StateDone, 1)
	stored(t, f, failed.Ref, hookonce.StateFailed, 1)
	req.Source = service
	purgeOf(t, f, req, 1)
	req.Kind = hookonce.PurgeEvents
	purgeOf(t, f, req, 1)
	absent(t, f, done)
	absent(t, f, failed.Ref)
}

func purgeFailed(t *testing.T, f *fixture) {
	held := claim(t, f, request("held"), hookonce.Acquired)
	failed := claim(t, f, request("failed"), hookonce.Acquired)
	ok(t, f.Fail(t.Context(), failed, hookonce.Failure{}))
	dead := claim(t, f, request("dead"), hookonce.Acquired)
	ok(t, f.Fail(t.Context(), dead, hookonce.Failure{Dead: true}))
	done := finish(t, f, "done")
	f.clock.Advance(time.Second)
	req := before(f.clock.Now(), 2)
	req.Kind, req.Source = hookonce.PurgeFailed, "shop"
	purgeOf(t, f, req, 0)
	req.Source, req.Except = "", []string{"billing"}
	purgeOf(t, f, req, 0)
	req.Source, req.Except, req.Dry = "billing", nil, true
	purgeOf(t, f, req, 2)
	req.Dry, req.Limit = false, 1
	purgeOf(t, f, req, 1)
	purgeOf(t, f, req, 1)
	purgeOf(t, f, req, 0)
	for _, ref := range []hookonce.Ref{failed.Ref, dead.Ref} {
		absent(t, f, ref)
	}
	stored(t, f, done, hookonce.StateDone, 1)
	stored(t, f, held.Ref, hookonce.StateProcessing, 1)
}

func purgeDry(t *testing.T, f *fixture) {
	for i := range 3 {
		finish(t, f, fmt.Sprint("evt_", i))
	}
	f.clock.Advance(time.Second)
	req := before(f.clock.Now(), 2)
	req.Dry = true
	purgeOf(t, f, req, 2)
	req.Limit = 100
	purgeOf(t, f, req, 3)
	purgeOf(t, f, req, 3)
	req.Dry = false
	purgeOf(t, f, req, 3)
}

func purgeInvalid(t *testing.T, f *fixture) {
	ref := finish(t, f, "evt_1")
	f.clock.Advance(time.Second)
	for what, req := range map[string]hookonce.PurgeRequest{
		"another kind":               {Kind: "claims"},
		"a source, and all but some": {Source: "billing", Except: []string{"shop"}},
		"once as a source of events": {Source: "once:fee"},
		"what is done from now on":   {Before: f.clock.Now().Add(time.Second)},
		"of failures as well":        {Kind: hookonce.PurgeFailed, Before: f.clock.Now().Add(24 * time.Hour)},
		"and of versions":            {Kind: hookonce.PurgeVersions, Before: f.clock.Now().Add(24 * time.Hour)},
		"versions of a source":       {Kind: hookonce.PurgeVersions, Source: "billing"},
		"states but of a source":     {Kind: hookonce.PurgeStates, Except: []string{"billing"}},
		"once as a source of failed": {Kind: hookonce.PurgeFailed, Source: "once:fee"},
	} {
		if req.Limit = 100; req.Before.IsZero() {
			req.Before = f.clock.Now()
		}
		if n, err := f.Purge(t.Context(), req); err == nil || n != 0 {
			t.Errorf("%s: %d, %v", what, n, err)
		}
	}
	stored(t, f, ref, hookonce.StateDone, 1)
}

// purgeClocks has a process whose clock says 1970, and others that are ahead. What they wrote a moment ago is not
// old.
func purgeClocks(t *testing.T, f *fixture) {
	for _, wrong := range []time.Time{
		time.Unix(0, 0), time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2019, 12, 31, 23, 59, 59, 999_999_000, time.UTC), f.clock.Now().Add(48 * time.Hour),
	} {
		s := f.open(Options{Clock: func() time.Time { return wrong }})
		ref := finish(t, s, fmt.Sprint("evt_", wrong.Unix()))
		failed := claim(t, s, request(fmt.Sprint("failed_", wrong.Unix())), hookonce.Acquired)
		ok(t, s.Fail(t.Context(), failed, hookonce.Failure{}))
		purge(t, f, f.clock.Now(), 100, 0)
		purgeOf(t, f, hookonce.PurgeRequest{Kind: hookonce.PurgeFailed, Before: f.clock.Now(), Limit: 100}, 0)
		stored(t, f, ref, hookonce.StateDone, 1)
		stored(t, f, failed.Ref, hookonce.StateFailed, 1)
	}
	right := f.open(Options{Clock: func() time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) }})
	ref := finish(t, right, "evt_old")
	purge(t, f, f.clock.Now(), 100, 1)
	absent(t, f, ref)
}

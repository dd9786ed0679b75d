package storetest

import (
	"context"
	"runtime"
	"testing"

	"github.com/hookonce/hookonce"
)

func pinnedCases() []leaseCase {
	return []leaseCase{
		{"only the same content takes over what is pinned", pinnedTakeover},
		{"a failure pins, or takes back what its attempt pinned", pinnedByFailure},
		{"a later failure takes nothing back", pinnedForGood},
		{"what is not known refuses nothing", pinnedUnknown},
		{"held work is busy, done work a duplicate", pinnedLast},
		{"work under a lease is not done for what is pinned to another request", pinnedWork},
		{"a first attempt can be forgotten", forgottenFirst},
		{"nothing else is forgotten", forgottenNothingElse},
		{"whoever begins anew is not forgotten", forgottenAnew},
	}
}

// pinning is request, bound to its content from the claim on.
func pinning(key string) hookonce.ClaimRequest {
	r := request(key)
	r.Pin = true
	return r
}

// bound checks that only the content of request may be tried again, which attempt has pinned.
func bound(t testing.TB, s hookonce.Store, key string, attempt int64) {
	t.Helper()
	unchanged(t, s, request(key).Ref, func() {
		c := claim(t, s, otherContent(key), hookonce.Pinned)
		conflict(t, c, true)
		if c.Pinned != attempt || string(c.Digest) != string(request(key).Digest) {
			t.Fatalf("it is pinned by attempt %d to %q, want attempt %d (%#v)", c.Pinned, c.Digest, attempt, c)
		}
	})
}

// pinnedTakeover is the attempt whose process died.
func pinnedTakeover(t *testing.T, f *fixture) {
	c := claim(t, f, pinning("evt_1"), hookonce.Acquired)
	if c.Pinned != 1 {
		t.Fatalf("it is not pinned: %#v", c)
	}
	f.clock.Advance(lease)
	bound(t, f.another(), "evt_1", 1)
	c = claim(t, f, request("evt_1"), hookonce.Acquired)
	conflict(t, c, false)
	if c.Token != 2 || c.Pinned != 1 {
		t.Fatalf("taken over as %#v, want token 2, pinned by attempt 1", c)
	}
	f.clock.Advance(lease)
	bound(t, f, "evt_1", 1)
}

func pinnedByFailure(t *testing.T, f *fixture) {
	for key, req := range map[string]hookonce.ClaimRequest{"claim": pinning("claim"), "no claim": request("no claim")} {
		for _, dead := range []bool{false, true} {
			c := claim(t, f, req, hookonce.Acquired)
			ok(t, f.Fail(t.Context(), c, hookonce.Failure{Err: errDeclined, Dead: dead}))
			if got := lookup(t, f, c.Ref); got.Pinned != 0 {
				t.Fatalf("the failure took nothing back: %#v", got)
			}
		}
		c := claim(t, f, otherContent(key), hookonce.Acquired)
		conflict(t, c, true)
		ok(t, f.Fail(t.Context(), c, hookonce.Failure{Err: errDeclined}))

		c = claim(t, f, req, hookonce.Acquired)
		ok(t, f.Fail(t.Context(), c, hookonce.Failure{Err: errDeclined, Pin: true}))
		bound(t, f, key, 4)
		ok(t, f.Complete(t.Context(), claim(t, f, request(key), hookonce.Acquired)))
	}
}

func pinnedForGood(t *testing.T, f *fixture) {
	ok(t, f.Fail(t.Context(), claim(t, f, pinning("evt_1"), hookonce.Acquired), hookonce.Failure{Err: errDeclined, Pin: true}))
	for token := int64(2); token < 5; token++ {
		c := claim(t, f, pinning("evt_1"), hookonce.Acquired)
		ok(t, f.Fail(t.Context(), c, hookonce.Failure{Err: errDeclined, Forget: true}))
		stored(t, f, c.Ref, hookonce.StateFailed, token)
		bound(t, f, "evt_1", 1)
	}
}

func pinnedUnknown(t *testing.T, f *fixture) {
	none := pinning("evt_1")
	none.Digest = nil
	claim(t, f, none, hookonce.Acquired)
	f.clock.Advance(lease)
	claim(t, f, request("evt_1"), hookonce.Acquired) // which says what it is pinned to
	f.clock.Advance(lease)
	bound(t, f, "evt_1", 1)
	conflict(t, claim(t, f, none, hookonce.Acquired), false)
	f.clock.Advance(lease)
	bound(t, f, "evt_1", 1)
}

func pinnedLast(t *testing.T, f *fixture) {
	c := claim(t, f, pinning("evt_1"), hookonce.Acquired)
	conflict(t, claim(t, f, otherContent("evt_1"), hookonce.Busy), true)
	ok(t, f.Complete(t.Context(), c))
	conflict(t, claim(t, f, otherContent("evt_1"), hookonce.Duplicate), true)
}

// pinnedWork is [hookonce.UnderLease]: what a failure leaves pinned is not run with other content, nor acknowledged.
func pinnedWork(t *testing.T, f *fixture) {
	for key, c := range map[string]struct {
		fails error
		calls bool
		bound bool
	}{
		"fails":                   {errDeclined, false, true},
		"gives up":                {hookonce.Permanent(errDeclined), false, true},
		"fails after a call":      {errDeclined, true, true},
		"is refused":              {hookonce.Forget(errDeclined), false, false},
		"is refused after a call": {hookonce.Forget(errDeclined), true, true},
	} {
		_, err := hookonce.UnderLease(t.Context(), f, pinning(key), func(ctx context.Context, _ hookonce.Claim) error {
			if c.calls {
				hookonce.PinRequest(ctx)
			}
			return c.fails
		})
		refuses(t, err, errDeclined)
		if c.bound {
			bound(t, f, key, 1)
		}
		runs := 0
		work := func(context.Context, hookonce.Claim) error { runs++; return nil }
		other, err := hookonce.UnderLease(t.Context(), f.another(), otherContent(key), work)
		if !c.bound {
			ok(t, err)
			continue
		}
		refuses(t, err, hookonce.ErrPinned)
		if runs != 0 || other.Verdict != hookonce.Pinned {
			t.Fatalf("%s: other content is answered %v and ran %d times", key, other.Verdict, runs)
		}
		ok(t, errorOf(hookonce.UnderLease(t.Context(), f, pinning(key), work)))
		if runs != 1 {
			t.Fatalf("%s: the same request ran %d times", key, runs)
		}
	}
}

var forget = hookonce.Failure{Err: errDeclined, Forget: true}

func forgottenFirst(t *testing.T, f *fixture) {
	for _, req := range []hookonce.ClaimRequest{request("evt_1"), pinning("evt_2")} {
		c := claim(t, f, req, hookonce.Acquired)
		ok(t, f.Fail(t.Context(), c, forget))
		absent(t, f, req.Ref)
		ok(t, f.Fail(t.Context(), c, forget))
		f.clock.Advance(lease / 2)
		again := claim(t, f, otherContent(req.Key), hookonce.Acquired)
		conflict(t, again, false)
		if again.Token != 1 || again.Pinned != 0 || !again.FirstSeen.Equal(f.clock.Now()) || again.LastError != "" {
			t.Fatalf("not all was forgotten: %#v", again)
		}
	}
}

func forgottenNothingElse(t *testing.T, f *fixture) {
	for name, failure := range map[string]hookonce.Failure{
		"pinned": {Err: errDeclined, Forget: true, Pin: true},
		"dead":   {Err: errDeclined, Forget: true, Dead: true},
	} {
		ok(t, f.Fail(t.Context(), claim(t, f, request(name), hookonce.Acquired), failure))
		stored(t, f, request(name).Ref, failure.State(), 1)
	}
	ok(t, f.Fail(t.Context(), claim(t, f, request("later"), hookonce.Acquired), hookonce.Failure{Err: errDeclined}))
	ok(t, f.Fail(t.Context(), claim(t, f, request("later"), hookonce.Acquired), forget))
	stored(t, f, request("later").Ref, hookonce.StateFailed, 2)

	done := claim(t, f, request("done"), hookonce.Acquired)
	ok(t, f.Complete(t.Context(), done))
	refuses(t, f.Fail(t.Context(), done, forget), hookonce.ErrStale)
	overtaken := claim(t, f, request("overtaken"), hookonce.Acquired)
	f.clock.Advance(lease)
	claim(t, f, request("overtaken"), hookonce.Acquired)
	refuses(t, f.Fail(t.Context(), overtaken, forget), hookonce.ErrStale)
	stored(t, f, overtaken.Ref, hookonce.StateProcessing, 2)
}

// forgottenAnew repeats a failure whose answer was lost, after somebody else has begun under the first token.
func forgottenAnew(t *testing.T, f *fixture) {
	first := claim(t, f, request("evt_1"), hookonce.Acquired)
	ok(t, f.Fail(t.Context(), first, forget))
	f.clock.Advance(lease / 2)
	second := claim(t, f, request("evt_1"), hookonce.Acquired)
	unchanged(t, f, first.Ref, func() { refuses(t, f.Fail(t.Context(), first, forget), hookonce.ErrStale) })
	ok(t, f.Complete(t.Context(), second))
}

func pinnedTxCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"an attempt that reached the outside", tracePinned[Tx]},
		{"however it ends", tracePinnedAlways[Tx]},
		{"for good", tracePinnedForGood[Tx]},
		{"not another attempt", tracePinnedOther[Tx]},
		{"and then the transaction goes on", claimTxPinned[Tx]},
		{"a first attempt can be forgotten", traceForgotten[Tx]},
	}
}

// reach runs a handler that reaches the outside and then ends as end says.
func (f *txFixture[Tx]) reach(t testing.TB, req hookonce.ClaimRequest, end func(context.CancelFunc) error) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx = hookonce.ContextWithPin(ctx, req.Ref)
	_, err := f.Within(ctx, req, func(tx Tx, _ hookonce.Claim) error {
		ok(t, f.db.Effect(ctx, tx, req.Key))
		hookonce.PinRequest(ctx)
		return end(cancel)
	})
	return err
}

// shut checks that other content than that of request is refused, in a transaction and under a lease.
func (f *txFixture[Tx]) shut(t testing.TB, key string, attempt int64) {
	t.Helper()
	bound(t, f, key, attempt)
	unchanged(t, f, request(key).Ref, func() {
		conflict(t, f.idle(t, f, otherContent(key), hookonce.Pinned), true)
	})
}

func tracePinned[Tx any](t *testing.T, f *txFixture[Tx]) {
	refuses(t, f.reach(t, request("evt_1"), declined), errDeclined)
	stored(t, f, request("evt_1").Ref, hookonce.StateFailed, 1)
	f.shut(t, "evt_1", 1)
	f.done(t, request("evt_1"), 2)
	conflict(t, f.idle(t, f, otherContent("evt_1"), hookonce.Duplicate), true)
	f.effects(t, map[string]int{"evt_1": 1})
}

func tracePinnedAlways[Tx any](t *testing.T, f *txFixture[Tx]) {
	for name, end := range map[string]func(context.CancelFunc) error{
		"permanent": func(context.CancelFunc) error { return hookonce.Permanent(errDeclined) },
		"forgotten": func(context.CancelFunc) error { return hookonce.Forget(errDeclined) },
		"cancelled": func(cancel context.CancelFunc) error { cancel(); return nil },
		"panicked":  func(context.CancelFunc) error { panic(errDeclined) },
		"exited":    func(context.CancelFunc) error { runtime.Goexit(); return nil },
	} {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			recovered(func() { _ = f.reach(t, request(name), end) })
		}()
		<-ended
		f.shut(t, name, 1)
	}
	f.effects(t, nil)
}

func tracePinnedForGood[Tx any](t *testing.T, f *txFixture[Tx]) {
	refuses(t, f.reach(t, request("evt_1"), declined), errDeclined)
	refuses(t, errorOf(f.run(t.Context(), request("evt_1"), errDeclined)), errDeclined)
	stored(t, f, request("evt_1").Ref, hookonce.StateFailed, 2)
	f.shut(t, "evt_1", 1)
}

// tracePinnedOther reaches the outside in the name of somebody else's attempt.
func tracePinnedOther[Tx any](t *testing.T, f *txFixture[Tx]) {
	ctx := hookonce.ContextWithPin(t.Context(), request("order").Ref)
	_, err := f.Within(ctx, request("evt_1"), func(Tx, hookonce.Claim) error {
		hookonce.PinRequest(ctx)
		return errDeclined
	})
	refuses(t, err, errDeclined)
	if c := stored(t, f, request("evt_1").Ref, hookonce.StateFailed, 1); c.Pinned != 0 {
		t.Fatalf("it is pinned: %#v", c)
	}
	f.done(t, otherContent("evt_1"), 2)
}

func claimTxPinned[Tx any](t *testing.T, f *txFixture[Tx]) {
	refuses(t, f.reach(t, request("evt_1"), declined), errDeclined)
	tx, err := f.db.Begin(t.Context())
	ok(t, err)
	c, err := f.ClaimTx(t.Context(), tx, otherContent("evt_1"))
	refuses(t, err, hookonce.ErrPinned)
	verdict(t, c, hookonce.Pinned)
	conflict(t, c, true)
	ok(t, f.db.Effect(t.Context(), tx, "of its own"))
	ok(t, f.db.Commit(t.Context(), tx))
	f.inTx(t, request("evt_1"), hookonce.Acquired, f.db.Commit)
	f.effects(t, map[string]int{"of its own": 1, "evt_1": 1})
}

func traceForgotten[Tx any](t *testing.T, f *txFixture[Tx]) {
	for range 2 {
		refuses(t, errorOf(f.run(t.Context(), request("evt_1"), hookonce.Forget(errDeclined))), errDeclined)
		absent(t, f, request("evt_1").Ref)
	}
	f.effects(t, nil)
	refuses(t, errorOf(f.run(t.Context(), request("evt_1"), hookonce.Permanent(hookonce.Forget(errDeclined)))), errDeclined)
	stored(t, f, request("evt_1").Ref, hookonce.StateDead, 1)
	refuses(t, errorOf(f.run(t.Context(), request("evt_1"), hookonce.Forget(errDeclined))), errDeclined)
	stored(t, f, request("evt_1").Ref, hookonce.StateFailed, 2)
	f.done(t, request("evt_1"), 3)
}

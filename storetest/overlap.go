package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/hookonce/hookonce"
)

// overlapCases are about stores that decide at the commit: in each of them something happens to the key while a handler runs.
func overlapCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"of copies one has its effect, and the others are duplicates", overlapCopies[Tx]},
		{"a duplicate has left nothing, and says so if its content is another", overlapConflict[Tx]},
		{"a copy that failed is in nobody's way", overlapFailed[Tx]},
		{"a copy that was given up is in nobody's way", overlapDead[Tx]},
		{"a first failure that was forgotten is in nobody's way", overlapForgotten[Tx]},
		{"whoever took a lease keeps it", overlapLease[Tx]},
		{"what was pinned to other content stays so", overlapPinned[Tx]},
		{"the next copy runs after a rollback", waitRolledBack[Tx]},
		{"a claim in the caller's transaction is lost at the commit", overlapClaimTx[Tx]},
		{"a second claim that is lost takes the whole transaction with it", overlapSecondClaim[Tx]},
		{"a purge lets the claim begin anew", overlapPurge[Tx]},
	}
}

// during runs meanwhile while the handler for the request runs, which then returns nil, and returns what came of it.
func (f *txFixture[Tx]) during(t testing.TB, req hookonce.ClaimRequest, meanwhile func()) outcome {
	t.Helper()
	release, result := f.hold(t, req)
	meanwhile()
	release <- nil
	return <-result
}

func overlapCopies[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	o := f.during(t, req, func() { f.done(t, req, 1) })
	ok(t, o.err)
	verdict(t, o.claim, hookonce.Duplicate)
	conflict(t, o.claim, false)
	stored(t, f, req.Ref, hookonce.StateDone, 1)
	f.effects(t, map[string]int{"evt_1": 1})
}

func overlapConflict[Tx any](t *testing.T, f *txFixture[Tx]) {
	var first hookonce.Claim
	o := f.during(t, otherContent("evt_1"), func() {
		f.done(t, request("evt_1"), 1)
		first = lookup(t, f, request("evt_1").Ref)
	})
	ok(t, o.err)
	verdict(t, o.claim, hookonce.Duplicate)
	conflict(t, o.claim, true)
	same(t, "the claim of the one that committed", lookup(t, f, request("evt_1").Ref), first)
	f.effects(t, map[string]int{"evt_1": 1})
}

// overlapAttempt has a copy end with failure while another one runs, which must get through under the given token.
func overlapAttempt[Tx any](t *testing.T, f *txFixture[Tx], failure error, token int64) {
	req := request("evt_1")
	o := f.during(t, req, func() { refuses(t, errorOf(f.run(t.Context(), req, failure)), errDeclined) })
	ok(t, o.err)
	verdict(t, o.claim, hookonce.Acquired)
	if o.claim.Token != token {
		t.Fatalf("the claim has token %d, want %d", o.claim.Token, token)
	}
	stored(t, f, req.Ref, hookonce.StateDone, token)
	f.effects(t, map[string]int{"evt_1": 1})
}

func overlapFailed[Tx any](t *testing.T, f *txFixture[Tx]) { overlapAttempt(t, f, errDeclined, 2) }

func overlapDead[Tx any](t *testing.T, f *txFixture[Tx]) {
	overlapAttempt(t, f, hookonce.Permanent(errDeclined), 2)
}

func overlapForgotten[Tx any](t *testing.T, f *txFixture[Tx]) {
	overlapAttempt(t, f, hookonce.Forget(errDeclined), 1)
}

func overlapLease[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	var held hookonce.Claim
	o := f.during(t, req, func() { held = claim(t, f, req, hookonce.Acquired) })
	refuses(t, o.err, hookonce.ErrBusy)
	verdict(t, o.claim, hookonce.Busy)
	stored(t, f, req.Ref, hookonce.StateProcessing, 1)
	f.effects(t, nil)
	ok(t, f.Complete(t.Context(), held))
}

func overlapPinned[Tx any](t *testing.T, f *txFixture[Tx]) {
	o := f.during(t, otherContent("evt_1"), func() { refuses(t, f.reach(t, request("evt_1"), declined), errDeclined) })
	refuses(t, o.err, hookonce.ErrPinned)
	verdict(t, o.claim, hookonce.Pinned)
	f.shut(t, "evt_1", 1)
	f.effects(t, nil)
}

// holding claims the keys in a transaction of the caller's, runs meanwhile, and commits.
func (f *txFixture[Tx]) holding(t testing.TB, keys []string, meanwhile func()) error {
	t.Helper()
	tx, err := f.db.Begin(t.Context())
	ok(t, err)
	for _, key := range keys {
		c, err := f.ClaimTx(t.Context(), tx, request(key))
		ok(t, err)
		verdict(t, c, hookonce.Acquired)
	}
	ok(t, f.db.Effect(t.Context(), tx, "held"))
	meanwhile()
	return f.db.Commit(t.Context(), tx)
}

func overlapClaimTx[Tx any](t *testing.T, f *txFixture[Tx]) {
	refuses(t, f.holding(t, []string{"evt_1"}, func() { f.done(t, request("evt_1"), 1) }), hookonce.ErrBusy)
	f.effects(t, map[string]int{"evt_1": 1})
	ok(t, f.holding(t, []string{"evt_2"}, func() { refuses(t, errorOf(f.run(t.Context(), request("evt_2"), errDeclined)), errDeclined) }))
	stored(t, f, request("evt_2").Ref, hookonce.StateDone, 2)
	f.effects(t, map[string]int{"evt_1": 1, "held": 1})
}

func overlapSecondClaim[Tx any](t *testing.T, f *txFixture[Tx]) {
	_, err := f.Within(t.Context(), request("order"), func(tx Tx, _ hookonce.Claim) error {
		c, err := f.ClaimTx(t.Context(), tx, request("payment"))
		ok(t, err)
		verdict(t, c, hookonce.Acquired)
		f.done(t, request("payment"), 1)
		return f.db.Effect(t.Context(), tx, "order")
	})
	refuses(t, err, hookonce.ErrBusy)
	stored(t, f, request("order").Ref, hookonce.StateFailed, 1)
	f.effects(t, map[string]int{"payment": 1})
}

func overlapPurge[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	refuses(t, errorOf(f.run(t.Context(), req, errDeclined)), errDeclined)
	f.clock.Advance(lease)
	o := f.during(t, req, func() {
		purgeOf(t, f, hookonce.PurgeRequest{Kind: hookonce.PurgeFailed, Before: f.clock.Now(), Limit: 10}, 1)
	})
	ok(t, o.err)
	stored(t, f, req.Ref, hookonce.StateDone, 1)
	f.effects(t, map[string]int{"evt_1": 1})
}

// overlapGuardCases are about what a guard was told, and somebody changes before the commit.
func overlapGuardCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"a version", overlapNewer[Tx]},
		{"a move", overlapTransition[Tx]},
		{"and then the handler's work is undone, and is a failure", overlapGuardWithin[Tx]},
	}
}

// overtaken asks a guard in a transaction that then has an effect, runs meanwhile, and checks that the commit fails and leaves
// nothing, and that the error claims no more than that.
func (f *txFixture[Tx]) overtaken(t testing.TB, ask func(context.Context, Tx) error, meanwhile func()) {
	t.Helper()
	before, err := f.db.Effects(t.Context())
	ok(t, err)
	err = f.inside(t, func(tx Tx) error {
		ok(t, ask(t.Context(), tx))
		meanwhile()
		return f.db.Effect(t.Context(), tx, "overtaken")
	})
	if err == nil || isAnswer(err) || errors.Is(err, hookonce.ErrUnknownOutcome) {
		t.Fatalf("the commit's error is %v, want one that says that nothing was written", err)
	}
	f.effects(t, before)
}

func overlapNewer[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.newer(t, "known", 3, true)
	for _, resource := range []string{"known", "fresh"} {
		f.overtaken(t, f.versions(t, resource, hookonce.Version(5)), func() { f.newer(t, resource, 6, true) })
		f.newer(t, resource, 5, false)
	}
	// Also where it was told that it is old.
	f.overtaken(t, f.versions(t, "known", hookonce.Version(2)), func() { f.newer(t, "known", 7, true) })
}

func overlapTransition[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.moves(t, "known", "", "open", "open", hookonce.Moved)
	f.overtaken(t, f.transitions(t, "known", "open", "paid"), func() { f.moves(t, "known", "open", "void", "void", hookonce.Moved) })
	f.overtaken(t, f.transitions(t, "fresh", "", "open"), func() { f.moves(t, "fresh", "", "void", "void", hookonce.Moved) })
	// Also where it was told that there is nothing to do, or that it cannot be.
	f.overtaken(t, f.transitions(t, "known", "open", "void"), func() { f.moves(t, "known", "void", "open", "open", hookonce.Moved) })
	f.overtaken(t, f.transitions(t, "known", "paid", "void"), func() { f.moves(t, "known", "open", "paid", "paid", hookonce.Moved) })
}

func overlapGuardWithin[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	_, err := f.Within(t.Context(), req, func(tx Tx, _ hookonce.Claim) error {
		ok(t, f.versions(t, "order-1", hookonce.Version(5))(t.Context(), tx))
		f.newer(t, "order-1", 6, true)
		return f.db.Effect(t.Context(), tx, req.Key)
	})
	if err == nil || isAnswer(err) {
		t.Fatalf("the error is %v", err)
	}
	stored(t, f, req.Ref, hookonce.StateFailed, 1)
	f.effects(t, nil)
	f.done(t, req, 2)
}

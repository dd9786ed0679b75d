package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

func claimTxCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"the claim is done when the caller commits", claimTxCommits[Tx]},
		{"the claim is gone when the caller rolls back", claimTxRollsBack[Tx]},
		{"a failed claim is failed again after a rollback", claimTxRestores[Tx]},
		{"a duplicate is a duplicate", claimTxDuplicate[Tx]},
		{"a transaction sees its own claims", claimTxTwice[Tx]},
		{"a lease elsewhere is busy until it expires", claimTxBusy[Tx]},
		{"a claim without a deadline is never stolen", claimTxUnlimited[Tx]},
		{"other content is a conflict", claimTxConflict[Tx]},
		{"no key, no claim", claimTxUnkeyed[Tx]},
	}
}

// inTx begins a transaction, claims in it, and ends it with end.
func (f *txFixture[Tx]) inTx(t testing.TB, req hookonce.ClaimRequest, want hookonce.Verdict, end func(context.Context, Tx) error) hookonce.Claim {
	t.Helper()
	tx, err := f.db.Begin(t.Context())
	ok(t, err)
	c, err := f.ClaimTx(t.Context(), tx, req)
	if !errors.Is(err, want.Err()) {
		_ = f.db.Rollback(t.Context(), tx)
		t.Fatalf("ClaimTx: %v, want %v", err, want.Err())
	}
	if want == hookonce.Acquired || want == hookonce.Unkeyed {
		ok(t, f.db.Effect(t.Context(), tx, req.Key))
	}
	ok(t, end(t.Context(), tx))
	verdict(t, c, want)
	return c
}

func claimTxCommits[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	want := hookonce.Claim{
		Ref: req.Ref, Verdict: hookonce.Acquired, State: hookonce.StateDone, Token: 1,
		Type: req.Type, Digest: req.Digest, FirstSeen: f.clock.Now(), UpdatedAt: f.clock.Now(),
	}
	same(t, "claim", f.inTx(t, req, hookonce.Acquired, f.db.Commit), want)
	want.Verdict = 0
	same(t, "stored claim", lookup(t, f, req.Ref), want)
	f.effects(t, map[string]int{"evt_1": 1})
}

func claimTxRollsBack[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	f.inTx(t, req, hookonce.Acquired, f.db.Rollback)
	absent(t, f, req.Ref)
	f.effects(t, nil)
	f.inTx(t, req, hookonce.Acquired, f.db.Commit)
	stored(t, f, req.Ref, hookonce.StateDone, 1)
}

func claimTxRestores[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	ok(t, f.Fail(t.Context(), claim(t, f, req, hookonce.Acquired), hookonce.Failure{Err: errDeclined}))
	unchanged(t, f, req.Ref, func() {
		if c := f.inTx(t, req, hookonce.Acquired, f.db.Rollback); c.Token != 2 {
			t.Fatalf("token is %d, want 2", c.Token)
		}
	})
	f.inTx(t, req, hookonce.Acquired, f.db.Commit)
	stored(t, f, req.Ref, hookonce.StateDone, 2)
}

func claimTxDuplicate[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.done(t, request("evt_1"), 1)
	unchanged(t, f, request("evt_1").Ref, func() {
		f.inTx(t, request("evt_1"), hookonce.Duplicate, f.db.Commit)
	})
}

func claimTxTwice[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	tx, err := f.db.Begin(t.Context())
	ok(t, err)
	for _, want := range []hookonce.Verdict{hookonce.Acquired, hookonce.Duplicate} {
		c, err := f.ClaimTx(t.Context(), tx, req)
		ok(t, err)
		verdict(t, c, want)
	}
	ok(t, f.db.Commit(t.Context(), tx))
	stored(t, f, req.Ref, hookonce.StateDone, 1)
}

func claimTxBusy[Tx any](t *testing.T, f *txFixture[Tx]) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	unchanged(t, f, c.Ref, func() { f.inTx(t, request("evt_1"), hookonce.Busy, f.db.Commit) })
	f.clock.Advance(lease)
	f.inTx(t, request("evt_1"), hookonce.Acquired, f.db.Commit)
	refuses(t, f.Complete(t.Context(), c), hookonce.ErrStale)
	stored(t, f, c.Ref, hookonce.StateDone, 2)
}

func claimTxUnlimited[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	req.Lease = 0
	claim(t, f, req, hookonce.Acquired)
	f.clock.Advance(10 * 365 * 24 * time.Hour)
	unchanged(t, f, req.Ref, func() { f.inTx(t, req, hookonce.Busy, f.db.Commit) })
}

func claimTxConflict[Tx any](t *testing.T, f *txFixture[Tx]) {
	ok(t, f.Fail(t.Context(), claim(t, f, request("evt_1"), hookonce.Acquired), hookonce.Failure{}))
	conflict(t, f.inTx(t, otherContent("evt_1"), hookonce.Acquired, f.db.Commit), true)
	conflict(t, f.inTx(t, otherContent("evt_1"), hookonce.Duplicate, f.db.Commit), false)
	conflict(t, f.inTx(t, request("evt_1"), hookonce.Duplicate, f.db.Commit), true)
}

func claimTxUnkeyed[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.inTx(t, request(""), hookonce.Unkeyed, f.db.Commit)
	absent(t, f, request("").Ref)
	f.effects(t, map[string]int{"": 1})
}

package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/hookonce/hookonce"
)

func faultCases[Tx any]() []txCase[Tx] {
	var cases []txCase[Tx]
	for name, persisted := range map[string]bool{"failed, not persisted": false, "failed, but persisted": true} {
		cases = append(cases,
			txCase[Tx]{"commit " + name, func(t *testing.T, f *txFixture[Tx]) { faultCommit(t, f, persisted) }},
			txCase[Tx]{"commit of a second attempt " + name, func(t *testing.T, f *txFixture[Tx]) { faultCommitAgain(t, f, persisted) }},
			txCase[Tx]{"commit without a key " + name, func(t *testing.T, f *txFixture[Tx]) { faultCommitUnkeyed(t, f, persisted) }},
			txCase[Tx]{"claim " + name, func(t *testing.T, f *txFixture[Tx]) { faultClaim(t, f, persisted) }},
			txCase[Tx]{"complete " + name, func(t *testing.T, f *txFixture[Tx]) { faultComplete(t, f, persisted) }},
			txCase[Tx]{"fail " + name, func(t *testing.T, f *txFixture[Tx]) { faultFail(t, f, persisted) }},
			txCase[Tx]{"commit of an attempt that reached the outside " + name, func(t *testing.T, f *txFixture[Tx]) { faultCommitPinned(t, f, persisted) }},
			txCase[Tx]{"forgetting " + name, func(t *testing.T, f *txFixture[Tx]) { faultForget(t, f, persisted) }},
		)
	}
	return cases
}

// unknown runs req while the commit fails, and checks that the outcome is called unknown.
func (f *txFixture[Tx]) unknown(t testing.TB, req hookonce.ClaimRequest, persisted bool) {
	t.Helper()
	f.db.FailCommit(persisted)
	_, err := f.run(t.Context(), req, nil)
	refuses(t, err, hookonce.ErrUnknownOutcome)
}

// faultCommit checks that the sender's retry reads the truth: it runs the handler if the first
// commit did not persist, and is a duplicate if it did.
func faultCommit[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	req := request("evt_1")
	f.unknown(t, req, persisted)
	f.retry(t, req, persisted)
}

func faultCommitAgain[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	req := request("evt_1")
	_, err := f.run(t.Context(), req, errDeclined)
	refuses(t, err, errDeclined)
	f.unknown(t, req, persisted)
	f.retry(t, req, persisted)
}

func (f *txFixture[Tx]) retry(t testing.TB, req hookonce.ClaimRequest, persisted bool) {
	t.Helper()
	c, err := f.run(t.Context(), req, nil)
	ok(t, err)
	verdict(t, c, map[bool]hookonce.Verdict{true: hookonce.Duplicate, false: hookonce.Acquired}[persisted])
	f.effects(t, map[string]int{req.Key: 1})
	stored(t, f, req.Ref, hookonce.StateDone, c.Token)
}

// faultCommitUnkeyed shows the price of having no key: the retry cannot know.
func faultCommitUnkeyed[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	f.unknown(t, request(""), persisted)
	c, err := f.run(t.Context(), request(""), nil)
	ok(t, err)
	verdict(t, c, hookonce.Unkeyed)
	f.effects(t, map[string]int{"": map[bool]int{true: 2, false: 1}[persisted]})
}

// failing runs write while the next write fails, and checks that its error claims no knowledge.
// It reports false where the store's test has no such fault.
func (f *txFixture[Tx]) failing(t testing.TB, persisted bool, write func() error) bool {
	t.Helper()
	if f.db.FailWrite == nil {
		return false
	}
	f.db.FailWrite(persisted)
	err := write()
	if err == nil {
		t.Fatal("a write that failed was reported as a success")
	}
	for _, known := range []error{hookonce.ErrStale, hookonce.ErrNotFound, hookonce.ErrBusy, hookonce.ErrInvalidRef} {
		if errors.Is(err, known) {
			t.Fatalf("a write that failed was reported as %v", err)
		}
	}
	return true
}

// faultClaim checks that a claim whose answer was lost is not lost: its lease runs out.
func faultClaim[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	req := request("evt_1")
	if !f.failing(t, persisted, func() error { _, err := f.Claim(t.Context(), req); return err }) {
		return
	}
	if !persisted {
		absent(t, f, req.Ref)
		claim(t, f, req, hookonce.Acquired)
		return
	}
	claim(t, f, req, hookonce.Busy)
	f.clock.Advance(lease)
	if c := claim(t, f, req, hookonce.Acquired); c.Token != 2 {
		t.Fatalf("token is %d, want 2", c.Token)
	}
}

func faultComplete[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	if !f.failing(t, persisted, func() error { return f.Complete(t.Context(), c) }) {
		return
	}
	stored(t, f, c.Ref, map[bool]hookonce.State{true: hookonce.StateDone, false: hookonce.StateProcessing}[persisted], 1)
	ok(t, f.Complete(t.Context(), c))
	stored(t, f, c.Ref, hookonce.StateDone, 1)
}

func faultFail[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	failure := hookonce.Failure{Err: errDeclined}
	if !f.failing(t, persisted, func() error { return f.Fail(t.Context(), c, failure) }) {
		return
	}
	stored(t, f, c.Ref, map[bool]hookonce.State{true: hookonce.StateFailed, false: hookonce.StateProcessing}[persisted], 1)
	ok(t, f.Fail(t.Context(), c, failure))
	stored(t, f, c.Ref, hookonce.StateFailed, 1)
}

// faultCommitPinned checks that an attempt whose outcome is unknown is bound to its content, unless it is done.
func faultCommitPinned[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	req := request("evt_1")
	f.db.FailCommit(persisted)
	refuses(t, f.reach(t, req, func(context.CancelFunc) error { return nil }), hookonce.ErrUnknownOutcome)
	f.idle(t, f, otherContent("evt_1"), map[bool]hookonce.Verdict{true: hookonce.Duplicate, false: hookonce.Pinned}[persisted])
	c, err := f.run(t.Context(), req, nil)
	ok(t, err)
	verdict(t, c, map[bool]hookonce.Verdict{true: hookonce.Duplicate, false: hookonce.Acquired}[persisted])
	f.effects(t, map[string]int{req.Key: 1})
}

// faultForget checks that a failure can be repeated although nothing may be left of the claim.
func faultForget[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	c := claim(t, f, pinning("evt_1"), hookonce.Acquired)
	if !f.failing(t, persisted, func() error { return f.Fail(t.Context(), c, forget) }) {
		return
	}
	ok(t, f.Fail(t.Context(), c, forget))
	absent(t, f, c.Ref)
}

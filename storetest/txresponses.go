package storetest

import (
	"errors"
	"testing"

	"github.com/hookonce/hookonce"
)

// RunTxResponses checks that a store keeps responses in the transaction that holds the claim, and, like
// [RunResponses], in lease mode. The stores that cfg opens must implement [hookonce.TxResponseStore].
func RunTxResponses[Tx any](t *testing.T, cfg TxConfig[Tx]) {
	RunResponses(t, cfg.Lease())
	cfg.cases(t, "tx responses", txResponseCases[Tx]())
}

func txResponseCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"commits with the claim and the effect", keepCommits[Tx]},
		{"is seen by nobody before the commit", keepHidden[Tx]},
		{"rolls back with the claim and the effect", keepRollsBack[Tx]},
		{"is that of the attempt that succeeded", keepRedriven[Tx]},
		{"is the last one that the attempt kept", keepReplaces[Tx]},
		{"survives byte for byte", keepBytes[Tx]},
		{"needs a claim", keepMissing[Tx]},
		{"needs a claim that is done", keepNotDone[Tx]},
		{"needs a key that can be stored", keepInvalid[Tx]},
		{"works in a transaction of the caller's", keepClaimTx[Tx]},
		{"an ended context keeps nothing", keepCancelled[Tx]},
		{"a changed request after an outbound call is refused", changedRequestAfterOutboundCall[Tx]},
	}
}

// keeper returns s as a store that keeps responses in transactions.
func keeper[Tx any](t testing.TB, s hookonce.TxStore[Tx]) hookonce.TxResponseStore[Tx] {
	t.Helper()
	k, ok := s.(hookonce.TxResponseStore[Tx])
	if !ok {
		t.Fatalf("%T is no hookonce.TxResponseStore", s)
	}
	return k
}

// answer runs a handler that has its effect, keeps a response and returns failure.
func (f *txFixture[Tx]) answer(t testing.TB, req hookonce.ClaimRequest, r hookonce.Response, failure error) (hookonce.Claim, error) {
	return f.Within(t.Context(), req, func(tx Tx, c hookonce.Claim) error {
		return errors.Join(f.db.Effect(t.Context(), tx, req.Key), keeper(t, f.TxStore).KeepResponse(t.Context(), tx, c.Ref, r), failure)
	})
}

func keepCommits[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	_, err := f.answer(t, req, response("one"), nil)
	ok(t, err)
	responds(t, f.another(0), req.Ref, response("one"))
	f.effects(t, map[string]int{"evt_1": 1})
	f.idle(t, f, req, hookonce.Duplicate)
	responds(t, f, req.Ref, response("one"))
}

func keepHidden[Tx any](t *testing.T, f *txFixture[Tx]) {
	req, other := request("evt_1"), f.another(0)
	_, err := f.Within(t.Context(), req, func(tx Tx, c hookonce.Claim) error {
		ok(t, keeper(t, f.TxStore).KeepResponse(t.Context(), tx, c.Ref, response("one")))
		silent(t, other, req.Ref)
		return nil
	})
	ok(t, err)
	responds(t, other, req.Ref, response("one"))
}

func keepRollsBack[Tx any](t *testing.T, f *txFixture[Tx]) {
	for _, failure := range []error{errDeclined, hookonce.Permanent(errDeclined)} {
		_, err := f.answer(t, request("evt_1"), response("failed"), failure)
		refuses(t, err, errDeclined)
		silent(t, f, request("evt_1").Ref)
	}
	recovered(func() {
		_, _ = f.Within(t.Context(), request("evt_2"), func(tx Tx, c hookonce.Claim) error {
			ok(t, keeper(t, f.TxStore).KeepResponse(t.Context(), tx, c.Ref, response("panicked")))
			panic(errDeclined)
		})
	})
	silent(t, f, request("evt_2").Ref)
	f.effects(t, nil)
}

func keepRedriven[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	_, err := f.answer(t, req, response("first attempt"), errDeclined)
	refuses(t, err, errDeclined)
	_, err = f.answer(t, req, response("second attempt"), nil)
	ok(t, err)
	responds(t, f, req.Ref, response("second attempt"))
	stored(t, f, req.Ref, hookonce.StateDone, 2)
}

func keepReplaces[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	_, err := f.Within(t.Context(), req, func(tx Tx, c hookonce.Claim) error {
		for _, text := range []string{"one", "two", "three"} {
			ok(t, keeper(t, f.TxStore).KeepResponse(t.Context(), tx, c.Ref, response(text)))
		}
		return nil
	})
	ok(t, err)
	responds(t, f, req.Ref, response("three"))
}

func keepBytes[Tx any](t *testing.T, f *txFixture[Tx]) {
	for name, r := range awkwardResponses() {
		_, err := f.answer(t, request(name), r, nil)
		ok(t, err)
		responds(t, f, request(name).Ref, r)
	}
}

func keepMissing[Tx any](t *testing.T, f *txFixture[Tx]) {
	for _, ref := range []hookonce.Ref{request("evt_1").Ref, request("").Ref} {
		err := f.inside(t, func(tx Tx) error {
			return keeper(t, f.TxStore).KeepResponse(t.Context(), tx, ref, response("of nothing"))
		})
		refuses(t, err, hookonce.ErrNotFound)
		silent(t, f, ref)
	}
}

// keepNotDone: nobody can leave a response under a key that a worker holds under a lease, or that failed.
func keepNotDone[Tx any](t *testing.T, f *txFixture[Tx]) {
	req, held := request("evt_1"), claim(t, f, request("evt_1"), hookonce.Acquired)
	failed := claim(t, f, request("evt_2"), hookonce.Acquired)
	ok(t, f.Fail(t.Context(), failed, hookonce.Failure{Err: errDeclined}))
	for _, ref := range []hookonce.Ref{held.Ref, failed.Ref} {
		err := f.inside(t, func(tx Tx) error {
			return keeper(t, f.TxStore).KeepResponse(t.Context(), tx, ref, response("a stranger's"))
		})
		refuses(t, err, hookonce.ErrNotFound)
		silent(t, f, ref)
	}
	ok(t, keeper(t, f.TxStore).CompleteWith(t.Context(), held, response("mine")))
	responds(t, f, req.Ref, response("mine"))
}

func keepInvalid[Tx any](t *testing.T, f *txFixture[Tx]) {
	for name, ref := range invalidRefs() {
		err := f.inside(t, func(tx Tx) error {
			return keeper(t, f.TxStore).KeepResponse(t.Context(), tx, ref, response("of nothing"))
		})
		if !errors.Is(err, hookonce.ErrInvalidRef) && !errors.Is(err, hookonce.ErrNotFound) {
			t.Fatalf("%s: error is %v, want ErrInvalidRef or ErrNotFound", name, err)
		}
	}
}

func keepClaimTx[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	keep := func(text string, end error) error {
		return f.inside(t, func(tx Tx) error {
			c, err := f.ClaimTx(t.Context(), tx, req)
			ok(t, err)
			verdict(t, c, hookonce.Acquired)
			return errors.Join(keeper(t, f.TxStore).KeepResponse(t.Context(), tx, req.Ref, response(text)), end)
		})
	}
	refuses(t, keep("first", errDeclined), errDeclined)
	silent(t, f, req.Ref)
	ok(t, keep("second", nil))
	responds(t, f, req.Ref, response("second"))
}

func keepCancelled[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	_, err := f.Within(t.Context(), req, func(tx Tx, c hookonce.Claim) error {
		if err := keeper(t, f.TxStore).KeepResponse(ended(t), tx, c.Ref, response("never")); err != nil {
			return errDeclined
		}
		t.Error("kept under a context that had ended")
		return nil
	})
	refuses(t, err, errDeclined)
	silent(t, f, req.Ref)
}

package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"golang.org/x/sync/errgroup"
)

// RunResponses checks that a store in lease mode keeps the responses of finished work. The stores that cfg
// opens must implement [hookonce.ResponseStore].
func RunResponses(t *testing.T, cfg Config) {
	cfg.cases(t, "responses", responseCases())
	cfg.cases(t, "concurrent responses", concurrentResponseCases())
	if cfg.MaxResponse > 0 {
		cfg.cases(t, "large responses", []leaseCase{{"are refused, and nothing is recorded", responseTooLarge}})
	}
}

func responseCases() []leaseCase {
	return []leaseCase{
		{"is kept when the work is done", responseKept},
		{"survives byte for byte", responseBytes},
		{"is that of the first completion", responseRepeated},
		{"is that of the attempt that succeeded", responseRedriven},
		{"works after the lease, if nobody took over", responseLate},
		{"needs the current token", responseStale},
		{"does not apply to failed work", responseFailed},
		{"needs a claim", responseMissing},
		{"is there only where one was kept", responseAbsent},
		{"belongs to one key of one source", responseScope},
		{"goes with its claim", responsePurged},
		{"an ended context keeps nothing", responseCancelled},
	}
}

func concurrentResponseCases() []leaseCase {
	return []leaseCase{
		{"whoever sees the work done finds the response", raceResponseVisible},
		{"a completion and a takeover never both leave a response", raceResponseTakeover},
	}
}

// responds checks what is kept under ref.
func responds(t testing.TB, s hookonce.Store, ref hookonce.Ref, want hookonce.Response) {
	t.Helper()
	got, err := keeps(t, s).Response(t.Context(), ref)
	ok(t, err)
	if !bytes.Equal(got.Body, want.Body) {
		t.Fatalf("the body of %s is %.100q of %d bytes, want %.100q of %d", ref, got.Body, len(got.Body), want.Body, len(want.Body))
	}
	got.Body, want.Body = nil, nil
	same(t, fmt.Sprintf("response of %s", ref), got, want)
}

// silent checks that nothing is kept under ref.
func silent(t testing.TB, s hookonce.Store, ref hookonce.Ref) {
	t.Helper()
	r, err := keeps(t, s).Response(t.Context(), ref)
	if !errors.Is(err, hookonce.ErrNotFound) && !errors.Is(err, hookonce.ErrInvalidRef) {
		t.Fatalf("Response(%s) = %+v, %v; want ErrNotFound", ref, r, err)
	}
}

func responseKept(t *testing.T, f *fixture) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	f.clock.Advance(time.Second)
	ok(t, keeps(t, f).CompleteWith(t.Context(), c, response("one")))
	want := c
	want.Verdict, want.State, want.Lease, want.UpdatedAt = 0, hookonce.StateDone, time.Time{}, f.clock.Now()
	same(t, "stored claim", lookup(t, f, c.Ref), want)
	responds(t, f.another(), c.Ref, response("one"))
	claim(t, f, request("evt_1"), hookonce.Duplicate)
	responds(t, f.another(), c.Ref, response("one"))
}

// awkwardResponses are those that a store could change; limit is how large they may be, 0: as large as they are.
func awkwardResponses(limit int) map[string]hookonce.Response {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	large := bytes.Repeat(all, 1<<12)
	if limit > 0 {
		large = large[:min(limit, len(large))]
	}
	return map[string]hookonce.Response{
		"empty":          {Status: http.StatusNoContent},
		"empty body":     {Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte{}},
		"every byte":     {Status: http.StatusOK, Body: all},
		"large":          {Status: http.StatusOK, Body: large},
		"strange status": {Status: 599, Body: []byte("?")},
		"many values": {Status: http.StatusOK, Header: http.Header{
			"Link": {"<b>; rel=next", "<a>; rel=prev", "<b>; rel=next"}, "Warning": {"", " ", "last"},
		}},
		"odd values": {Status: http.StatusOK, Header: http.Header{
			"X-Odd": {"caf\xe9", "\x80\xff", "\ttabs\t", " spaces ", "a: b", "{}\"\\'%$1@1", "\U0001F512"},
		}},
	}
}

func responseBytes(t *testing.T, f *fixture) {
	for name, r := range awkwardResponses(f.maxResponse) {
		c := claim(t, f, request(name), hookonce.Acquired)
		ok(t, keeps(t, f).CompleteWith(t.Context(), c, r))
		responds(t, f, c.Ref, r)
	}
}

func responseRepeated(t *testing.T, f *fixture) {
	c := answered(t, f, "evt_1", "first")
	f.clock.Advance(time.Second)
	unchanged(t, f, c.Ref, func() {
		ok(t, keeps(t, f).CompleteWith(t.Context(), c, response("second")))
		ok(t, f.Complete(t.Context(), c))
	})
	responds(t, f, c.Ref, response("first"))

	c = claim(t, f, request("evt_2"), hookonce.Acquired)
	ok(t, f.Complete(t.Context(), c))
	ok(t, keeps(t, f).CompleteWith(t.Context(), c, response("too late")))
	silent(t, f, c.Ref)
}

func responseRedriven(t *testing.T, f *fixture) {
	for _, dead := range []bool{false, true} {
		key := fmt.Sprint("evt_", dead)
		c := claim(t, f, request(key), hookonce.Acquired)
		ok(t, f.Fail(t.Context(), c, hookonce.Failure{Dead: dead}))
		answered(t, f, key, "second attempt")
		responds(t, f, c.Ref, response("second attempt"))
		stored(t, f, c.Ref, hookonce.StateDone, 2)
	}
}

func responseLate(t *testing.T, f *fixture) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	f.clock.Advance(2 * lease)
	ok(t, keeps(t, f).CompleteWith(t.Context(), c, response("late")))
	responds(t, f, c.Ref, response("late"))
}

func responseStale(t *testing.T, f *fixture) {
	old := claim(t, f, request("evt_1"), hookonce.Acquired)
	f.clock.Advance(2 * lease)
	current := claim(t, f, request("evt_1"), hookonce.Acquired)
	stale := func() {
		for _, token := range []int64{old.Token, 0, -1, current.Token + 1} {
			c := current
			c.Token = token
			refuses(t, keeps(t, f).CompleteWith(t.Context(), c, response("stale")), hookonce.ErrStale)
		}
	}
	unchanged(t, f, old.Ref, stale)
	silent(t, f, old.Ref)
	ok(t, keeps(t, f).CompleteWith(t.Context(), current, response("current")))
	unchanged(t, f, old.Ref, stale)
	responds(t, f, old.Ref, response("current"))
}

func responseFailed(t *testing.T, f *fixture) {
	for _, dead := range []bool{false, true} {
		c := claim(t, f, request(fmt.Sprint("evt_", dead)), hookonce.Acquired)
		ok(t, f.Fail(t.Context(), c, hookonce.Failure{Dead: dead}))
		unchanged(t, f, c.Ref, func() {
			refuses(t, keeps(t, f).CompleteWith(t.Context(), c, response("failed")), hookonce.ErrStale)
		})
		silent(t, f, c.Ref)
	}
}

func responseMissing(t *testing.T, f *fixture) {
	c := hookonce.Claim{Ref: request("evt_1").Ref, Token: 1}
	refuses(t, keeps(t, f).CompleteWith(t.Context(), c, response("of nothing")), hookonce.ErrNotFound)
	absent(t, f, c.Ref)
	silent(t, f, c.Ref)
}

func responseAbsent(t *testing.T, f *fixture) {
	silent(t, f, request("never seen").Ref)
	for name, ref := range invalidRefs() {
		t.Log(name)
		silent(t, f, ref)
	}
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	silent(t, f, c.Ref)
	ok(t, f.Complete(t.Context(), c))
	silent(t, f, c.Ref)
}

func responseScope(t *testing.T, f *fixture) {
	a, b := request("evt_1"), request("evt_1")
	b.Source = "shop"
	answered(t, f, "evt_1", "billing")
	answered(t, f, "EVT_1", "another key")
	silent(t, f, b.Ref)
	ok(t, keeps(t, f).CompleteWith(t.Context(), claim(t, f, b, hookonce.Acquired), response("shop")))
	responds(t, f, a.Ref, response("billing"))
	responds(t, f, b.Ref, response("shop"))
}

func responsePurged(t *testing.T, f *fixture) {
	old := answered(t, f, "old", "old")
	f.clock.Advance(time.Second)
	young := answered(t, f, "young", "young")
	held := claim(t, f, request("held"), hookonce.Acquired)
	purge(t, f, f.clock.Now(), 10, 1)
	silent(t, f, old.Ref)
	responds(t, f, young.Ref, response("young"))

	ok(t, f.Complete(t.Context(), claim(t, f, request("old"), hookonce.Acquired)))
	silent(t, f, old.Ref)
	ok(t, keeps(t, f).CompleteWith(t.Context(), held, response("held")))
	responds(t, f, held.Ref, response("held"))
}

func responseCancelled(t *testing.T, f *fixture) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	unchanged(t, f, c.Ref, func() {
		if keeps(t, f).CompleteWith(ended(t), c, response("never")) == nil {
			t.Fatal("completed under a context that had ended")
		}
	})
	silent(t, f, c.Ref)
}

// tooLarge is a response of one byte more than the store keeps.
func tooLarge(limit int) hookonce.Response {
	return hookonce.Response{Status: http.StatusOK, Body: make([]byte, limit+1)}
}

func responseTooLarge(t *testing.T, f *fixture) {
	r := tooLarge(f.maxResponse)
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	unchanged(t, f, c.Ref, func() { refuses(t, keeps(t, f).CompleteWith(t.Context(), c, r), hookonce.ErrResponseTooLarge) })
	silent(t, f, c.Ref)
	ok(t, keeps(t, f).CompleteWith(t.Context(), c, response("less")))
	responds(t, f, c.Ref, response("less"))
}

// raceResponseVisible asks for the response as soon as a copy is called a duplicate.
func raceResponseVisible(t *testing.T, f *fixture) {
	for i := range rounds {
		c := claim(t, f, request(fmt.Sprint("evt_", i)), hookonce.Acquired)
		owner, reader := keeps(t, f.another()), keeps(t, f.another())
		g, ctx := errgroup.WithContext(t.Context()) // it ends if the owner fails
		g.Go(func() error { return owner.CompleteWith(t.Context(), c, response("done")) })
		g.Go(func() error {
			for {
				copied, err := reader.Claim(ctx, request(c.Key))
				if err != nil || copied.Verdict == hookonce.Duplicate {
					_, missing := reader.Response(ctx, c.Ref)
					return errors.Join(err, missing)
				}
			}
		})
		ok(t, g.Wait())
	}
}

// raceResponseTakeover lets an owner whose lease ran out complete while somebody takes over. The response
// is that of the one whose token holds.
func raceResponseTakeover(t *testing.T, f *fixture) {
	for i := range rounds {
		owner := keeps(t, f.another())
		acted, takeover := f.versus(t, fmt.Sprint("evt_", i), func(c hookonce.Claim) error {
			return owner.CompleteWith(t.Context(), c, response("owner"))
		})
		if acted == (takeover.Verdict == hookonce.Acquired) {
			t.Fatalf("completed: %v, takeover: %#v", acted, takeover)
		}
		if acted {
			responds(t, f, takeover.Ref, response("owner"))
			continue
		}
		silent(t, f, takeover.Ref)
		ok(t, keeps(t, f).CompleteWith(t.Context(), takeover, response("successor")))
		responds(t, f, takeover.Ref, response("successor"))
	}
}

// RunTxResponses checks that a store keeps responses in the transaction that holds the claim, and, like
// [RunResponses], in lease mode. The stores that cfg opens must implement [hookonce.TxResponseStore].
func RunTxResponses[Tx any](t *testing.T, cfg TxConfig[Tx]) {
	RunResponses(t, cfg.Lease())
	cfg.cases(t, "tx responses", txResponseCases[Tx]())
	if cfg.MaxResponse > 0 {
		cfg.cases(t, "large tx responses", []txCase[Tx]{{"are refused, and nothing is committed", keepTooLarge[Tx]}})
	}
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
	ok(t, errorOf(f.answer(t, req, response("one"), nil)))
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
		refuses(t, errorOf(f.answer(t, request("evt_1"), response("failed"), failure)), errDeclined)
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
	refuses(t, errorOf(f.answer(t, req, response("first attempt"), errDeclined)), errDeclined)
	ok(t, errorOf(f.answer(t, req, response("second attempt"), nil)))
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
	for name, r := range awkwardResponses(f.maxResponse) {
		ok(t, errorOf(f.answer(t, request(name), r, nil)))
		responds(t, f, request(name).Ref, r)
	}
}

// keep keeps a response in a transaction that claims nothing.
func (f *txFixture[Tx]) keep(t testing.TB, ref hookonce.Ref, r hookonce.Response) error {
	return f.inside(t, func(tx Tx) error { return keeper(t, f.TxStore).KeepResponse(t.Context(), tx, ref, r) })
}

func keepMissing[Tx any](t *testing.T, f *txFixture[Tx]) {
	for _, ref := range []hookonce.Ref{request("evt_1").Ref, request("").Ref} {
		refuses(t, f.keep(t, ref, response("of nothing")), hookonce.ErrNotFound)
		silent(t, f, ref)
	}
}

// keepNotDone: nobody can leave a response under a key that a worker holds under a lease, or that failed.
func keepNotDone[Tx any](t *testing.T, f *txFixture[Tx]) {
	req, held := request("evt_1"), claim(t, f, request("evt_1"), hookonce.Acquired)
	failed := claim(t, f, request("evt_2"), hookonce.Acquired)
	ok(t, f.Fail(t.Context(), failed, hookonce.Failure{Err: errDeclined}))
	for _, ref := range []hookonce.Ref{held.Ref, failed.Ref} {
		refuses(t, f.keep(t, ref, response("a stranger's")), hookonce.ErrNotFound)
		silent(t, f, ref)
	}
	ok(t, keeper(t, f.TxStore).CompleteWith(t.Context(), held, response("mine")))
	responds(t, f, req.Ref, response("mine"))
}

func keepInvalid[Tx any](t *testing.T, f *txFixture[Tx]) {
	for name, ref := range invalidRefs() {
		err := f.keep(t, ref, response("of nothing"))
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

func keepTooLarge[Tx any](t *testing.T, f *txFixture[Tx]) {
	r := tooLarge(f.maxResponse)
	refuses(t, errorOf(f.answer(t, request("evt_1"), r, nil)), hookonce.ErrResponseTooLarge)
	silent(t, f, request("evt_1").Ref)
	f.effects(t, nil)
	ok(t, errorOf(f.answer(t, request("evt_1"), response("less"), nil)))
	responds(t, f, request("evt_1").Ref, response("less"))
}

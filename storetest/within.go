package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

func withinCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"claim and effect commit together", withinCommits[Tx]},
		{"claim and effect roll back together", withinRollsBack[Tx]},
		{"a failed event is tried again", withinRedrives[Tx]},
		{"a panic rolls back and goes on", withinPanics[Tx]},
		{"a goroutine that ends rolls back", withinExits[Tx]},
		{"an ended context rolls back", withinCancelled[Tx]},
		{"an ended context rolls back even if the handler does not mind", withinCancelledUnheeded[Tx]},
		{"a duplicate runs nothing", withinDuplicate[Tx]},
		{"an expired lease is taken over", withinTakeover[Tx]},
		{"an event without a key runs without a claim", withinUnkeyed[Tx]},
		{"a failed event without a key leaves nothing", withinUnkeyedFails[Tx]},
		{"several claims commit together", withinSeveral[Tx]},
		{"a handler's error comes with the claim that was won", withinOwnError[Tx]},
		{"a type that no text can hold is no obstacle", withinStrangeType[Tx]},
	}
}

// run is Within with a handler that has the effect named like the key and then returns err.
func (f *txFixture[Tx]) run(ctx context.Context, req hookonce.ClaimRequest, err error) (hookonce.Claim, error) {
	return f.TxStore.Within(ctx, req, func(tx Tx, _ hookonce.Claim) error {
		return errors.Join(f.db.Effect(ctx, tx, req.Key), err)
	})
}

// done runs req and checks that it was won with the given token.
func (f *txFixture[Tx]) done(t testing.TB, req hookonce.ClaimRequest, token int64) {
	t.Helper()
	c, err := f.run(t.Context(), req, nil)
	ok(t, err)
	verdict(t, c, hookonce.Acquired)
	stored(t, f, req.Ref, hookonce.StateDone, token)
}

func withinCommits[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	want := hookonce.Claim{
		Ref: req.Ref, Verdict: hookonce.Acquired, State: hookonce.StateDone, Token: 1,
		Type: req.Type, Digest: req.Digest, FirstSeen: f.clock.Now(), UpdatedAt: f.clock.Now(),
	}
	got, err := f.Within(t.Context(), req, func(tx Tx, c hookonce.Claim) error {
		same(t, "the handler's claim", c, want)
		return f.db.Effect(t.Context(), tx, req.Key)
	})
	ok(t, err)
	same(t, "returned claim", got, want)
	want.Verdict = 0
	same(t, "stored claim", lookup(t, f, req.Ref), want)
	f.effects(t, map[string]int{"evt_1": 1})
}

func withinRollsBack[Tx any](t *testing.T, f *txFixture[Tx]) {
	for state, failure := range map[hookonce.State]error{
		hookonce.StateFailed: errDeclined,
		hookonce.StateDead:   hookonce.Permanent(errDeclined),
	} {
		req := request(string(state))
		_, err := f.run(t.Context(), req, hookonce.RetryAfter(time.Minute, failure))
		refuses(t, err, errDeclined)
		if d, _ := hookonce.RetryDelay(err); d != time.Minute || hookonce.IsPermanent(err) != (state == hookonce.StateDead) {
			t.Fatalf("the marks on the handler's error are lost: %v", err)
		}
		stored(t, f, req.Ref, state, 1)
	}
	f.effects(t, nil)
}

func withinRedrives[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	for _, failure := range []error{errDeclined, hookonce.Permanent(errDeclined)} {
		_, err := f.run(t.Context(), req, failure)
		refuses(t, err, errDeclined)
	}
	f.done(t, req, 3)
	f.effects(t, map[string]int{"evt_1": 1})
	if c := lookup(t, f, req.Ref); c.LastError == "" {
		t.Fatalf("the last failure is forgotten: %#v", c)
	}
}

// recovered runs f and returns what it panicked with.
func recovered(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}

func withinPanics[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	p := recovered(func() {
		_, _ = f.Within(t.Context(), req, func(tx Tx, _ hookonce.Claim) error {
			ok(t, f.db.Effect(t.Context(), tx, req.Key))
			panic(errDeclined)
		})
	})
	if p != any(errDeclined) {
		t.Fatalf("panicked with %v, want the handler's value", p)
	}
	f.effects(t, nil)
	contains(t, stored(t, f, req.Ref, hookonce.StateFailed, 1).LastError, errDeclined.Error())
	f.done(t, req, 2)
}

func withinExits[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = f.Within(t.Context(), req, func(tx Tx, _ hookonce.Claim) error {
			defer runtime.Goexit()
			return f.db.Effect(t.Context(), tx, req.Key)
		})
	}()
	<-ended
	f.effects(t, nil)
	stored(t, f, req.Ref, hookonce.StateFailed, 1)
	f.done(t, req, 2)
}

func withinCancelled[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.cancelled(t, func(ctx context.Context) error { return ctx.Err() })
}

func withinCancelledUnheeded[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.cancelled(t, func(context.Context) error { return nil })
}

// cancelled ends the context while the handler runs, which then returns what result says.
func (f *txFixture[Tx]) cancelled(t *testing.T, result func(context.Context) error) {
	req := request("evt_1")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := f.Within(ctx, req, func(tx Tx, _ hookonce.Claim) error {
		ok(t, f.db.Effect(ctx, tx, req.Key))
		cancel()
		return result(ctx)
	})
	refuses(t, err, context.Canceled)
	stored(t, f, req.Ref, hookonce.StateFailed, 1)
	f.done(t, req, 2)
	f.effects(t, map[string]int{"evt_1": 1})
}

func withinDuplicate[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.done(t, request("evt_1"), 1)
	for _, req := range []hookonce.ClaimRequest{request("evt_1"), otherContent("evt_1")} {
		unchanged(t, f, req.Ref, func() {
			c := f.idle(t, f, req, hookonce.Duplicate)
			conflict(t, c, string(req.Digest) != string(request("").Digest))
		})
	}
	f.effects(t, map[string]int{"evt_1": 1})
}

// idle is Within where the handler must not run.
func (f *txFixture[Tx]) idle(t testing.TB, s hookonce.TxStore[Tx], req hookonce.ClaimRequest, want hookonce.Verdict) hookonce.Claim {
	t.Helper()
	c, err := s.Within(t.Context(), req, func(Tx, hookonce.Claim) error {
		t.Errorf("the handler ran")
		return nil
	})
	refuses(t, err, want.Err())
	verdict(t, c, want)
	return c
}

// withinOwnError has the handler return the error of a claim that is held: the verdict tells the two apart.
func withinOwnError[Tx any](t *testing.T, f *txFixture[Tx]) {
	for key, want := range map[string]hookonce.Verdict{"evt_1": hookonce.Acquired, "": hookonce.Unkeyed} {
		var held hookonce.Claim
		c, err := f.Within(t.Context(), request(key), func(_ Tx, c hookonce.Claim) error {
			held = c
			return hookonce.ErrBusy
		})
		refuses(t, err, hookonce.ErrBusy)
		verdict(t, c, want)
		same(t, "the claim beside the error", c, held)
	}
}

func withinStrangeType[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	req.Type = "paid\x00 \xff"
	_, err := f.run(t.Context(), req, errDeclined)
	refuses(t, err, errDeclined)
	stored(t, f, req.Ref, hookonce.StateFailed, 1)
	f.done(t, req, 2)
}

func withinTakeover[Tx any](t *testing.T, f *txFixture[Tx]) {
	old := claim(t, f, request("evt_1"), hookonce.Acquired)
	unchanged(t, f, old.Ref, func() { f.idle(t, f, request("evt_1"), hookonce.Busy) })
	f.clock.Advance(lease)
	f.done(t, request("evt_1"), 2)
	refuses(t, f.Complete(t.Context(), old), hookonce.ErrStale)

	req := request("evt_2")
	req.Lease = 0
	claim(t, f, req, hookonce.Acquired)
	f.clock.Advance(365 * 24 * time.Hour)
	f.idle(t, f, req, hookonce.Busy)
}

func withinUnkeyed[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("")
	for range 2 {
		c, err := f.run(t.Context(), req, nil)
		ok(t, err)
		verdict(t, c, hookonce.Unkeyed)
	}
	absent(t, f, req.Ref)
	f.effects(t, map[string]int{"": 2})
}

func withinUnkeyedFails[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("")
	_, err := f.run(t.Context(), req, errDeclined)
	refuses(t, err, errDeclined)
	p := recovered(func() {
		_, _ = f.Within(t.Context(), req, func(Tx, hookonce.Claim) error { panic("at the disco") })
	})
	if p != any("at the disco") {
		t.Fatalf("panicked with %v, want the handler's value", p)
	}
	absent(t, f, req.Ref)
	f.effects(t, nil)
}

func withinSeveral[Tx any](t *testing.T, f *txFixture[Tx]) {
	both := func(failure error) error {
		_, err := f.Within(t.Context(), request("order"), func(tx Tx, _ hookonce.Claim) error {
			c, err := f.ClaimTx(t.Context(), tx, request("payment"))
			ok(t, err)
			verdict(t, c, hookonce.Acquired)
			return errors.Join(f.db.Effect(t.Context(), tx, "both"), failure)
		})
		return err
	}
	refuses(t, both(errDeclined), errDeclined)
	absent(t, f, request("payment").Ref)
	ok(t, both(nil))
	stored(t, f, request("order").Ref, hookonce.StateDone, 2)
	stored(t, f, request("payment").Ref, hookonce.StateDone, 1)
	f.effects(t, map[string]int{"both": 1})
}

func refusedCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"a key that cannot be stored", refusedInvalid[Tx]},
		{"a context that has ended", refusedCancelled[Tx]},
	}
}

func refusedInvalid[Tx any](t *testing.T, f *txFixture[Tx]) {
	for name, ref := range invalidRefs() {
		_, err := f.Within(t.Context(), hookonce.ClaimRequest{Ref: ref}, func(Tx, hookonce.Claim) error {
			return fmt.Errorf("%s: the handler ran", name)
		})
		refuses(t, err, hookonce.ErrInvalidRef)
		absent(t, f, ref)

		tx, err := f.db.Begin(t.Context())
		ok(t, err)
		_, err = f.ClaimTx(t.Context(), tx, hookonce.ClaimRequest{Ref: ref})
		refuses(t, err, hookonce.ErrInvalidRef)
		ok(t, f.db.Rollback(t.Context(), tx))
	}
}

func refusedCancelled[Tx any](t *testing.T, f *txFixture[Tx]) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Within(ctx, request("evt_1"), func(Tx, hookonce.Claim) error {
		t.Error("the handler ran")
		return nil
	})
	refuses(t, err, context.Canceled)
	absent(t, f, request("evt_1").Ref)
}

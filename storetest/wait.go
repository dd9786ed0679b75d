package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

func waitCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"it is busy after the bounded wait", waitBounded[Tx]},
		{"a claim with a lease is busy as well", waitLease[Tx]},
		{"the next copy is a duplicate after the commit", waitCommitted[Tx]},
		{"the next copy of a failed event is a duplicate after the commit", waitRedriven[Tx]},
		{"the next copy runs after the rollback", waitRolledBack[Tx]},
	}
}

// shortWait is a bounded wait that a case sits through.
const shortWait = 50 * time.Millisecond

// outcome is what a call of Within came to.
type outcome struct {
	claim hookonce.Claim
	err   error
}

// hold starts Within in another goroutine and returns when its handler runs. The handler has its
// effect, waits for release, and returns what it is sent.
func (f *txFixture[Tx]) hold(t testing.TB, req hookonce.ClaimRequest) (release chan<- error, result <-chan outcome) {
	t.Helper()
	running, let, done := make(chan struct{}), make(chan error, 1), make(chan outcome, 1)
	go func() {
		c, err := f.Within(t.Context(), req, func(tx Tx, _ hookonce.Claim) error {
			close(running)
			return errors.Join(f.db.Effect(t.Context(), tx, req.Key), <-let)
		})
		done <- outcome{c, err}
	}()
	select {
	case <-running:
	case o := <-done:
		t.Fatalf("the handler did not run: %#v, %v", o.claim, o.err)
	}
	return let, done
}

func waitBounded[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	release, result := f.hold(t, req)
	f.idle(t, f.another(shortWait), req, hookonce.Busy)
	absent(t, f, req.Ref)
	release <- nil
	ok(t, (<-result).err)
	stored(t, f, req.Ref, hookonce.StateDone, 1)
	f.effects(t, map[string]int{"evt_1": 1})
}

func waitLease[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	release, result := f.hold(t, req)
	claim(t, f.another(shortWait), req, hookonce.Busy)
	release <- nil
	ok(t, (<-result).err)
	claim(t, f, req, hookonce.Duplicate)
}

// follow starts a second copy, which has to wait or be told to come again, and returns its outcome.
func (f *txFixture[Tx]) follow(t testing.TB, req hookonce.ClaimRequest) <-chan outcome {
	s, result := f.another(time.Minute), make(chan outcome, 1)
	go func() {
		c, err := s.Within(t.Context(), req, func(tx Tx, _ hookonce.Claim) error {
			return f.db.Effect(t.Context(), tx, req.Key)
		})
		result <- outcome{c, err}
	}()
	return result
}

func waitCommitted[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	release, first := f.hold(t, req)
	second := f.follow(t, req)
	release <- nil
	ok(t, (<-first).err)
	o := <-second
	ok(t, o.err)
	verdict(t, o.claim, hookonce.Duplicate)
	f.effects(t, map[string]int{"evt_1": 1})
}

// waitRedriven lets a copy see a failed claim that is being tried again. What it saw is out of date
// when its turn comes.
func waitRedriven[Tx any](t *testing.T, f *txFixture[Tx]) {
	for i := range rounds {
		req := request(fmt.Sprint("evt_", i))
		_, err := f.run(t.Context(), req, errDeclined)
		refuses(t, err, errDeclined)
		release, first := f.hold(t, req)
		second := f.follow(t, req)
		release <- nil
		ok(t, (<-first).err)
		o := <-second
		ok(t, o.err)
		verdict(t, o.claim, hookonce.Duplicate)
		stored(t, f, req.Ref, hookonce.StateDone, 2)
	}
}

func waitRolledBack[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	release, first := f.hold(t, req)
	second := f.follow(t, req)
	release <- errDeclined
	refuses(t, (<-first).err, errDeclined)
	o := <-second
	ok(t, o.err)
	verdict(t, o.claim, hookonce.Acquired)
	stored(t, f, req.Ref, hookonce.StateDone, o.claim.Token)
	f.effects(t, map[string]int{"evt_1": 1})
}

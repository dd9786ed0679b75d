package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/hookonce/hookonce"
	"golang.org/x/sync/errgroup"
)

func stormCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"copies at once have one effect", stormCopies[Tx]},
		{"copies and failures have one effect", stormFailures[Tx]},
		{"leases and transactions have one effect", stormMixed[Tx]},
	}
}

// A storm is so many copies of so many events.
const copies, events = 8, 25

func event(i int) hookonce.ClaimRequest { return request(fmt.Sprint("evt_", i)) }

// once is what a storm must come to.
func once() map[string]int {
	want := map[string]int{}
	for i := range events {
		want[event(i).Key] = 1
	}
	return want
}

// storm runs deliver for every copy of every event, each copy in a goroutine of its own, until it
// reports that the sender may stop.
func (f *txFixture[Tx]) storm(t testing.TB, deliver func(s hookonce.TxStore[Tx], req hookonce.ClaimRequest) (bool, error)) {
	t.Helper()
	var open [stores]hookonce.TxStore[Tx]
	for i := range open {
		open[i] = f.another(0)
	}
	start := make(chan struct{})
	var g errgroup.Group
	for i := range copies {
		g.Go(func() error {
			<-start
			for e := range events {
				for delivered := false; !delivered; {
					var err error
					if delivered, err = deliver(open[i%stores], event(e)); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	close(start)
	ok(t, g.Wait())
	f.effects(t, once())
}

// effect runs the handler that has the effect and then returns failure.
func (f *txFixture[Tx]) effect(t testing.TB, s hookonce.TxStore[Tx], req hookonce.ClaimRequest, failure func() error) (bool, error) {
	c, err := s.Within(t.Context(), req, func(tx Tx, _ hookonce.Claim) error {
		return errors.Join(f.db.Effect(t.Context(), tx, req.Key), failure())
	})
	if errors.Is(err, errDeclined) || c.Verdict == hookonce.Busy {
		return false, nil
	}
	return true, err
}

func stormCopies[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.storm(t, func(s hookonce.TxStore[Tx], req hookonce.ClaimRequest) (bool, error) {
		return f.effect(t, s, req, func() error { return nil })
	})
	for i := range events {
		stored(t, f, event(i).Ref, hookonce.StateDone, 1)
	}
}

func stormFailures[Tx any](t *testing.T, f *txFixture[Tx]) {
	var calls atomic.Int64
	f.storm(t, func(s hookonce.TxStore[Tx], req hookonce.ClaimRequest) (bool, error) {
		return f.effect(t, s, req, func() error {
			if calls.Add(1)%3 != 0 {
				return errDeclined
			}
			return nil
		})
	})
}

// stormMixed has every second copy claim with a lease, do nothing, and give the claim back.
func stormMixed[Tx any](t *testing.T, f *txFixture[Tx]) {
	var calls atomic.Int64
	f.storm(t, func(s hookonce.TxStore[Tx], req hookonce.ClaimRequest) (bool, error) {
		if calls.Add(1)%2 == 0 {
			return f.effect(t, s, req, func() error { return nil })
		}
		c, err := s.Claim(t.Context(), req)
		if err == nil && c.Verdict == hookonce.Acquired {
			err = s.Fail(t.Context(), c, hookonce.Failure{Err: errDeclined})
		}
		return c.Verdict == hookonce.Duplicate, err
	})
}

package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"golang.org/x/sync/errgroup"
)

func concurrentCases() []leaseCase {
	return []leaseCase{
		{"one of many wins a fresh key", raceFresh},
		{"one of many takes over an expired lease", raceTakeover},
		{"one of many tries failed work again", raceFailed},
		{"of many with other content none takes over what is pinned", racePinned},
		{"a completion and a takeover never both succeed", raceComplete},
		{"an extension and a takeover never both succeed", raceExtend},
		{"purges do not count a claim twice", racePurge},
	}
}

// race lets as many racers with each of the requests claim at once, and returns their claims in the order of those.
func (f *fixture) race(t testing.TB, reqs ...hookonce.ClaimRequest) []hookonce.Claim {
	t.Helper()
	var open [stores]hookonce.Store
	for i := range open {
		open[i] = f.another()
	}
	claims, start := make([]hookonce.Claim, racers*len(reqs)), make(chan struct{})
	var g errgroup.Group
	for i := range claims {
		g.Go(func() (err error) {
			<-start
			claims[i], err = open[i%stores].Claim(t.Context(), reqs[i/racers])
			return err
		})
	}
	close(start)
	ok(t, g.Wait())
	return claims
}

// racePinned lets as many ask for a pinned claim with its own content as with other content.
func racePinned(t *testing.T, f *fixture) {
	claim(t, f, pinning("evt_1"), hookonce.Acquired)
	f.clock.Advance(lease)
	claims := f.race(t, pinning("evt_1"), otherContent("evt_1"))
	oneWon(t, claims[:racers], 2)
	for _, c := range claims[racers:] {
		if c.Verdict != hookonce.Pinned && c.Verdict != hookonce.Busy {
			t.Errorf("other content was answered %#v", c)
		}
	}
}

// oneWon checks that exactly one claim won, with the given token, and that the others are busy.
func oneWon(t testing.TB, claims []hookonce.Claim, token int64) {
	t.Helper()
	won := 0
	for _, c := range claims {
		switch {
		case c.Verdict == hookonce.Acquired && c.Token == token:
			won++
		case c.Verdict != hookonce.Busy:
			t.Fatalf("a copy was answered %#v", c)
		}
	}
	if won != 1 {
		t.Fatalf("%d of %d concurrent claims won", won, len(claims))
	}
}

func raceFresh(t *testing.T, f *fixture) {
	for i := range rounds {
		req := request(fmt.Sprint("evt_", i))
		oneWon(t, f.race(t, req), 1)
		stored(t, f, req.Ref, hookonce.StateProcessing, 1)
	}
}

func raceTakeover(t *testing.T, f *fixture) {
	req := request("evt_1")
	claim(t, f, req, hookonce.Acquired)
	for token := int64(2); token < 2+rounds; token++ {
		f.clock.Advance(lease)
		oneWon(t, f.race(t, req), token)
	}
}

func raceFailed(t *testing.T, f *fixture) {
	req := request("evt_1")
	c := claim(t, f, req, hookonce.Acquired)
	for token := int64(2); token < 2+rounds; token++ {
		ok(t, f.Fail(t.Context(), c, hookonce.Failure{Dead: token%2 == 0}))
		oneWon(t, f.race(t, req), token)
		c = stored(t, f, req.Ref, hookonce.StateProcessing, token)
	}
}

// versus runs a, which acts on an expired claim, against a takeover of it.
func (f *fixture) versus(t testing.TB, key string, a func(hookonce.Claim) error) (acted bool, takeover hookonce.Claim) {
	t.Helper()
	c := claim(t, f, request(key), hookonce.Acquired)
	f.clock.Advance(lease)
	other := f.another()
	var g errgroup.Group
	g.Go(func() (err error) {
		takeover, err = other.Claim(t.Context(), request(key))
		return err
	})
	g.Go(func() error {
		err := a(c)
		acted = err == nil
		if errors.Is(err, hookonce.ErrStale) {
			return nil
		}
		return err
	})
	ok(t, g.Wait())
	return acted, takeover
}

func raceComplete(t *testing.T, f *fixture) {
	for i := range rounds {
		acted, takeover := f.versus(t, fmt.Sprint("evt_", i), func(c hookonce.Claim) error {
			return f.Complete(t.Context(), c)
		})
		if want := map[bool]hookonce.Verdict{true: hookonce.Duplicate, false: hookonce.Acquired}[acted]; takeover.Verdict != want {
			t.Fatalf("completed: %v, takeover: %#v", acted, takeover)
		}
	}
}

func raceExtend(t *testing.T, f *fixture) {
	for i := range rounds {
		acted, takeover := f.versus(t, fmt.Sprint("evt_", i), func(c hookonce.Claim) error { return errorOf(f.Extend(t.Context(), c, lease)) })
		if want := map[bool]hookonce.Verdict{true: hookonce.Busy, false: hookonce.Acquired}[acted]; takeover.Verdict != want {
			t.Fatalf("extended: %v, takeover: %#v", acted, takeover)
		}
	}
}

func racePurge(t *testing.T, f *fixture) {
	const claims = 40
	for i := range claims {
		finish(t, f, fmt.Sprint("evt_", i))
	}
	f.clock.Advance(lease)
	var deleted [stores]int
	var g errgroup.Group
	for i := range deleted {
		s := f.another()
		g.Go(func() error {
			for {
				n, err := s.Purge(t.Context(), before(f.clock.Now(), 5))
				deleted[i] += n
				if n == 0 || err != nil {
					return err
				}
			}
		})
	}
	ok(t, g.Wait())
	rest, err := f.Purge(t.Context(), before(f.clock.Now(), claims))
	ok(t, err)
	if total := deleted[0] + deleted[1] + deleted[2] + rest; total != claims {
		t.Fatalf("%d claims were deleted, want %d", total, claims)
	}
}

func waitCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"it is busy after the bounded wait", waitBounded[Tx]},
		{"a claim with a lease is busy as well", waitLease[Tx]},
		{"the next copy is a duplicate after the commit", waitCommitted[Tx]},
		{"the next copy of a failed event is a duplicate after the commit", waitRedriven[Tx]},
		{"the next copy runs after the rollback", waitRolledBack[Tx]},
	}
}

// outcome is what a call of Within came to.
type outcome struct {
	claim hookonce.Claim
	err   error
}

// hold starts Within in another goroutine and returns when its handler runs. The handler has its
// effect, waits for release, and returns what it is sent. One that is run again waits no more.
func (f *txFixture[Tx]) hold(t testing.TB, req hookonce.ClaimRequest) (release chan<- error, result <-chan outcome) {
	t.Helper()
	running, let, done := make(chan struct{}), make(chan error, 1), make(chan outcome, 1)
	first := sync.OnceValue(func() error { close(running); return <-let })
	go func() {
		c, err := f.Within(t.Context(), req, func(tx Tx, _ hookonce.Claim) error {
			return errors.Join(f.db.Effect(t.Context(), tx, req.Key), first())
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
		refuses(t, errorOf(f.run(t.Context(), req, errDeclined)), errDeclined)
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

// gaveUp checks what came of a handler that failed while a copy was under way. One that ran ahead is answered by what the copy
// left, if that is there already.
func (f *txFixture[Tx]) gaveUp(t testing.TB, o outcome) {
	t.Helper()
	if f.ahead && (o.claim.Verdict == hookonce.Duplicate || o.claim.Verdict == hookonce.Busy) {
		refuses(t, o.err, o.claim.Verdict.Err())
		return
	}
	refuses(t, o.err, errDeclined)
}

func waitRolledBack[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	release, first := f.hold(t, req)
	second := f.follow(t, req)
	release <- errDeclined
	f.gaveUp(t, <-first)
	o := <-second
	ok(t, o.err)
	verdict(t, o.claim, hookonce.Acquired)
	stored(t, f, req.Ref, hookonce.StateDone, o.claim.Token)
	f.effects(t, map[string]int{"evt_1": 1})
}

func stormCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"copies at once have one effect", stormCopies[Tx]},
		{"copies and failures have one effect", stormFailures[Tx]},
		{"leases and transactions have one effect", stormMixed[Tx]},
	}
}

// A storm is so many copies of so many events.
const copies, events = 8, 25

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

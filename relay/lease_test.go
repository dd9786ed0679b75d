package relay_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/relay"
)

// exit ends the goroutine, as t.FailNow does.
func exit() { runtime.Goexit() }

// A handler that takes longer than the lease keeps it.
func TestLeasesAreExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, outcomes := memstore.New(), new(journal)
		enqueue(t, store, "receipt")
		slow := func(context.Context, hookonce.QueuedEffect) error {
			time.Sleep(10 * time.Minute)
			return nil
		}
		options := []relay.Option{relay.WithTimeout(time.Hour), outcomes.observed()}
		first := start(t, store, slow, options...)
		second := start(t, store, slow, options...)
		pass(time.Hour)
		stopped(t, first)
		stopped(t, second)
		outcomes.want(t, "mail done 1")
	})
}

// A handler's context ends after the timeout, and what it returns then is a failure that says so.
func TestHandlersHaveATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		enqueue(t, store, "receipt")
		stop := start(t, store, func(ctx context.Context, _ hookonce.QueuedEffect) error {
			<-ctx.Done()
			return ctx.Err()
		}, relay.WithTimeout(time.Minute), every(time.Hour, 2))
		pass(time.Minute)
		if e := expect(t, store, hookonce.StateFailed); !strings.Contains(e[0].LastError, "took too long") {
			t.Errorf("the last error is %q", e[0].LastError)
		}
		stopped(t, stop)
	})
}

// A handler that does not heed its context loses the lease: another relay tries again under the same key,
// and what becomes of the first attempt counts no more.
func TestHandlersThatHangAreOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, keys, outcomes := memstore.New(), new(journal), new(journal)
		enqueue(t, store, "receipt")
		hang := start(t, store, func(_ context.Context, e hookonce.QueuedEffect) error {
			keys.write("%s", e.IdempotencyKey())
			time.Sleep(time.Hour)
			return errors.New("too late")
		}, relay.WithConcurrency(1), relay.WithTimeout(time.Minute), outcomes.observed())
		synctest.Wait()
		well := start(t, store, func(_ context.Context, e hookonce.QueuedEffect) error {
			keys.write("%s", e.IdempotencyKey())
			return nil
		}, outcomes.observed())
		pass(2 * time.Hour)
		stopped(t, hang)
		stopped(t, well)
		key := hookonce.EffectKey(hookonce.Ref{Source: "billing", Key: "evt_1"}, "receipt")
		keys.want(t, key, key)
		outcomes.want(t, "mail done 1", "mail stale 1")
		expect(t, store, hookonce.StateDone)
	})
}

// When the lease cannot be extended any more the handler is told to stop: somebody else may begin.
func TestLostLeaseEndsTheHandler(t *testing.T) {
	for name, c := range map[string]struct {
		extend func(context.Context) error
		after  time.Duration
	}{
		"unreachable": {func(context.Context) error { return errors.New("connection refused") }, relay.DefaultLease},
		"silent":      {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, relay.DefaultLease},
		"taken over":  {func(context.Context) error { return hookonce.ErrStale }, relay.DefaultLease / 3},
		"purged":      {func(context.Context) error { return hookonce.ErrNotFound }, relay.DefaultLease / 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, began := memstore.New(), time.Now()
				enqueue(t, store, "receipt")
				slow := &faulty{EffectQueue: &unextended{store, c.extend}, fault: func(method string) (bool, error) {
					if method == "take" {
						time.Sleep(time.Second) // the lease has begun by the time that the handler does
					}
					return true, nil
				}}
				stop := start(t, slow, func(ctx context.Context, _ hookonce.QueuedEffect) error {
					<-ctx.Done()
					if took := time.Since(began); took != c.after {
						t.Errorf("told after %v", took)
					}
					return context.Cause(ctx)
				}, relay.WithConcurrency(1), relay.WithTimeout(time.Hour), every(time.Hour, 2))
				pass(time.Minute)
				if e := expect(t, store, hookonce.StateFailed); !strings.Contains(e[0].LastError, "the lease of effect 1, mail, was lost") {
					t.Errorf("the last error is %q", e[0].LastError)
				}
				stopped(t, stop)
			})
		})
	}
}

// unextended is a queue that extends no lease.
type unextended struct {
	hookonce.EffectQueue
	extend func(context.Context) error
}

func (u *unextended) ExtendEffect(ctx context.Context, e hookonce.QueuedEffect, _ time.Duration) (hookonce.QueuedEffect, error) {
	return e, u.extend(ctx)
}

// An effect that comes late from the store may be somebody else's by now, and is not begun. It is
// handed back, so that however often that happens it is no death.
func TestLostLeaseIsNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, outcomes := memstore.New(), new(journal)
		enqueue(t, store, "receipt")
		stop := start(t, &disturbed{store, relay.DefaultDeaths, late}, func(_ context.Context, e hookonce.QueuedEffect) error {
			if e.Token <= relay.DefaultDeaths {
				t.Error("begun after the end of the lease")
			}
			if e.Deaths > 0 {
				t.Errorf("it has %d deaths, and nobody died", e.Deaths)
			}
			return nil
		}, relay.WithLease(4*time.Second), every(time.Hour, 1), outcomes.observed())
		pass(time.Minute)
		stopped(t, stop)
		outcomes.want(t, "mail handed back 1", "mail handed back 2", "mail handed back 3", "mail done 4")
	})
}

// Where somebody else has it by then, it stays his.
func TestLostLeaseIsNotHandedBackByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, outcomes := memstore.New(), new(journal)
		enqueue(t, store, "receipt")
		stop := start(t, &disturbed{store, 1, late}, func(context.Context, hookonce.QueuedEffect) error {
			t.Error("begun by two")
			return nil
		}, relay.WithLease(4*time.Second), outcomes.observed())
		pass(4 * time.Second)
		taken, err := store.TakeEffects(t.Context(), hookonce.TakeRequest{Names: []string{"mail"}, Limit: 1, Suspects: 1, Lease: time.Hour})
		if err != nil || len(taken) != 1 {
			t.Fatalf("another relay took %v, %v", taken, err)
		}
		pass(time.Minute)
		stopped(t, stop)
		outcomes.want(t, "mail stale 1")
		if err := store.CompleteEffect(t.Context(), taken[0]); err != nil {
			t.Error(err)
		}
	})
}

func TestStopLetsHandlersFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		enqueue(t, store, "a", "b")
		stop := start(t, store, func(ctx context.Context, _ hookonce.QueuedEffect) error {
			select {
			case <-time.After(relay.DefaultGrace / 2):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, relay.WithConcurrency(1))
		synctest.Wait()
		stopped(t, stop)
		expect(t, store, hookonce.StateDone, hookonce.StatePending)
	})
}

// What is not finished in time is handed back: due at once, and never the effect's last attempt.
func TestStopHandsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, outcomes, began := memstore.New(), new(journal), time.Now()
		enqueue(t, store, "receipt")
		stop := start(t, store, func(ctx context.Context, _ hookonce.QueuedEffect) error {
			<-ctx.Done()
			return ctx.Err()
		}, every(time.Hour, 1), outcomes.observed())
		synctest.Wait()
		stopped(t, stop)
		if took := time.Since(began); took != relay.DefaultGrace {
			t.Errorf("stopped after %v", took)
		}
		if e := expect(t, store, hookonce.StateFailed); e[0].Due.After(time.Now()) {
			t.Errorf("due at %v", e[0].Due)
		}
		stop = start(t, store, func(context.Context, hookonce.QueuedEffect) error { return nil }, outcomes.observed())
		synctest.Wait()
		stopped(t, stop)
		outcomes.want(t, "mail handed back 1", "mail done 2")
	})
}

// A handler that says when it makes sense to try again is heeded then, too.
func TestStopHandsBackForLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		enqueue(t, store, "receipt")
		stop := start(t, store, func(ctx context.Context, _ hookonce.QueuedEffect) error {
			<-ctx.Done()
			return hookonce.RetryAfter(time.Hour, errors.New("answered 429"))
		})
		synctest.Wait()
		stopped(t, stop)
		if e := expect(t, store, hookonce.StateFailed); !e[0].Due.Equal(time.Now().UTC().Add(time.Hour)) {
			t.Errorf("due at %v", e[0].Due)
		}
	})
}

func TestStopGivesUpOnHandlersThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, release := memstore.New(), make(chan struct{})
		enqueue(t, store, "receipt")
		stop := start(t, store, func(context.Context, hookonce.QueuedEffect) error {
			<-release
			return nil
		})
		synctest.Wait()
		if err := stop(); err == nil || !strings.Contains(err.Error(), "1 handler(s) did not return") {
			t.Errorf("Run: %v", err)
		}
		close(release)
		synctest.Wait()
	})
}

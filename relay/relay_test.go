package relay_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/relay"
)

func TestEffectsAreCarriedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, saw, outcomes := memstore.New(), new(journal), new(journal)
		enqueue(t, store, "receipt")
		stop := start(t, store, func(_ context.Context, e hookonce.QueuedEffect) error {
			saw.write("%s %s %s", e.Ref, e.Step, e.Payload)
			return nil
		}, outcomes.observed())
		synctest.Wait()
		enqueue(t, store, "reminder")
		pass(relay.DefaultPoll)
		stopped(t, stop)
		saw.want(t, "billing/evt_1 receipt receipt", "billing/evt_1 reminder reminder")
		outcomes.want(t, "mail done 1", "mail done 1")
		expect(t, store, hookonce.StateDone, hookonce.StateDone)
	})
}

func TestNothingHappensBeforeTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		stop := start(t, store, func(context.Context, hookonce.QueuedEffect) error {
			t.Error("an effect was carried out")
			return nil
		})
		tx := store.Begin()
		if err := store.Enqueue(t.Context(), tx, hookonce.Effect{Ref: hookonce.Ref{Source: "billing"}, Name: "mail"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		stopped(t, stop)
	})
}

// Effects that are due later begin then, and those of other names are left to other relays.
func TestOnlyWhatIsDueAndKnownIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, saw, began := memstore.New(), new(journal), time.Now()
		add(t, store, hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Name: "mail", Due: began.Add(time.Hour)})
		add(t, store, hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Name: "crm"})
		stop := start(t, store, func(_ context.Context, e hookonce.QueuedEffect) error {
			saw.write("%s after %v", e.Name, time.Since(began))
			return nil
		})
		pass(2 * time.Hour)
		stopped(t, stop)
		saw.want(t, "mail after 1h0m0s")
		expect(t, store, hookonce.StateDone, hookonce.StatePending)
	})
}

func TestFailuresAreTriedAgain(t *testing.T) {
	down := errors.New("the mail server is down")
	for _, c := range []struct {
		name     string
		err      error
		attempts string
		state    hookonce.State
	}{
		{"until the tries are used up", down, "0s 1m0s 2m0s", hookonce.StateDead},
		{"permanent", hookonce.Permanent(down), "0s", hookonce.StateDead},
		{"later than the schedule says", hookonce.RetryAfter(time.Hour, down), "0s 1h0m0s 2h0m0s", hookonce.StateDead},
		{"sooner than the schedule says", hookonce.RetryAfter(time.Second, down), "0s 1m0s 2m0s", hookonce.StateDead},
		{"a little later", hookonce.RetryAfter(23*time.Hour, down), "0s 23h0m0s", hookonce.StateFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, saw, began := memstore.New(), new(journal), time.Now()
				enqueue(t, store, "receipt")
				stop := start(t, store, func(context.Context, hookonce.QueuedEffect) error {
					saw.write("%v", time.Since(began))
					return c.err
				}, every(time.Minute, 3))
				pass(24 * time.Hour)
				stopped(t, stop)
				saw.want(t, strings.Fields(c.attempts)...)
				if e := expect(t, store, c.state); e[0].LastError != c.err.Error() {
					t.Errorf("the last error is %q", e[0].LastError)
				}
			})
		})
	}
}

// A dead effect that is redriven has its whole schedule.
func TestRedrivenEffectsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, outcomes := memstore.New(), new(journal)
		enqueue(t, store, "receipt")
		stop := start(t, store, func(context.Context, hookonce.QueuedEffect) error {
			return errors.New("the mail server is down")
		}, every(time.Minute, 2), outcomes.observed())
		pass(time.Hour)
		dead := expect(t, store, hookonce.StateDead)
		if err := store.RedriveEffect(t.Context(), dead[0].ID); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		stopped(t, stop)
		outcomes.want(t, "mail failed 1", "mail dead 2", "mail failed 1", "mail dead 2")
	})
}

// A handler that panics, or ends its goroutine, has failed, and harms nobody else.
func TestPanicsAreFailures(t *testing.T) {
	for name, c := range map[string]struct {
		crash func()
		text  string
	}{
		"panic": {func() { panic("a fault in the handler") }, "relay: the handler panicked: a fault in the handler"},
		"exit":  {exit, "relay: the handler ended its goroutine"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, outcomes := memstore.New(), new(journal)
				enqueue(t, store, "bad", "good")
				stop := start(t, store, func(_ context.Context, e hookonce.QueuedEffect) error {
					if e.Step == "bad" {
						c.crash()
					}
					return nil
				}, every(time.Minute, 2), relay.WithConcurrency(1), outcomes.observed())
				pass(time.Hour)
				stopped(t, stop)
				outcomes.want(t, "mail failed 1", "mail done 1", "mail dead 2")
				if e := expect(t, store, hookonce.StateDead, hookonce.StateDone); e[0].LastError != c.text {
					t.Errorf("the last error is %q", e[0].LastError)
				}
			})
		})
	}
}

// No more is taken than can begin at once, so that other relays find the rest; and all of it is carried
// out without waiting for the next poll.
func TestConcurrencyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		enqueue(t, store, "a", "b", "c", "d", "e")
		release := make(chan struct{})
		began := time.Now()
		stop := start(t, store, func(context.Context, hookonce.QueuedEffect) error {
			<-release
			return nil
		}, relay.WithConcurrency(2), relay.WithPoll(time.Hour))
		synctest.Wait()
		expect(t, store, hookonce.StateProcessing, hookonce.StateProcessing, hookonce.StatePending, hookonce.StatePending, hookonce.StatePending)
		close(release)
		synctest.Wait()
		stopped(t, stop)
		expect(t, store, hookonce.StateDone, hookonce.StateDone, hookonce.StateDone, hookonce.StateDone, hookonce.StateDone)
		if took := time.Since(began); took > 0 {
			t.Errorf("waited %v between them", took)
		}
	})
}

func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, began := memstore.New(), time.Now()
		r := relay.New(store, map[string]relay.Handler{"mail": func(context.Context, hookonce.QueuedEffect) error { return nil }},
			relay.WithPoll(time.Hour), relay.WithLogger(slog.New(slog.DiscardHandler)))
		r.Wake() // before it runs: nothing is lost, nobody waits
		r.Wake()
		stop := run(r)
		synctest.Wait()
		enqueue(t, store, "receipt")
		r.Wake()
		synctest.Wait()
		expect(t, store, hookonce.StateDone)
		stopped(t, stop)
		if waited := time.Since(began); waited > 0 {
			t.Errorf("waited %v", waited)
		}
	})
}

// Relays on one outbox share its effects, and carry out each once.
func TestSeveralRelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		var done [26]atomic.Int32
		for c := range done {
			enqueue(t, store, string(rune('a'+c)))
		}
		var stops []func() error
		for range 3 {
			stops = append(stops, start(t, store, func(_ context.Context, e hookonce.QueuedEffect) error {
				done[e.Step[0]-'a'].Add(1)
				return nil
			}, relay.WithConcurrency(2)))
		}
		pass(time.Minute)
		for _, stop := range stops {
			stopped(t, stop)
		}
		for c := range done {
			if n := done[c].Load(); n != 1 {
				t.Errorf("effect %c was carried out %d times", 'a'+c, n)
			}
		}
	})
}

func TestBadSettingsPanic(t *testing.T) {
	ok := map[string]relay.Handler{"mail": func(context.Context, hookonce.QueuedEffect) error { return nil }}
	store := memstore.New()
	for name, build := range map[string]func(){
		"no queue":     func() { relay.New(nil, ok) },
		"no handlers":  func() { relay.New(store, nil) },
		"nil handler":  func() { relay.New(store, map[string]relay.Handler{"mail": nil}) },
		"no name":      func() { relay.New(store, map[string]relay.Handler{"": ok["mail"]}) },
		"concurrency":  func() { relay.New(store, ok, relay.WithConcurrency(0)) },
		"poll":         func() { relay.New(store, ok, relay.WithPoll(0)) },
		"lease":        func() { relay.New(store, ok, relay.WithLease(-time.Second)) },
		"no lease":     func() { relay.New(store, ok, relay.WithLease(30)) }, // nobody could begin within it
		"timeout":      func() { relay.New(store, ok, relay.WithTimeout(0)) },
		"grace":        func() { relay.New(store, ok, relay.WithGrace(-1)) },
		"schedule":     func() { relay.New(store, ok, relay.WithSchedule(nil)) },
		"clock":        func() { relay.New(store, ok, relay.WithClock(nil)) },
		"log":          func() { relay.New(store, ok, relay.WithLogger(nil)) },
		"observer":     func() { relay.New(store, ok, relay.WithObserver(nil)) },
		"address":      func() { relay.POST(nil, "crm.example") },
		"whole of it":  func() { relay.POST(nil, "http://") },
		"secret":       func() { relay.POST(nil, "http://crm.example", relay.PostSecrets("whsec_%")) },
		"status":       func() { relay.POST(nil, "http://crm.example", relay.PostPermanent(200)) },
		"post's clock": func() { relay.POST(nil, "http://crm.example", relay.PostClock(nil)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: accepted", name)
				}
			}()
			build()
		}()
	}
}

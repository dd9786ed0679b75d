package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/relay"
)

// dies takes everything that is due, called mail or one of these names, as a process does that dies then, and lets the
// leases run out.
func dies(t *testing.T, store *memstore.Store, want int, names ...string) {
	t.Helper()
	taken, err := store.TakeEffects(t.Context(), hookonce.TakeRequest{Names: append(names, "mail"), Limit: 100, Suspects: 100, Lease: time.Second})
	if err != nil || len(taken) != want {
		t.Fatalf("took %d effects, want %d, %v", len(taken), want, err)
	}
	pass(time.Second)
}

// Of those that a process died at one runs at a time in a process, however many relays it has, and what is fresh
// goes on beside it.
func TestSuspectsRunOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := memstore.New(), new(journal)
		enqueue(t, store, "suspect 1", "suspect 2", "suspect 3")
		dies(t, store, 3)
		enqueue(t, store, "fresh 1", "fresh 2")
		running := make(chan string, 100)
		release := make(chan struct{})
		handle := func(_ context.Context, e hookonce.QueuedEffect) error {
			running <- e.Step
			if e.Deaths > 0 {
				<-release
			}
			return nil
		}
		first, second := start(t, store, handle), start(t, store, handle)
		for i := range 3 {
			pass(2 * relay.DefaultPoll)
			log.write("%d running, suspects %v", len(running), i+1)
			suspects := 0
			for range len(running) {
				if step := <-running; strings.HasPrefix(step, "suspect") {
					suspects++
				}
			}
			if suspects != 1 {
				t.Errorf("%d suspects were begun at once", suspects)
			}
			release <- struct{}{}
		}
		synctest.Wait()
		stopped(t, first)
		stopped(t, second)
		log.want(t, "3 running, suspects 1", "1 running, suspects 2", "1 running, suspects 3")
		for _, e := range expect(t, store, hookonce.StateDone, hookonce.StateDone, hookonce.StateDone, hookonce.StateDone, hookonce.StateDone) {
			if e.Deaths != 0 || e.Tries != 1 {
				t.Errorf("%s has %d deaths and %d tries", e.Step, e.Deaths, e.Tries)
			}
		}
	})
}

// A suspect that hands its room on does so at once, and however its handler ends.
func TestSuspectsFollowEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, outcomes, began := memstore.New(), new(journal), time.Now()
		const n = 20
		for i := range n {
			enqueue(t, store, fmt.Sprint("step ", i))
		}
		dies(t, store, n)
		stop := start(t, store, func(context.Context, hookonce.QueuedEffect) error {
			exit()
			return nil
		}, every(time.Hour, 1), outcomes.observed())
		synctest.Wait()
		if took := time.Since(began); took != time.Second { // the lease of the one that died
			t.Errorf("%d suspects took %v", n, took)
		}
		stopped(t, stop)
		if dead, err := store.Effects(t.Context(), hookonce.StateDead, 0, 100); err != nil || len(dead) != n {
			t.Errorf("%d effects had their turn, %v", len(dead), err)
		}
	})
}

// Suspects of receivers that hang, and that were there before, put no more between two of another name than one each.
// When there are none any more, the store is asked as often as if there had been none.
func TestSuspectsTakeTurnsByName(t *testing.T) {
	for _, hang := range []string{"crm", "crm erp", "crm erp pdf"} {
		t.Run(hang, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const each, mails, timeout = 10, 3, time.Minute
				store, done := &asked{Store: memstore.New()}, new(journal)
				handlers := map[string]relay.Handler{"mail": func(_ context.Context, e hookonce.QueuedEffect) error {
					done.write("%s", e.Step)
					return nil
				}}
				names := strings.Fields(hang)
				for _, name := range names {
					handlers[name] = func(ctx context.Context, _ hookonce.QueuedEffect) error {
						<-ctx.Done()
						return ctx.Err()
					}
					for i := range each {
						add(t, store.Store, hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: fmt.Sprint(i)}, Name: name})
					}
				}
				enqueue(t, store.Store, "first", "second", "third")
				dies(t, store.Store, each*len(names)+mails, names...)
				stop := run(relay.New(store, handlers, relay.WithTimeout(timeout), every(24*time.Hour, 5), relay.WithLogger(slog.New(slog.DiscardHandler))))
				round := time.Duration(len(names)) * timeout
				pass(round + relay.DefaultPoll)
				done.want(t, "first")
				pass((mails - 1) * round)
				done.want(t, "first", "second", "third")

				pass((each - mails) * round)
				store.times.Store(0)
				pass(10 * relay.DefaultPoll)
				if n := store.times.Load(); n != 10 {
					t.Errorf("the store is asked %d times in the time of 10 polls", n)
				}
				stopped(t, stop)
			})
		})
	}
}

// A name whose suspect had its turn is not left out for as long as another one has work for all places.
func TestATurnLeavesNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, done := memstore.New(), new(journal)
		enqueue(t, store, "suspect")
		dies(t, store, 1)
		handlers := map[string]relay.Handler{
			"mail": func(_ context.Context, e hookonce.QueuedEffect) error {
				done.write("%s", e.Step)
				return nil
			},
			"crm": func(context.Context, hookonce.QueuedEffect) error { // there is always another one
				time.Sleep(time.Second)
				add(t, store, hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: time.Now().String()}, Name: "crm"})
				return nil
			},
		}
		add(t, store, hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "first"}, Name: "crm"})
		stop := run(relay.New(store, handlers, relay.WithConcurrency(1), relay.WithLogger(slog.New(slog.DiscardHandler))))
		pass(time.Minute)
		done.want(t, "suspect")
		enqueue(t, store, "fresh")
		pass(time.Minute)
		done.want(t, "suspect", "fresh")
		stopped(t, stop)
	})
}

// asked counts how often effects are asked for.
type asked struct {
	*memstore.Store
	times atomic.Int64
}

func (a *asked) TakeEffects(ctx context.Context, req hookonce.TakeRequest) ([]hookonce.QueuedEffect, error) {
	a.times.Add(1)
	return a.Store.TakeEffects(ctx, req)
}

// A suspect that hangs, and heeds no context, makes room for the others all the same, is taken again, and is given
// up like one that ends its process. When it returns after all, nobody else's place is free.
func TestSuspectsThatHangMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, outcomes, end, slow := memstore.New(), new(journal), make(chan struct{}), make(chan struct{})
		enqueue(t, store, "hangs", "suspect 1", "suspect 2")
		dies(t, store, 3)
		handle := func(_ context.Context, e hookonce.QueuedEffect) error {
			switch e.Step {
			case "hangs":
				<-end
			case "slow":
				slow <- struct{}{}
			}
			return nil
		}
		stop := start(t, store, handle, relay.WithTimeout(time.Minute), outcomes.observed())
		pass(10 * time.Minute)
		outcomes.want(t, "mail done 1", "mail done 1", "mail dead 1")
		enqueue(t, store, "slow", "suspect 3")
		dies(t, store, 2)
		pass(2 * relay.DefaultPoll)
		close(end)
		pass(2 * relay.DefaultPoll)
		outcomes.want(t, "mail done 1", "mail done 1", "mail dead 1", "mail stale 1", "mail stale 1")
		<-slow
		synctest.Wait()
		stopped(t, stop)
		expect(t, store, hookonce.StateDead, hookonce.StateDone, hookonce.StateDone, hookonce.StateDone, hookonce.StateDone)
	})
}

// An effect at which processes died as often as the relay lets them is given up without another attempt, and has
// all of them again when it is redriven.
func TestSuspectsAreGivenUp(t *testing.T) {
	for _, limit := range []int{2, relay.DefaultDeaths, 5} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, outcomes, began := memstore.New(), new(journal), 0
				enqueue(t, store, "poison")
				options := []relay.Option{relay.WithDeaths(limit), outcomes.observed()}
				handle := func(context.Context, hookonce.QueuedEffect) error {
					began++
					return nil
				}
				for range limit {
					dies(t, store, 1)
				}
				stop := start(t, store, handle, options...)
				synctest.Wait()
				stopped(t, stop)
				e := expect(t, store, hookonce.StateDead)[0]
				if began != 0 || e.Deaths != 0 {
					t.Errorf("begun %d times, %d deaths", began, e.Deaths)
				}
				for _, part := range []string{fmt.Sprintf("%d in a row left no outcome", limit), "redrive effect 1"} {
					if !strings.Contains(e.LastError, part) {
						t.Errorf("the last error does not say %q: %s", part, e.LastError)
					}
				}
				if err := store.RedriveEffect(t.Context(), e.ID); err != nil {
					t.Fatal(err)
				}
				for range limit - 1 {
					dies(t, store, 1)
				}
				stop = start(t, store, handle, options...)
				synctest.Wait()
				stopped(t, stop)
				expect(t, store, hookonce.StateDone)
				outcomes.want(t, "mail dead 1", "mail done 1")
			})
		})
	}
}

// What a relay took and never heard of is not given up before it was begun, however often that
// happens.
func TestLostTakesGiveNothingUp(t *testing.T) {
	for _, c := range []struct {
		steps   string
		answers int
	}{{"a", 1}, {"a", relay.DefaultDeaths}, {"a", 10 * relay.DefaultDeaths}, {"a b", 3 * relay.DefaultDeaths}} {
		t.Run(fmt.Sprintf("%s, %d times", c.steps, c.answers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, outcomes := memstore.New(), new(journal)
				steps := strings.Fields(c.steps)
				enqueue(t, store, steps...)
				stop := start(t, &disturbed{store, c.answers, lost}, func(context.Context, hookonce.QueuedEffect) error { return nil }, outcomes.observed())
				pass(time.Hour)
				stopped(t, stop)
				outcomes.want(t, slices.Repeat([]string{"mail done 1"}, len(steps))...)
				expect(t, store, slices.Repeat([]hookonce.State{hookonce.StateDone}, len(steps))...)
			})
		})
	}
}

// One that hangs is given up all the same, after one attempt more; and one that came after the last
// take that was lost without any.
func TestLostTakesExcuseOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, outcomes, begun, end := memstore.New(), new(journal), new(journal), make(chan struct{})
		enqueue(t, store, "hangs")
		r := relay.New(&disturbed{store, relay.DefaultDeaths, lost}, map[string]relay.Handler{"mail": func(_ context.Context, e hookonce.QueuedEffect) error {
			begun.write("%s", e.Step)
			<-end
			return nil
		}}, relay.WithLogger(slog.New(slog.DiscardHandler)), outcomes.observed())
		stop := run(r)
		pass(time.Hour)
		outcomes.want(t, "mail dead 1")
		close(end)
		synctest.Wait()
		stopped(t, stop)
		enqueue(t, store, "poison")
		for range relay.DefaultDeaths {
			dies(t, store, 1)
		}
		stop = run(r)
		synctest.Wait()
		stopped(t, stop)
		begun.want(t, "hangs")
		outcomes.want(t, "mail dead 1", "mail stale 1", "mail dead 1")
		expect(t, store, hookonce.StateDead, hookonce.StateDead)
	})
}

// What a relay hands back when it stops is no suspect.
func TestStopMakesNoSuspects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		enqueue(t, store, "a", "b", "c")
		for range 2 * relay.DefaultDeaths {
			stop := start(t, store, func(ctx context.Context, e hookonce.QueuedEffect) error {
				if e.Deaths > 0 {
					t.Errorf("%s is a suspect", e.Step)
				}
				<-ctx.Done()
				return ctx.Err()
			}, relay.WithGrace(0))
			synctest.Wait()
			stopped(t, stop)
		}
		expect(t, store, hookonce.StateFailed, hookonce.StateFailed, hookonce.StateFailed)
	})
}

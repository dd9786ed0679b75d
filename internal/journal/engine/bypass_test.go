package engine_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// app takes events that come past the store, and counts them by key and destination.
type app struct {
	mu    sync.Mutex
	calls map[string]int
	fails map[string]bool // destinations that do not take anything
	gate  chan struct{}   // if set, attempts wait for it
}

func newApp() *app { return &app{calls: map[string]int{}, fails: map[string]bool{}} }

func (a *app) attempt(ctx context.Context, w *journal.Work) journal.Outcome {
	if a.gate != nil {
		<-a.gate
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls[w.Key+" to "+w.Destination]++
	o := journal.Outcome{Held: w.Held, State: journal.Done, Status: 200, Started: time.Now()}
	if a.fails[w.Destination] {
		o.State, o.Status, o.Error = journal.Failed, 500, "status 500"
	}
	return o
}

func (a *app) count(what string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[what]
}

func (r *rig) bypass(a *app, entries ...*journal.Event) answer {
	return result(r.Bypass(context.Background(), entries, a.attempt))
}

// down makes the store fail from now on, up heals it.
func (r *rig) down(m journaltest.Mode) {
	for _, op := range []journaltest.Op{journaltest.OpAccept, journaltest.OpTake, journaltest.OpFinish, journaltest.OpExtend, journaltest.OpBypassed} {
		r.fault.Fail(op, -1, m)
	}
}

func (r *rig) up() {
	for _, op := range []journaltest.Op{journaltest.OpAccept, journaltest.OpTake, journaltest.OpFinish, journaltest.OpExtend, journaltest.OpBypassed} {
		r.fault.Fail(op, 0, 0)
	}
}

// An event that was delivered past the store is on record when the store is back, done, whether or not the
// commit that failed had stored it. Copies are copies, before and after, and nothing is delivered again.
func TestBypass_reconciles(t *testing.T) {
	for name, mode := range map[string]journaltest.Mode{"not persisted": journaltest.NotPersisted, "persisted": journaltest.Persisted} {
		t.Run(name, func(t *testing.T) {
			run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys}, func(t *testing.T, r *rig) {
				a := newApp()
				r.down(mode)
				if got := r.accept(entry("a")); !journal.IsOutage(got.err) {
					t.Fatalf("Accept: %v", got.err)
				}
				r.want(r.bypass(a, entry("a")), journal.Unprotected)
				for range 3 {
					if res := r.want(r.accept(entry("a")), journal.Duplicate); !res.Done {
						t.Error("the copy is not known to be done")
					}
					sleep(20 * time.Second)
				}
				r.want(r.accept(forged("a")), journal.Conflict)

				r.up()
				sleep(time.Minute)
				r.idle()
				if res := r.want(r.accept(entry("a")), journal.Duplicate); !res.Done {
					t.Error("the copy after the outage is not known to be done")
				}
				r.idle()
				attempts := r.store.Attempts()
				if open := r.store.Deliveries(); len(open) != 0 || r.store.Events() != 1 || len(attempts) != 1 || attempts[0].Status != 200 {
					t.Errorf("open %+v, %d events, attempts %+v", open, r.store.Events(), attempts)
				}
				if n := a.count("a to app"); n != 1 {
					t.Errorf("delivered %d times", n)
				}
				page, err := r.store.List(t.Context(), journal.Filter{}, 0, 1)
				if err != nil || len(page.Events) != 1 || page.Events[0].Unrouted {
					t.Errorf("on record is %+v (%v): it was delivered", page.Events, err)
				}
			})
		})
	}
}

// What was delivered before the outage, and is not remembered, goes past the store once more: that is on record, too.
func TestBypass_doneBefore(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("a")), journal.Accepted)
		r.finish(r.receive(), journal.Failed, time.Now())
		sleep(time.Second)
		r.finish(r.receive(), journal.Done, time.Time{})
		sleep(time.Second)
		r.down(journaltest.NotPersisted)
		r.want(r.bypass(newApp(), entry("a")), journal.Unprotected)
		r.up()
		sleep(10 * time.Second)
		r.idle()
		attempts := r.store.Attempts()
		if n := len(attempts); n != 3 || r.store.Events() != 1 || len(r.store.Deliveries()) != 0 {
			t.Fatalf("%d attempts, %d events, open %+v", n, r.store.Events(), r.store.Deliveries())
		}
		if last := attempts[2]; last.Token != 3 || last.Status != 200 || last.State != journal.Done {
			t.Errorf("the last attempt is %+v", last)
		}
	})
}

// A commit whose outcome nobody waited for may come through while the event goes past the store, or after
// that: the work is not handed out.
func TestBypass_lateCommit(t *testing.T) {
	run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys}, func(t *testing.T, r *rig) {
		gate := r.fault.Block(journaltest.OpAccept)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := r.Accept(ctx, []*journal.Event{entry("a")}); !journal.IsOutage(err) {
			t.Fatalf("Accept: %v", err)
		}
		a := newApp()
		a.gate = make(chan struct{})
		done := make(chan answer, 1)
		go func() { done <- r.bypass(a, entry("a")) }()
		synctest.Wait()
		gate.Open()
		r.idle() // the commit came through, the bypass is under way
		other := r.another(engine.Options{})
		sleep(5 * time.Second) // which is less than the lease
		other.idle()
		close(a.gate)
		r.want(<-done, journal.Unprotected)
		sleep(time.Minute)
		r.idle()
		if open := r.store.Deliveries(); len(open) != 0 || len(r.store.Attempts()) != 1 {
			t.Errorf("open %+v, attempts %+v", open, r.store.Attempts())
		}
	})
}

// The answer to a call that leased an event to this process may come when the event went past the store and is on record: it is not
// delivered again.
func TestBypass_lateAnswer(t *testing.T) {
	for name, lease := range map[string]func(r *rig, late *atomic.Bool){
		"to the commit": func(r *rig, late *atomic.Bool) {
			late.Store(true)
			ctx, cancel := context.WithTimeout(context.Background(), 2500*time.Millisecond)
			defer cancel()
			if _, err := r.Accept(ctx, []*journal.Event{entry("a")}); !journal.IsOutage(err) {
				r.t.Fatalf("Accept: %v", err)
			}
		},
		"to a look for work": func(r *rig, late *atomic.Bool) {
			r.fault.Fail(journaltest.OpAccept, 1, journaltest.Persisted)
			if got := r.accept(entry("a")); !journal.IsOutage(got.err) {
				r.t.Fatalf("Accept: %v", got.err)
			}
			late.Store(true)
			sleep(11 * time.Second) // the lease of the commit is over, and the next one is asked for
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &lateStore{Memory: journaltest.NewMemory(), persisted: make(chan struct{}, 1), answer: make(chan struct{})}
				r := startOn(t, s.Memory, s, 0, engine.Options{DoneKeys: journaltest.NoDoneKeys})
				lease(r, &s.late)
				select {
				case <-s.persisted:
				case <-time.After(time.Second):
					t.Fatal("the store was not asked")
				}
				s.late.Store(false)
				r.want(r.bypass(newApp(), entry("a")), journal.Unprotected)
				synctest.Wait()
				if n := len(r.store.Attempts()); n != 1 || len(r.store.Deliveries()) != 0 {
					t.Fatalf("before the answer: %d attempts on record, open %+v", n, r.store.Deliveries())
				}
				sleep(3 * time.Second)
				s.answer <- struct{}{}
				r.idle()
				sleep(time.Minute)
				r.idle()
				if n := len(r.store.Attempts()); n != 1 || r.store.Events() != 1 || r.Tracked() != 0 {
					t.Errorf("%d attempts at %d events on record, and %d tracked", n, r.store.Events(), r.Tracked())
				}
			})
		})
	}
}

// What did not go past the store after all is delivered half a minute later, however long the leases are, or a second later, however
// short.
func TestBypass_lateCommitOfWhatIsRefused(t *testing.T) {
	for lease, rest := range map[time.Duration]time.Duration{200 * time.Millisecond: time.Second, time.Hour: 30 * time.Second} {
		run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys, Lease: lease}, func(t *testing.T, r *rig) {
			gate := r.fault.Block(journaltest.OpAccept)
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if _, err := r.Accept(ctx, []*journal.Event{entry("a")}); !journal.IsOutage(err) {
				t.Fatalf("Accept: %v", err)
			}
			a := newApp()
			a.gate, a.fails["app"] = make(chan struct{}), true
			done := make(chan answer, 1)
			go func() { done <- r.bypass(a, entry("a")) }()
			synctest.Wait()
			gate.Open()
			r.idle()
			close(a.gate)
			<-done
			sleep(rest * 9 / 10)
			r.idle()
			sleep(rest/10 + 2*time.Second)
			r.finish(r.receive(), journal.Done, time.Time{})
		})
	}
}

// What only some destinations took is not acknowledged, and is not delivered to these again: neither past
// the store nor when it is back. The others get it.
func TestBypass_partly(t *testing.T) {
	for name, again := range map[string]bool{"the sender comes again": true, "the store is back first": false} {
		t.Run(name, func(t *testing.T) {
			run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys}, func(t *testing.T, r *rig) {
				both := func() *journal.Event {
					e := entry("a")
					e.Destinations = []string{"app", "mailer"}
					return e
				}
				a := newApp()
				a.fails["mailer"] = true
				r.down(journaltest.NotPersisted)
				if got := r.bypass(a, both()); !errors.Is(got.err, journal.ErrUnavailable) {
					t.Fatalf("Bypass: %+v", got)
				}
				if got := r.accept(both()); !errors.Is(got.err, journal.ErrUnavailable) {
					t.Fatalf("Accept: %+v", got)
				}
				synctest.Wait() // while what was taken is being recorded, which fails, nobody else may have the event
				if again {
					a.fails["mailer"] = false
					r.want(r.bypass(a, both()), journal.Unprotected)
				}
				r.up()
				sleep(10 * time.Second)
				if again {
					r.idle()
				} else if w := r.receive(); w.Destination != "mailer" {
					t.Errorf("work for %s", w.Destination)
				} else {
					r.finish(w, journal.Done, time.Time{})
				}
				r.idle()
				r.want(r.accept(both()), journal.Duplicate)
				if a.count("a to app") != 1 || len(r.store.Deliveries()) != 0 {
					t.Errorf("app got it %d times, open %+v", a.count("a to app"), r.store.Deliveries())
				}
			})
		})
	}
}

// An event that nobody took leaves no trace: it is as if it had never come.
func TestBypass_refused(t *testing.T) {
	run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys}, func(t *testing.T, r *rig) {
		a := newApp()
		a.fails["app"] = true
		r.down(journaltest.NotPersisted)
		if got := r.bypass(a, entry("a")); !errors.Is(got.err, journal.ErrUnavailable) {
			t.Fatalf("Bypass: %+v", got)
		}
		r.up()
		r.want(r.accept(entry("a")), journal.Accepted)
		r.finish(r.receive(), journal.Done, time.Time{})
	})
}

// Two copies at once go past the store once; the one that cannot know yet is told to come again.
func TestBypass_copiesAtOnce(t *testing.T) {
	run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys}, func(t *testing.T, r *rig) {
		a := newApp()
		a.gate = make(chan struct{})
		r.down(journaltest.NotPersisted)
		first := make(chan answer, 1)
		go func() { first <- r.bypass(a, entry("a")) }()
		synctest.Wait()
		for _, got := range []answer{r.bypass(a, entry("a")), r.accept(entry("a"))} {
			if !errors.Is(got.err, journal.ErrUnavailable) {
				t.Errorf("a copy: %+v", got)
			}
		}
		close(a.gate)
		r.want(<-first, journal.Unprotected)
		r.want(r.bypass(a, entry("a")), journal.Duplicate)
		if n := a.count("a to app"); n != 1 {
			t.Errorf("delivered %d times", n)
		}
		r.up()
		sleep(10 * time.Second)
		r.idle()
	})
}

// What is held is being delivered in the usual way, and does not go past the store as well.
func TestBypass_heldAlready(t *testing.T) {
	run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys}, func(t *testing.T, r *rig) {
		a := newApp()
		r.want(r.accept(entry("a")), journal.Accepted)
		w := r.receive()
		r.down(journaltest.NotPersisted)
		if got := r.bypass(a, entry("a")); !errors.Is(got.err, journal.ErrUnavailable) || a.count("a to app") != 0 {
			t.Errorf("Bypass: %+v, delivered %d times", got, a.count("a to app"))
		}
		r.up()
		r.finish(w, journal.Done, time.Time{})
	})
}

// Nothing is delivered that cannot be remembered.
func TestBypass_bounds(t *testing.T) {
	run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys, QueueEntries: 2}, func(t *testing.T, r *rig) {
		a := newApp()
		r.down(journaltest.NotPersisted)
		r.want(r.bypass(a, entry("a")), journal.Unprotected)
		r.want(r.bypass(a, entry("b")), journal.Unprotected)
		if got := r.bypass(a, entry("c")); !errors.Is(got.err, journal.ErrFull) || a.count("c to app") != 0 {
			t.Errorf("Bypass: %+v, delivered %d times", got, a.count("c to app"))
		}
		r.up()
		sleep(30 * time.Second) // in which they come on record, and no call is answered any more that had begun before
		r.want(r.bypass(a, entry("c")), journal.Unprotected)
	})
}

// A record that fails half-way is made again, and whole.
func TestBypass_reconcileFails(t *testing.T) {
	for _, op := range []journaltest.Op{journaltest.OpAccept, journaltest.OpBypassed} {
		for _, mode := range []journaltest.Mode{journaltest.NotPersisted, journaltest.Persisted} {
			run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys}, func(t *testing.T, r *rig) {
				r.fault.Fail(op, 3, mode)
				r.want(r.bypass(newApp(), entry("a")), journal.Unprotected)
				sleep(10 * time.Second)
				r.idle()
				if n := len(r.store.Attempts()); n != 1 || r.store.Events() != 1 || len(r.store.Deliveries()) != 0 {
					t.Errorf("%s, mode %d: %d attempts, %d events, open %+v", op, mode, n, r.store.Events(), r.store.Deliveries())
				}
			})
		}
	}
}

// A clean stop records what it can, and says what it cannot.
func TestBypass_close(t *testing.T) {
	run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys}, func(t *testing.T, r *rig) {
		r.down(journaltest.NotPersisted)
		r.want(r.bypass(newApp(), entry("a")), journal.Unprotected)
		r.up()
		if err := r.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if n := r.store.Events(); n != 1 {
			t.Errorf("%d events on record", n)
		}
		if _, err := r.Bypass(context.Background(), []*journal.Event{entry("b")}, newApp().attempt); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("Bypass after Close: %v", err)
		}
	})
	for name, away := range map[string]func(r *rig){
		"fails": func(r *rig) { r.down(journaltest.NotPersisted) },
		"hangs": func(r *rig) { r.fault.Block(journaltest.OpAccept) },
	} {
		run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys, Timeout: time.Hour}, func(t *testing.T, r *rig) {
			away(r)
			r.want(r.bypass(newApp(), entry("a")), journal.Unprotected)
			began := time.Now()
			if err := <-r.goClose(5 * time.Second); err != nil {
				t.Fatalf("the store %s: %v", name, err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the store %s: Close took %v", name, took)
			}
			r.wantLog(1, "are on no record; copies of them are new")
		})
	}
}

// The store may be back before the time for a stop is over: what went past it is on record then, and nothing is given up.
func TestBypass_closeAwaitsTheStore(t *testing.T) {
	run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys}, func(t *testing.T, r *rig) {
		r.down(journaltest.NotPersisted)
		r.want(r.bypass(newApp(), entry("a")), journal.Unprotected)
		closed := r.goClose(20 * time.Second)
		sleep(3 * time.Second)
		if len(closed) > 0 {
			t.Fatalf("closed with an event on no record: %v", <-closed)
		}
		r.up()
		back := time.Now()
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(back); took > time.Second {
			t.Errorf("Close took %v once the store was back", took)
		}
		if n := len(r.store.Attempts()); n != 1 || r.store.Events() != 1 || len(r.store.Deliveries()) != 0 {
			t.Errorf("%d attempts, %d events, open %+v", n, r.store.Events(), r.store.Deliveries())
		}
		r.wantLog(0, "are on no record")
	})
}

// A record that is being made when the stop begins is made: the stop waits for it, says nothing of it, and makes
// it again if it fails.
func TestBypass_closeWhileRecording(t *testing.T) {
	for _, op := range []journaltest.Op{journaltest.OpPing, journaltest.OpAccept, journaltest.OpBypassed} {
		for _, faults := range []int{0, 1} {
			run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys}, func(t *testing.T, r *rig) {
				gate := r.fault.Block(op)
				r.want(r.bypass(newApp(), entry("a")), journal.Unprotected)
				synctest.Wait() // the record is at the gate
				closed := make(chan error, 1)
				go func() { closed <- r.Close(context.Background()) }()
				synctest.Wait()
				r.fault.Fail(op, faults, journaltest.NotPersisted)
				gate.Open()
				if err := <-closed; err != nil {
					t.Fatal(err)
				}
				if n := len(r.store.Attempts()); n != 1 || r.store.Events() != 1 || len(r.store.Deliveries()) != 0 {
					t.Errorf("%s, %d faults: %d attempts, %d events, open %+v", op, faults, n, r.store.Events(), r.store.Deliveries())
				}
				r.wantLog(0, "are on no record")
			})
		}
	}
}

// While what was delivered is being recorded there is no moment in which another process finds it to do.
func TestBypass_leavesNothingToTake(t *testing.T) {
	run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys}, func(t *testing.T, r *rig) {
		other := r.another(engine.Options{DoneKeys: journaltest.NoDoneKeys})
		gate := r.fault.Block(journaltest.OpBypassed)
		r.want(r.bypass(newApp(), entry("a")), journal.Unprotected)
		sleep(5 * time.Second)
		if r.store.Events() != 1 {
			t.Fatal("the event is not on record")
		}
		other.idle()
		gate.Open()
		sleep(time.Minute)
		other.idle()
		r.idle()
	})
	run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys}, func(t *testing.T, r *rig) {
		other := r.another(engine.Options{DoneKeys: journaltest.NoDoneKeys})
		r.want(r.accept(entry("a")), journal.Accepted)
		r.finish(r.receive(), journal.Dead, time.Time{})
		gate := r.fault.Block(journaltest.OpBypassed)
		r.want(r.bypass(newApp(), entry("a")), journal.Unprotected)
		sleep(5 * time.Second)
		if d := r.delivery(); d.State != journal.Dead {
			t.Errorf("what was taken is to be delivered once more: %+v", d)
		}
		other.idle()
		gate.Open()
		sleep(time.Minute)
		other.idle()
		r.idle()
		if n := len(r.store.Attempts()); n != 2 || len(r.store.Deliveries()) != 0 {
			t.Errorf("%d attempts on record, open %+v", n, r.store.Deliveries())
		}
	})
}

// What this process has delivered is held or remembered at any moment, so that it does not go past the store
// as well.
func TestBypass_doneAtThatMoment(t *testing.T) {
	r := &rig{t: t, Engine: open(t, journaltest.NewMemory(), engine.Options{})}
	a := newApp()
	for i := range 300 {
		r.want(r.accept(entry(key(i))), journal.Accepted)
		w := <-r.Work()
		go r.Finish(journal.Outcome{Held: w.Held, State: journal.Done, Started: time.Now()})
		got := r.bypass(a, entry(key(i)))
		for errors.Is(got.err, journal.ErrUnavailable) {
			got = r.bypass(a, entry(key(i)))
		}
		r.want(got, journal.Duplicate)
		if n := a.count(key(i) + " to app"); n != 0 {
			t.Fatalf("delivered %d times past the store", n)
		}
	}
}

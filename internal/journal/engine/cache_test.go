package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// asks reports whether accepting e reaches the store.
func (r *rig) asks(e *journal.Event) bool {
	synctest.Wait() // what follows from earlier answers has happened
	before := r.fault.Calls(journaltest.OpAccept)
	if a := r.accept(e); a.err != nil {
		r.t.Fatal(a.err)
	}
	return r.fault.Calls(journaltest.OpAccept) > before
}

// Law 13: the cache answers for done events, and for nothing else.
func TestCache_onlyRemembersDone(t *testing.T) {
	for name, tt := range map[string]struct {
		state  journal.State // of the delivery when the copy comes; Processing: not finished
		cached bool
	}{
		"processing": {journal.Processing, false},
		"failed":     {journal.Failed, false},
		"dead":       {journal.Dead, false},
		"done":       {journal.Done, true},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, engine.Options{Poll: time.Hour}, func(t *testing.T, r *rig) {
				r.want(r.accept(entry("evt_1")), journal.Accepted)
				if w := r.receive(); tt.state != journal.Processing {
					r.finish(w, tt.state, time.Now().Add(time.Hour))
				}
				if asked := r.asks(entry("evt_1")); asked == tt.cached {
					t.Errorf("asked the store: %v", asked)
				}
			})
		})
	}
}

// Law 13: an outcome that is reported but not recorded does not count.
func TestCache_waitsForTheRecord(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		gate := r.fault.Block(journaltest.OpFinish)
		r.finish(r.receive(), journal.Done, time.Time{})
		<-gate.Arrived
		if !r.asks(entry("evt_1")) {
			t.Error("answered from the cache before the outcome was recorded")
		}
		gate.Open()
		sleep(time.Second)
		if r.asks(entry("evt_1")) {
			t.Error("not answered from the cache")
		}
	})
}

// An event with several destinations is done when the last one is.
func TestCache_waitsForAllDestinations(t *testing.T) {
	for name, last := range map[string]journal.State{"done": journal.Done, "dead": journal.Dead} {
		t.Run(name, func(t *testing.T) {
			run(t, engine.Options{}, func(t *testing.T, r *rig) {
				e := entry("evt_1")
				e.Destinations = []string{"app", "audit"}
				r.want(r.accept(e), journal.Accepted)
				first, second := r.receive(), r.receive()
				r.finish(first, journal.Done, time.Time{})
				if !r.asks(e) {
					t.Error("answered from the cache with one destination open")
				}
				r.finish(second, last, time.Time{})
				if asked := r.asks(e); asked != (last != journal.Done) {
					t.Errorf("second destination %s: asked the store: %v", last, asked)
				}
			})
		})
	}
}

// What the cache answers is what the store would.
func TestCache_answersLikeTheStore(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		id := r.want(r.accept(entry("evt_1")), journal.Accepted).ID
		r.finish(r.receive(), journal.Done, time.Time{})
		synctest.Wait()
		before := r.fault.Calls(journaltest.OpAccept)
		same, other := r.accept(entry("evt_1")), r.accept(forged("evt_1"))
		if r.fault.Calls(journaltest.OpAccept) != before {
			t.Error("the store was asked")
		}
		for a, want := range map[answer]journal.Status{same: journal.Duplicate, other: journal.Conflict} {
			if res := r.want(a, want); res.ID != id || !res.Done {
				t.Errorf("got %+v", res)
			}
		}
		elsewhere := entry("evt_1")
		elsewhere.Source = "shop"
		r.want(r.accept(elsewhere), journal.Accepted)
	})
}

// A store that knows an event as done teaches the cache; a conflict teaches nothing, because the
// stored digest is not known.
func TestCache_learnsFromTheStore(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		r.finish(r.receive(), journal.Done, time.Time{})

		other := r.another(engine.Options{})
		other.want(other.accept(forged("evt_1")), journal.Conflict)
		if !other.asks(entry("evt_1")) {
			t.Error("learned from a conflict")
		}
		if other.asks(entry("evt_1")) {
			t.Error("did not learn from a duplicate")
		}
	})
}

func TestCache_isBounded(t *testing.T) {
	run(t, engine.Options{DoneKeys: 2}, func(t *testing.T, r *rig) {
		for i := range 3 {
			r.want(r.accept(entry(key(i))), journal.Accepted)
			r.finish(r.receive(), journal.Done, time.Time{})
		}
		if r.asks(entry(key(2))) || r.asks(entry(key(1))) || !r.asks(entry(key(0))) {
			t.Error("does not hold exactly the last two keys")
		}
	})
}

func TestCache_canBeOff(t *testing.T) {
	run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		r.finish(r.receive(), journal.Done, time.Time{})
		if !r.asks(entry("evt_1")) {
			t.Error("answered without the store")
		}
	})
}

// again is the replay of an event although it is done.
func again(id int64) journal.Replay {
	return journal.Replay{EventID: id, Force: true, Start: time.Now(), By: "somebody", Reason: "a test"}
}

// replay has an event begin again although it is done.
func (r *rig) replay(id int64) {
	r.t.Helper()
	if done, err := r.Replay(r.t.Context(), again(id), 1); err != nil || done.Forced != 1 {
		r.t.Fatalf("%+v, %v", done, err)
	}
	synctest.Wait()
}

// Laws 5 and 13: what is replayed by force is done no more. If it fails a copy has it begin again, here and
// in a process that is told of the replay, at once or at last, and in one that cannot be told. Who asked may not have
// heard that it was replayed.
func TestCache_forgetsWhatIsReplayed(t *testing.T) {
	here := func(_ *countingNotifier, one *rig) *rig { return one }
	told := func(b *countingNotifier, one *rig) *rig { return one.another(listening(b)) }
	for name, c := range map[string]struct {
		copies func(b *countingNotifier, one *rig) *rig
		broken func(b *countingNotifier, one *rig)
	}{
		"here":       {copies: here},
		"alone":      {copies: here}, // with no notifier to hear itself
		"told":       {copies: told},
		"told late":  {copies: told, broken: func(b *countingNotifier, _ *rig) { b.fail(3) }},
		"unanswered": {copies: told, broken: func(_ *countingNotifier, one *rig) { one.fault.Fail(journaltest.OpReplay, 1, journaltest.Persisted) }},
		"deaf":       {copies: func(_ *countingNotifier, one *rig) *rig { return one.another(listening(deaf{})) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := &countingNotifier{heard: map[int]func(){}}
			synctest.Test(t, func(t *testing.T) {
				store := journaltest.NewMemory()
				opt := listening(b)
				opt.Destinations = destinations("app")
				if name == "alone" {
					opt.Notifier = nil
				}
				one := start(t, store, 0, opt)
				two := c.copies(b, one)
				id := one.want(one.accept(entry("evt_1")), journal.Accepted).ID
				one.finish(one.receive(), journal.Done, time.Time{})
				for range 2 {
					if res := two.want(two.accept(entry("evt_1")), journal.Duplicate); !res.Done {
						t.Errorf("not done: %+v", res)
					}
				}
				sleep(time.Second)
				if c.broken != nil {
					c.broken(b, one)
				}
				if name == "unanswered" {
					if _, err := one.Replay(t.Context(), again(id), 1); !errors.Is(err, journaltest.ErrInjected) {
						t.Fatal(err)
					}
				} else {
					one.replay(id)
				}
				sleep(5 * time.Second)
				w := one.receive()
				if res := two.want(two.accept(entry("evt_1")), journal.Duplicate); res.Done {
					t.Errorf("done while it is delivered again: %+v", res)
				}
				one.finish(w, journal.Dead, time.Time{})
				if res := two.want(two.accept(entry("evt_1")), journal.Duplicate); res.Done || !res.Redriven {
					t.Errorf("a copy of dead work: %+v", res)
				}
			})
		})
	}
}

// Of an event with several destinations one may begin again while another still is under way for the first time: then the end
// of that does not mean that all is done.
func TestCache_replayedWhileOpen(t *testing.T) {
	opt := engine.Options{Poll: time.Hour, Destinations: destinations("app", "audit")}
	run(t, opt, func(t *testing.T, r *rig) {
		e := toward("evt_1", "app", "audit")
		id := r.want(r.accept(e), journal.Accepted).ID
		first, second := r.receive(), r.receive()
		r.finish(first, journal.Done, time.Time{})
		synctest.Wait()
		r.replay(id)
		r.finish(second, journal.Done, time.Time{})
		r.finish(r.receive(), journal.Dead, time.Time{})
		synctest.Wait()
		if res := r.want(r.accept(e), journal.Duplicate); res.Done || !res.Redriven {
			t.Errorf("a copy, while %s is dead: %+v", first.Destination, res)
		}
	})
}

// listening are the options of a process that delivers nothing and finds nothing by itself.
func listening(b journal.Notifier) engine.Options {
	opt := quiet("none")
	opt.Notifier = b
	return opt
}

// deaf is a notifier that cannot be heard.
type deaf struct{}

func (deaf) Notify(context.Context) error   { return nil }
func (deaf) Listen(context.Context, func()) {}

// A replay that only counts leaves the cache as it is.
func TestCache_dryRun(t *testing.T) {
	runRecorded(t, engine.Options{}, func(t *testing.T, r *rig, _ *ledger) {
		id := r.want(r.accept(entry("evt_1")), journal.Accepted).ID
		r.finish(r.receive(), journal.Done, time.Time{})
		counted := again(id)
		counted.DryRun = true
		if _, err := r.Replay(t.Context(), counted, 1); err != nil {
			t.Fatal(err)
		}
		if r.asks(entry("evt_1")) {
			t.Error("forgotten")
		}
	})
}

// lateStore answers some calls later than they were persisted.
type lateStore struct {
	*journaltest.Memory
	late      atomic.Bool
	persisted chan struct{}
	answer    chan struct{}
}

func (s *lateStore) wait() {
	if s.late.Load() {
		s.persisted <- struct{}{}
		<-s.answer
	}
}

func (s *lateStore) Accept(ctx context.Context, batch []*journal.Record, now, lease time.Time) ([]journal.Result, error) {
	defer s.wait()
	return s.Memory.Accept(ctx, batch, now, lease)
}

func (s *lateStore) Take(ctx context.Context, now, lease time.Time, want journal.Wanted) ([]*journal.Work, error) {
	work, err := s.Memory.Take(ctx, now, lease, want)
	if len(work) > 0 {
		s.wait()
	}
	return work, err
}

func (s *lateStore) Finish(ctx context.Context, outcomes []journal.Outcome) ([]bool, error) {
	defer s.wait()
	return s.Memory.Finish(ctx, outcomes)
}

// What the store said before a replay is not remembered after it.
func TestCache_lateAnswers(t *testing.T) {
	for name, learn := range map[string]func(r *rig, w *journal.Work, late *atomic.Bool){
		"an outcome": func(r *rig, w *journal.Work, late *atomic.Bool) {
			late.Store(true)
			r.Finish(journal.Outcome{Held: w.Held, State: journal.Done, Started: time.Now()})
		},
		"a copy": func(r *rig, w *journal.Work, late *atomic.Bool) {
			r.finish(w, journal.Done, time.Time{})
			r.replay(w.EventID) // forgets it
			r.finish(r.receive(), journal.Done, time.Time{})
			late.Store(true)
			go r.accept(entry("evt_1"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &lateStore{Memory: journaltest.NewMemory(), persisted: make(chan struct{}), answer: make(chan struct{})}
				r := &rig{t: t, store: s.Memory, Engine: open(t, s, engine.Options{})}
				id := r.want(r.accept(entry("evt_1")), journal.Accepted).ID
				learn(r, r.receive(), &s.late)
				select {
				case <-s.persisted:
				case <-time.After(time.Second):
					t.Fatal("the store was not asked")
				}
				s.late.Store(false)
				r.replay(id)
				s.answer <- struct{}{}
				synctest.Wait()
				if res := r.want(r.accept(entry("evt_1")), journal.Duplicate); res.Done {
					t.Errorf("got %+v", res)
				}
			})
		})
	}
}

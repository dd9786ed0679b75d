package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

func TestAccept_tellsCopiesApart(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		first := r.want(r.accept(entry("evt_1")), journal.Accepted)
		again := r.want(r.accept(entry("evt_1")), journal.Duplicate)
		other := r.want(r.accept(forged("evt_1")), journal.Conflict)
		if again.ID != first.ID || other.ID != first.ID {
			t.Errorf("ids %d, %d, %d; want the first copy's", first.ID, again.ID, other.ID)
		}
		elsewhere := entry("evt_1")
		elsewhere.Source = "shop"
		r.want(r.accept(elsewhere), journal.Accepted)
	})
}

// Law 4: events without a key are never collapsed, not even those that are under way together.
func TestAccept_neverCollapsesUnkeyed(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		gate := r.fault.Block(journaltest.OpAccept)
		var answers []<-chan answer
		for range 20 {
			answers = append(answers, r.goAccept(entry("")))
		}
		gate.Open()
		ids := map[int64]bool{}
		for _, a := range answers {
			ids[r.want(<-a, journal.Unkeyed).ID] = true
		}
		if len(ids) != 20 || r.store.Events() != 20 {
			t.Errorf("%d ids, %d events; want 20 of each", len(ids), r.store.Events())
		}
		for range 20 {
			r.receive()
		}
	})
}

// Law 3: nobody is answered before the commit, neither the first copy nor those that wait for it.
func TestAccept_answersAfterTheCommit(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		gate := r.fault.Block(journaltest.OpAccept)
		first := r.goAccept(entry("evt_1"))
		<-gate.Arrived
		copies := []<-chan answer{r.goAccept(entry("evt_1")), r.goAccept(entry("evt_1"))}
		other := r.goAccept(forged("evt_1"))
		for _, c := range append(copies, first, other) {
			if len(c) > 0 {
				t.Fatalf("answered before the commit: %+v", <-c)
			}
		}
		gate.Open()
		id := r.want(<-first, journal.Accepted).ID
		for _, c := range copies {
			if res := r.want(<-c, journal.Duplicate); res.ID != id || res.Done {
				t.Errorf("copy got %+v, want event %d, not done", res, id)
			}
		}
		r.want(<-other, journal.Conflict)
		if n := r.fault.Calls(journaltest.OpAccept); n != 2 {
			t.Errorf("%d commits, want 2: one for the first copy, one for the conflict", n)
		}
	})
}

// Law 3: when the first copy's commit fails, the copies that waited for it fail too.
func TestAccept_copiesFailWithTheFirst(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		r.fault.Fail(journaltest.OpAccept, 1, journaltest.NotPersisted)
		gate := r.fault.Block(journaltest.OpAccept)
		first, second := r.goAccept(entry("evt_1")), r.goAccept(entry("evt_1"))
		gate.Open()
		for _, c := range []<-chan answer{first, second} {
			if a := <-c; !errors.Is(a.err, journal.ErrUnavailable) || !errors.Is(a.err, journaltest.ErrInjected) {
				t.Errorf("got %+v, want ErrUnavailable around the store's error", a)
			}
		}
		r.idle()
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		r.receive()
	})
}

// A follower may be one entry of a larger request, and the same key may be twice in one request.
func TestAccept_followersInsideRequests(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		gate := r.fault.Block(journaltest.OpAccept)
		first := r.goAccept(entry("evt_1"))
		<-gate.Arrived
		var results []journal.Result
		done := make(chan error, 1)
		go func() {
			var err error
			results, err = r.Accept(context.Background(), []*journal.Event{
				entry("evt_2"), entry("evt_1"), entry("evt_2"), forged("evt_2"), entry(""),
			})
			done <- err
		}()
		synctest.Wait()
		gate.Open()
		r.want(<-first, journal.Accepted)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for i, want := range []journal.Status{
			journal.Accepted, journal.Duplicate, journal.Duplicate, journal.Conflict, journal.Unkeyed,
		} {
			if results[i].Status != want {
				t.Errorf("entry %d: %s, want %s", i, results[i].Status, want)
			}
		}
		if results[2].ID != results[0].ID || results[3].ID != results[0].ID {
			t.Errorf("copies do not carry the first one's id: %+v", results)
		}
	})
}

// The entries of one request share a transaction even when they are more than a batch.
func TestAccept_oneTransactionPerRequest(t *testing.T) {
	run(t, engine.Options{MaxBatch: 4, QueueEntries: 8}, func(t *testing.T, r *rig) {
		var entries []*journal.Event
		for i := range 20 {
			entries = append(entries, entry(key(i)))
		}
		results, err := r.Accept(context.Background(), entries)
		if err != nil || len(results) != 20 {
			t.Fatal(len(results), err)
		}
		if n := r.fault.Calls(journaltest.OpAccept); n != 1 {
			t.Errorf("%d transactions, want 1", n)
		}
	})
}

// Requests that wait while one commit is under way share the next one.
func TestAccept_groupsCommits(t *testing.T) {
	run(t, engine.Options{MaxBatch: 8}, func(t *testing.T, r *rig) {
		gate := r.fault.Block(journaltest.OpAccept)
		var answers []<-chan answer
		for i := range 17 {
			answers = append(answers, r.goAccept(entry(key(i))))
		}
		gate.Open()
		for _, a := range answers {
			r.want(<-a, journal.Accepted)
		}
		if n := r.fault.Calls(journaltest.OpAccept); n != 3 {
			t.Errorf("%d transactions for 1 + 16 entries in batches of 8, want 3", n)
		}
	})
}

// One transaction accepts at a time: what comes meanwhile shares the next.
func TestAccept_writersTakeTurns(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		gate := r.fault.Block(journaltest.OpAccept)
		var answers []<-chan answer
		for i := range 4 {
			answers = append(answers, r.goAccept(entry(key(i))))
		}
		if n := r.fault.Calls(journaltest.OpAccept); n != 1 {
			t.Errorf("%d transactions at the same time, want one", n)
		}
		gate.Open()
		for _, a := range answers {
			r.want(<-a, journal.Accepted)
		}
	})
}

// Law 12: a row that the store refuses leaves its neighbours stored.
func TestAccept_badRowLeavesNeighbours(t *testing.T) {
	bad := errors.New("invalid byte sequence")
	synctest.Test(t, func(t *testing.T) {
		store := journaltest.NewMemory()
		store.Refuse = func(e *journal.Record) error {
			if e.Key == "evt_bad" {
				return bad
			}
			return nil
		}
		r := start(t, store, 0, engine.Options{MaxHeld: 4})
		for range 3 { // more often than there is room: what was reserved must be given back
			results, err := r.Accept(context.Background(), []*journal.Event{entry(""), entry("evt_bad"), entry("")})
			if err != nil {
				t.Fatal(err)
			}
			if results[0].Err != nil || !errors.Is(results[1].Err, bad) || results[2].Err != nil {
				t.Errorf("got %+v", results)
			}
			for range 2 {
				r.finish(r.receive(), journal.Done, time.Time{})
			}
		}
	})
}

// Law 9: a full queue answers ErrFull, which is a 503, and works again when it has drained.
func TestAccept_backPressure(t *testing.T) {
	big := func(k string) *journal.Event {
		e := entry(k)
		e.Body = make([]byte, 600)
		return e
	}
	for name, tt := range map[string]struct {
		opt  engine.Options
		make func(string) *journal.Event
	}{
		"entries": {engine.Options{QueueEntries: 2}, entry},
		"bytes":   {engine.Options{QueueBytes: 1500}, big},
		"copies":  {engine.Options{QueueEntries: 2}, func(string) *journal.Event { return entry("evt_same") }},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, tt.opt, func(t *testing.T, r *rig) {
				for range 3 {
					gate := r.fault.Block(journaltest.OpAccept)
					a, b := r.goAccept(tt.make("a")), r.goAccept(tt.make("b"))
					if !r.Full() && tt.opt.QueueEntries > 0 {
						t.Error("the queue is not full")
					}
					if c := r.accept(tt.make("c")); !errors.Is(c.err, journal.ErrFull) {
						t.Fatalf("third entry: %+v, want ErrFull", c)
					}
					gate.Open()
					for _, c := range []<-chan answer{a, b} {
						if got := <-c; got.err != nil {
							t.Error(got.err)
						}
					}
					if c := r.accept(tt.make("c")); c.err != nil || r.Full() {
						t.Errorf("after the queue drained: %v, full: %v", c.err, r.Full())
					}
				}
			})
		})
	}
}

// Laws 8 and 10: a caller that goes away learns that the outcome is unknown, and its event is stored
// and delivered all the same, whether it was being committed or still queued.
func TestAccept_hangUp(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		gate := r.fault.Block(journaltest.OpAccept)
		ctx, hangUp := context.WithCancel(context.Background())
		answers := make(chan answer, 2)
		for i := range 2 {
			go func() { answers <- result(r.Accept(ctx, []*journal.Event{entry(key(i))})) }()
			synctest.Wait()
		}
		hangUp()
		for range 2 {
			if a := <-answers; !errors.Is(a.err, hookonce.ErrUnknownOutcome) || !errors.Is(a.err, context.Canceled) {
				t.Fatalf("got %+v, want ErrUnknownOutcome around the context's error", a)
			}
		}
		gate.Open()
		for i := range 2 {
			r.finish(r.receive(), journal.Done, time.Time{})
			r.want(r.accept(entry(key(i))), journal.Duplicate)
		}
	})
}

// While the store hangs, what its senders do not wait for any more keeps no room that others need; what others sent as well stays.
func TestAccept_abandonedGivesRoom(t *testing.T) {
	run(t, engine.Options{QueueEntries: 4, MaxBatch: 1}, func(t *testing.T, r *rig) {
		gate := r.fault.Block(journaltest.OpAccept)
		first := r.goAccept(entry("first"))
		<-gate.Arrived
		lead := make(chan error, 1)
		go func() { lead <- r.acceptForASecond("evt_1") }()
		synctest.Wait()
		follower := r.goAccept(entry("evt_1"))
		if err := <-lead; !errors.Is(err, hookonce.ErrUnknownOutcome) {
			t.Fatalf("the first copy: %v", err)
		}
		for i := range 5 {
			if err := r.acceptForASecond(key(10 + i)); !errors.Is(err, hookonce.ErrUnknownOutcome) {
				t.Errorf("event %d, for which there is room: %v", i, err)
			}
		}
		waits := r.goAccept(entry("evt_waits"))
		if a := r.accept(entry("evt_more")); !errors.Is(a.err, journal.ErrFull) {
			t.Errorf("beside four that are waited for: %+v, want ErrFull", a)
		}
		gate.Open()
		r.want(<-first, journal.Accepted)
		r.want(<-follower, journal.Duplicate)
		r.want(<-waits, journal.Accepted)
		if r.Full() {
			t.Error("the queue is full although it is empty")
		}
	})
}

// Of what nobody waits for only as much goes as is needed, the oldest first, and copies of it that nobody waits for go with it.
func TestAccept_abandonedGoOneByOne(t *testing.T) {
	run(t, engine.Options{QueueEntries: 5, MaxBatch: 1}, func(t *testing.T, r *rig) {
		gate := r.fault.Block(journaltest.OpAccept)
		first := r.goAccept(entry("first"))
		<-gate.Arrived
		for _, key := range []string{"evt_copied", "evt_copied", "evt_1", "evt_2"} {
			if err := r.acceptForASecond(key); !errors.Is(err, hookonce.ErrUnknownOutcome) {
				t.Fatalf("%s: %v", key, err)
			}
		}
		waiting := []<-chan answer{first}
		for _, key := range []string{"evt_a", "evt_b", "evt_c"} { // the first takes the places of both copies
			waiting = append(waiting, r.goAccept(entry(key)))
			synctest.Wait()
		}
		gate.Open()
		for i, c := range waiting {
			if a := <-c; a.err != nil {
				t.Errorf("%d of those that wait: %v", i, a.err)
			}
		}
		for key, want := range map[string]journal.Status{"evt_copied": journal.Accepted, "evt_1": journal.Accepted, "evt_2": journal.Duplicate} {
			r.want(r.accept(entry(key)), want)
		}
	})
}

// Law 10: failed, but persisted. The sender's retry reads the truth, and the event is delivered when
// the lease that nobody knows of ends.
func TestAccept_persistedButReportedFailed(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		r.fault.Fail(journaltest.OpAccept, 1, journaltest.Persisted)
		if a := r.accept(entry("evt_1")); !errors.Is(a.err, journal.ErrUnavailable) {
			t.Fatalf("got %+v, want ErrUnavailable", a)
		}
		if res := r.want(r.accept(entry("evt_1")), journal.Duplicate); res.Done {
			t.Error("the event is done before it was delivered")
		}
		r.idle()
		sleep(11 * time.Second)
		if w := r.receive(); w.Token != 2 {
			t.Errorf("token %d, want 2", w.Token)
		}
	})
}

// A failed batch gives its room among the held back.
func TestAccept_failureGivesRoomBack(t *testing.T) {
	run(t, engine.Options{MaxHeld: 2}, func(t *testing.T, r *rig) {
		for range 2 {
			r.fault.Fail(journaltest.OpAccept, 1, journaltest.NotPersisted)
			if a := r.accept(entry("evt_1"), entry("evt_2")); a.err == nil {
				t.Fatal("no error")
			}
		}
		r.want(r.accept(entry("evt_1"), entry("evt_2")), journal.Accepted)
		for range 2 {
			if w := r.receive(); w.Token != 1 {
				t.Errorf("token %d: not held by the accepting process", w.Token)
			}
		}
	})
}

// A commit that takes longer than the lease must not hand out work that others may have taken over: the
// store has to lease it again.
func TestAccept_lateCommitIsLeasedAgain(t *testing.T) {
	run(t, engine.Options{Lease: 3 * time.Second, Timeout: time.Minute, Poll: time.Hour}, func(t *testing.T, r *rig) {
		gate := r.fault.Block(journaltest.OpAccept)
		late := r.goAccept(entry("evt_1"))
		sleep(4 * time.Second)
		gate.Open()
		r.want(<-late, journal.Accepted)
		if w := r.receive(); w.Token != 2 {
			t.Errorf("token %d, want 2", w.Token)
		}
		r.idle()
	})
}

// Law 5: a copy of an event whose delivery was given up re-drives it, at once.
func TestAccept_redrivesFailedWork(t *testing.T) {
	for _, state := range []journal.State{journal.Failed, journal.Dead} {
		t.Run(string(state), func(t *testing.T) {
			run(t, engine.Options{Poll: time.Hour}, func(t *testing.T, r *rig) {
				r.want(r.accept(entry("evt_1")), journal.Accepted)
				r.finish(r.receive(), state, time.Now().Add(time.Hour))
				r.idle()
				if res := r.want(r.accept(entry("evt_1")), journal.Duplicate); !res.Redriven || res.Done {
					t.Errorf("got %+v, want it re-driven", res)
				}
				w := r.receive()
				if w.Token != 2 || w.Tries != 1 || string(w.Body) != `{"id":"evt_1"}` {
					t.Errorf("got token %d, try %d, body %s", w.Token, w.Tries, w.Body)
				}
			})
		})
	}
}

// An event without destinations is done when it is stored.
func TestAccept_nowhereToDeliver(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		e := entry("evt_1")
		e.Destinations = nil
		r.want(r.accept(e), journal.Accepted)
		if r.asks(entry("evt_1")) {
			t.Error("the event is not known as done")
		}
		r.idle()
	})
}

func TestAccept_nothing(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		if results, err := r.Accept(context.Background(), nil); err != nil || len(results) != 0 {
			t.Error(results, err)
		}
	})
}

// Law 14: times come from the injected clock.
func TestAccept_usesTheClock(t *testing.T) {
	noon := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	run(t, engine.Options{Now: func() time.Time { return noon }}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		// Under a lease that had another clock it would have been taken over at once.
		if d := r.delivery(); !d.Due.Equal(noon.Add(9*time.Second)) || d.Token != 1 {
			t.Errorf("attempt %d has its lease until %v", d.Token, d.Due)
		}
	})
}

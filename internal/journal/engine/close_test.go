package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// goClose closes the journal in the background, giving up after d.
func (r *rig) goClose(d time.Duration) <-chan error {
	closed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		closed <- r.Close(ctx)
	}()
	synctest.Wait()
	return closed
}

func TestClose_idle(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		if err := <-r.goClose(time.Minute); err != nil {
			t.Error(err)
		}
		if a := r.accept(entry("evt_1")); !errors.Is(a.err, journal.ErrClosed) {
			t.Errorf("got %+v, want ErrClosed", a)
		}
		if _, ok := <-r.Work(); ok {
			t.Error("work after Close")
		}
		if err := r.store.Ping(context.Background()); err != nil {
			t.Errorf("the store was closed: %v", err)
		}
		if err := <-r.goClose(time.Minute); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

// Close commits and answers what is queued, and hands it back instead of holding it.
func TestClose_finishesTheQueue(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		gate := r.fault.Block(journaltest.OpAccept)
		committing, queued := r.goAccept(entry("evt_1")), r.goAccept(entry("evt_2"))
		closed := r.goClose(time.Minute)
		if a := r.accept(entry("evt_3")); !errors.Is(a.err, journal.ErrClosed) {
			t.Errorf("got %+v, want ErrClosed", a)
		}
		gate.Open()
		r.want(<-committing, journal.Accepted)
		r.want(<-queued, journal.Accepted)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		r.wantHandedBack(2)
		if d := r.store.Deliveries()[1]; d.Token != 0 {
			t.Errorf("leased while closing: %+v", d)
		}
	})
}

// wantHandedBack fails the test unless n deliveries are open, due, and unattempted.
func (r *rig) wantHandedBack(n int) {
	r.t.Helper()
	open := r.store.Deliveries()
	if len(open) != n {
		r.t.Errorf("%d deliveries open, want %d", len(open), n)
	}
	for _, d := range open {
		if d.State != journal.Pending || d.Due.After(time.Now()) || d.Tries != 0 {
			r.t.Errorf("not handed back: %+v", d)
		}
	}
	if n := len(r.store.Attempts()); n != 0 {
		r.t.Errorf("%d attempts recorded", n)
	}
}

// Work that nobody received goes back at once, for the next process to take.
func TestClose_handsBackWhatNobodyBegan(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		for i := range 5 {
			r.want(r.accept(entry(key(i))), journal.Accepted)
		}
		if err := <-r.goClose(time.Minute); err != nil {
			t.Error(err)
		}
		r.wantHandedBack(5)
		next := r.another(engine.Options{})
		for range 5 {
			if w := next.receive(); w.Tries != 1 || w.Token != 2 {
				t.Errorf("got token %d, try %d; want 2, 1", w.Token, w.Tries)
			}
		}
	})
}

// Close waits for work under way, keeps its lease meanwhile, and records its outcome.
func TestClose_waitsForWorkUnderWay(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		other := r.another(engine.Options{})
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		w := r.receive()
		closed := r.goClose(time.Hour)
		sleep(10 * time.Minute)
		if len(closed) > 0 {
			t.Fatalf("closed with work under way: %v", <-closed)
		}
		other.idle()
		r.finish(w, journal.Done, time.Time{})
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if left := r.store.Deliveries(); len(left) != 0 {
			t.Errorf("still open: %+v", left)
		}
	})
}

// When its context ends, Close gives up and says so; the lease brings the work back.
func TestClose_givesUp(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		r.receive()
		if err := <-r.goClose(5 * time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		next := r.another(engine.Options{})
		sleep(10 * time.Second)
		next.receive()
	})
}

// A store that hangs does not keep Close beyond its context.
func TestClose_storeHangs(t *testing.T) {
	for _, op := range []journaltest.Op{
		journaltest.OpAccept, journaltest.OpTake, journaltest.OpFinish, journaltest.OpExtend, journaltest.OpPurge, journaltest.OpStats,
	} {
		t.Run(string(op), func(t *testing.T) {
			run(t, engine.Options{Timeout: time.Hour}, func(t *testing.T, r *rig) {
				r.want(r.accept(entry("evt_1")), journal.Accepted)
				w := r.receive()
				r.fault.Block(op)
				hung := r.goAccept(entry("evt_2"))
				r.finish(w, journal.Done, time.Time{})
				sleep(2 * time.Minute)
				began := time.Now()
				<-r.goClose(5 * time.Second) // whatever it says
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("Close took %v", took)
				}
				if a := <-hung; op == journaltest.OpAccept && !errors.Is(a.err, journal.ErrUnavailable) {
					t.Errorf("got %+v, want ErrUnavailable", a)
				}
			})
		})
	}
}

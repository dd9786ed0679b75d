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

// waited is what a call of Await returned.
type waited struct {
	journal.DeliveryStatus
	err error
}

// goAwait calls Await in the background for a delivery to app, for a minute at most.
func (r *rig) goAwait(id int64) <-chan waited {
	got := make(chan waited, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s, err := r.Await(ctx, journal.DeliveryID{EventID: id, Destination: "app"})
		got <- waited{s, err}
	}()
	synctest.Wait()
	return got
}

// reply finishes work with an answer for its sender.
func (r *rig) reply(w *journal.Work, s journal.State, text string) {
	r.Finish(journal.Outcome{Held: w.Held, State: s, Due: time.Now().Add(time.Hour), Started: time.Now(),
		Response: &journal.Response{Status: 200, Body: []byte(text)}})
	synctest.Wait()
}

func (r *rig) wantAnswer(got <-chan waited, state journal.State, text string) {
	r.t.Helper()
	select {
	case w := <-got:
		answer := ""
		if w.Response != nil {
			answer = string(w.Response.Body)
		}
		if w.err != nil || w.State != state || answer != text {
			r.t.Errorf("got %s, answer %q, error %v; want %s, %q", w.State, answer, w.err, state, text)
		}
	default:
		r.t.Errorf("still waiting, want %s, %q", state, text)
	}
}

func (r *rig) wantWaiting(got <-chan waited) {
	r.t.Helper()
	select {
	case w := <-got:
		r.t.Errorf("got %+v, want it to wait", w)
	default:
	}
}

// The answer is given when the outcome is durable, and not before.
func TestAwait_answersAfterTheCommit(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		id := r.want(r.accept(entry("a")), journal.Accepted).ID
		first, second := r.goAwait(id), r.goAwait(id)
		gate := r.fault.Block(journaltest.OpFinish)
		r.reply(r.receive(), journal.Done, "hello")
		r.wantWaiting(first)
		gate.Open()
		synctest.Wait()
		r.wantAnswer(first, journal.Done, "hello")
		r.wantAnswer(second, journal.Done, "hello")
		late := r.goAwait(id)
		r.wantAnswer(late, journal.Done, "hello")
	})
}

// An outcome that could not be recorded is no answer; one that was recorded although the call failed is
// found.
func TestAwait_faults(t *testing.T) {
	for _, mode := range []journaltest.Mode{journaltest.NotPersisted, journaltest.Persisted} {
		run(t, engine.Options{}, func(t *testing.T, r *rig) {
			id := r.want(r.accept(entry("a")), journal.Accepted).ID
			got := r.goAwait(id)
			r.fault.Fail(journaltest.OpFinish, 1, mode)
			r.fault.Fail(journaltest.OpStatuses, 1, mode)
			r.reply(r.receive(), journal.Done, "hello")
			r.wantWaiting(got)
			sleep(5 * time.Second)
			r.wantAnswer(got, journal.Done, "hello")
		})
	}
}

// What happens in another process is noticed.
func TestAwait_elsewhere(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		other := r.another(engine.Options{})
		id := r.want(r.accept(entry("a")), journal.Accepted).ID
		got := other.goAwait(id)
		sleep(time.Second)
		r.wantWaiting(got)
		r.reply(r.receive(), journal.Done, "hello")
		sleep(time.Second)
		r.wantAnswer(got, journal.Done, "hello")
	})
}

// A failure ends the wait: with its answer where it was got, and without elsewhere.
func TestAwait_failure(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		other := r.another(engine.Options{})
		id := r.want(r.accept(entry("a")), journal.Accepted).ID
		here, there := r.goAwait(id), other.goAwait(id)
		r.reply(r.receive(), journal.Failed, "no")
		sleep(time.Second)
		r.wantAnswer(here, journal.Failed, "no")
		r.wantAnswer(there, journal.Failed, "")
	})
}

// Nobody waits for a destination that is at rest, by whose decision ever.
func TestAwait_atRest(t *testing.T) {
	for name, rest := range map[string]func(*rig){
		"suspended": func(r *rig) { r.Suspend("app", strictly(time.Now().Add(time.Hour))) },
		"paused":    func(r *rig) { r.setPaused("app", true) },
		"removed":   func(r *rig) { r.reload(destinations("other")) },
	} {
		t.Run(name, func(t *testing.T) {
			runRecorded(t, engine.Options{Destinations: destinations("app")}, func(t *testing.T, r *rig, _ *ledger) {
				rest(r)
				id := r.want(r.accept(entry("a")), journal.Accepted).ID
				r.wantAnswer(r.goAwait(id), journal.Pending, "")
			})
		})
	}
}

// What is only put off for a moment is waited for, and so is an attempt that is under way when its destination
// comes to rest.
func TestAwait_notAtRest(t *testing.T) {
	run(t, engine.Options{Destinations: destinations("app")}, func(t *testing.T, r *rig) {
		other := r.another(engine.Options{Destinations: destinations("app")})
		other.Suspend("app", strictly(time.Now().Add(time.Hour)))
		id := r.want(r.accept(entry("a")), journal.Accepted).ID
		there := other.goAwait(id)
		sleep(time.Second)
		other.wantWaiting(there)
		r.finish(r.receive(), journal.Pending, time.Now().Add(10*time.Second))
		here := r.goAwait(id)
		sleep(5 * time.Second)
		r.wantWaiting(here)
		r.wantAnswer(there, journal.Pending, "")
		sleep(6 * time.Second)
		r.reply(r.receive(), journal.Done, "hello")
		sleep(time.Second)
		r.wantAnswer(here, journal.Done, "hello")
	})
}

// The wait ends with its context and with the journal.
func TestAwait_ends(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		id := r.want(r.accept(entry("a")), journal.Accepted).ID
		got := r.goAwait(id)
		sleep(2 * time.Minute)
		if w := <-got; !errors.Is(w.err, context.DeadlineExceeded) {
			t.Errorf("got %+v", w)
		}
		got = r.goAwait(id)
		r.reply(r.receive(), journal.Failed, "no") // so that Close need not wait
		r.wantAnswer(got, journal.Failed, "no")
		if err := r.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if w := <-r.goAwait(id); !errors.Is(w.err, journal.ErrClosed) {
			t.Errorf("after Close: %+v", w)
		}
	})
}

// The event of a delivery that somebody waits for may vanish, with the database that was lost or by a purge. Nobody is told
// that it is done, and nobody waits for what nobody will do.
func TestAwait_absent(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		other := r.another(engine.Options{})
		id := r.want(r.accept(entry("a")), journal.Accepted).ID
		here, there := r.goAwait(id), other.goAwait(id)
		r.store.Lose(id)
		sleep(time.Second)
		r.wantAnswer(there, journal.Absent, "")
		r.wantWaiting(here)
		r.reply(r.receive(), journal.Done, "which is on no record")
		sleep(time.Second)
		r.wantAnswer(here, journal.Absent, "")
	})
}

// Replies count towards the bytes that are held, and are recorded a few megabytes at a time.
func TestFinish_boundsReplies(t *testing.T) {
	run(t, engine.Options{HeldBytes: 1 << 20}, func(t *testing.T, r *rig) {
		r.fault.Fail(journaltest.OpFinish, -1, journaltest.NotPersisted)
		r.want(r.accept(entry("a")), journal.Accepted)
		r.reply(r.receive(), journal.Done, string(make([]byte, 1<<20)))
		r.want(r.accept(entry("b")), journal.Accepted)
		r.idle()
		r.fault.Fail(journaltest.OpFinish, 0, 0)
		sleep(5 * time.Second)
		if w := r.receive(); w.Key != "b" {
			t.Errorf("work for %s", w.Key)
		}
	})
}

package engine_test

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
)

// quiet is a journal that looks into the store only when it has a reason to.
func quiet(names ...string) engine.Options {
	return engine.Options{Poll: time.Hour, Lease: 10 * time.Hour, Destinations: destinations(names...)}
}

// Nothing is held or taken for a suspended destination, and all of it comes when the time is over.
func TestSuspend(t *testing.T) {
	run(t, quiet("app", "b"), func(t *testing.T, r *rig) {
		r.want(r.accept(toward("failed", "app")), journal.Accepted)
		r.finish(r.receive(), journal.Failed, time.Now().Add(time.Second))
		r.Suspend("app", strictly(time.Now().Add(time.Minute)))
		r.want(r.accept(toward("fresh", "app", "b")), journal.Accepted)
		if w := r.receive(); w.Destination != "b" {
			t.Errorf("got %+v", w.Held)
		}
		sleep(time.Minute - time.Millisecond)
		r.idle()
		sleep(time.Millisecond)
		if got := r.drain(""); got["app"] != 2 {
			t.Errorf("received %v; want both deliveries when the suspension ends", got)
		}
	})
}

// After the time one delivery at a time is held, from the store or fresh, until the zero time says that
// the destination has recovered.
func TestSuspend_probation(t *testing.T) {
	run(t, quiet("app"), func(t *testing.T, r *rig) {
		r.Suspend("app", strictly(time.Now().Add(time.Minute)))
		for i := range 20 {
			r.want(r.accept(toward(key(i), "app")), journal.Accepted)
		}
		sleep(time.Minute)
		for range 3 {
			probe := r.receive()
			r.want(r.accept(toward("while "+probe.Key, "app")), journal.Accepted)
			r.idle()
			r.finish(probe, journal.Done, time.Time{})
		}
		probe := r.receive()
		r.idle()
		r.Suspend("app", journal.Rest{})
		if got := r.drain(""); got["app"] != 19 {
			t.Errorf("received %v after the end of it, want the other 19", got)
		}
		r.finish(probe, journal.Done, time.Time{})
		r.want(r.accept(toward("fresh 1", "app")), journal.Accepted)
		r.want(r.accept(toward("fresh 2", "app")), journal.Accepted)
		if a, b := r.receive(), r.receive(); a.Token != 1 || b.Token != 1 {
			t.Errorf("tokens %d, %d: not held", a.Token, b.Token)
		}
	})
}

// A suspension is lengthened, shortened and ended by the next call.
func TestSuspend_again(t *testing.T) {
	run(t, quiet("app"), func(t *testing.T, r *rig) {
		r.Suspend("app", strictly(time.Now().Add(time.Second)))
		r.Suspend("app", strictly(time.Now().Add(time.Hour)))
		r.want(r.accept(toward("evt_1", "app")), journal.Accepted)
		sleep(time.Minute)
		r.idle()
		r.Suspend("app", strictly(time.Now().Add(time.Second)))
		sleep(time.Second)
		r.finish(r.receive(), journal.Done, time.Time{})

		r.Suspend("app", strictly(time.Now().Add(time.Hour)))
		r.want(r.accept(toward("evt_2", "app")), journal.Accepted)
		r.idle()
		r.Suspend("app", journal.Rest{})
		r.finish(r.receive(), journal.Done, time.Time{})
		r.want(r.accept(toward("evt_3", "app")), journal.Accepted)
		if w := r.receive(); w.Token != 1 {
			t.Errorf("token %d: not held after the suspension", w.Token)
		}
	})
}

// What is held stays its receiver's, who hands it back; it comes again when the time is over, as if it
// had not been tried.
func TestSuspend_handBack(t *testing.T) {
	run(t, quiet("app"), func(t *testing.T, r *rig) {
		r.want(r.accept(toward("evt_1", "app")), journal.Accepted)
		w := r.receive()
		until := time.Now().Add(time.Minute)
		r.Suspend("app", strictly(until))
		if !r.Current(w.Held) {
			t.Error("what is held is not current any more")
		}
		r.finish(w, journal.Pending, until)
		sleep(59 * time.Second)
		r.idle()
		sleep(time.Second)
		if w := r.receive(); w.Tries != 1 {
			t.Errorf("try %d, want 1", w.Tries)
		}
	})
}

// The end of a suspension is known although thousands of retries are.
func TestSuspend_amongManyRetries(t *testing.T) {
	run(t, quiet("app", "b"), func(t *testing.T, r *rig) {
		for i := range 3000 {
			r.want(r.accept(toward(key(i), "b")), journal.Accepted)
			r.finish(r.receive(), journal.Failed, time.Now().Add(time.Duration(i+10)*time.Second))
		}
		r.Suspend("app", strictly(time.Now().Add(time.Second)))
		r.want(r.accept(toward("waiting", "app")), journal.Accepted)
		sleep(time.Second)
		if w := r.receive(); w.Destination != "app" {
			t.Errorf("got %+v", w.Held)
		}
	})
}

// Who is not named is not suspended.
func TestSuspend_unknown(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		r.Suspend("app", strictly(time.Now().Add(time.Hour)))
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		r.receive()
	})
	run(t, quiet("app"), func(t *testing.T, r *rig) {
		r.Suspend("other", strictly(time.Now().Add(time.Hour)))
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		r.receive()
	})
}

// strictly rests until a time, and brings one delivery at a time from then on.
func strictly(until time.Time) journal.Rest { return journal.Rest{Until: until, Most: 1, Strict: true} }

// Of a destination that rests, a few events are held that are of no kind that failed, and no others.
func TestSuspend_strangers(t *testing.T) {
	run(t, quiet("app"), func(t *testing.T, r *rig) {
		rest := journal.Rest{Until: time.Now().Add(time.Minute), Most: 1, Avoid: []journal.Class{{Source: "billing", Type: "invoice.paid"}}}
		of := func(key, kind string) *journal.Event {
			e := toward(key, "app")
			e.Type = kind
			return e
		}
		r.Suspend("app", rest)
		r.want(r.accept(of("avoided", "invoice.paid")), journal.Accepted)
		r.idle()
		for i := range 10 {
			r.want(r.accept(of(key(i), "invoice.sent")), journal.Accepted)
		}
		if got := r.hang(); got != 3 {
			t.Errorf("%d held, want 3", got)
		}
		r.Suspend("app", strictly(time.Now().Add(time.Minute)))
		r.want(r.accept(of("strict", "invoice.voided")), journal.Accepted)
		r.idle()
	})
}

// While it is picked what is taken, what is newest and was never tried comes before what has waited for longest.
func TestSuspend_picks(t *testing.T) {
	run(t, quiet("app"), func(t *testing.T, r *rig) {
		r.want(r.accept(toward("failed", "app")), journal.Accepted)
		r.finish(r.receive(), journal.Failed, time.Now().Add(time.Second))
		r.Suspend("app", journal.Rest{Until: time.Now().Add(time.Minute), Most: 1, Strict: true, Pick: true})
		for i := range 5 {
			r.want(r.accept(toward(key(i), "app")), journal.Accepted)
		}
		sleep(time.Minute)
		for i := range 5 {
			if w := r.receive(); w.Key != key(4-i) {
				t.Errorf("got %s, want %s", w.Key, key(4-i))
			} else {
				r.finish(w, journal.Done, time.Time{})
			}
		}
		if w := r.receive(); w.Key != "failed" {
			t.Errorf("got %s in the end", w.Key)
		}
	})
}

package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// Whoever delivers learns which secret vouched for the event, whichever way it comes: at once, again from the store, and
// past a store that is down.
func TestWorkSaysWhoVouched(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		vouched := func(key string) *journal.Event {
			e := entry(key)
			e.Vouched = 4711
			return e
		}
		r.want(r.accept(vouched("a")), journal.Accepted)
		w := r.receive()
		if w.Vouched != 4711 {
			t.Errorf("at once: vouched for by %d", w.Vouched)
		}
		r.finish(w, journal.Failed, time.Now())
		w = r.receive()
		if w.Vouched != 4711 {
			t.Errorf("from the store: vouched for by %d", w.Vouched)
		}
		r.finish(w, journal.Done, time.Time{})

		r.down(journaltest.NotPersisted)
		past := int16(0)
		_, err := r.Bypass(context.Background(), []*journal.Event{vouched("b")}, func(_ context.Context, w *journal.Work) journal.Outcome {
			past = w.Vouched
			if string(w.Header) != string(entry("b").Lines()) {
				t.Errorf("past the store: the headers are %q", w.Header)
			}
			return journal.Outcome{Held: w.Held, State: journal.Done, Status: 200, Started: time.Now()}
		})
		if err != nil || past != 4711 {
			t.Errorf("past the store: vouched for by %d, %v", past, err)
		}
	})
}

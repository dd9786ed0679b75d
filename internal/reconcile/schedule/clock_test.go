package schedule

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// A clock that is days ahead while one run ends passes over nothing: how far a list reached is told by its sender's clock. By which
// runs are due is our own, and is not waited for.
func TestClockIsAheadForARun(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) { s.Ingest = w.ingest })
		w.begun()
		w.shift(72 * time.Hour)
		w.pass(every)
		if m := w.mark(); m.Last.Ended.Before(time.Now().Add(70*time.Hour)) || m.Through.After(time.Now()) {
			t.Fatalf("the mark is %+v at %v", m, time.Now())
		}
		w.shift(0)
		w.make("evt_lost")
		w.pass(4 * every)
		if !w.has("evt_lost") {
			t.Errorf("what was made after the clock was right again is not looked for: %+v at %v\n%s", w.mark(), time.Now(), w.logged())
		}
		if m := w.mark(); m.Last.Ended.After(time.Now()) || m.Last.Error != "" {
			t.Errorf("the mark is %+v", m)
		}
	})
}

// Where the clock is further ahead than the sender's list goes back, all of the list counts as too old. Nothing is passed over for that.
func TestClockIsAheadOfTheList(t *testing.T) {
	bubble(t, func(w *world) {
		w.remembers(24 * time.Hour)
		w.change(func(s *Source) { s.Ingest = w.ingest })
		w.begun()
		w.shift(72 * time.Hour)
		w.make("evt_lost")
		w.pass(4 * every)
		if m := w.mark(); !strings.Contains(m.Last.Error, "our clock is 72h0m0s ahead") {
			t.Errorf("the mark is %+v", m)
		}
		w.shift(0)
		w.pass(4 * every)
		if !w.has("evt_lost") {
			t.Errorf("it was passed over: %+v\n%s", w.mark(), w.logged())
		}
	})
}

// What no list has any more is no matter of clocks: it is told, and the source goes on.
func TestClockIsAheadOfWhatIsForgotten(t *testing.T) {
	bubble(t, func(w *world) {
		w.remembers(24 * time.Hour)
		w.change(func(s *Source) { s.Ingest = w.ingest })
		w.begun().stop()
		w.pass(72 * time.Hour)
		w.shift(2 * time.Minute)
		w.start()
		w.make("evt_lost")
		w.pass(4 * every)
		if m := w.mark(); m.Last.Error != "" || time.Since(m.Through) > 4*every || !w.has("evt_lost") {
			t.Errorf("it does not go on: %+v\n%s", m, w.logged())
		}
	})
}

// A clock that is far ahead settles nothing of a list, also where that does not go back to the last comparison.
func TestClockIsFarAheadOfWhatIsForgotten(t *testing.T) {
	bubble(t, func(w *world) {
		w.remembers(24 * time.Hour)
		w.change(func(s *Source) { s.Ingest = w.ingest })
		w.begun().stop()
		w.pass(50 * time.Hour)
		w.make("evt_lost")
		w.pass(20 * time.Hour)
		w.shift(6 * time.Hour)
		w.start()
		w.pass(4 * every)
		if m := w.mark(); !strings.Contains(m.Last.Error, "our clock is 6h0m0s ahead") || w.has("evt_lost") {
			t.Errorf("the mark is %+v", m)
		}
		w.shift(0)
		w.pass(2 * every)
		if !w.has("evt_lost") {
			t.Errorf("it was passed over: %+v\n%s", w.mark(), w.logged())
		}
	})
}

// What is under way counts as young by the sender's clock, too.
func TestClockIsAheadOfWhatIsYoung(t *testing.T) {
	bubble(t, func(w *world) {
		w.begun()
		w.shift(72 * time.Hour)
		w.make("evt_1")
		w.pass(lag / 2)
		w.arrive("evt_1")
		w.pass(2 * every)
		w.says(0, "an event never arrived")
	})
}

// A process that is killed while its clock is ahead holds the mark no longer than any other.
func TestKilledWithItsClockAhead(t *testing.T) {
	bubble(t, func(w *world) {
		w.begun().stop()
		at := time.Now().Add(72 * time.Hour)
		if _, taken, err := w.store.TakeMark(w.Context(), "billing", "killed", at, at.Add(leaseTime)); err != nil || !taken {
			t.Fatalf("TakeMark: %t, %v", taken, err)
		}
		w.start()
		w.make("evt_lost")
		w.pass(4 * every)
		w.says(1, "an event never arrived")
	})
}

// A source that was begun by a clock that was ahead begins once more when that is right: not before, and with nothing that was made
// before.
func TestBegunByAClockThatWasAhead(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) { s.Ingest = w.ingest })
		w.shift(72 * time.Hour)
		w.begun()
		w.make("evt_meanwhile")
		w.shift(0)
		w.pass(2 * journal.MuchAhead)
		w.make("evt_lost")
		w.pass(4 * every)
		if w.has("evt_meanwhile") || !w.has("evt_lost") {
			t.Errorf("what was made before is stored: %v; what was made after: %v\n%s", w.has("evt_meanwhile"), w.has("evt_lost"), w.logged())
		}
		w.says(1, "a clock was ahead when a source was compared")
	})
}

// A clock that is behind takes a right mark for one of a time to come. It is not moved back: what was made before the source began was
// done by somebody else. Nor is it where the sender does not say what time it is, or does not answer.
func TestMarkIsNotMovedBackByAWrongClock(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		says   string
		times  int // in four hours and a minute
	}{
		"behind": {func(*world) {}, "does not confirm ours", 5},
		"no answer": {func(w *world) {
			w.answers(func(rw http.ResponseWriter) bool { rw.WriteHeader(http.StatusForbidden); return true })
		}, "could not be asked what time it is", 242},
		"no date": {func(w *world) { w.server.Clock = nil }, "does not confirm ours", 5},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.change(func(s *Source) { s.Ingest, s.Lag = w.ingest, 0 })
				made := w.make("evt_before")
				w.pass(71 * time.Hour)
				g := w.begun()
				g.stop()
				before := w.mark()
				w.shift(-time.Since(made)) // so that it is what is made now, by that clock
				c.change(w)
				g = w.start()
				w.pass(4*time.Hour + time.Minute)
				w.says(c.times, c.says)
				after := w.mark()
				if !strings.Contains(after.Last.Error, c.says) {
					t.Errorf("on record: %+v", after.Last)
				}
				if before.Token, before.Last = after.Token, after.Last; after != before {
					t.Errorf("the mark is %+v, and was %+v", after, before)
				}
				g.stop()
				w.shift(0)
				w.answers(nil)
				w.start()
				w.make("evt_lost")
				w.pass(4 * every)
				if w.has("evt_before") || !w.has("evt_lost") {
					t.Errorf("what was made before is stored: %v; what was made after: %v\n%s", w.has("evt_before"), w.has("evt_lost"), w.logged())
				}
			})
		})
	}
}

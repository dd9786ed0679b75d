package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/reconcile/reconciletest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// observe has the source observed from now on, or not.
func (w *world) observe(is bool) { w.change(func(s *Source) { s.Observed = is }) }

// refuse has nobody put on record what is passed over, for a reason; nil: they do.
func (w *world) refuse(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unwritten = err
}

// passedOver wants so many stretches of time to be on record as not compared, for a reason, which have these times among them.
func (w *world) passedOver(n int, why Why, times ...time.Time) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.skipped) != n {
		w.Errorf("passed over is %v", w.skipped)
		return
	}
	for _, at := range times {
		if at.Before(w.skipped[0].from) || at.After(w.skipped[n-1].until) {
			w.Errorf("%v is not among what is passed over: %v", at, w.skipped)
		}
	}
	for _, s := range w.skipped {
		if s.why != why {
			w.Errorf("it is passed over because %s, want %s", s.why, why)
		}
	}
}

// What went past the gateway while the source was observed is not taken for lost afterwards, whatever became of the process that
// observed and of its last words; what was made later is found. What was passed over is on record, and reaches back to where the
// source was compared.
func TestObserved(t *testing.T) {
	testskip.Long(t)
	for name, end := range map[string]func(w *world, g *gateway){
		"a reload": func(*world, *gateway) {},
		"a restart": func(w *world, g *gateway) {
			g.stop()
			w.observe(false)
			w.start()
		},
		"a kill": func(w *world, g *gateway) {
			w.store.Fail(journaltest.OpReleaseMark, 1, journaltest.NotPersisted)
			g.stop()
			w.observe(false)
			w.start()
		},
		"a kill long after the store went away": func(w *world, g *gateway) {
			w.store.Fail(journaltest.OpTakeMark, -1, journaltest.NotPersisted)
			w.pass(48 * time.Hour)
			w.make("evt_past_alone")
			w.store.Fail(journaltest.OpReleaseMark, 1, journaltest.NotPersisted)
			g.stop()
			w.store.Fail(journaltest.OpTakeMark, 0, journaltest.NotPersisted)
			w.observe(false)
			w.start()
		},
		"a mark that is not moved": func(w *world, _ *gateway) {
			w.store.Fail(journaltest.OpAdvanceMark, 1, journaltest.NotPersisted)
			w.store.Fail(journaltest.OpReleaseMark, 1, journaltest.NotPersisted)
		},
		"a mark that is released late": func(w *world, _ *gateway) { w.store.Fail(journaltest.OpReleaseMark, 1, journaltest.NotPersisted) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.change(func(s *Source) { s.Ingest = w.ingest })
				g := w.begun()
				lost := w.make("evt_lost") // before, and nobody has found it yet
				w.observe(true)
				for _, id := range []string{"evt_past_1", "evt_past_2", "evt_past_3"} {
					w.pass(time.Hour)
					w.make(id)
				}
				asked := len(w.server.Requests())
				w.pass(time.Second)
				end(w, g)
				w.observe(false)
				last := time.Now()
				if name == "a reload" || name == "a restart" { // nobody waits for the end of a lease
					w.pass(2 * time.Second)
					w.passedOver(1, Observed, lost, last)
				}
				w.pass(2*leaseTime + ahead)
				w.make("evt_later")
				w.pass(4 * every)
				for _, id := range []string{"evt_lost", "evt_past_1", "evt_past_2", "evt_past_3", "evt_past_alone"} {
					if w.has(id) {
						t.Errorf("%s is stored, and may have gone past the gateway", id)
					}
				}
				if !w.has("evt_later") {
					t.Errorf("what was made after the observation is not compared; the mark is %+v", w.mark())
				}
				if len(w.server.Requests()) == asked {
					t.Error("the sender is not asked any more")
				}
				told := 1
				if strings.HasPrefix(name, "a mark") { // the store does not know that it was told
					told = 2
				}
				w.passedOver(told, Observed, lost, last)
			})
		})
	}
}

// Nobody is asked while the source is observed, for however short a time, and what is made in the second in which it ends is not
// taken for lost, also where the sender's clock is ahead, and where the source was never compared before.
func TestObservedShortly(t *testing.T) {
	for name, before := range map[string]bool{"compared before": true, "never compared": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.change(func(s *Source) { s.Ingest, s.Every, s.Lag = w.ingest, time.Second, -1 })
				if before {
					w.begun()
				}
				w.observe(true)
				if !before {
					w.start()
				}
				w.pass(2 * time.Second)
				asked := len(w.server.Requests())
				w.server.Add(reconciletest.Entry{ID: "evt_past", At: time.Now().Add(ahead / 2)})
				w.pass(5 * time.Second)
				if n := len(w.server.Requests()); n != asked {
					t.Errorf("it was compared %d times while it was observed", n-asked)
				}
				w.observe(false)
				w.pass(2 * ahead)
				w.make("evt_later")
				w.pass(5 * time.Second)
				if w.has("evt_past") || !w.has("evt_later") {
					t.Errorf("stored are what went past: %v, and what was lost later: %v", w.has("evt_past"), w.has("evt_later"))
				}
			})
		})
	}
}

// As long as one gateway on the store observes, no other one compares, also one that runs with what was configured before.
func TestObservedBySome(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) { s.Ingest = w.ingest })
		w.begun() // and goes on comparing
		observing := Source{Name: "billing", Observed: true}
		first, second := w.startWith(func() Source { return observing }), w.startWith(func() Source { return observing })
		w.pass(2 * time.Second)
		asked := len(w.server.Requests())
		w.make("evt_past_1")
		w.pass(2 * every)
		first.stop()
		w.make("evt_past_2")
		w.pass(2 * every)
		if n := len(w.server.Requests()); n != asked {
			t.Errorf("while it is observed it was compared %d times", n-asked)
		}
		w.make("evt_past_3")
		w.pass(time.Second)
		second.stop()
		last := time.Now()
		w.pass(2 * ahead)
		w.make("evt_later")
		w.pass(4 * every)
		if w.has("evt_past_1") || w.has("evt_past_2") || w.has("evt_past_3") || !w.has("evt_later") {
			t.Errorf("on record are %v", w.known)
		}
		w.passedOver(1, Observed, last)
	})
}

// An observation that is over before anybody looks counts, and so does one that begins while the source is compared by the same
// process, which ends that run.
func TestObservedForAMoment(t *testing.T) {
	for name, running := range map[string]bool{"between runs": false, "during a run": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.change(func(s *Source) { s.Ingest = w.ingest })
				g := w.begun()
				_, release := w.hang()
				if running {
					w.pass(every)
				}
				w.observe(true)
				g.Observe(w.Context())
				w.make("evt_past")
				w.observe(false)
				release()
				w.answers(nil)
				w.pass(2 * ahead)
				w.make("evt_later")
				w.pass(4 * every)
				if w.has("evt_past") || !w.has("evt_later") {
					t.Errorf("stored are what went past: %v, and what was lost later: %v", w.has("evt_past"), w.has("evt_later"))
				}
				w.passedOver(1, Observed)
			})
		})
	}
}

// A reload that looks for observed sources while the process stops leaves no mark behind that nobody else gets: what it takes is
// on record, and given back.
func TestObservedAtTheEnd(t *testing.T) {
	bubble(t, func(w *world) {
		g := w.begun()
		g.stop()
		w.observe(true)
		g.Observe(w.Context())
		if m := w.mark(); m.Holder != "" || !wasObserved(m) {
			t.Errorf("the mark is %+v", m)
		}
	})
}

// A source that was never compared has no mark that could be too old: none is made.
func TestObservedFromTheBeginning(t *testing.T) {
	bubble(t, func(w *world) {
		w.observe(true)
		w.start()
		w.pass(time.Hour)
		if marks, err := w.store.Marks(w.Context()); err != nil || len(marks) > 0 {
			t.Errorf("the marks are %+v, %v", marks, err)
		}
	})
}

// What could not be put on record is not passed over, and nothing is done meanwhile.
func TestPassedOverIsOnRecordBefore(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) { s.Ingest = w.ingest })
		w.begun()
		w.observe(true)
		w.pass(time.Hour)
		w.make("evt_past")
		w.pass(time.Second)
		before := w.mark()
		w.refuse(errors.New("the store takes no audits"))
		w.observe(false)
		w.pass(time.Hour)
		if got := w.mark(); got.Through != before.Through || w.has("evt_past") {
			t.Errorf("the mark is %+v, and was %+v", got, before)
		}
		w.refuse(nil)
		w.pass(time.Hour)
		if w.has("evt_past") || !w.mark().Through.After(before.Through) {
			t.Errorf("it did not go on: %+v", w.mark())
		}
		w.passedOver(1, Observed, time.Now().Add(-time.Hour))
	})
}

// What a list does not say the time of may be from before the source is compared: nothing is done about it, it is not told as missing,
// and the log says so once. What is on record is no matter.
func TestUndated(t *testing.T) {
	for name, action := range map[string]func(w *world, s *Source){
		"report":    func(*world, *Source) {},
		"ingest":    func(w *world, s *Source) { s.Ingest = w.ingest },
		"redeliver": func(_ *world, s *Source) { s.Redeliver = true },
	} {
		for _, from := range []string{"begin", "observed"} {
			t.Run(name+"/"+from, func(t *testing.T) {
				bubble(t, func(w *world) {
					w.server.Timeless, w.server.Unfiltered = true, true
					w.remembers(7 * 24 * time.Hour)
					w.change(func(s *Source) { action(w, s) })
					if from == "observed" {
						w.begun()
						w.observe(true)
					}
					w.make("evt_past_1")
					w.pass(2 * time.Hour)
					w.make("evt_past_2")
					if w.observe(false); from == "begin" {
						w.start()
					}
					w.pass(time.Hour)
					w.make("evt_here")
					w.arrive("evt_here")
					w.pass(time.Hour)
					if w.has("evt_past_1") || w.has("evt_past_2") || len(w.server.Resent()) > 0 {
						t.Errorf("stored is %v, and sent again %q", w.known, w.server.Resent())
					}
					if len(w.found) > 0 {
						t.Errorf("it tells of %+v", w.found)
					}
					w.missing(0)
					w.says(1, "does not say when they were made")
					w.make("evt_lost")
					w.pass(time.Hour)
					w.says(2, "does not say when they were made")
					if m := w.mark(); m.Last.Error != "" || time.Since(m.Through) > lag+2*every {
						t.Errorf("the mark is %+v", m)
					}
				})
			})
		}
	}
}

package schedule

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/reconcile"
	"github.com/hookonce/hookonce/internal/testskip"
)

// missing wants these to be on record as missing at billing, in words, and so many more.
func (w *world) missing(beyond int64, want ...string) []journal.MissingEvent {
	w.Helper()
	all, err := w.store.Missing(w.Context(), journal.MissingQuery{Source: "billing", Now: time.Now(), Limit: journal.MaxMissing})
	if err != nil {
		w.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, m.Key+m.Why)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("missing are %q, want %q", got, want)
	}
	counts, err := w.store.MissingCounts(w.Context(), time.Now())
	if err != nil || len(counts) > 0 && counts[0].Beyond != beyond || len(counts) == 0 && beyond > 0 {
		w.Errorf("counted are %+v, %v", counts, err)
	}
	return all
}

// What a run finds and cannot recover is on record with the reason, as long as the list can tell of it; what it stores is not.
func TestMissingIsOnRecord(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) {
			s.Remembered = 72 * time.Hour
			s.Refused = func(context.Context, []string) (map[string]string, error) {
				return map[string]string{"evt_refused": "its signature is wrong"}, nil
			}
		})
		w.begun()
		at := w.make("evt_1")
		w.make("evt_refused")
		w.pass(2 * every)
		all := w.missing(0, "evt_1", "evt_refusedits signature is wrong")
		if m := all[0]; !m.Happened.Equal(at) || !m.Expires.Equal(at.Add(72*time.Hour)) || time.Since(m.Found) > every || !m.Asked.IsZero() {
			t.Errorf("on record is %+v", m)
		}
		w.change(func(s *Source) {
			s.Ingest = func(ctx context.Context, ev hookonce.Event) (bool, error) {
				if ev.Key == "evt_bad" {
					return false, errors.New("the store is full")
				}
				return w.ingest(ctx, ev)
			}
		})
		w.make("evt_good")
		w.make("evt_bad")
		w.pass(2 * every)
		w.missing(0, "evt_1", "evt_refusedits signature is wrong", "evt_badstoring it: the store is full")
		w.pass(73 * time.Hour)
		w.missing(0)
	})
}

// Of more events than there is room for, those that the sender was asked for are under way, and not counted before they are old.
func TestManyAskedFor(t *testing.T) {
	testskip.Long(t)
	bubble(t, func(w *world) {
		w.change(func(s *Source) { s.Redeliver = true })
		w.begun()
		for i := range journal.MaxMissing + 5 {
			w.make(fmt.Sprint("evt_", i))
		}
		beyond := func(after time.Duration, want int64) {
			w.pass(after)
			counts, err := w.store.MissingCounts(w.Context(), time.Now())
			if err != nil || len(counts) != 1 || counts[0].Kept != journal.MaxMissing || counts[0].Beyond != want {
				t.Errorf("counted are %+v, %v, want %d more", counts, err, want)
			}
		}
		beyond(6*time.Hour, 0) // they are asked for one after the other
		if n := len(w.server.Resent()); n < journal.MaxMissing+5 {
			t.Errorf("%d were asked for", n)
		}
		beyond(30*time.Hour, 5)
	})
}

// What the sender was asked for counts as missing once it has not come for a while, however often it is asked again.
func TestAskedIsOnRecord(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) { s.Redeliver, s.Every = true, 5*time.Minute })
		w.begun()
		w.make("evt_1")
		w.pass(lag + 2*time.Minute)
		if n := len(w.server.Resent()); n != 1 {
			t.Fatalf("it was asked for %d times", n)
		}
		w.missing(0)
		w.pass(journal.AskedGrace)
		if n := len(w.server.Resent()); n < 2 {
			t.Fatalf("it was asked for %d times", n)
		}
		w.missing(0, "evt_1")
	})
}

// What was missing and is on record in another cell by now is over with the next run, also if the sender was asked for it a moment
// ago, and also if that run fails; what nobody can be asked for stands. Without other cells nobody is asked.
func TestWhatAnotherCellHasIsOver(t *testing.T) {
	bubble(t, func(w *world) {
		w.cells = true
		w.begun()
		w.make("evt_1")
		w.make("evt_2")
		w.make("evt_3")
		w.pass(2 * every)
		w.missing(0, "evt_1", "evt_2", "evt_3")
		w.arrive("evt_1")
		w.silent(errors.New("a cell is away"))
		w.pass(2 * every)
		w.missing(0, "evt_1", "evt_2", "evt_3")
		w.silent(nil)
		w.pass(2 * every)
		w.missing(0, "evt_2", "evt_3")
		w.change(func(s *Source) { s.Redeliver, s.Every = true, 5*time.Minute })
		w.make("evt_4")
		w.pass(lag + every)
		if n := len(w.server.Resent()); n == 0 {
			t.Fatal("nothing was asked for")
		}
		w.arrive("evt_3")
		w.arrive("evt_4")
		w.answers(func(rw http.ResponseWriter) bool { rw.WriteHeader(http.StatusInternalServerError); return true })
		w.pass(every)
		w.missing(0, "evt_2")
		w.pass(2 * journal.AskedGrace)
		w.missing(0, "evt_2")
	})
	bubble(t, func(w *world) {
		w.begun()
		w.make("evt_1")
		w.pass(2 * every)
		w.arrive("evt_1")
		w.pass(2 * every)
		w.missing(0, "evt_1")
	})
}

// A run that failed leaves on record what it found until then.
func TestFailedRunIsOnRecord(t *testing.T) {
	r := &reconcile.Report{Missing: 7, Stored: 2, Arrived: 1, Elsewhere: 2, Since: time.Unix(1000, 0), Window: time.Hour, Events: []reconcile.Missing{
		{Key: "evt_1", Outcome: reconcile.Failed, Why: "the API answered 500", Refused: "its signature is wrong"}, {Key: "evt_2", Outcome: reconcile.Stored}, {Key: "evt_3", Outcome: reconcile.Elsewhere}},
		Undelivered: []reconcile.Missing{{Entry: "7"}, {Entry: "8", Outcome: reconcile.Redelivered}}}
	now := time.Unix(5000, 0)
	f := finding(&Source{Remembered: 2 * time.Hour}, r, now)
	at := func(key, entry, why string) journal.MissingEvent {
		return journal.MissingEvent{Key: key, Entry: entry, Why: why, Found: now, Expires: now.Add(time.Hour)}
	}
	want := &journal.Finding{At: now, From: r.Since, Expires: now.Add(time.Hour), Missing: []journal.MissingEvent{at("evt_1", "", "the API answered 500"), at("", "7", "")},
		Beyond: 1} // four are not named, of which one was stored, one came and one is another cell's
	if fmt.Sprintf("%+v", f) != fmt.Sprintf("%+v", want) {
		t.Errorf("the finding is %+v\nwant %+v", f, want)
	}
	for _, c := range []struct{ window, remembered, want time.Duration }{
		{0, 0, unsaidWindow}, {time.Hour, 0, time.Hour}, {0, time.Hour, time.Hour}, {2 * time.Hour, time.Hour, time.Hour},
	} {
		if f := finding(&Source{Remembered: c.remembered}, &reconcile.Report{Window: c.window}, now); !f.Expires.Equal(now.Add(c.want)) {
			t.Errorf("with a window of %v, remembered for %v, it expires after %v", c.window, c.remembered, f.Expires.Sub(now))
		}
	}
}

// A gateway is killed between storing an event and moving the mark: the answer of the store to the one may be lost, and the other
// may have been done. Whoever goes on stores it once, and the mark passes it.
func TestKilledBetweenStoreAndMark(t *testing.T) {
	for name, stored := range map[string]bool{"failed, not persisted": false, "failed, but persisted": true} {
		for _, mode := range []journaltest.Mode{journaltest.NotPersisted, journaltest.Persisted} {
			t.Run(fmt.Sprint(name, ", mark ", mode), func(t *testing.T) {
				bubble(t, func(w *world) { w.killed(stored, mode) })
			})
		}
	}
}

func (w *world) killed(stored bool, mode journaltest.Mode) {
	var times int
	w.change(func(s *Source) {
		s.Ingest = func(ctx context.Context, ev hookonce.Event) (bool, error) {
			if stored {
				if is, _ := w.ingest(ctx, ev); is {
					times++
				}
			}
			// From here on it is dead: the store hears of it at most once more.
			w.store.Fail(journaltest.OpAdvanceMark, -1, mode)
			w.store.Fail(journaltest.OpReleaseMark, -1, journaltest.NotPersisted)
			w.store.Fail(journaltest.OpTakeMark, -1, journaltest.NotPersisted)
			return false, errors.New("the connection broke off")
		}
	})
	first := w.begun()
	w.make("evt_1")
	w.pass(lag + every)
	first.stop()
	for _, op := range []journaltest.Op{journaltest.OpAdvanceMark, journaltest.OpReleaseMark, journaltest.OpTakeMark} {
		w.store.Fail(op, 0, mode)
	}
	w.change(func(s *Source) {
		s.Ingest = func(ctx context.Context, ev hookonce.Event) (bool, error) {
			is, err := w.ingest(ctx, ev)
			if is {
				times++
			}
			return is, err
		}
	})
	w.start()
	w.pass(4 * every)
	if !w.has("evt_1") || times != 1 || time.Since(w.mark().Through) > lag+every {
		w.Errorf("stored %d times; the mark is %+v, and it is %v", times, w.mark(), time.Now())
	}
}

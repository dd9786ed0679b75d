package schedule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/reconcile"
	"github.com/hookonce/hookonce/internal/reconcile/reconciletest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider/spec"
)

const (
	every = 15 * time.Minute
	lag   = 10 * time.Minute
)

// world is a store, a sender's API, and what is on record of its events. It lives in a bubble of synctest, whose clock only the
// test moves on.
type world struct {
	*testing.T
	server *reconciletest.Server
	store  *journaltest.Faulty
	found  []News

	skipped   []skipped // what was passed over
	unwritten error     // of who puts that on record

	ahead atomic.Int64 // of gateways' clocks, in nanoseconds

	mu     sync.Mutex
	source Source
	known  map[string]bool
	cells  bool  // the store does not see what is on record
	away   error // of who is asked what is on record
	log    bytes.Buffer
	answer func(http.ResponseWriter) bool // takes the place of the sender's, if it reports so; nil: none does
}

// skipped is a stretch of time that was passed over.
type skipped struct {
	from, until time.Time
	why         Why
}

func bubble(t *testing.T, f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, server: &reconciletest.Server{Kind: spec.PageCursor, Clock: time.Now}, store: journaltest.NewFaulty(journaltest.NewMemory()), known: map[string]bool{}}
		w.server.Intercept = func(rw http.ResponseWriter, _ *http.Request) bool {
			w.mu.Lock()
			answer := w.answer
			w.mu.Unlock()
			return answer != nil && answer(rw)
		}
		p, err := spec.New(w.server.Spec(reconciletest.Origin), spec.Settings{Secrets: spec.Secrets(reconciletest.Secret)})
		if err != nil {
			t.Fatal(err)
		}
		w.source = Source{Name: "billing", Provider: p, Token: reconciletest.Token, Every: every, Lag: lag}
		f(w)
	})
}

// gateway is one that compares.
type gateway struct {
	*Schedule
	metrics *prometheus.Registry
	stop    func()
}

// start starts a gateway, which the end of the test stops.
func (w *world) start() *gateway {
	return w.startWith(func() Source {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.source
	})
}

// startWith starts a gateway with a source of its own.
func (w *world) startWith(source func() Source) *gateway {
	g := &gateway{metrics: prometheus.NewRegistry()}
	o := Options{
		Store: w.store, Ledger: w, Transport: w.server, Now: w.now, Registerer: g.metrics, Cells: w.cells, Logger: slog.New(slog.NewTextHandler(w, nil)),
		Sources: func() []Source { return []Source{source()} },
		Skipped: func(_ context.Context, source string, from, until time.Time, why Why) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.unwritten == nil {
				w.skipped = append(w.skipped, skipped{from, until, why})
			}
			return w.unwritten
		},
		Found: func(ctx context.Context, source string, n News) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if source != "billing" || !n.any() || ctx.Err() != nil {
				w.Errorf("of %q it told %+v, with a context of which %v", source, n, ctx.Err())
			}
			w.found = append(w.found, n)
		},
	}
	g.Schedule = New(o)
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(ctx)
	}()
	g.stop = func() {
		cancel()
		<-done
	}
	w.Cleanup(g.stop)
	return g
}

// begun starts a gateway, and lets the beginning be an hour ago.
func (w *world) begun() *gateway {
	g := w.start()
	w.pass(time.Hour)
	return g
}

// now is what gateways' clocks say.
func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// shift sets gateways' clocks.
func (w *world) shift(ahead time.Duration) { w.ahead.Store(int64(ahead)) }

func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

// Known is what is on record.
func (w *world) Known(_ context.Context, source string, keys []string) (map[string]reconcile.Known, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away != nil {
		return nil, w.away
	}
	found := map[string]reconcile.Known{}
	for _, key := range keys {
		if w.known[key] {
			found[key] = reconcile.Known{}
		}
	}
	return found, nil
}

// ingest puts an event on record.
func (w *world) ingest(_ context.Context, ev hookonce.Event) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.known[ev.Key] = true }()
	return !w.known[ev.Key], nil
}

// change changes how the source is compared.
func (w *world) change(f func(*Source)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.source)
}

// remembers has the sender's list go back for as long.
func (w *world) remembers(window time.Duration) {
	w.Helper()
	s := w.server.Spec(reconciletest.Origin)
	s.Reconcile.Window = window
	p, err := spec.New(s, spec.Settings{Secrets: spec.Secrets(reconciletest.Secret)})
	if err != nil {
		w.Fatal(err)
	}
	w.change(func(s *Source) { s.Provider = p })
}

// make makes an event of now.
func (w *world) make(id string) time.Time {
	at := time.Now().Truncate(time.Second)
	w.server.Add(reconciletest.Entry{ID: id, At: at})
	return at
}

func (w *world) arrive(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known[id] = true
}

// silent has nobody say what is on record, for a reason; nil: they do.
func (w *world) silent(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = err
}

func (w *world) has(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known[id]
}

// answers has the sender answer in another way; with nil as before.
func (w *world) answers(f func(http.ResponseWriter) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = f
}

func (w *world) mark() journal.Mark {
	w.Helper()
	marks, err := w.store.Marks(w.Context())
	if err != nil || len(marks) != 1 {
		w.Fatalf("the marks are %+v, %v", marks, err)
	}
	return marks[0]
}

// counts wants what gateways counted together: missing, recovered, failures.
func (w *world) counts(want string, gateways ...*gateway) {
	w.Helper()
	var missing, recovered, failed float64
	for _, g := range gateways {
		missing += testutil.ToFloat64(g.Schedule.metrics.missing)
		recovered += testutil.ToFloat64(g.Schedule.metrics.recovered)
		failed += testutil.ToFloat64(g.Schedule.metrics.failed)
	}
	if got := fmt.Sprint(missing, recovered, failed); got != want {
		w.Errorf("missing, recovered and failed are %s, want %s\n%s", got, want, w.logged())
	}
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// says wants the log to have a text so often.
func (w *world) says(n int, text string) {
	w.Helper()
	if got := strings.Count(w.logged(), text); got != n {
		w.Errorf("the log says %q %d times, want %d:\n%s", text, got, n, w.logged())
	}
}

// The first look at a source marks its beginning, and asks for nothing that was made before: somebody else may have done the work.
func TestBeginning(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) { s.Ingest = w.ingest })
		w.make("evt_before")
		w.pass(time.Second)
		g := w.start()
		w.pass(time.Second)
		if n := len(w.server.Requests()); n > 0 {
			t.Errorf("the sender was asked %d times at the beginning", n)
		}
		w.pass(ahead)
		w.make("evt_after")
		w.pass(4 * every)
		if w.has("evt_before") || !w.has("evt_after") {
			t.Errorf("what was made before is stored: %v; what was made after: %v", w.has("evt_before"), w.has("evt_after"))
		}
		w.counts("1 1 0", g)
	})
}

// What is told, though it is only reported, is told from the beginning on, whatever the period and the lag.
func TestBeginningIsTold(t *testing.T) {
	for name, period := range map[string]time.Duration{"often": time.Minute, "seldom": time.Hour} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.change(func(s *Source) { s.Every = period })
				g := w.start()
				w.pass(ahead + 30*time.Second)
				w.make("evt_1")
				w.pass(4 * time.Hour)
				w.counts("1 0 0", g)
				w.says(1, "an event never arrived")
			})
		})
	}
}

// Of three gateways one at a time compares a source, in its period, and all together tell of a missing event once.
func TestOneAtATime(t *testing.T) {
	bubble(t, func(w *world) {
		all := []*gateway{w.start(), w.start(), w.start()}
		w.pass(time.Hour)
		w.make("evt_lost")
		w.make("evt_here")
		w.arrive("evt_here")
		asked := len(w.server.Requests())
		w.pass(8 * every)
		if n := len(w.server.Requests()) - asked; n < 7 || n > 8 {
			t.Errorf("in 8 periods the sender was asked %d times", n)
		}
		w.counts("1 0 0", all...)
		w.says(1, "an event never arrived")
		if got := w.mark(); got.Holder != "" || time.Since(got.Through) > lag+every || got.Last.Error != "" {
			t.Errorf("the mark is %+v at %v", got, time.Now())
		}
	})
}

// A gateway that took the mark right after another one had done the work leaves it alone.
func TestDoneMeanwhile(t *testing.T) {
	bubble(t, func(w *world) {
		g := w.begun()
		w.pass(time.Second)
		asked, before := len(w.server.Requests()), w.mark()
		g.compare(w.Context(), w.source)
		after := w.mark()
		if before.Token++; len(w.server.Requests()) != asked || after != before {
			t.Errorf("it compared again: %+v, and before %+v", after, before)
		}
	})
}

// An event that could not be stored keeps the mark where it is until it could, and counts once. After a day it is given up, so
// that the list that is read does not grow for ever.
func TestFailedActions(t *testing.T) {
	for name, heals := range map[string]bool{"heals": true, "never": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				var healed atomic.Bool
				w.change(func(s *Source) {
					s.Ingest = func(ctx context.Context, ev hookonce.Event) (bool, error) {
						if !healed.Load() && ev.Key == "evt_bad" {
							return false, errors.New("the store is full")
						}
						return w.ingest(ctx, ev)
					}
				})
				g := w.begun()
				at := w.make("evt_bad")
				w.pass(time.Minute)
				w.make("evt_good")
				w.pass(2 * time.Hour)
				if !w.has("evt_good") || w.has("evt_bad") || !w.mark().Through.Equal(at) {
					t.Errorf("the mark stands at %v, and the event that could not be stored is of %v", w.mark().Through, at)
				}
				w.counts("2 1 1", g)
				healed.Store(heals)
				w.pass(30 * time.Hour)
				if w.has("evt_bad") != heals || time.Since(w.mark().Through) > lag+every {
					t.Errorf("stored %v; the mark stands at %v, and it is %v", w.has("evt_bad"), w.mark().Through, time.Now())
				}
				w.counts(map[bool]string{true: "2 2 1", false: "2 1 1"}[heals], g)
				w.says(2, "an event never arrived")
			})
		})
	}
}

// What fails in the first run after a long outage is no more given up than what is made now: it is tried for a day, and not for as
// long as it is young.
func TestFailedAfterALongOutage(t *testing.T) {
	for name, ask := range map[string]func(w *world, s *Source, down *atomic.Bool){
		"stored": func(w *world, s *Source, down *atomic.Bool) {
			s.Ingest = func(ctx context.Context, ev hookonce.Event) (bool, error) {
				if down.Load() {
					return false, errors.New("the store is full")
				}
				return w.ingest(ctx, ev)
			}
		},
		"sent again": func(w *world, s *Source, _ *atomic.Bool) { s.Redeliver = true },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				var down atomic.Bool
				down.Store(true)
				w.change(func(s *Source) { ask(w, s, &down) })
				w.begun().stop()
				made := w.make("evt_old")
				w.pass(2 * insist)
				w.start()
				w.pass(every)
				if m := w.mark(); m.Last.Listed != 1 || m.Through.After(made) || m.Last.Error != "" {
					t.Errorf("after a run in which it could not be recovered the mark is %+v", m)
				}
				down.Store(false)
				w.pass(4 * every)
				if n := len(w.server.Resent()); !w.has("evt_old") && n < 3 {
					t.Errorf("it was given up: asked for %d times, the mark is %+v", n, w.mark())
				}
				w.pass(insist)
				if time.Since(w.mark().Through) > lag+every {
					t.Errorf("it is waited for without end: the mark is %+v at %v", w.mark(), time.Now())
				}
			})
		})
	}
}

// What the sender was asked for is asked for again until it has come, and counts once.
func TestRedeliveredUntilItComes(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) { s.Redeliver = true })
		g := w.begun()
		w.make("evt_1")
		w.pass(4 * every)
		if n := len(w.server.Resent()); n < 3 {
			t.Errorf("it was asked for %d times", n)
		}
		w.arrive("evt_1")
		w.pass(every)
		before := len(w.server.Resent())
		w.pass(4 * every)
		if n := len(w.server.Resent()); n != before {
			t.Errorf("it was asked for again after it had come")
		}
		w.counts("1 1 0", g)
	})
}

// A list of deliveries shows what was sent again as a new entry of then. So an event that never comes, because it is refused, is no
// older than the last request for it: it is asked for until a day is over all the same, and told of once.
func TestRedeliveriesThatAreRefused(t *testing.T) {
	testskip.Long(t)
	for _, period := range []time.Duration{5 * time.Minute, every} {
		t.Run(period.String(), func(t *testing.T) {
			bubble(t, func(w *world) {
				s := w.server.Spec(reconciletest.Origin)
				s.Reconcile.List.Deliveries = true
				p, err := spec.New(s, spec.Settings{Secrets: spec.Secrets(reconciletest.Secret)})
				if err != nil {
					t.Fatal(err)
				}
				w.server.Resend = func(e reconciletest.Entry, n int) {
					w.server.Add(reconciletest.Entry{ID: fmt.Sprint("again_", n), Key: e.Key, At: time.Now().Truncate(time.Second)})
				}
				w.change(func(s *Source) { s.Provider, s.Redeliver, s.Every = p, true, period })
				g := w.begun()
				w.server.Add(reconciletest.Entry{ID: "first", Key: "evt_1", At: time.Now().Truncate(time.Second)})
				w.pass(insist + time.Hour)
				asked := len(w.server.Resent())
				if asked < 20 {
					t.Errorf("it was asked for %d times", asked)
				}
				w.pass(insist)
				if n := len(w.server.Resent()); n != asked {
					t.Errorf("it was asked for %d times, and %d of them after a day", n, n-asked)
				}
				w.counts("1 1 1", g)
				w.says(1, "an event never arrived")
				if through := w.mark().Through; time.Since(through) > lag+period {
					t.Errorf("the mark stands at %v, and it is %v", through, time.Now())
				}
				w.missing(0, "evt_1the sender was asked to send it again for so long, and it never came")
			})
		})
	}
}

// So it is where no process lives for a day: what is on record says since when the sender is asked.
func TestRedeliveriesOfManyProcesses(t *testing.T) {
	testskip.Long(t)
	bubble(t, func(w *world) {
		w.server.Resend = func(e reconciletest.Entry, n int) {
			w.server.Add(reconciletest.Entry{ID: fmt.Sprint("again_", n), Key: e.Key, At: time.Now().Truncate(time.Second)})
		}
		w.change(func(s *Source) { s.Redeliver = true })
		g := w.begun()
		w.server.Add(reconciletest.Entry{ID: "first", Key: "evt_1", At: time.Now().Truncate(time.Second)})
		restarted := func(n int) {
			for range n {
				w.pass(20 * time.Hour)
				g.stop()
				g = w.start()
			}
		}
		restarted(9) // a week and a half-day
		asked := len(w.server.Resent())
		restarted(3)
		if n := len(w.server.Resent()); n != asked {
			t.Errorf("it was asked for %d times, and %d of them after a week", n, n-asked)
		}
	})
}

// What has no key is asked for once, however long the sender says that it did not deliver it: nobody can see that it came. A process
// that begins anew may ask once more, for what the last one asked for lately.
func TestUnkeyedIsRedeliveredOnce(t *testing.T) {
	for _, period := range []time.Duration{time.Minute, every} {
		t.Run(period.String(), func(t *testing.T) {
			bubble(t, func(w *world) {
				s := w.server.Spec(reconciletest.Origin)
				s.Reconcile.List.Event.Body = "$.event.none"
				p, err := spec.New(s, spec.Settings{Secrets: spec.Secrets(reconciletest.Secret)})
				if err != nil {
					t.Fatal(err)
				}
				w.change(func(s *Source) { s.Provider, s.Redeliver, s.Every = p, true, period })
				g := w.begun()
				w.make("evt_1")
				w.pass(lag + period)
				if n := len(w.server.Resent()); n != 1 {
					t.Fatalf("it was asked for %d times", n)
				}
				g.stop()
				w.start()
				w.pass(24 * time.Hour)
				if n := len(w.server.Resent()); n > 2 {
					t.Errorf("it was asked for %d times, by two processes", n)
				}
				w.make("evt_2")
				w.pass(24 * time.Hour)
				if got := w.server.Resent(); len(got) > 3 || got[len(got)-1] != "evt_2" {
					t.Errorf("asked for is %q", got)
				}
				w.missing(0)
			})
		})
	}
}

// What comes while a run lasts never was missing.
func TestArrivedMeanwhile(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) {
			s.Ingest = func(_ context.Context, ev hookonce.Event) (bool, error) {
				w.arrive(ev.Key)
				return false, nil
			}
		})
		g := w.begun()
		w.make("evt_1")
		w.pass(2 * every)
		w.counts("0 0 0", g)
		if len(w.found) > 0 {
			t.Errorf("it told %+v", w.found)
		}
	})
}

// hang makes the sender's next answer wait until it is released.
func (w *world) hang() (asked <-chan struct{}, release func()) {
	came, gate := make(chan struct{}, 100), make(chan struct{})
	w.answers(func(http.ResponseWriter) bool {
		came <- struct{}{}
		<-gate
		return false
	})
	return came, sync.OnceFunc(func() { close(gate) })
}

// A gateway whose lease another one has taken stops at once and writes nothing. The other one does the work.
func TestLeaseLost(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) { s.Ingest = w.ingest })
		slow := w.begun()
		w.make("evt_1")
		asked, release := w.hang()
		defer release()
		w.pass(2 * every) // the run goes on, and its lease with it
		<-asked
		held := w.mark()
		if held.Holder != slow.holder || !held.Lease.After(time.Now()) {
			t.Errorf("while it runs the mark is %+v", held)
		}
		w.store.Fail(journaltest.OpAdvanceMark, 1, journaltest.NotPersisted)
		w.pass(leaseTime / 4)
		_, taken, err := w.store.TakeMark(w.Context(), "billing", "another gateway", held.Lease.Add(leaseTime), time.Now().Add(time.Hour))
		if err != nil || !taken {
			t.Fatal("the lease of a gateway that cannot be heard was not to be had", err)
		}
		other := w.mark()
		w.pass(leaseTime)
		release()
		w.pass(time.Minute)
		if w.has("evt_1") || w.mark() != other {
			t.Errorf("it went on after it had lost the lease: stored %v, the mark is %+v", w.has("evt_1"), w.mark())
		}
		w.says(1, "another gateway goes on")
	})
}

// A gateway that cannot be sure of its lease any more stops by itself.
func TestStoreSilent(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) { s.Ingest = w.ingest })
		w.begun()
		w.make("evt_1")
		_, release := w.hang()
		defer release()
		w.pass(2 * every)
		through := w.mark().Through
		w.store.Fail(journaltest.OpAdvanceMark, -1, journaltest.NotPersisted)
		w.pass(2 * leaseTime)
		release()
		w.pass(2 * time.Second)
		if got := w.mark(); w.has("evt_1") || !got.Through.Equal(through) || !strings.Contains(got.Last.Error, "did not answer") {
			t.Errorf("without the store it went on: stored %v, the mark is %+v", w.has("evt_1"), got)
		}
		w.answers(nil)
		w.store.Fail(journaltest.OpAdvanceMark, 0, journaltest.NotPersisted)
		w.pass(2 * every)
		if !w.has("evt_1") {
			t.Error("once the store is back it does not go on")
		}
	})
}

// While the mark cannot be taken nobody is asked for anything. It is tried again soon, however long the period.
func TestStoreAway(t *testing.T) {
	for _, mode := range []journaltest.Mode{journaltest.NotPersisted, journaltest.Persisted} {
		bubble(t, func(w *world) {
			w.change(func(s *Source) { s.Every = 24 * time.Hour })
			w.begun()
			w.make("evt_1")
			w.store.Fail(journaltest.OpTakeMark, -1, mode)
			w.pass(24 * time.Hour)
			if n := len(w.server.Requests()); n > 0 {
				t.Errorf("without the mark the sender was asked %d times", n)
			}
			w.store.Fail(journaltest.OpTakeMark, 0, mode)
			w.pass(2 * leaseTime)
			if n := len(w.server.Requests()); n != 1 {
				t.Errorf("once the store is back the sender was asked %d times", n)
			}
		})
	}
}

// A run of which the store does not take how far it came is repeated; what it stored is on record by then, and counts once.
func TestResultLost(t *testing.T) {
	for _, mode := range []journaltest.Mode{journaltest.NotPersisted, journaltest.Persisted} {
		bubble(t, func(w *world) {
			w.change(func(s *Source) { s.Ingest = w.ingest })
			g := w.begun()
			w.make("evt_1")
			w.store.Fail(journaltest.OpAdvanceMark, 1, mode)
			w.store.Fail(journaltest.OpReleaseMark, 1, mode)
			w.pass(4 * every)
			w.counts("1 1 0", g)
			if time.Since(w.mark().Through) > lag+every {
				t.Errorf("the mark stands at %v, and it is %v", w.mark().Through, time.Now())
			}
		})
	}
}

// A run of which nothing could be put on record has failed, whatever the sender said: nobody takes it for a comparison.
func TestFindingLost(t *testing.T) {
	bubble(t, func(w *world) {
		w.begun()
		w.make("evt_1")
		w.store.Fail(journaltest.OpAdvanceMark, -1, journaltest.NotPersisted)
		w.pass(2 * every)
		if m := w.mark(); m.Last.Error != "what it found could not be put on record" {
			t.Errorf("its result is %+v", m.Last)
		}
		w.missing(0)
	})
}

// A sender that says when to come again is not asked before.
func TestComeAgainLater(t *testing.T) {
	bubble(t, func(w *world) {
		w.begun()
		var asked atomic.Int64
		w.answers(func(rw http.ResponseWriter) bool {
			asked.Add(1)
			rw.Header().Set("Retry-After", "14400")
			rw.WriteHeader(http.StatusTooManyRequests)
			return true
		})
		w.pass(4 * time.Hour)
		if n := asked.Load(); n != 1 {
			t.Errorf("it was asked %d times within the time", n)
		}
		w.pass(time.Hour)
		if n := asked.Load(); n != 2 {
			t.Errorf("it was asked %d times after it", n)
		}
	})
}

// A run that the end of its gateway cuts off leaves no trace: another one begins it anew, long before the period is over.
func TestInterrupted(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) { s.Every = 24 * time.Hour })
		first := w.begun()
		w.make("evt_1")
		asked, release := w.hang()
		defer release()
		before := w.mark()
		w.pass(24 * time.Hour)
		<-asked
		second := w.start()
		go first.stop()
		synctest.Wait()
		release()
		w.answers(nil)
		synctest.Wait()
		if got := w.mark(); got.Last != before.Last || !got.Through.Equal(before.Through) || got.Holder != "" {
			t.Errorf("it left %+v, and found %+v", got, before)
		}
		w.pass(2 * leaseTime)
		w.counts("1 0 0", first, second)
		if w.mark().Last.Ended.Equal(before.Last.Ended) {
			t.Error("nobody goes on")
		}
	})
}

// A run whose source is configured in another way meanwhile ends, and one begins as it is configured now, at once. What counts from
// the end of a run on ends none.
func TestConfiguredAnew(t *testing.T) {
	testskip.Long(t)
	for name, c := range map[string]struct {
		change       func(s *Source)
		ends, stored bool // stored by who goes on
	}{
		"another action": {func(s *Source) { s.Ingest = nil }, true, false},
		"another token":  {func(s *Source) { s.Token = "fake-token-of-somebody-else" }, true, false},
		"other types":    {func(s *Source) { s.Types = []string{"shop.*"} }, true, false},
		"settings":       {func(s *Source) { s.With = map[string]string{"owner": "acme"} }, true, false},
		"another lag":    {func(s *Source) { s.Lag = 2 * time.Hour }, true, true},
		"a provider": {func(s *Source) {
			s.Provider, _ = spec.New(s.Provider.Spec(), spec.Settings{Secrets: spec.Secrets(reconciletest.Secret)})
		}, true, true},
		"another name":   {func(s *Source) { s.Name = "payments" }, true, false},
		"another period": {func(s *Source) { s.Every = 12 * time.Hour }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.change(func(s *Source) { s.Ingest, s.Every = w.ingest, 24*time.Hour })
				w.begun()
				w.make("evt_1")
				asked, release := w.hang()
				defer release()
				before := w.mark()
				w.pass(24 * time.Hour)
				<-asked
				w.change(c.change)
				w.pass(2 * lookEvery)
				release()
				w.answers(nil)
				w.pass(2 * lookEvery)
				if w.has("evt_1") != c.stored {
					t.Errorf("it is stored: %v", w.has("evt_1"))
				}
				w.says(map[bool]int{true: 1}[c.ends], "a run was ended")
				marks, err := w.store.Marks(w.Context())
				if err != nil || marks[0].Holder != "" {
					t.Errorf("the marks are %+v, %v", marks, err)
				}
				if goesOn := marks[0].Last.Ended.After(before.Last.Ended); goesOn == (name == "another name") {
					t.Errorf("it goes on: %v, the marks are %+v", goesOn, marks)
				}
			})
		})
	}
}

// What a run stored before the end of its gateway cut it off is told, and can be put on record.
func TestInterruptedIsTold(t *testing.T) {
	bubble(t, func(w *world) {
		g := w.begun()
		w.change(func(s *Source) {
			s.Ingest = func(ctx context.Context, ev hookonce.Event) (bool, error) {
				go g.stop()
				<-ctx.Done()
				return w.ingest(ctx, ev)
			}
		})
		w.make("evt_1")
		w.make("evt_2")
		w.pass(2 * every)
		if w.has("evt_1") == w.has("evt_2") || len(w.found) != 1 || w.found[0].Stored != 1 {
			t.Errorf("stored are the first %t and the second %t, and it told %+v", w.has("evt_1"), w.has("evt_2"), w.found)
		}
	})
}

// A sender that fails is asked again soon, not in a period, and less and less often.
func TestSenderFails(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) { s.Every = 24 * time.Hour })
		g := w.begun()
		w.answers(func(rw http.ResponseWriter) bool {
			rw.WriteHeader(http.StatusForbidden)
			return true
		})
		w.pass(23*time.Hour + time.Minute)
		first := len(w.server.Requests())
		if got := w.mark().Last.Error; first != 1 || got == "" || strings.Contains(got+w.logged(), reconciletest.Token) {
			t.Errorf("it was asked %d times; the result is %q", first, got)
		}
		w.pass(12 * time.Hour)
		if n := len(w.server.Requests()) - first; n < 2 || n > 4 {
			t.Errorf("in twelve hours it was asked %d times", n)
		}
		if n := testutil.ToFloat64(g.Schedule.metrics.runs.WithLabelValues("billing", "failed")); n < 3 {
			t.Errorf("%v runs count as failed", n)
		}
		w.answers(nil)
		w.pass(12 * time.Hour)
		if w.mark().Last.Error != "" {
			t.Errorf("it does not recover: %+v", w.mark())
		}
	})
}

// What was told is not told again because a run failed in between.
func TestToldOnceAlthoughARunFails(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) {
			s.Ingest = func(context.Context, hookonce.Event) (bool, error) { return false, errors.New("the store is full") }
		})
		g := w.begun()
		w.make("evt_bad")
		w.pass(2 * every)
		w.counts("1 0 1", g)
		w.answers(func(rw http.ResponseWriter) bool {
			rw.WriteHeader(http.StatusForbidden)
			return true
		})
		w.pass(2 * every)
		if w.mark().Last.Error == "" {
			t.Fatalf("no run failed: %+v", w.mark())
		}
		w.answers(nil)
		w.pass(2 * every)
		w.counts("1 0 1", g)
		w.says(1, "an event never arrived")
	})
}

// An event that its sender lists late, behind what was compared, is told when it is stored.
func TestListedLate(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) { s.Ingest = w.ingest })
		g := w.begun()
		w.pass(4 * every)
		w.server.Add(reconciletest.Entry{ID: "evt_late", At: w.mark().Through.Add(-time.Minute)})
		w.pass(2 * every)
		w.counts("1 1 0", g)
		w.says(1, "an event never arrived")
	})
}

// What the webhook is not subscribed to was not to arrive, and is not recovered.
func TestTypes(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) { s.Ingest, s.Types = w.ingest, []string{"order.*"} })
		g := w.begun()
		at := w.make("evt_wanted")
		w.server.Add(reconciletest.Entry{ID: "evt_other", Type: "shop.made", At: at})
		w.pass(2 * every)
		if !w.has("evt_wanted") || w.has("evt_other") {
			t.Errorf("stored: wanted %v, other %v", w.has("evt_wanted"), w.has("evt_other"))
		}
		w.counts("1 1 0", g)
	})
}

// The counters of a source are there before anything is counted, so that the first of it is an increase; and how far it was compared
// is there as it is on record.
func TestMetricsOfASource(t *testing.T) {
	bubble(t, func(w *world) {
		g := w.start()
		w.pass(time.Second)
		m := g.Schedule.metrics
		if n := testutil.CollectAndCount(m.missing) + testutil.CollectAndCount(m.recovered) + testutil.CollectAndCount(m.failed); n != 3 || testutil.CollectAndCount(m.runs) != 2 {
			t.Errorf("there are %d counters of what is missing, and %d of runs", n, testutil.CollectAndCount(m.runs))
		}
		w.pass(4 * every)
		if got, want := testutil.ToFloat64(m.through), float64(w.mark().Through.UnixMilli())/1000; got != want {
			t.Errorf("it was compared through %v, and is said to be through %v", want, got)
		}
	})
}

// A gateway that was away for longer than the sender's list goes back says that a part cannot be compared any more; one that was
// away for a shorter time has nothing to say. It is on record before the part is passed over.
func TestWindowPassed(t *testing.T) {
	for away, want := range map[time.Duration]int{12 * time.Hour: 0, 72 * time.Hour: 1} {
		bubble(t, func(w *world) {
			w.remembers(24 * time.Hour)
			w.begun().stop()
			w.pass(away)
			left := w.mark().Through
			w.refuse(errors.New("the store takes no audits"))
			w.start()
			w.pass(every)
			if m := w.mark(); want > 0 && (!m.Through.Equal(left) || !strings.Contains(m.Last.Error, "the store takes no audits")) {
				t.Errorf("it is passed over before that is on record: %+v", m)
			}
			w.passedOver(0, Forgotten)
			w.refuse(nil)
			w.pass(4 * every)
			w.says(want, "a part of the time is not compared")
			w.passedOver(want, Forgotten, []time.Time{left, left.Add(away / 2)}[:2*want]...)
		})
	}
}

// A key that is forgotten while a run lasts does not make its event missing, which would be stored once more.
func TestForgottenMeanwhile(t *testing.T) {
	bubble(t, func(w *world) {
		const remembered = 24 * time.Hour
		w.change(func(s *Source) { s.Ingest, s.Remembered = w.ingest, remembered })
		w.begun().stop()
		w.make("evt_1")
		w.arrive("evt_1")
		w.pass(remembered - 15*time.Minute)
		limited := false
		w.answers(func(rw http.ResponseWriter) bool {
			if limited {
				return false
			}
			limited = true
			rw.Header().Set("Retry-After", "840")
			rw.WriteHeader(http.StatusTooManyRequests)
			return true
		})
		g := w.start()
		w.pass(10 * time.Minute)
		w.mu.Lock()
		delete(w.known, "evt_1")
		w.mu.Unlock()
		w.pass(10 * time.Minute)
		if got := w.mark().Last; w.has("evt_1") || got.Listed != 1 {
			t.Errorf("stored once more %v, by a run that came to %+v", w.has("evt_1"), got)
		}
		w.counts("0 0 0", g)
	})
}

// What is older than the keys of the source are remembered is not asked about: it would be missing, whether it came or not. That a
// part of the time cannot be compared is said.
func TestForgotten(t *testing.T) {
	bubble(t, func(w *world) {
		const remembered = 24 * time.Hour
		w.change(func(s *Source) { s.Ingest, s.Remembered = w.ingest, remembered })
		w.begun().stop()
		w.make("evt_old") // which came, and is forgotten by now
		w.pass(3 * remembered)
		w.make("evt_new")
		g := w.start()
		w.pass(4 * every)
		if w.has("evt_old") || !w.has("evt_new") {
			t.Errorf("stored: old %v, new %v", w.has("evt_old"), w.has("evt_new"))
		}
		for _, r := range w.server.Requests()[3:] {
			at, _ := url.Parse(r.URL)
			since, err := time.Parse(time.RFC3339, at.Query().Get("since"))
			if err != nil || since.Before(r.At.Add(-remembered)) {
				t.Errorf("it asked for what is forgotten: %s at %v", r.URL, r.At)
			}
		}
		w.passedOver(1, Forgotten)
		w.counts("1 1 0", g)
	})
}

// What a reload changes counts soon, however long the period was.
func TestShorterPeriod(t *testing.T) {
	bubble(t, func(w *world) {
		w.change(func(s *Source) { s.Every = 7 * 24 * time.Hour })
		w.begun()
		w.change(func(s *Source) { s.Every = time.Minute })
		w.pass(2 * time.Minute)
		if n := len(w.server.Requests()); n == 0 {
			t.Error("the sender was not asked")
		}
	})
}

// A run with many missing events names some, and counts all.
func TestManyMissing(t *testing.T) {
	bubble(t, func(w *world) {
		w.server.Size = 100
		g := w.begun()
		for i := range 3 * maxLines {
			w.make(fmt.Sprintf("evt_%d", i))
		}
		w.pass(3 * every)
		w.says(maxLines, "an event never arrived")
		w.counts(fmt.Sprint(3*maxLines, 0, 0), g)
	})
}

// How long a report holds the mark, where the report does not name all that failed, or none of it has a time.
func TestSettled(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	failed := func(at time.Time) reconcile.Missing {
		return reconcile.Missing{Key: "evt_new", Outcome: reconcile.Failed, Time: at}
	}
	old := failed(ago(90 * time.Minute))
	old.Key = "evt_old"
	dayAgo := tried{outcome: reconcile.Failed, since: time.Now().Add(-insist)}
	news := News{tried: told{"evt_old": dayAgo, "evt_new": {outcome: reconcile.Failed, since: time.Now().Add(-insist + time.Hour)}}}
	for name, c := range map[string]struct {
		report reconcile.Report
		want   time.Duration // ago
	}{
		"all is well":               {reconcile.Report{Stored: 1, Events: []reconcile.Missing{{Outcome: reconcile.Stored, Time: ago(time.Hour)}}}, lag},
		"one failed":                {reconcile.Report{Failed: 1, Events: []reconcile.Missing{failed(ago(time.Hour))}}, time.Hour},
		"one failed for a day":      {reconcile.Report{Failed: 1, Events: []reconcile.Missing{old}}, lag},
		"and another one":           {reconcile.Report{Failed: 2, Events: []reconcile.Missing{old, failed(ago(time.Hour))}}, time.Hour},
		"one that is old failed":    {reconcile.Report{Failed: 1, Events: []reconcile.Missing{failed(ago(30 * time.Hour))}}, 30 * time.Hour},
		"one is elsewhere":          {reconcile.Report{Elsewhere: 1, Events: []reconcile.Missing{{Outcome: reconcile.Elsewhere, Time: ago(time.Hour)}}}, time.Hour},
		"without a time":            {reconcile.Report{Failed: 1, Events: []reconcile.Missing{failed(time.Time{})}}, lag},
		"without a key":             {reconcile.Report{Failed: 1, Undelivered: []reconcile.Missing{failed(ago(2 * time.Hour))}}, 2 * time.Hour},
		"sent again, without a key": {reconcile.Report{Redelivered: 1, Undelivered: []reconcile.Missing{{Entry: "7", Outcome: reconcile.Redelivered, Time: ago(2 * time.Hour)}}}, lag},
		"sent again, with one":      {reconcile.Report{Redelivered: 1, Events: []reconcile.Missing{{Key: "evt_new", Outcome: reconcile.Redelivered, Time: ago(2 * time.Hour)}}}, 2 * time.Hour},
		"not named":                 {reconcile.Report{Failed: 2, Events: []reconcile.Missing{failed(ago(time.Hour))}}, 3 * time.Hour},
		"not named after an outage": {reconcile.Report{Failed: 1, Since: ago(72 * time.Hour)}, 72 * time.Hour},
		"one that is too old":       {reconcile.Report{Failed: 1, Events: []reconcile.Missing{failed(ago(oldest + 2*lag))}}, oldest + lag},
		"too old and not named":     {reconcile.Report{Failed: 1, Since: ago(2 * oldest)}, oldest + lag},
		"younger than the lag":      {reconcile.Report{Redelivered: 1, Undelivered: []reconcile.Missing{{Outcome: reconcile.Redelivered, Time: now}}}, lag},
	} {
		if c.report.Settled = ago(lag); c.report.Since.IsZero() {
			c.report.Since = ago(3 * time.Hour)
		}
		if got := settled(&c.report, news.givenUp); !got.Equal(ago(c.want)) {
			t.Errorf("%s: all is settled until %v, want %v", name, got, ago(c.want))
		}
	}
	news.tried[unnamed] = dayAgo
	for since, want := range map[time.Duration]time.Duration{3 * time.Hour: 3 * time.Hour, 72 * time.Hour: insist + lag} {
		if got := settled(&reconcile.Report{Failed: 1, Since: ago(since), Settled: ago(lag)}, news.givenUp); !got.Equal(ago(want)) {
			t.Errorf("not named for a day, since %v: all is settled until %v, want %v", since, got, ago(want))
		}
	}
}

// Since when events are tried that reports do not name is kept from run to run, as long as there are some.
func TestSinceWhenUnnamedAreTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, src := New(Options{}), &Source{Name: "billing"}
		named := make([]reconcile.Missing, reconcile.MaxMissing)
		for i := range named {
			named[i] = reconcile.Missing{Key: strconv.Itoa(i), Outcome: reconcile.Failed}
		}
		run := func(events []reconcile.Missing, beyond int, err error) bool {
			time.Sleep(insist)
			found := s.news(src, journal.Mark{}, &reconcile.Report{Failed: len(events) + beyond, Missing: len(events) + beyond, Events: events}, err)
			return found.givenUp(unnamed) && (len(events) == 0 || found.givenUp("0") && found.Missing == beyond)
		}
		if run(named, 1, nil) || !run(named, 1, nil) || !run(nil, 0, errors.New("cut off")) || !run(named, 1, nil) || run(named, 0, nil) || run(named, 1, nil) {
			t.Error("they are given up too soon, too late, or go by those of long ago")
		}
	})
}

// What the report does not name of those that the sender was asked for is under way while the mark waits for it, and counted then.
func TestFindingCountsTheRest(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for since, want := range map[time.Duration]int64{2 * time.Hour: 2, 24 * time.Hour: 7} {
		r := &reconcile.Report{Since: now.Add(-lag - since), Settled: now.Add(-lag), Missing: 8, Redelivered: 6,
			Events: []reconcile.Missing{{Key: "evt_1", Outcome: reconcile.Redelivered, Time: now.Add(-time.Hour)}}}
		if f := finding(&Source{Name: "billing"}, r, now); f.Beyond != want || len(f.Missing) != 1 {
			t.Errorf("from %v before: %d more and %d named, want %d", since, f.Beyond, len(f.Missing), want)
		}
	}
}

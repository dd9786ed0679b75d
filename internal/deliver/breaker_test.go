package deliver_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
)

// guarded is a destination whose breaker opens after three failures, for 10 s, 20 s, and then 30 s.
func guarded() deliver.Destination {
	app := nowhere
	app.Breaker = &deliver.Breaker{Failures: 3, Open: 10 * time.Second, OpenMax: 30 * time.Second}
	return app
}

// Three failures open the breaker. While it is open nothing is attempted, and what comes goes back for
// the time of its end. Then one delivery at a time finds out; each failure makes the next pause longer.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := 500
		var made atomic.Int32
		release := make(chan struct{}, 100)
		s := newStandIn(t, guarded(), func(*http.Request) (*http.Response, error) {
			made.Add(1)
			<-release
			return status(code), nil
		})
		proceed := func(n int) {
			for range n {
				release <- struct{}{}
			}
			synctest.Wait()
		}
		proceed(3)
		s.bring(piece(1), piece(2), piece(3))
		if n := s.states(); made.Load() != 3 || n[journal.Failed] != 3 {
			t.Fatalf("%d attempts, outcomes %v", made.Load(), n)
		}
		for i, pause := range []time.Duration{10, 20, 30, 30} {
			pause *= time.Second
			if got := s.suspensions(); !slices.Equal(got, []time.Duration{pause}) {
				t.Fatalf("suspended for %v, want %v", got, pause)
			}
			s.bring(piece(10), piece(11))
			for _, o := range s.told() {
				if o.State != journal.Pending || time.Until(o.Due) != pause {
					t.Errorf("handed back as %+v, want to be due in %v", o, pause)
				}
			}
			if made.Load() != int32(3+i) {
				t.Fatalf("an attempt while the breaker is open")
			}
			<-time.After(pause)
			s.bring(piece(20), piece(21), piece(22))
			if made.Load() != int32(3+i+1) || len(s.told()) != 0 {
				t.Fatalf("%d attempts with the breaker half open, want one", made.Load()-int32(3+i))
			}
			proceed(1)
			if n := s.states(); n[journal.Failed] != 1 || n[journal.Pending] != 2 {
				t.Fatalf("after a failed probe: %v", n)
			}
		}
		<-time.After(30 * time.Second)
		code = 404 // alive, whatever it thinks of this event
		s.suspensions()
		s.bring(piece(30), piece(31), piece(32))
		proceed(1)
		if n := s.states(); n[journal.Failed] != 1 || made.Load() != 3+4+3 {
			t.Errorf("after it recovered: %v, %d attempts; want all that wait to begin", n, made.Load())
		}
		if s.resumed != 1 {
			t.Errorf("the journal was told %d times that it recovered", s.resumed)
		}
		proceed(2)
		code = 503
		proceed(3)
		s.bring(piece(40), piece(41), piece(42))
		if got := s.suspensions(); !slices.Equal(got, []time.Duration{10 * time.Second}) {
			t.Errorf("suspended for %v; the pauses begin anew", got)
		}
	})
}

// The breaker opens for what says that the destination is ill, in a row, and for nothing else.
func TestBreakerCounts(t *testing.T) {
	broken := func() (*http.Response, error) { return nil, errBroken }
	answered := func(code int) func() (*http.Response, error) {
		return func() (*http.Response, error) { return status(code), nil }
	}
	for _, c := range []struct {
		name  string
		play  []func() (*http.Response, error)
		opens bool
	}{
		{"connections fail", []func() (*http.Response, error){broken, broken, broken}, true},
		{"5xx and 429", []func() (*http.Response, error){answered(500), answered(429), answered(503)}, true},
		{"one event is poison", []func() (*http.Response, error){answered(400), answered(422), answered(409), answered(404), answered(400)}, false},
		{"redirects", []func() (*http.Response, error){answered(302), answered(302), answered(302), answered(302)}, false},
		{"a success between", []func() (*http.Response, error){broken, broken, answered(200), broken, broken}, false},
		{"a refusal between", []func() (*http.Response, error){broken, broken, answered(404), broken, broken}, false},
		{"gone", []func() (*http.Response, error){answered(410), answered(410), answered(410)}, false},
		{"our own fault", []func() (*http.Response, error){
			func() (*http.Response, error) { panic(1) }, func() (*http.Response, error) { panic(2) },
			func() (*http.Response, error) { panic(3) }, func() (*http.Response, error) { panic(4) },
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				s := newStandIn(t, guarded(), func(*http.Request) (*http.Response, error) {
					n++
					return c.play[n-1]()
				})
				for i := range c.play {
					s.bring(piece(i))
				}
				if opened := len(s.suspensions()) > 0; opened != c.opens {
					t.Errorf("opened: %t, want %t", opened, c.opens)
				}
			})
		})
	}
}

// Attempts that began before the breaker opened count for nothing when they end later.
func TestBreakerIgnoresLateFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStandIn(t, guarded(), func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("Hookonce-Key") == "evt_0" {
				return hang(r)
			}
			return nil, errBroken
		})
		s.bring(piece(0), piece(1), piece(2), piece(3))
		<-time.After(10 * time.Second)
		s.suspensions()
		<-time.After(time.Minute) // evt_0 times out
		if got := s.suspensions(); len(got) != 0 || s.states()[journal.Failed] != 4 {
			t.Errorf("a late failure suspends for %v", got)
		}
	})
}

// An event that is dropped as stale was not attempted: it neither closes the breaker of a destination that is
// still down nor uses up the attempt that finds out.
func TestBreakerLearnsNothingFromStaleEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := guarded()
		app.Stale = deliver.StaleDrop
		var made atomic.Int32
		s := newStandIn(t, app, func(*http.Request) (*http.Response, error) {
			made.Add(1)
			return status(500), nil
		})
		stale := piece(10)
		stale.Stale = true
		s.bring(piece(1), piece(2), piece(3))
		<-time.After(10 * time.Second)
		s.suspensions()
		s.told()
		s.bring(stale)
		if n := s.states(); n[journal.Done] != 1 || made.Load() != 3 || s.resumed != 0 {
			t.Fatalf("%d attempts, outcomes %v, the journal was told %d times that it recovered; want the stale event dropped and nothing else", made.Load(), n, s.resumed)
		}
		s.bring(piece(20), piece(21), piece(22))
		if n := s.states(); made.Load() != 4 || n[journal.Failed] != 1 {
			t.Errorf("%d attempts while the breaker is half open, outcomes %v; want one", made.Load()-3, n)
		}
		if got := s.suspensions(); !slices.Equal(got, []time.Duration{20 * time.Second}) {
			t.Errorf("suspended for %v after the attempt failed, want 20s", got)
		}
	})
}

func TestBreakerOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app, code := nowhere, 500
		app.Breaker = &deliver.Breaker{Failures: -1}
		s := newStandIn(t, app, answers(&code))
		for i := range 100 {
			s.bring(piece(i))
		}
		if n := s.states(); n[journal.Failed] != 100 || len(s.suspensions()) != 0 {
			t.Errorf("outcomes %v", n)
		}
	})
}

// With the journal itself: a backlog of events meets a destination that is down for an hour, costs it a
// probe a minute, loses no attempt to the open breaker, and is delivered when the destination is back.
func TestBreakerSparesBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 500
		var up atomic.Bool
		var made atomic.Int32
		app := deliver.Destination{URL: "http://app.invalid/", Concurrency: 1}
		r := newRigOn(t, journal.Options{Destinations: map[string]journal.Destination{"app": {}}}, app,
			played(func(*http.Request) (*http.Response, error) {
				made.Add(1)
				if up.Load() {
					return status(200), nil
				}
				return nil, errBroken
			}))
		for i := range events {
			r.accept(t, entry(fmt.Sprint(i)))
		}
		<-time.After(time.Hour)
		synctest.Wait()
		attempts := int(made.Load())
		if attempts < 60 || attempts > 80 {
			t.Errorf("%d attempts in an hour; want ten, and then one a minute", attempts)
		}
		tries := 0
		for _, d := range r.model.Deliveries() {
			tries += d.Tries
			if d.State == journal.Dead {
				t.Errorf("dead: %+v", d)
			}
		}
		if tries != attempts {
			t.Errorf("%d tries are on record for %d attempts", tries, attempts)
		}
		const open = "# HELP hookonce_breaker_state State of a destination's breaker: 0 closed, 1 probing, 2 open.\n" +
			"# TYPE hookonce_breaker_state gauge\nhookonce_breaker_state{destination=\"app\"} 2\n"
		if err := testutil.GatherAndCompare(r.metrics, strings.NewReader(open), "hookonce_breaker_state"); err != nil {
			t.Error(err)
		}
		if n := postponed(t, r); n > events {
			t.Errorf("%v times something was handed back; want the backlog to stay in the store meanwhile", n)
		}
		up.Store(true)
		<-time.After(3 * time.Hour) // those that were probes are due late
		synctest.Wait()
		if left := r.model.Deliveries(); len(left) != 0 {
			t.Errorf("%d left, such as %+v", len(left), left[0])
		}
	})
}

// postponed returns how many deliveries were handed back.
func postponed(t *testing.T, r *rig) float64 {
	t.Helper()
	families, err := r.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "hookonce_deliveries_postponed_total" {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return 0
}

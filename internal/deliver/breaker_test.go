package deliver_test

import (
	"context"
	"fmt"
	"log/slog"
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
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/retry"
	"github.com/hookonce/hookonce/internal/testskip"
)

// guarded is a destination that is ill after three failures, and gets a probe after 10 s, 20 s, and then 30 s.
func guarded() deliver.Destination {
	app := nowhere
	app.Breaker = deliver.Breaker{Failures: 3, Pause: 10 * time.Second, PauseMax: 30 * time.Second}
	return app
}

// Three failures make a destination ill. What comes goes back for the time of the next probe, which is a single
// attempt; each that fails is on record, costs no try, and makes the next pause longer. After a success it gets
// more and more.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := 503
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
		if made.Load() != 3 {
			t.Fatalf("%d attempts", made.Load())
		}
		s.told()
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
				t.Fatalf("an attempt between probes")
			}
			<-time.After(pause)
			s.bring(piece(20), piece(21), piece(22))
			if n := s.states(); made.Load() != int32(3+i+1) || n[journal.Pending] != 2 {
				t.Fatalf("%d attempts, outcomes %v; want one probe", made.Load()-int32(3+i), n)
			}
			proceed(1)
			if told := s.told(); len(told) != 1 || told[0].State != journal.Failed || !told[0].Spared || !strings.HasPrefix(told[0].Error, "status 503; it does not count as a try, because the destination is ill") {
				t.Fatalf("after a failed probe: %+v", told)
			}
		}
		<-time.After(30 * time.Second)
		code = 200
		s.suspensions()
		s.bring(piece(30))
		proceed(1)
		if n := s.states(); n[journal.Done] != 1 || s.resumed != 1 {
			t.Fatalf("after it recovered: %v, the journal was told so %d times", n, s.resumed)
		}
	})
}

// The limit doubles with every round of successes, and what waits begins as it grows.
func TestRamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app, code := nowhere, 503
		app.Concurrency = 16
		app.Breaker = deliver.Breaker{Failures: 3, Pause: time.Second}
		var underway, most atomic.Int32
		s := newStandIn(t, app, func(*http.Request) (*http.Response, error) {
			most.Store(max(most.Load(), underway.Add(1)))
			<-time.After(100 * time.Millisecond)
			underway.Add(-1)
			return status(code), nil
		})
		s.bring(piece(1), piece(2), piece(3))
		<-time.After(2 * time.Second)
		synctest.Wait()
		code = 200
		s.bring(piece(4))
		<-time.After(101 * time.Millisecond)
		for i := range 200 {
			s.bring(piece(10 + i))
		}
		for _, want := range []int32{2, 4, 8, 16, 16} {
			if n := underway.Load(); n != want {
				t.Errorf("%d under way, want %d", n, want)
			}
			<-time.After(100 * time.Millisecond)
			synctest.Wait()
		}
		if got := s.Destinations()[0]; got.State != deliver.Healthy || most.Load() != 16 {
			t.Errorf("%d at once at most; it is %s", most.Load(), got.State)
		}
	})
}

// Failures under a load halve what is under way at once, and successes bring it back, without illness.
func TestLimitFollowsOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := nowhere
		app.Concurrency = 16
		n, code := 0, 429
		s := newStandIn(t, app, func(*http.Request) (*http.Response, error) {
			<-time.After(time.Second)
			return status(code), nil
		})
		for _, want := range []int{8, 4} {
			for range 2 {
				n++
				s.bring(piece(n))
			}
			<-time.After(time.Second)
			synctest.Wait()
			if got := s.Destinations()[0]; got.Limit != want || got.State != deliver.Healthy {
				t.Errorf("%+v, want a limit of %d", got, want)
			}
		}
		synctest.Wait()
		code = 200
		for range 2 {
			n++
			s.bring(piece(n))
			<-time.After(time.Second)
			synctest.Wait()
		}
		if got := s.Destinations()[0]; got.Limit != 16 {
			t.Errorf("%+v after two successes, want the limit back", got)
		}
	})
}

// A destination is ill when failures in a row say so, and for nothing else.
func TestBreakerCounts(t *testing.T) {
	broken := func() (*http.Response, error) { return nil, errBroken }
	answered := func(code int) func() (*http.Response, error) {
		return func() (*http.Response, error) { return status(code), nil }
	}
	type plays = []func() (*http.Response, error)
	for _, c := range []struct {
		name  string
		play  plays
		apart time.Duration
		of    int // so many events take turns; 0: each play has its own
		ill   bool
	}{
		{name: "no valid answers", play: plays{broken, broken, broken}, ill: true},
		{name: "429, 502, 503, 504", play: plays{answered(429), answered(502), answered(503)}, ill: true},
		{name: "504", play: plays{answered(504), answered(504), answered(504)}, ill: true},
		{name: "no connections", play: plays{refused, refused, refused}, of: 1, ill: true},
		{name: "one event alone", play: plays{broken, broken, broken, answered(503), answered(504)}, apart: time.Hour, of: 1},
		{name: "two events that take turns", play: plays{broken, broken, broken, answered(503), answered(504), broken, broken}, apart: time.Hour, of: 2},
		{name: "three events that take turns", play: plays{broken, broken, broken}, of: 3, ill: true},
		{name: "a refusal between, and then three that hang", play: plays{broken, broken, answered(500), broken, broken, broken}, of: 3, ill: true},
		{name: "500", play: plays{answered(500), answered(500), answered(501), answered(505), answered(500)}},
		{name: "refusals", play: plays{answered(400), answered(422), answered(409), answered(404), answered(400)}},
		{name: "redirects", play: plays{answered(302), answered(302), answered(302), answered(302)}},
		{name: "no success for a while", play: plays{answered(500), answered(400), answered(302), answered(500)}, apart: 10 * time.Second, ill: true},
		{name: "one event without success for a while", play: plays{answered(500), answered(500), answered(500), answered(500)}, apart: time.Hour, of: 1},
		{name: "two events that take turns without success for a while", play: plays{answered(500), answered(500), answered(500), answered(500), answered(500)}, apart: time.Hour, of: 2},
		{name: "a success between", play: plays{broken, broken, answered(200), broken, broken}},
		{name: "a success between, for a while", play: plays{answered(500), answered(500), answered(200), answered(500), answered(500)}, apart: 20 * time.Second},
		{name: "a refusal between", play: plays{broken, broken, answered(404), broken, broken}},
		{name: "gone", play: plays{answered(410), answered(410), answered(410)}},
		{name: "our own fault", play: plays{
			func() (*http.Response, error) { panic(1) }, func() (*http.Response, error) { panic(2) },
			func() (*http.Response, error) { panic(3) }, func() (*http.Response, error) { panic(4) },
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				s := newStandIn(t, guarded(), func(*http.Request) (*http.Response, error) {
					n++
					return c.play[n-1]()
				})
				for i := range c.play {
					if c.of > 0 {
						i %= c.of
					}
					s.bring(piece(i))
					<-time.After(c.apart)
				}
				if ill := s.Destinations()[0].State == deliver.Ill; ill != c.ill {
					t.Errorf("ill: %t, want %t", ill, c.ill)
				}
			})
		})
	}
}

func refused() (*http.Response, error) { return nil, errRefused }

// Three failures in a row are enough if they lasted for five seconds.
func TestBreaker_fewFailuresThatLast(t *testing.T) {
	for apart, ill := range map[time.Duration]bool{time.Second: false, 3 * time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			code := 503
			s := newStandIn(t, nowhere, answers(&code))
			for i := range 3 {
				s.bring(piece(i))
				<-time.After(apart)
			}
			if got := s.Destinations()[0].State == deliver.Ill; got != ill {
				t.Errorf("%v apart: ill: %t, want %t", apart, got, ill)
			}
		})
	}
}

// Attempts that began before a destination was ill neither delay the next probe nor cost a try when they fail.
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
		s.told()
		<-time.After(time.Minute) // evt_0 times out
		if got := s.suspensions(); len(got) != 0 {
			t.Errorf("a late failure suspends for %v", got)
		}
		if told := s.told(); len(told) != 1 || !told[0].Spared {
			t.Errorf("outcomes %+v", told)
		}
	})
}

// A request that was under way when the destination fell ill is answered late, and asks for more time than the next
// probe would leave. What comes in between goes back until then: due at once, it would come again at once, for as long
// as the destination has asked for.
func TestBreakerHeedsLateRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStandIn(t, guarded(), func(r *http.Request) (*http.Response, error) {
			answer := status(503)
			if r.Header.Get("Hookonce-Key") == "evt_0" {
				<-time.After(5 * time.Second)
				answer.Header.Set("Retry-After", "20")
			}
			return answer, nil
		})
		s.bring(piece(0), piece(1), piece(2), piece(3))
		<-time.After(6 * time.Second)
		if got := s.suspensions(); !slices.Equal(got, []time.Duration{10 * time.Second, 20 * time.Second}) {
			t.Errorf("suspended for %v, want 10s, and 20s from the late answer on", got)
		}
		<-time.After(5 * time.Second) // the probe would be due
		s.told()
		s.bring(piece(10))
		told := s.told()
		if len(told) != 1 || told[0].State != journal.Pending || time.Until(told[0].Due) != 14*time.Second {
			t.Errorf("handed back as %+v, want to be due in 14s", told)
		}
	})
}

// An event that is dropped as stale was not attempted: it neither shows that a destination has recovered nor uses
// up the probe that finds out.
func TestBreakerLearnsNothingFromStaleEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := guarded()
		app.Stale = deliver.StaleDrop
		var made atomic.Int32
		s := newStandIn(t, app, func(*http.Request) (*http.Response, error) {
			made.Add(1)
			return status(503), nil
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
		s.bring(piece(20))
		if n := s.states(); made.Load() != 4 || n[journal.Failed] != 1 {
			t.Errorf("%d probes, outcomes %v; want one", made.Load()-3, n)
		}
		if got := s.suspensions(); !slices.Equal(got, []time.Duration{20 * time.Second}) {
			t.Errorf("suspended for %v after the probe failed, want 20s", got)
		}
	})
}

// What an illness kept may be delivered by other gateways, or be dead: with nothing to try for a minute after the time of a
// probe nobody is told any more that the destination is ill. What comes next still is a probe.
func TestBreakerEndsWithNothingToTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := 503
		s := newStandIn(t, guarded(), func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("Hookonce-Key") == "evt_4" {
				return hang(r)
			}
			return status(code), nil
		})
		stands := func(state deliver.State, metric float64) {
			t.Helper()
			synctest.Wait()
			got := s.Destinations()[0]
			if m := s.breaker(t); got.State != state || got.Limit != 1 || !slices.Equal(m, []float64{metric}) {
				t.Fatalf("it stands %+v, and at %v in the metrics; want it %s", got, m, state)
			}
		}
		s.bring(piece(1), piece(2), piece(3)) // a probe is due in 10 s
		<-time.After(65 * time.Second)
		s.bring(piece(4)) // is under way until 80 s, and has the next one due in 20 s
		<-time.After(94 * time.Second)
		stands(deliver.Ill, 2)
		<-time.After(time.Second)
		stands(deliver.Recovering, 1)
		if s.resumed != 1 {
			t.Errorf("the journal was told %d times to go on", s.resumed)
		}
		s.told()
		s.bring(piece(5))
		if told := s.told(); len(told) != 1 || told[0].State != journal.Failed || !told[0].Spared {
			t.Errorf("after a failure: %+v, want it spared", told)
		}
		stands(deliver.Ill, 2)
		if got := s.suspensions(); !slices.Equal(got[len(got)-1:], []time.Duration{30 * time.Second}) {
			t.Errorf("suspended for %v, want 30s at last", got)
		}
		<-time.After(90 * time.Second)
		stands(deliver.Recovering, 1)
		code = 200
		s.bring(piece(6))
		if got := s.Destinations()[0]; got.State != deliver.Recovering || got.Limit != 2 {
			t.Errorf("after a success: %+v", got)
		}
	})
}

// Of a destination that is paused all waits, and nothing is to be tried: that nothing is says nothing.
func TestBreakerStaysWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := 503
		s := newStandIn(t, guarded(), answers(&code))
		s.bring(piece(1), piece(2), piece(3))
		s.paused.Store(true)
		<-time.After(10 * time.Minute)
		if got := s.Destinations()[0]; got.State != deliver.Ill {
			t.Errorf("while it is paused: %+v", got)
		}
		s.paused.Store(false)
		<-time.After(2 * time.Minute)
		if got := s.Destinations()[0]; got.State != deliver.Recovering || got.Limit != 1 {
			t.Errorf("a minute after it was resumed, with nothing to try: %+v", got)
		}
	})
}

func TestBreakerOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app, code := nowhere, 503
		app.Breaker = deliver.Breaker{Failures: -1}
		s := newStandIn(t, app, answers(&code))
		for i := range 100 {
			s.bring(piece(i))
		}
		if n := s.states(); n[journal.Failed] != 100 || len(s.suspensions()) != 0 || s.Destinations()[0].Limit != usualConcurrency {
			t.Errorf("outcomes %v", n)
		}
	})
}

// What must not be tried again is not, though the destination is ill.
func TestProbe_permanentFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := 503
		s := newStandIn(t, guarded(), answers(&code))
		s.bring(piece(1), piece(2), piece(3))
		<-time.After(10 * time.Second)
		s.told()
		code = 410
		s.bring(piece(4))
		if n := s.states(); n[journal.Dead] != 1 {
			t.Errorf("outcomes %v, want one dead", n)
		}
	})
}

// Probes cost nobody the last attempt: with a schedule of one, nothing dies of an hour of illness.
func TestProbe_lastAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := guarded()
		app.Schedule = retry.Schedule{}
		code := 503
		s := newStandIn(t, app, answers(&code))
		s.bring(piece(1), piece(2), piece(3))
		s.told()
		for range 10 {
			<-time.After(30 * time.Second)
			s.bring(piece(4))
			if told := s.told(); len(told) != 1 || told[0].State != journal.Failed || !told[0].Spared || !told[0].Due.After(time.Now()) {
				t.Fatalf("outcomes %+v", told)
			}
		}
	})
}

// With the journal itself: a backlog of events meets a destination that is down for an hour, costs it a
// probe every four seconds, loses no try, little in the store and the log, and is delivered when the destination
// is back.
func TestBreakerSparesBacklog(t *testing.T) {
	testskip.Race(t)
	synctest.Test(t, func(t *testing.T) {
		const events = 500
		var up atomic.Bool
		var made, lines atomic.Int32
		app := deliver.Destination{URL: "http://app.invalid/", Concurrency: 1}
		r := newRigOn(t, engine.Options{Destinations: map[string]journal.Destination{"app": {}}}, app, func(o *options) {
			o.Logger = slog.New(counting{slog.DiscardHandler, &lines})
			o.transport = transport(func(*http.Request) (*http.Response, error) {
				made.Add(1)
				if up.Load() {
					return status(200), nil
				}
				return nil, errBroken
			})
		})
		for i := range events {
			r.accept(t, entry(fmt.Sprint(i)))
		}
		<-time.After(time.Hour)
		synctest.Wait()
		attempts := int(made.Load())
		if attempts < 800 || attempts > 920 {
			t.Errorf("%d attempts in an hour; want ten, and then one in four seconds", attempts)
		}
		if len(r.model.Attempts()) != attempts {
			t.Errorf("%d attempts are on record of %d", len(r.model.Attempts()), attempts)
		}
		tries := 0
		for _, d := range r.model.Deliveries() {
			tries += d.Tries
		}
		if tries > 10 {
			t.Errorf("the illness cost %d tries", tries)
		}
		const ill = "# HELP hookonce_breaker_state How a destination stands: 0 healthy, 1 recovering, 2 ill.\n" +
			"# TYPE hookonce_breaker_state gauge\nhookonce_breaker_state{destination=\"app\"} 2\n"
		if err := testutil.GatherAndCompare(r.metrics, strings.NewReader(ill), "hookonce_breaker_state"); err != nil {
			t.Error(err)
		}
		if n := postponed(t, r); n > events {
			t.Errorf("%v times something was handed back; want the backlog to stay in the store meanwhile", n)
		}
		if n := lines.Load(); n > 30 {
			t.Errorf("%d lines in the log", n)
		}
		up.Store(true)
		<-time.After(time.Minute)
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

// A probe that is refused, because another one is under way, costs nothing of the rate.
func TestRefusedProbeKeepsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := guarded()
		app.Rate, app.Concurrency = 1, 1
		var made atomic.Int32
		s := newStandIn(t, app, func(*http.Request) (*http.Response, error) {
			switch n := made.Add(1); {
			case n == 4:
				<-time.After(10 * time.Second) // the probe
				return status(200), nil
			case n > 4:
				return status(200), nil
			}
			return nil, errBroken
		})
		s.bring(piece(1), piece(2), piece(3))
		<-time.After(20 * time.Second)
		s.bring(piece(4), piece(5), piece(6), piece(7))
		<-time.After(9900 * time.Millisecond)
		s.bring(piece(8))
		<-time.After(101 * time.Millisecond)
		s.bring(piece(9))
		if n := made.Load(); n != 5 {
			t.Errorf("%d attempts right after the probe, want the next at once", n)
		}
	})
}

// counting counts lines from the level info on.
type counting struct {
	slog.Handler
	n *atomic.Int32
}

func (c counting) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

func (c counting) Handle(context.Context, slog.Record) error {
	c.n.Add(1)
	return nil
}

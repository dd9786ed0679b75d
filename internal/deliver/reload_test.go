package deliver_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
)

// to are the destinations of a deliverer with one of them.
func to(app deliver.Destination) map[string]deliver.Destination {
	return complete(map[string]deliver.Destination{"app": app})
}

func (s *standIn) reload(t *testing.T, destinations map[string]deliver.Destination) {
	t.Helper()
	if err := s.Reload(complete(destinations), nil); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// An attempt ends as it began; what waits goes to where the destination is now.
func TestReload_waitingFollowsAndUnderwayStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := nowhere
		app.Concurrency, app.Timeout = 1, time.Hour
		asked, answer := make(chan string, 10), make(chan bool)
		s := newStandIn(t, app, func(r *http.Request) (*http.Response, error) {
			asked <- r.URL.Path
			<-answer
			return status(200), nil
		})
		s.bring(piece(1), piece(2), piece(3))
		app.URL, app.Timeout = app.URL+"new", time.Second
		s.reload(t, to(app))
		<-time.After(time.Minute) // longer than the new timeout
		for range 3 {
			answer <- true
		}
		synctest.Wait()
		for i, want := range []string{"/", "/new", "/new"} {
			if path := <-asked; path != want {
				t.Errorf("attempt %d went to %q, want %q", i+1, path, want)
			}
		}
		if n := s.states(); n[journal.Done] != 3 {
			t.Errorf("outcomes %v, want three done", n)
		}
	})
}

// Whether a sender waits for the answer is what held when the attempt began: one who does gets it, and a long answer
// that nobody waits for is no failure.
func TestReload_answersUnderway(t *testing.T) {
	for name, c := range map[string]struct {
		before, after map[string]time.Duration
		body          string
		reply         bool
	}{
		"a sender waited": {before: map[string]time.Duration{"billing": time.Minute}, body: "the answer", reply: true},
		"nobody waited":   {after: map[string]time.Duration{"billing": time.Minute}, body: strings.Repeat("x", deliver.MaxReply+1)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := make(chan bool)
				s := newStandIn(t, nowhere, func(*http.Request) (*http.Response, error) {
					<-answer
					return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(c.body))}, nil
				})
				if err := s.Reload(to(nowhere), c.before); err != nil {
					t.Fatal(err)
				}
				s.bring(piece(1))
				if err := s.Reload(to(nowhere), c.after); err != nil {
					t.Fatal(err)
				}
				answer <- true
				synctest.Wait()
				told := s.told()
				if len(told) != 1 || told[0].State != journal.Done || (told[0].Response != nil) != c.reply {
					t.Errorf("outcomes %+v, want one that is done, with the answer: %v", told, c.reply)
				}
			})
		})
	}
}

// A sender that waits gets the destination's answer, also if the attempt begins after a reload with which its source has none
// who wait any more, or after another one; and answers are not read whole for longer than that.
func TestReload_answersToWhoWaits(t *testing.T) {
	for name, c := range map[string]struct {
		reloads int
		after   time.Duration
		reply   bool
	}{
		"it waits":                       {1, 10*time.Second - 1, true},
		"it waits through two":           {2, 10*time.Second - 1, true},
		"nobody can be waiting any more": {1, 10 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStandIn(t, nowhere, func(*http.Request) (*http.Response, error) { return status(200), nil })
				if err := s.Reload(to(nowhere), map[string]time.Duration{"billing": 10 * time.Second}); err != nil {
					t.Fatal(err)
				}
				for range c.reloads {
					s.reload(t, to(nowhere))
				}
				<-time.After(c.after)
				s.bring(piece(1))
				if told := s.told(); len(told) != 1 || told[0].State != journal.Done || (told[0].Response != nil) != c.reply {
					t.Errorf("outcomes %+v, want one that is done, with the answer: %v", told, c.reply)
				}
			})
		})
	}
}

// More at once are begun with the reload, not with the next end.
func TestReload_moreAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := nowhere
		app.Concurrency = 1
		s := newStandIn(t, app, hang)
		s.bring(piece(1), piece(2), piece(3))
		app.Concurrency = 3
		s.reload(t, to(app))
		if got := s.Destinations()[0]; got.Underway != 3 || got.Waiting != 0 {
			t.Errorf("%d under way and %d waiting, want 3 and 0", got.Underway, got.Waiting)
		}
	})
}

// What waits for a destination that is not there any more goes back at once and costs no try, as does
// what the journal brings late. It is there again when it is configured again.
func TestReload_removedHandsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := nowhere
		app.Concurrency = 1
		answer := make(chan bool)
		s := newStandIn(t, app, func(*http.Request) (*http.Response, error) {
			<-answer
			return status(200), nil
		})
		s.bring(piece(1), piece(2))
		s.reload(t, nil)
		told := s.told()
		if len(told) != 1 {
			t.Errorf("%d handed back with the reload, want 1", len(told))
		}
		s.bring(piece(3))
		told = append(told, s.told()...)
		if len(told) != 2 {
			t.Fatalf("%d handed back, want 2", len(told))
		}
		for _, o := range told {
			if o.State != journal.Pending || !o.Due.Equal(time.Now()) {
				t.Errorf("event %d: %s, due %v; want pending and due now", o.EventID, o.State, o.Due)
			}
		}
		if got := s.Destinations(); len(got) != 0 {
			t.Errorf("still there: %+v", got)
		}
		s.reload(t, to(app))
		s.bring(piece(4))
		if got := s.Destinations()[0]; got.Underway != 1 || got.Waiting != 1 {
			t.Errorf("%d under way, %d waiting: the attempt that goes on does not count", got.Underway, got.Waiting)
		}
		answer <- true
		answer <- true
		synctest.Wait()
		if n := s.states(); n[journal.Done] != 2 {
			t.Errorf("outcomes %v, want two done", n)
		}
	})
}

// Attempts that go on after their destination was removed tell nobody how it stands: nobody would take it back.
func TestReload_removedIsNotToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan bool)
		s := newStandIn(t, guarded(), func(*http.Request) (*http.Response, error) {
			<-answer
			return status(503), nil
		})
		s.bring(piece(1), piece(2), piece(3))
		s.reload(t, nil)
		close(answer)
		synctest.Wait()
		if n := s.states(); n[journal.Failed] != 3 {
			t.Errorf("outcomes %v, want three that failed", n)
		}
		if got, m := s.suspensions(), s.breaker(t); len(got) != 0 || len(m) != 0 {
			t.Errorf("suspended for %v, and at %v in the metrics", got, m)
		}
	})
}

// A reload that does not touch where a destination is changes nothing about what is known of it.
func TestReload_health(t *testing.T) {
	elsewhere := func(d *deliver.Destination) { d.URL += "new" }
	for name, c := range map[string]struct {
		change func(*deliver.Destination)
		open   bool
	}{
		"nothing": {func(*deliver.Destination) {}, true},
		"timeout": {func(d *deliver.Destination) { d.Timeout = time.Minute }, true},
		"secret":  {func(d *deliver.Destination) { d.Secrets = []string{"whsec_ZmFrZQ=="} }, true},
		"address": {elsewhere, false},
		"breaker": {func(d *deliver.Destination) { d.Breaker = deliver.Breaker{Failures: 3} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				code, app := 503, nowhere
				app.Breaker = deliver.Breaker{Failures: 2, Pause: time.Minute, PauseMax: time.Minute}
				s := newStandIn(t, app, answers(&code))
				s.bring(piece(1), piece(2))
				if got := s.Destinations()[0].State; got != deliver.Ill {
					t.Fatalf("it is %s before the reload", got)
				}
				c.change(&app)
				s.reload(t, to(app))
				if got := s.Destinations()[0].State; (got == deliver.Ill) != c.open {
					t.Errorf("it is %s after the reload", got)
				}
				if resumed := s.resumed > 0; resumed == c.open {
					t.Errorf("the journal was told to go on: %v", resumed)
				}
			})
		})
	}
}

// How an attempt at the old address went says nothing about the new one.
func TestReload_oldAttemptsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := nowhere
		app.Breaker = deliver.Breaker{Failures: 2}
		answer := make(chan bool)
		s := newStandIn(t, app, func(*http.Request) (*http.Response, error) {
			<-answer
			return status(503), nil
		})
		s.bring(piece(1), piece(2))
		app.URL += "new"
		s.reload(t, to(app))
		answer <- true
		answer <- true
		synctest.Wait()
		if got := s.Destinations()[0].State; got != deliver.Healthy {
			t.Errorf("it is %s", got)
		}
	})
}

// Where a destination may be, and what it has to prove, holds from the next attempt on, and no connection
// that was made before is used.
func TestReload_connectsAnew(t *testing.T) {
	app := httptest.NewUnstartedServer(respond(200))
	app.Config.ErrorLog = quiet
	app.StartTLS()
	defer app.Close()
	roots := x509.NewCertPool()
	roots.AddCert(app.Certificate())
	before := deliver.Destination{URL: app.URL, TLS: &tls.Config{RootCAs: roots}, Schedule: hourly}
	for name, c := range map[string]struct {
		change func(*deliver.Destination)
		kind   journal.ErrorKind
	}{
		"private addresses": {func(d *deliver.Destination) { d.Policy.DenyPrivate = true }, journal.ErrorAddress},
		"ports":             {func(d *deliver.Destination) { d.Policy.Ports = []uint16{443} }, journal.ErrorAddress},
		"authority":         {func(d *deliver.Destination) { d.TLS = &tls.Config{} }, journal.ErrorTLS},
		"nothing of it":     {func(d *deliver.Destination) { d.Timeout = time.Minute }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, before, nil)
			r.accept(t, entry("a"))
			if o := r.attempts(t, 1)[0]; o.State != journal.Done {
				t.Fatalf("outcome %s, %q before the reload", o.State, o.Error)
			}
			after := before
			c.change(&after)
			if err := r.Reload(to(after), nil); err != nil {
				t.Fatal(err)
			}
			r.accept(t, entry("b"))
			if o := r.attempts(t, 2)[1]; o.Kind != c.kind {
				t.Errorf("outcome %s, %s %q; want %q", o.State, o.Kind, o.Error, c.kind)
			}
		})
	}
}

// An unchanged rate is not granted anew.
func TestReload_rateKeepsItsFill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, app := 200, nowhere
		app.Rate = 1
		s := newStandIn(t, app, answers(&code))
		s.bring(piece(1), piece(2), piece(3))
		for range 5 {
			s.reload(t, to(app))
		}
		if n := s.states(); n[journal.Done] != 1 {
			t.Errorf("%d in the first moment, want 1", n[journal.Done])
		}
		<-time.After(time.Second)
		synctest.Wait()
		if n := s.states(); n[journal.Done] != 1 {
			t.Errorf("%d after a second, want 1", n[journal.Done])
		}
		app.Rate = 0
		s.reload(t, to(app))
		if n := s.states(); n[journal.Done] != 1 {
			t.Errorf("%d without a rate, want the last one", n[journal.Done])
		}
	})
}

// A fault in one destination changes none, and a deliverer that was stopped takes nothing.
func TestReload_allOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code, app := 200, nowhere
		s := newStandIn(t, app, answers(&code))
		wrong, other := app, app
		wrong.Permanent, other.Name = []int{200}, "other"
		for range 20 { // maps have no order
			if err := s.Reload(complete(map[string]deliver.Destination{"other": other, "wrong": wrong}), nil); err == nil {
				t.Fatal("taken")
			}
		}
		if got := s.Destinations(); len(got) != 1 || got[0].Name != "app" {
			t.Errorf("there are %+v, want app alone", got)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Reload(to(app), nil); err == nil {
			t.Error("a reload after the stop was taken")
		}
	})
}

// What was handed back untried because a destination asked for a day does not wait for that day once it is elsewhere.
func TestReload_untriedDoesNotWaitForWhoIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 50
		app := deliver.Destination{URL: "http://app.invalid/", Concurrency: 1}
		asked := 0
		r := newRigOn(t, engine.Options{Destinations: map[string]journal.Destination{"app": {}}}, app, played(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/new" {
				return status(200), nil
			}
			at(5 * time.Millisecond) // while the others come, and wait
			asked++
			a := status(503)
			a.Header.Set("Retry-After", "86400")
			return a, nil
		}))
		for i := range events {
			r.accept(t, entry(fmt.Sprint(i)))
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if asked > usualFailures {
			t.Errorf("it was asked %d times before the time that it asked for", asked)
		}
		app.URL += "new"
		if err := r.Reload(to(app), nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if left := len(r.model.Deliveries()); left > asked {
			t.Errorf("%d of %d are left after a minute at the new address, and %d were tried at the old one", left, events, asked)
		}
	})
}

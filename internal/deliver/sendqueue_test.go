package deliver_test

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
)

// Nothing is kept of what was delivered: its body may be large, and the next of its type be far away.
func TestNothingIsKeptOfWhatWasDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStandIn(t, nowhere, func(*http.Request) (*http.Response, error) { return status(200), nil })
		deliver := func() weak.Pointer[journal.Work] {
			w := piece(1)
			s.bring(w)
			return weak.Make(w)
		}
		delivered := deliver()
		if got := s.states(); got[journal.Done] != 1 {
			t.Fatalf("outcomes: %v", got)
		}
		for range 10 {
			if runtime.GC(); delivered.Value() == nil {
				return
			}
		}
		t.Error("what was delivered is still kept")
	})
}

// Attempts begin evenly, as often as the rate says, however many wait; a pause is hardly made up for.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := nowhere
		app.Rate = 20
		began := make(chan time.Time, 100)
		s := newStandIn(t, app, func(*http.Request) (*http.Response, error) {
			began <- time.Now()
			return status(200), nil
		})
		for range 2 {
			<-time.After(time.Hour)
			start := time.Now()
			for i := range 41 {
				s.bring(piece(i))
			}
			const burst = 2
			for i := range 41 {
				at := <-began
				want := time.Duration(max(0, i+1-burst)) * time.Second / 20
				if late := at.Sub(start) - want; late < 0 || late > time.Millisecond {
					t.Errorf("attempt %d began after %v, want %v", i, at.Sub(start), want)
				}
			}
		}
	})
}

// No more attempts are under way than the destination bears, and each end begins the next.
func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := nowhere
		app.Concurrency = 3
		release := make(chan struct{})
		var begun atomic.Int32
		s := newStandIn(t, app, func(*http.Request) (*http.Response, error) {
			begun.Add(1)
			<-release
			return status(200), nil
		})
		for i := range 10 {
			s.bring(piece(i))
		}
		for want := int32(3); want <= 10; want++ {
			if n := begun.Load(); n != want {
				t.Fatalf("%d begun, want %d", n, want)
			}
			release <- struct{}{}
			synctest.Wait()
		}
		release <- struct{}{}
		release <- struct{}{}
	})
}

// What waits for the rate when the deliverer stops goes back unattempted.
func TestStopWhileTheRateHoldsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app, code := nowhere, 200
		app.Rate = 0.001
		s := newStandIn(t, app, answers(&code))
		s.bring(piece(1), piece(2), piece(3))
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if n := s.states(); n[journal.Done] != 1 || n[journal.Pending] != 2 {
			t.Errorf("outcomes %v", n)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if told := s.told(); len(told) != 0 {
			t.Errorf("after the stop: %+v", told)
		}
	})
}

// Of a hundred destinations five hang for ever. The others get all of their events while not one attempt
// at those five has ended.
func TestHangingDestinationsHoldUpNobody(t *testing.T) {
	const destinations, hanging, events = 100, 5, 20
	synctest.Test(t, func(t *testing.T) {
		var delivered, stuck atomic.Int32
		names := make([]string, destinations)
		settings := map[string]deliver.Destination{}
		served := map[string]journal.Destination{}
		for i := range names {
			names[i] = fmt.Sprintf("app-%d", i)
			settings[names[i]] = deliver.Destination{URL: fmt.Sprintf("http://app-%d.invalid/", i), Concurrency: 4}
			served[names[i]] = journal.Destination{}
		}
		r := newRigOn(t, engine.Options{Destinations: served}, settings[names[0]], func(o *options) {
			o.Destinations = settings
			o.transport = transport(func(r *http.Request) (*http.Response, error) {
				if slices.Contains(names[:hanging], r.URL.Hostname()[:len(r.URL.Hostname())-len(".invalid")]) {
					stuck.Add(1)
					return hang(r)
				}
				delivered.Add(1)
				return status(200), nil
			})
		})
		start := time.Now()
		for i := range events {
			e := entry(fmt.Sprint(i))
			e.Destinations = names
			r.accept(t, e)
		}
		r.attempts(t, (destinations-hanging)*events)
		if took := time.Since(start); took >= usualTimeout || delivered.Load() != (destinations-hanging)*events {
			t.Errorf("%d delivered after %v", delivered.Load(), took)
		}
		if n := stuck.Load(); n != hanging*4 {
			t.Errorf("%d attempts hang, want what the destinations bear: %d", n, hanging*4)
		}
	})
}

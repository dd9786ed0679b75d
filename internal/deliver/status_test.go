package deliver_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
)

// While a destination is paused the attempt under way comes to its end, and what waits goes back without
// losing an attempt, due when somebody resumes.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := nowhere
		app.Concurrency = 1
		release := make(chan struct{})
		s := newStandIn(t, app, func(*http.Request) (*http.Response, error) {
			<-release
			return status(200), nil
		})
		s.bring(piece(1), piece(2), piece(3))
		if got := s.Destinations(); len(got) != 1 || got[0] != (deliver.Status{Name: "app", State: deliver.Healthy, Limit: 1, Waiting: 2, Underway: 1}) {
			t.Errorf("status %+v", got)
		}
		s.paused.Store(true)
		release <- struct{}{}
		synctest.Wait()
		now := time.Now()
		var done, back []int64
		for _, o := range s.told() {
			switch {
			case o.State == journal.Done:
				done = append(done, o.EventID)
			case o.State == journal.Pending && o.Due.Equal(now):
				back = append(back, o.EventID)
			}
		}
		if slices.Sort(back); !slices.Equal(done, []int64{1}) || !slices.Equal(back, []int64{2, 3}) {
			t.Errorf("done %v, handed back %v", done, back)
		}
		s.bring(piece(4))
		if n := s.states(); n[journal.Pending] != 1 {
			t.Errorf("while it is paused: %v", n)
		}
		s.paused.Store(false)
		s.bring(piece(5))
		release <- struct{}{}
		synctest.Wait()
		if n := s.states(); n[journal.Done] != 1 {
			t.Errorf("after it was resumed: %v", n)
		}
	})
}

// The status follows the health.
func TestStatusOfHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app, code := nowhere, 503
		app.Concurrency = 4
		app.Breaker = deliver.Breaker{Failures: 2, Pause: time.Minute}
		s := newStandIn(t, app, answers(&code))
		s.bring(piece(1), piece(2))
		now := time.Now()
		want := deliver.Status{Name: "app", State: deliver.Ill, Since: now, Until: now.Add(time.Minute), Cause: "status 503", Limit: 1}
		if got := s.Destinations()[0]; got != want {
			t.Errorf("after two failures: %+v, want %+v", got, want)
		}
		<-time.After(time.Minute)
		code = 200
		s.bring(piece(3))
		want = deliver.Status{Name: "app", State: deliver.Recovering, Since: now.Add(time.Minute), Limit: 2}
		if got := s.Destinations()[0]; got != want {
			t.Errorf("after a success: %+v, want %+v", got, want)
		}
		s.bring(piece(4))
		if got := s.Destinations()[0]; got != (deliver.Status{Name: "app", State: deliver.Healthy, Limit: 4}) {
			t.Errorf("after one more: %+v", got)
		}
	})
}

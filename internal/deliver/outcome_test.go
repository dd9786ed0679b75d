package deliver_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
)

// What a status comes to, at the first attempt and at the last that the schedule allows.
func TestStatuses(t *testing.T) {
	app := nowhere
	app.Permanent = []int{400, 422}
	for _, c := range []struct {
		code        int
		first, last journal.State
	}{
		{200, journal.Done, journal.Done},
		{299, journal.Done, journal.Done},
		{301, journal.Failed, journal.Dead},
		{400, journal.Dead, journal.Dead}, // configured
		{401, journal.Failed, journal.Dead},
		{404, journal.Failed, journal.Dead},
		{408, journal.Failed, journal.Dead},
		{410, journal.Dead, journal.Dead}, // always
		{422, journal.Dead, journal.Dead}, // configured
		{425, journal.Failed, journal.Dead},
		{429, journal.Failed, journal.Dead},
		{500, journal.Failed, journal.Dead},
		{503, journal.Failed, journal.Dead},
		{999, journal.Failed, journal.Dead},
	} {
		t.Run(http.StatusText(c.code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStandIn(t, app, answers(&c.code))
				for tries, want := range map[int]journal.State{1: c.first, app.Schedule.Attempts: c.last} {
					w := piece(tries)
					w.Tries = tries
					s.bring(w)
					if told := s.told(); len(told) != 1 || told[0].State != want || told[0].Status != c.code {
						t.Errorf("%d at try %d: %+v, want %s", c.code, tries, told, want)
					}
				}
			})
		})
	}
}

// The time to give up bounds the retries of an event, and not those of one that comes after it.
func TestGiveUp(t *testing.T) {
	const giveUp = time.Hour
	for _, c := range []struct {
		name       string
		age        time.Duration // of the event when the attempt begins
		retryAfter string
		want       journal.State
	}{
		{"young", time.Minute, "", journal.Failed},
		{"the retry comes in time", giveUp - 2*time.Second, "", journal.Failed},
		{"the retry would come too late", giveUp - 2*time.Second + 1, "", journal.Dead},
		{"the destination wants to be left alone for longer", time.Minute, "7200", journal.Dead},
		{"at the end", giveUp, "", journal.Dead},
		{"re-driven later", giveUp + 1, "", journal.Failed},
		{"re-driven much later", 1000 * time.Hour, "7200", journal.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				app := nowhere
				app.GiveUp = giveUp
				s := newStandIn(t, app, func(*http.Request) (*http.Response, error) {
					answer := status(503)
					answer.Header.Set("Retry-After", c.retryAfter)
					return answer, nil
				})
				w := piece(1)
				w.ReceivedAt = time.Now().Add(-c.age)
				s.bring(w)
				if told := s.told(); len(told) != 1 || told[0].State != c.want {
					t.Errorf("%+v, want %s", told, c.want)
				}
			})
		})
	}
}

// Whatever a destination does with one event, it ends done or dead after the attempts that the schedule
// allows, and its record tells each.
func TestFlapping(t *testing.T) {
	for _, c := range []struct {
		name  string
		codes []int
		want  []journal.State
	}{
		{"recovers", []int{500, 200}, []journal.State{journal.Failed, journal.Done}},
		{"recovers at the last attempt", []int{503, 404, 204}, []journal.State{journal.Failed, journal.Failed, journal.Done}},
		{"never recovers", []int{429, 302, 500}, []journal.State{journal.Failed, journal.Failed, journal.Dead}},
		{"is gone", []int{500, 410}, []journal.State{journal.Failed, journal.Dead}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				r := newRig(t, nowhere, played(func(*http.Request) (*http.Response, error) {
					n++
					return status(c.codes[n-1]), nil
				}))
				r.accept(t, entry("a"))
				<-time.After(time.Hour)
				synctest.Wait()
				attempts := r.model.Attempts()
				if len(attempts) != len(c.want) {
					t.Fatalf("%d attempts, want %d: %+v", len(attempts), len(c.want), attempts)
				}
				for i, o := range attempts {
					if o.State != c.want[i] || o.Status != c.codes[i] || o.Token != int64(i+1) {
						t.Errorf("attempt %d: %+v, want %s", i+1, o, c.want[i])
					}
				}
				dead := c.want[len(c.want)-1] == journal.Dead
				if open := r.model.Deliveries(); len(open) == 1 != dead || dead && open[0].State != journal.Dead {
					t.Errorf("left: %+v", open)
				}
			})
		})
	}
}

// A newer version that was delivered makes an event stale: what happens then is the destination's to say.
func TestStale(t *testing.T) {
	for _, c := range []struct {
		policy            deliver.StalePolicy
		forced, delivered bool
		header            string
	}{
		{"", false, true, "true"},
		{deliver.StaleFlag, false, true, "true"},
		{deliver.StaleDeliver, false, true, ""},
		{deliver.StaleDrop, false, false, ""},
		{deliver.StaleDrop, true, true, "true"},
	} {
		t.Run(string(c.policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				app := nowhere
				app.Stale = c.policy
				var sent []string
				s := newStandIn(t, app, func(r *http.Request) (*http.Response, error) {
					sent = append(sent, r.Header.Get("Hookonce-Stale"))
					return status(200), nil
				})
				w := piece(1)
				w.Stale, w.Forced = true, c.forced
				s.bring(w)
				if len(sent) == 1 != c.delivered || c.delivered && sent[0] != c.header {
					t.Errorf("delivered with %q; want delivered %t with %q", sent, c.delivered, c.header)
				}
				told := s.told()
				if len(told) != 1 || told[0].State != journal.Done || (told[0].Error == "") != c.delivered {
					t.Errorf("the record is %+v", told)
				}
				s.bring(piece(2)) // one that is not stale
				if told := s.told(); len(told) != 1 || told[0].Status != 200 || sent[len(sent)-1] != "" {
					t.Errorf("a fresh event: %+v, sent with %q", told, sent)
				}
			})
		})
	}
}

// A version that was delivered while another waited makes that one stale, though the journal could not say so when it
// handed both out. Others do not: of another source, another kind of rank, no resource, or one that failed.
func TestStaleWhileItWaited(t *testing.T) {
	version := func(i int, source, resource string, r hookonce.Rank) *journal.Work {
		w := piece(i)
		w.Source, w.Resource, w.Rank = source, resource, r
		return w
	}
	for name, c := range map[string]struct {
		sent   []*journal.Work
		status int // of all but the last
		policy deliver.StalePolicy
		want   string // the mark of the last; "dropped"
	}{
		"older":               {[]*journal.Work{version(1, "shop", "cart", hookonce.Version(2)), version(2, "shop", "cart", hookonce.Version(1))}, 200, deliver.StaleFlag, "true"},
		"dropped":             {[]*journal.Work{version(1, "shop", "cart", hookonce.Version(2)), version(2, "shop", "cart", hookonce.Version(1))}, 200, deliver.StaleDrop, "dropped"},
		"not asked for":       {[]*journal.Work{version(1, "shop", "cart", hookonce.Version(2)), version(2, "shop", "cart", hookonce.Version(1))}, 200, deliver.StaleDeliver, ""},
		"newer":               {[]*journal.Work{version(1, "shop", "cart", hookonce.Version(1)), version(2, "shop", "cart", hookonce.Version(2))}, 200, deliver.StaleDrop, ""},
		"the same":            {[]*journal.Work{version(1, "shop", "cart", hookonce.Version(2)), version(2, "shop", "cart", hookonce.Version(2))}, 200, deliver.StaleDrop, ""},
		"that failed":         {[]*journal.Work{version(1, "shop", "cart", hookonce.Version(2)), version(2, "shop", "cart", hookonce.Version(1))}, 422, deliver.StaleDrop, ""},
		"of another source":   {[]*journal.Work{version(1, "shop", "cart", hookonce.Version(2)), version(2, "fair", "cart", hookonce.Version(1))}, 200, deliver.StaleDrop, ""},
		"of another resource": {[]*journal.Work{version(1, "shop", "cart", hookonce.Version(2)), version(2, "shop", "user", hookonce.Version(1))}, 200, deliver.StaleDrop, ""},
		"without a resource":  {[]*journal.Work{version(1, "shop", "", hookonce.Version(2)), version(2, "shop", "", hookonce.Version(1))}, 200, deliver.StaleDrop, ""},
		"a rank of two kinds": {[]*journal.Work{version(1, "shop", "cart", hookonce.Version(2)), version(2, "shop", "cart", hookonce.Rank{N: 1, Kind: hookonce.RankTime})}, 200, deliver.StaleDrop, ""},
		"after one of another kind": {[]*journal.Work{version(1, "shop", "cart", hookonce.Version(5)), version(2, "shop", "cart", hookonce.Rank{N: 9, Kind: hookonce.RankTime}),
			version(3, "shop", "cart", hookonce.Version(3))}, 200, deliver.StaleDrop, ""},
		"no rank of its own": {[]*journal.Work{version(1, "shop", "cart", hookonce.Version(2)), version(2, "shop", "cart", hookonce.Rank{})}, 200, deliver.StaleDrop, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				app := nowhere
				app.Stale, app.Concurrency = c.policy, 1
				n := len(c.sent)
				release, marks := make(chan struct{}, n), make(chan string, n)
				s := newStandIn(t, app, func(r *http.Request) (*http.Response, error) {
					<-release
					marks <- r.Header.Get("Hookonce-Stale")
					if len(marks) < n {
						return status(c.status), nil
					}
					return status(200), nil
				})
				s.bring(c.sent...)
				for range n {
					release <- struct{}{}
				}
				synctest.Wait()
				for range n - 1 {
					<-marks
				}
				got := "dropped"
				if len(marks) == 1 {
					got = <-marks
				}
				if got != c.want {
					t.Errorf("the last was sent with %q, want %q", got, c.want)
				}
				if counted, err := testutil.GatherAndCount(s.metrics, "hookonce_stale_deliveries_total"); counted == 1 != (c.want != "") || err != nil {
					t.Errorf("%d are counted, %v", counted, err)
				}
			})
		})
	}
}

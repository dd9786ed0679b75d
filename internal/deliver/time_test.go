package deliver_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/retry"
	"github.com/hookonce/hookonce/internal/testskip"
)

var quiet = log.New(io.Discard, "", 0)

// nowhere is the address of destinations that a transport plays.
var nowhere = deliver.Destination{URL: "http://app.invalid/", Schedule: retry.Schedule{Attempts: 3, First: 4 * time.Second, Longest: time.Minute, Factor: 15}}

func played(f transport) func(*options) {
	return func(o *options) { o.transport = f }
}

// The schedule decides when attempts are made, and a redelivery brings the dead back.
func TestRetriesThenDeadThenRedriven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heal := false
		var at []time.Duration
		start := time.Now()
		r := newRig(t, nowhere, played(func(*http.Request) (*http.Response, error) {
			at = append(at, time.Since(start))
			if heal {
				return status(200), nil
			}
			return status(500), nil
		}))
		r.accept(t, entry("a"))
		<-time.After(time.Hour)
		synctest.Wait()
		if want := []time.Duration{0, 2 * time.Second, 32 * time.Second}; !near(at, want) {
			t.Errorf("attempts at %v, want %v", at, want)
		}
		open := r.model.Deliveries()
		if len(open) != 1 || open[0].State != journal.Dead || open[0].LastError != "status 500" || open[0].Tries != 3 {
			t.Fatalf("after the schedule: %+v", open)
		}

		heal = true
		if res := r.accept(t, entry("a"))[0]; res.Status != journal.Duplicate || !res.Redriven {
			t.Fatalf("the redelivery: %+v", res)
		}
		if last := r.attempts(t, 4)[3]; last.State != journal.Done || last.Token != 4 {
			t.Errorf("the last outcome: %+v", last)
		}
		const want = `
# HELP hookonce_attempts_total Attempts to deliver, by outcome: done, failed (to be retried), spared (failed while the destination is ill), dead (given up), pending (cancelled by a shutdown, or failed by a fault of our own).
# TYPE hookonce_attempts_total counter
hookonce_attempts_total{destination="app",outcome="dead",source="billing"} 1
hookonce_attempts_total{destination="app",outcome="done",source="billing"} 1
hookonce_attempts_total{destination="app",outcome="failed",source="billing"} 2
hookonce_attempts_total{destination="app",outcome="pending",source="billing"} 0
hookonce_attempts_total{destination="app",outcome="spared",source="billing"} 0
# HELP hookonce_first_attempt_failures_total First attempts that failed, of those in hookonce_first_attempts_total.
# TYPE hookonce_first_attempt_failures_total counter
hookonce_first_attempt_failures_total{destination="app",origin="fresh",source="billing"} 1
hookonce_first_attempt_failures_total{destination="app",origin="reconciled",source="billing"} 0
hookonce_first_attempt_failures_total{destination="app",origin="redriven",source="billing"} 0
hookonce_first_attempt_failures_total{destination="app",origin="replayed",source="billing"} 0
# HELP hookonce_first_attempts_total First attempts since an event was accepted (fresh), a copy of it made failed or dead work begin again (redriven), or an operator did (replayed); of an event from the provider's list since it was accepted (reconciled); without those that failed while the destination is ill.
# TYPE hookonce_first_attempts_total counter
hookonce_first_attempts_total{destination="app",origin="fresh",source="billing"} 1
hookonce_first_attempts_total{destination="app",origin="reconciled",source="billing"} 0
hookonce_first_attempts_total{destination="app",origin="redriven",source="billing"} 1
hookonce_first_attempts_total{destination="app",origin="replayed",source="billing"} 0
`
		if err := testutil.GatherAndCompare(r.metrics, strings.NewReader(want), "hookonce_attempts_total", "hookonce_first_attempts_total", "hookonce_first_attempt_failures_total"); err != nil {
			t.Error(err)
		}
	})
}

// near compares times that the journal's batches and the poller may delay a little.
func near(got, want []time.Duration) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		if late := got[i] - want[i]; late < 0 || late > 2*time.Second {
			return false
		}
	}
	return true
}

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		name, value string
		code        int
		want        time.Duration // after the attempt; the schedule says 2 s
	}{
		{"seconds", "60", 503, time.Minute},
		{"too many requests", "60", 429, time.Minute},
		{"date", "Sat, 01 Jan 2000 00:10:00 GMT", 503, 10 * time.Minute},
		{"date in the past", "Fri, 31 Dec 1999 00:00:00 GMT", 503, 2 * time.Second},
		{"sooner than the schedule", "1", 503, 2 * time.Second},
		{"absurd", "4000000000", 503, 2 * time.Second},
		{"longer than a day", "1000000", 503, 24 * time.Hour},
		{"negative", "-5", 503, 2 * time.Second},
		{"nonsense", "soon", 503, 2 * time.Second},
		{"not busy", "60", 500, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // begins at 2000-01-01 00:00:00 UTC
				r := newRig(t, nowhere, played(func(*http.Request) (*http.Response, error) {
					answer := status(c.code)
					answer.Header.Set("Retry-After", c.value)
					return answer, nil
				}))
				r.accept(t, entry("a"))
				o := r.attempts(t, 1)[0]
				if got := o.Due.Sub(o.Started); got != c.want || o.State != journal.Failed {
					t.Errorf("%s, due after %v; want %v", o.State, got, c.want)
				}
			})
		})
	}
}

// A hanging destination costs its timeout, not the worker; the lease is kept meanwhile.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		r := newRig(t, nowhere, played(func(r *http.Request) (*http.Response, error) {
			calls++
			return hang(r)
		}))
		r.accept(t, entry("a"))
		o := r.attempts(t, 1)[0]
		if o.Error != "timeout after 15s" || o.Duration != usualTimeout || o.State != journal.Failed {
			t.Errorf("outcome %+v", o)
		}
		if calls != 1 {
			t.Errorf("%d attempts at once", calls)
		}
	})
}

// No event dies of a fault of our own, however often it strikes, and other events do not wait for it.
func TestOurFaultCostsNoAttempt(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func() (*http.Response, error)
	}{
		{"panic", func() (*http.Response, error) { panic("boom") }},
		{"no file descriptors", func() (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faults, healed := 0, false
				r := newRig(t, limited(nowhere, 1), func(o *options) {
					o.transport = transport(func(r *http.Request) (*http.Response, error) {
						if r.Header.Get("Hookonce-Key") == "bad" && !healed {
							faults++
							return c.fault()
						}
						return status(200), nil
					})
				})
				r.accept(t, entry("bad"))
				r.accept(t, entry("good"))
				if o := r.attempts(t, 1)[0]; o.State != journal.Done {
					t.Errorf("the only worker did not survive: %+v", o)
				}
				<-time.After(time.Hour)
				synctest.Wait()
				open := r.model.Deliveries()
				if faults < 100 || len(open) != 1 || open[0].State != journal.Pending || open[0].Tries != 0 {
					t.Errorf("after %d faults: %+v", faults, open)
				}
				healed = true
				if o := r.attempts(t, 2)[1]; o.State != journal.Done {
					t.Errorf("the outcome when the fault was gone: %+v", o)
				}
			})
		})
	}
}

// Work for a destination that is not ours is handed back, for whoever knows it, and costs no tries.
func TestDestinationOfOthers(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nowhere, played(func(*http.Request) (*http.Response, error) { return status(200), nil }))
		e := entry("a")
		e.Destinations = []string{"removed"}
		r.accept(t, e)
		<-time.After(48 * time.Hour)
		synctest.Wait()
		open := r.model.Deliveries()
		if len(open) != 1 || open[0].State != journal.Pending || open[0].Tries != 0 || len(r.model.Attempts()) != 0 {
			t.Errorf("left %+v, attempts %+v", open, r.model.Attempts())
		}
	})
}

// Stop lets attempts end while its context allows it.
func TestStopWaitsForAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		begun := make(chan struct{}, 2)
		r := newRig(t, limited(nowhere, 1), func(o *options) {
			o.transport = transport(func(*http.Request) (*http.Response, error) {
				begun <- struct{}{}
				<-finish
				return status(200), nil
			})
		})
		r.accept(t, entry("a"), entry("b"))
		<-begun
		stopped := make(chan error)
		go func() { stopped <- r.Stop(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-stopped:
			t.Fatalf("stopped with an attempt under way: %v", err)
		default:
		}
		close(finish)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if len(begun) != 0 {
			t.Error("an attempt was begun after Stop")
		}
		if err := r.journal.Close(t.Context()); err != nil {
			t.Error(err)
		}
		open := r.model.Deliveries()
		if len(open) != 1 || open[0].State != journal.Pending || open[0].Tries != 0 {
			t.Errorf("after the shutdown: %+v", open)
		}
	})
}

// When time is up, what is under way is cancelled and handed back as if it had not been attempted.
func TestStopHandsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nowhere, played(hang))
		r.accept(t, entry("a"), entry("b"))
		synctest.Wait()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, errBroken)
		defer cancel()
		start := time.Now()
		if err := r.Stop(ctx); !errors.Is(err, errBroken) {
			t.Errorf("Stop: %v, want the cause", err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("stopped after %v", took)
		}
		if err := r.journal.Close(t.Context()); err != nil {
			t.Error(err)
		}
		open := r.model.Deliveries()
		if len(open) != 2 || len(r.model.Attempts()) != 0 {
			t.Fatalf("after the shutdown: %+v, attempts %+v", open, r.model.Attempts())
		}
		for _, d := range open {
			if d.State != journal.Pending || d.Tries != 0 {
				t.Errorf("handed back as %+v", d)
			}
		}
	})
}

// Law 6: work whose lease was lost while it waited is not begun: somebody else has it.
func TestLostLeaseIsNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys []string
		release := make(chan struct{})
		r := newRig(t, limited(nowhere, 1), func(o *options) {
			o.transport = transport(func(r *http.Request) (*http.Response, error) {
				keys = append(keys, r.Header.Get("Hookonce-Key")+"/"+r.Header.Get("Hookonce-Attempt"))
				if len(keys) == 1 {
					<-release
				}
				return status(200), nil
			})
		})
		r.accept(t, entry("first"))
		r.accept(t, entry("waits"))
		synctest.Wait()
		r.faulty.Fail(journaltest.OpExtend, -1, journaltest.NotPersisted)
		r.faulty.Fail(journaltest.OpTake, -1, journaltest.NotPersisted)
		<-time.After(time.Minute) // we are cut off from the store for longer than the lease
		others, err := r.model.Take(t.Context(), time.Now(), time.Now().Add(time.Minute), journal.Wanted{Deliveries: 10})
		if err != nil || len(others) != 2 {
			t.Fatalf("another process took %d, %v", len(others), err)
		}
		for _, w := range others {
			if _, err := r.model.Finish(t.Context(), []journal.Outcome{{Held: w.Held, State: journal.Done}}); err != nil {
				t.Fatal(err)
			}
		}
		close(release)
		synctest.Wait()
		if len(keys) != 1 {
			t.Errorf("attempts: %v, want the first alone", keys)
		}
	})
}

// The outcome is recorded when the status is known: an answer that drips does not hold it up.
func TestOutcomeDoesNotWaitForTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nowhere, played(func(r *http.Request) (*http.Response, error) {
			answer := status(200)
			answer.Body = drip{r.Context()}
			return answer, nil
		}))
		r.accept(t, entry("a"))
		start := time.Now()
		r.attempts(t, 1)
		if took := time.Since(start); took > time.Second {
			t.Errorf("recorded after %v", took)
		}
	})
}

// drip is a body that sends nothing until its request is cancelled.
type drip struct{ ctx context.Context }

func (d drip) Read([]byte) (int, error) {
	<-d.ctx.Done()
	return 0, d.ctx.Err()
}

func (drip) Close() error { return nil }

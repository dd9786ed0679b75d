package deliver_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/retry"
	"github.com/hookonce/hookonce/internal/testskip"
)

// An illness is a way in which a destination fails, and what is sent to it meanwhile, in a time that is played.
type illness struct {
	name string
	// answer is how the destination answers, since the beginning. Nil: 200, after a few milliseconds.
	answer func(since time.Duration, r *http.Request) (*http.Response, error)
	send   func(s *sim)
	// p99 bounds the delay of healthy events, those whose keys begin with h, since they were accepted or, if it is
	// later, since the destination was well.
	p99  time.Duration
	well time.Duration
	// notice bounds the time from then to the first success.
	notice time.Duration
	// requests bounds those that the destination gets in a minute before that, after the first.
	requests int
	small    bool // little is held
	change   func(*deliver.Destination, *journal.Destination)
	check    func(t *testing.T, s *sim)
}

// sim plays an illness.
type sim struct {
	*rig
	t     *testing.T
	start time.Time

	mu       sync.Mutex
	sent     map[string]time.Time
	done     map[string]time.Time
	order    []string
	requests []time.Duration
}

func (s *sim) since() time.Duration { return time.Since(s.start) }

// event sends one of a type of a source; its key says whether it is poison.
func (s *sim) event(key, source, kind, resource string) {
	e := entry(key)
	e.Source, e.Type, e.Resource, e.ReceivedAt = source, kind, resource, time.Now()
	s.mu.Lock()
	s.sent[key] = time.Now()
	s.mu.Unlock()
	s.accept(s.t, e)
}

// burst sends n events at once, and steady as many in a row, so far apart.
func (s *sim) burst(n int, prefix, kind string) { s.steady(n, 0, prefix, kind) }

func (s *sim) steady(n int, apart time.Duration, prefix, kind string) {
	for i := range n {
		s.event(fmt.Sprintf("%s-%d", prefix, i), "billing", kind, "")
		<-time.After(apart)
	}
}

// mixed sends n events of one type, of which one in so many is poison.
func (s *sim) mixed(n, oneIn int, apart time.Duration) {
	for i := range n {
		prefix := "h"
		if i%oneIn == 0 {
			prefix = "p"
		}
		s.event(fmt.Sprintf("%s-%d", prefix, i), "billing", "invoice.paid", "")
		<-time.After(apart)
	}
}

func at(d time.Duration) { <-time.After(d) }

func poison(r *http.Request) bool { return strings.HasPrefix(r.Header.Get("Hookonce-Key"), "p") }

// answersPoison answers so to poison, and 200 to the rest.
func answersPoison(code int) func(time.Duration, *http.Request) (*http.Response, error) {
	return func(_ time.Duration, r *http.Request) (*http.Response, error) {
		if poison(r) {
			return status(code), nil
		}
		return status(200), nil
	}
}

func hangsPoison(_ time.Duration, r *http.Request) (*http.Response, error) {
	if poison(r) {
		return hang(r)
	}
	return status(200), nil
}

func breaksPoison(_ time.Duration, r *http.Request) (*http.Response, error) {
	if poison(r) {
		return nil, errBroken
	}
	return status(200), nil
}

// until answers in a way until a time, and 200 then.
func until(well time.Duration, ill func(*http.Request) (*http.Response, error)) func(time.Duration, *http.Request) (*http.Response, error) {
	return func(since time.Duration, r *http.Request) (*http.Response, error) {
		if since < well {
			return ill(r)
		}
		return status(200), nil
	}
}

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

func refuses(*http.Request) (*http.Response, error) { return nil, errRefused }

// swallows has a dial wait for an answer until its own time is over.
func swallows(r *http.Request) (*http.Response, error) {
	host := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		at(5 * second)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}}
	return host.RoundTrip(r)
}

func always(code int) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return status(code), nil }
}

const second, minute = time.Second, time.Minute

var illnesses = []illness{
	{name: "a burst of poison, and healthy events behind it", answer: answersPoison(500), p99: 10 * second, send: func(s *sim) {
		s.burst(300, "p", "invoice.paid")
		s.burst(1036, "h", "invoice.paid")
	}},
	{name: "a burst of poison, and healthy events two minutes later", answer: answersPoison(500), p99: 10 * second, send: func(s *sim) {
		s.burst(300, "p", "invoice.paid")
		at(2 * minute)
		s.steady(1036, 50*time.Millisecond, "h", "invoice.paid")
	}},
	{name: "a burst of slow poison, and healthy events", answer: func(since time.Duration, r *http.Request) (*http.Response, error) {
		if poison(r) {
			at(5 * second)
		}
		return answersPoison(500)(since, r)
	}, p99: 10 * second, send: func(s *sim) {
		s.burst(300, "p", "invoice.paid")
		s.steady(1036, 50*time.Millisecond, "h", "invoice.paid")
	}},
	{name: "1 % is poison", answer: answersPoison(500), p99: 10 * second, send: func(s *sim) { s.mixed(2000, 100, 50*time.Millisecond) }},
	{name: "10 % is poison", answer: answersPoison(500), p99: 10 * second, send: func(s *sim) { s.mixed(2000, 10, 50*time.Millisecond) }},
	{name: "50 % is poison", answer: answersPoison(500), p99: 10 * second, send: func(s *sim) { s.mixed(2000, 2, 50*time.Millisecond) }},
	{name: "50 % is poison, answered 400", answer: answersPoison(400), p99: 10 * second, send: func(s *sim) { s.mixed(2000, 2, 50*time.Millisecond) }},
	{name: "10 % is answered 503", answer: answersPoison(503), p99: 10 * second, send: func(s *sim) { s.mixed(2000, 10, 50*time.Millisecond) }},
	{name: "one type is broken", answer: answersPoison(500), p99: 10 * second, send: func(s *sim) {
		for i := range 600 {
			s.event(fmt.Sprintf("p-%d", i), "billing", "invoice.voided", "")
			if i%10 == 0 {
				s.event(fmt.Sprintf("h-%d", i), "billing", "invoice.paid", "")
			}
			at(100 * time.Millisecond)
		}
	}},
	{name: "a second source", answer: answersPoison(500), p99: 10 * second, send: func(s *sim) {
		s.burst(300, "p", "invoice.paid")
		for i := range 37 {
			at(2 * second)
			s.event(fmt.Sprintf("h-%d", i), "shop", "invoice.paid", "")
		}
	}},
	{name: "one type is answered 503", answer: answersPoison(503), p99: 10 * second, send: func(s *sim) {
		s.burst(300, "p", "invoice.voided")
		for i := range 60 {
			s.event(fmt.Sprintf("h-%d", i), "billing", "invoice.paid", "")
			at(2 * second)
		}
	}},
	{name: "one type hangs", answer: hangsPoison, p99: 10 * second, send: func(s *sim) {
		for i := range 600 {
			if i%2 == 0 {
				s.event(fmt.Sprintf("p-%d", i), "billing", "invoice.voided", "")
			}
			s.event(fmt.Sprintf("h-%d", i), "billing", "invoice.paid", "")
			at(100 * time.Millisecond)
		}
	}},
	{name: "one type hangs, the other is rare", answer: hangsPoison, p99: 10 * second, send: func(s *sim) {
		s.burst(300, "p", "invoice.voided")
		for i := range 20 {
			at(17 * second)
			s.event(fmt.Sprintf("h-%d", i), "billing", "invoice.paid", "")
		}
	}},
	{name: "a burst that hangs, and healthy events of the type behind it", answer: hangsPoison, p99: 25 * second, send: func(s *sim) {
		s.burst(300, "p", "invoice.paid")
		s.burst(1036, "h", "invoice.paid")
	}},
	{name: "one type hangs beside a busy one, more than is held", answer: hangsPoison, p99: 25 * second, small: true, send: func(s *sim) {
		for i := range 3000 {
			if i < 1000 {
				s.event(fmt.Sprintf("p-%d", i), "billing", "invoice.voided", "")
			}
			s.event(fmt.Sprintf("h-%d", i), "billing", "invoice.paid", "")
			at(50 * time.Millisecond)
		}
	}},
	{name: "17 % hangs, which is about what there is room for", answer: hangsPoison, p99: 25 * second, send: func(s *sim) { s.mixed(2000, 6, 50*time.Millisecond) }},
	{name: "one type hangs, more than is held", answer: hangsPoison, p99: 25 * second, small: true, send: func(s *sim) {
		s.burst(1500, "p", "invoice.voided")
		for i := range 300 {
			s.event(fmt.Sprintf("h-%d", i), "billing", "invoice.paid", "")
			at(second)
		}
	}},
	{name: "1 % hangs", answer: hangsPoison, p99: 25 * second, send: func(s *sim) { s.mixed(2000, 100, 50*time.Millisecond) }},
	{name: "10 % hangs", answer: hangsPoison, p99: 25 * second, send: func(s *sim) { s.mixed(1000, 10, 100*time.Millisecond) }},
	{name: "all hangs", answer: until(10*minute, hang), well: 10 * minute, notice: 20 * second, p99: 25 * second, requests: 100, send: func(s *sim) {
		s.steady(800, second, "h", "invoice.paid")
	}, check: spared},
	{name: "refused", answer: until(3*minute, refuses), well: 3 * minute, notice: 5 * second, p99: 10 * second, requests: 40, send: func(s *sim) {
		s.steady(2000, 100*time.Millisecond, "h", "invoice.paid")
	}, check: spared},
	{name: "refused, for many types", answer: until(5*minute, refuses), well: 5 * minute, notice: 5 * second, p99: 10 * second, requests: 80, send: func(s *sim) {
		for i := range 3300 {
			s.event(fmt.Sprintf("h-%d", i), "billing", fmt.Sprintf("type-%d", i%200), "")
			at(100 * time.Millisecond)
		}
	}, check: spared},
	{name: "one event, refused", answer: until(90*second, refuses), well: 90 * second, notice: 5 * second, p99: 10 * second, requests: 20, send: func(s *sim) {
		s.burst(1, "h", "invoice.paid")
	}},
	{name: "one event, swallowed, in less time than a dial may take", answer: until(3*minute, swallows), well: 3 * minute, notice: 8 * second, p99: 10 * second, requests: 20,
		change: func(app *deliver.Destination, _ *journal.Destination) { app.Timeout = 3 * second }, send: func(s *sim) {
			s.burst(1, "h", "invoice.paid")
			at(2 * minute)
		}},
	{name: "502", answer: until(3*minute, always(502)), well: 3 * minute, notice: 5 * second, p99: 10 * second, requests: 40, send: func(s *sim) {
		s.steady(2000, 100*time.Millisecond, "h", "invoice.paid")
	}, check: spared},
	{name: "500 for everything", answer: until(10*minute, always(500)), well: 10 * minute, notice: 5 * second, p99: 10 * second, send: func(s *sim) {
		s.steady(1300, 500*time.Millisecond, "h", "invoice.paid")
	}},
	{name: "half of it poison, and refused", answer: func(since time.Duration, r *http.Request) (*http.Response, error) {
		if since < 5*minute {
			return refuses(r)
		}
		return answersPoison(500)(since, r)
	}, well: 5 * minute, notice: 5 * second, p99: 10 * second, requests: 40, send: func(s *sim) { s.mixed(3300, 2, 100*time.Millisecond) }},
	{name: "503 with Retry-After", answer: until(5*minute+10*second, func(*http.Request) (*http.Response, error) {
		answer := status(503)
		answer.Header.Set("Retry-After", "60")
		return answer, nil
	}), well: 5*minute + 10*second, notice: 65 * second, p99: 65 * second, requests: 15, send: func(s *sim) {
		s.steady(3200, 100*time.Millisecond, "h", "invoice.paid")
	}, check: func(t *testing.T, s *sim) {
		spared(t, s)
		for i, r := range s.requests[1:] {
			if gap := r - s.requests[i]; r > second && r < 5*minute && gap < minute {
				t.Errorf("a request at %v, %v after the one before", r, gap)
			}
		}
	}},
	{name: "flapping", answer: func(since time.Duration, r *http.Request) (*http.Response, error) {
		if int(since/(20*second))%2 == 1 {
			return refuses(r)
		}
		return status(200), nil
	}, p99: 30 * second, send: func(s *sim) { s.steady(3000, 100*time.Millisecond, "h", "invoice.paid") }, check: spared},
	{name: "in order, refused", answer: until(2*minute, refuses), well: 2 * minute, notice: 5 * second, p99: 10 * second, requests: 40,
		change: func(_ *deliver.Destination, to *journal.Destination) { to.Ordered = true }, send: func(s *sim) {
			for i := range 1300 {
				s.event(fmt.Sprintf("h-%d", i), "billing", "invoice.paid", fmt.Sprint(i%20))
				at(100 * time.Millisecond)
			}
		}, check: func(t *testing.T, s *sim) {
			last := map[int]int{}
			for _, key := range s.order {
				var n int
				if _, err := fmt.Sscanf(key, "h-%d", &n); err != nil {
					t.Fatal(err)
				}
				if before, ok := last[n%20]; ok && before > n {
					t.Fatalf("%d after %d", n, before)
				}
				last[n%20] = n
			}
		}},
	{name: "in order, some resources are poison", answer: answersPoison(500), p99: 10 * second,
		change: func(_ *deliver.Destination, to *journal.Destination) { to.Ordered = true }, send: func(s *sim) {
			for i := range 300 {
				s.event(fmt.Sprintf("p-%d", i), "billing", "invoice.paid", fmt.Sprintf("bad-%d", i))
			}
			at(minute)
			for i := range 300 {
				s.event(fmt.Sprintf("h-%d", i), "billing", "invoice.paid", fmt.Sprintf("good-%d", i%20))
				at(200 * time.Millisecond)
			}
		}},
	{name: "one at a time", answer: answersPoison(500), p99: 10 * second,
		change: func(app *deliver.Destination, _ *journal.Destination) { app.Concurrency = 1 }, send: func(s *sim) {
			s.burst(300, "p", "invoice.paid")
			s.steady(600, 100*time.Millisecond, "h", "invoice.paid")
		}},
	{name: "a burst of poison that breaks connections, and healthy events of the type", answer: breaksPoison, p99: 10 * second, send: func(s *sim) {
		s.burst(300, "p", "invoice.paid")
		s.steady(1036, 50*time.Millisecond, "h", "invoice.paid")
	}},
	{name: "50 % breaks connections", answer: breaksPoison, p99: 10 * second, send: func(s *sim) { s.mixed(2000, 2, 50*time.Millisecond) }},
	{name: "a burst of poison, and a rate", answer: answersPoison(500), p99: 10 * second,
		change: func(app *deliver.Destination, _ *journal.Destination) { app.Rate = 20 }, send: func(s *sim) {
			s.burst(300, "p", "invoice.voided")
			s.steady(600, 100*time.Millisecond, "h", "invoice.paid")
		}},
	{name: "poison dies when its schedule is used up", answer: answersPoison(500), p99: 10 * second,
		change: func(app *deliver.Destination, _ *journal.Destination) {
			app.Schedule = retry.Schedule{Attempts: 4, First: second, Longest: 40 * second, Factor: 10}
		}, send: func(s *sim) {
			s.burst(300, "p", "invoice.paid")
			s.steady(300, second, "h", "invoice.paid")
		}, check: func(t *testing.T, s *sim) {
			left := s.model.Deliveries()
			for _, d := range left {
				if d.State != journal.Dead || d.Tries != 4 {
					t.Errorf("%+v, want it dead after four tries", d)
				}
			}
			if len(left) != 300 {
				t.Errorf("%d left, want the poison", len(left))
			}
		}},
	{name: "one type hangs, one at a time", answer: hangsPoison, p99: 25 * second,
		change: func(app *deliver.Destination, _ *journal.Destination) { app.Concurrency = 1 }, send: func(s *sim) {
			s.burst(100, "p", "invoice.voided")
			s.steady(300, second, "h", "invoice.paid")
		}},
	{name: "in order, some resources hang", answer: hangsPoison, p99: 25 * second,
		change: func(_ *deliver.Destination, to *journal.Destination) { to.Ordered = true }, send: func(s *sim) {
			for i := range 300 {
				s.event(fmt.Sprintf("p-%d", i), "billing", "invoice.paid", fmt.Sprintf("bad-%d", i))
			}
			for i := range 300 {
				s.event(fmt.Sprintf("h-%d", i), "billing", "invoice.paid", fmt.Sprintf("good-%d", i%20))
				at(200 * time.Millisecond)
			}
		}},
	{name: "a type that was never tried does not wait for the probe that hangs", answer: func(since time.Duration, r *http.Request) (*http.Response, error) {
		if poison(r) {
			return hang(r)
		}
		return status(200), nil
	}, p99: 2 * second, send: func(s *sim) {
		s.burst(50, "p", "invoice.voided")
		at(20 * second)
		s.burst(1, "h", "invoice.paid")
	}},
	{name: "a type for each event", answer: answersPoison(500), p99: 10 * second, send: func(s *sim) {
		for i := range 1000 {
			prefix := "h"
			if i < 300 || i%2 == 0 {
				prefix = "p"
			}
			s.event(fmt.Sprintf("%s-%d", prefix, i), "billing", fmt.Sprintf("type-%d", i), "")
			at(100 * time.Millisecond)
		}
	}},
}

// spared finds events that an illness cost more than what it takes to find out.
func spared(t *testing.T, s *sim) {
	for _, d := range s.model.Deliveries() {
		if d.State == journal.Dead || d.Tries > 4 {
			t.Errorf("after %d tries %s: %+v", d.Tries, d.State, d)
		}
	}
}

// In every illness healthy events are delivered soon, recovery is noticed soon, and the destination gets few
// requests meanwhile.
func TestIllnesses(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	for _, c := range illnesses {
		t.Run(c.name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { play(t, c) }) })
	}
}

func play(t *testing.T, c illness) {
	s := &sim{t: t, start: time.Now(), sent: map[string]time.Time{}, done: map[string]time.Time{}}
	app, to := deliver.Destination{URL: "http://app.invalid/"}, journal.Destination{}
	if c.change != nil {
		c.change(&app, &to)
	}
	held := 0
	if c.small {
		held = 200
	}
	s.rig = newRigOn(t, engine.Options{MaxHeld: held, Destinations: map[string]journal.Destination{"app": to}}, app, played(func(r *http.Request) (*http.Response, error) {
		s.mu.Lock()
		s.requests = append(s.requests, s.since())
		s.mu.Unlock()
		at(5 * time.Millisecond)
		answer, err := c.answer(s.since(), r)
		if err == nil && answer.StatusCode == 200 {
			key := r.Header.Get("Hookonce-Key")
			s.mu.Lock()
			if _, again := s.done[key]; again {
				t.Errorf("%s twice", key)
			}
			s.done[key] = time.Now()
			s.order = append(s.order, key)
			s.mu.Unlock()
		}
		return answer, err
	}))

	c.send(s)
	at(2 * minute)
	synctest.Wait()
	s.judge(c)
	if c.check != nil {
		c.check(t, s)
	}
}

// judge compares with the bounds, and logs the figures.
func (s *sim) judge(c illness) {
	var delays []time.Duration
	lost, first := 0, time.Duration(-1)
	well := s.start.Add(c.well)
	for key, sent := range s.sent {
		if key[0] != 'h' {
			continue
		}
		done, ok := s.done[key]
		if !ok {
			lost++
			continue
		}
		if sent.Before(well) {
			sent = well
		}
		delays = append(delays, max(0, done.Sub(sent)))
		if after := done.Sub(well); after >= 0 && (first < 0 || after < first) {
			first = after
		}
	}
	slices.Sort(delays)
	if lost > 0 || len(delays) == 0 {
		s.t.Fatalf("%d of %d healthy events were not delivered in the end: %+v", lost, len(delays)+lost, s.Destinations())
	}
	p99 := delays[len(delays)*99/100]
	if len(delays) < 100 {
		p99 = delays[len(delays)-1]
	}
	most := 0
	for i, from := range s.requests {
		if from < minute || from > c.well-minute {
			continue
		}
		n := 0
		for _, r := range s.requests[i:] {
			if r < from+minute {
				n++
			}
		}
		most = max(most, n)
	}
	s.t.Logf("healthy: %d, median %v, p99 %v, last %v; recovery noticed after %v; at most %d requests a minute while ill",
		len(delays), delays[len(delays)/2], p99, delays[len(delays)-1], first, most)
	if p99 > c.p99 {
		s.t.Errorf("p99 %v, want at most %v", p99, c.p99)
	}
	if c.well > 0 && first > c.notice {
		s.t.Errorf("recovery noticed after %v, want %v", first, c.notice)
	}
	if c.requests > 0 && most > c.requests {
		s.t.Errorf("%d requests in a minute, want %d at most", most, c.requests)
	}
}

package alerting

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/overview"
	"github.com/hookonce/hookonce/internal/testskip"
)

// shape is how a sender sends, and its destination answers.
type shape struct {
	rate   float64 // events a minute, on average
	clump  float64 // events that come at once, on average
	again  float64 // share of events that come again, three at once on average
	failed float64 // share of first attempts that fail
}

// shapes are rare, common and busy senders, some of which send in clumps and repeat a lot.
var shapes = []shape{
	{0.2, 1, 0.003, 0.001}, {0.2, 4, 0.025, 0.002}, {5, 1, 0.003, 0.001}, {5, 10, 0.025, 0.002}, {300, 1, 0.003, 0.001}, {300, 50, 0.025, 0.002},
}

// minute is what happened in one.
type minute struct {
	events, again, first, failed, conflicts, unverified, verified, dead, ours, copies int64
}

// month is a simulation, minute by minute: what is sent and answered is drawn, what is usual is learned and judged by the code
// that gateways run, and alerts go through their life.
type month struct {
	*world
	shape
	draw   *rand.Rand
	m      int         // of the simulation
	past   [361]minute // the last six hours, by minute
	six    overview.FirstAttempts
	hours  []overview.Hour
	usual  overview.Baseline
	rhythm overview.Rhythm
	last   time.Time // a request was authentic
	failed time.Time // and none since, zero: there were
	dead   int64
	oldest *time.Time
	fault  func(*minute) // what is wrong at the moment
}

func (s *month) poisson(mean float64) (n int64) {
	if mean > 50 {
		return max(0, int64(math.Round(mean+math.Sqrt(mean)*s.draw.NormFloat64())))
	}
	for p, limit := s.draw.Float64(), math.Exp(-mean); p > limit; n++ {
		p *= s.draw.Float64()
	}
	return n
}

// clumps draws a count of what comes in clumps of a mean size.
func (s *month) clumps(mean, size float64) (n int64) {
	for range s.poisson(mean / size) {
		n += 1 + s.poisson(size-1)
	}
	return n
}

// step simulates a minute and evaluates.
func (s *month) step() {
	s.now = began.Add(time.Duration(s.m) * time.Minute)
	busy := 1 + 0.6*math.Sin(2*math.Pi*float64(s.now.Hour()-9)/24)
	if s.now.Weekday() == time.Saturday || s.now.Weekday() == time.Sunday {
		busy *= 0.4
	}
	now := minute{events: s.clumps(s.rate*busy, s.clump), again: s.clumps(s.rate*busy*s.shape.again, 3)}
	now.verified, now.first = now.events+now.again, now.events
	for range now.first {
		if s.draw.Float64() < s.shape.failed {
			now.failed++
		}
	}
	if s.fault != nil {
		s.fault(&now)
	}
	if s.m%60 == 0 {
		s.usual, s.rhythm = overview.LearnShare(s.hours, s.now), overview.LearnRhythm(s.hours, s.now)
		s.hours = append(s.hours, overview.Hour{At: s.now})
		s.hours = s.hours[max(0, len(s.hours)-28*24-1):]
	}
	h := &s.hours[len(s.hours)-1]
	h.Events, h.Reseen = h.Events+now.events+now.again, h.Reseen+now.again
	if now.verified > 0 {
		h.Active++
		s.last, s.failed = s.now, time.Time{}
	} else if now.unverified > 0 && s.failed.IsZero() {
		s.failed = s.now
	}
	s.dead += now.dead
	s.past[s.m%len(s.past)] = now
	s.m++
	gone := &s.past[s.m%len(s.past)] // six hours ago
	s.six.First, s.six.FirstFailed = s.six.First+now.first-gone.first, s.six.FirstFailed+now.failed-gone.failed
	s.look()
	s.gateways[0].Evaluate(s.Context())
}

// over adds up the last minutes, without the last skip.
func (s *month) over(minutes, skip int) (in overview.Intake, out overview.Outcomes) {
	var unverified int64
	for i := 1 + skip; i <= min(minutes+skip, s.m, len(s.past)); i++ {
		n := &s.past[(s.m-i)%len(s.past)]
		in.Accepted, in.Reseen, in.Conflicts, in.Ours, in.Copies = in.Accepted+n.events, in.Reseen+n.again, in.Conflicts+n.conflicts, in.Ours+n.ours, in.Copies+n.again+n.copies
		in.Verified, in.Received = in.Verified+n.verified, in.Received+n.verified+n.unverified
		if n.verified > 0 {
			in.Active++
		}
		unverified += n.unverified
		out.First, out.FirstFailed, out.Dead, out.Done = out.First+n.first, out.FirstFailed+n.failed, out.Dead+n.dead, out.Done+n.first-n.failed
	}
	if unverified > 0 {
		in.Unverified = map[string]int64{"signature_mismatch": unverified}
	}
	return in, out
}

// look draws the snapshot.
func (s *month) look() {
	o := overview.SourceState{Name: "orders", LastVerified: s.last, FailedSince: s.failed, Usual: s.usual, Silence: s.rhythm.Since(s.last, s.now.Add(time.Minute))}
	d := overview.DestinationState{Destination: fleet.Destination{Name: "ledger"}, Dead: s.dead, Oldest: s.oldest, Since: s.oldest}
	o.Five, d.Five = s.over(5, 0)
	o.Hour, d.Hour = s.over(60, 0)
	_, d.Half = s.over(30, 0)
	d.Six = s.six
	n, received := 0, int64(0)
	for ; n < min(60, s.m) && received < 20; n++ {
		last := &s.past[(s.m-1-n)%len(s.past)]
		received += last.verified + last.unverified
	}
	o.Latest, _ = s.over(n, 0)
	for o.ReseenFor < 3 {
		five, _ := s.over(5, o.ReseenFor)
		hour, _ := s.over(60, o.ReseenFor)
		if !s.usual.Exceeds(five.Events(), five.Reseen, 6, 10) && !s.usual.Exceeds(hour.Events(), hour.Reseen, 6, 10) {
			break
		}
		o.ReseenFor++
	}
	s.snapshot.Sources, s.snapshot.Destinations = []overview.SourceState{o}, []overview.DestinationState{d}
	s.snapshot.Store = overview.StoreState{Cleaned: s.now, Commits: 10, CommitMS: 3}
}

// fired counts how often each rule fired since a time.
func (s *month) fired(since time.Time) map[string]int {
	h, err := s.store.AlertHistory(s.Context(), journal.AlertFilter{}, 0, 10_000)
	if err != nil {
		s.Fatal(err)
	}
	n := map[string]int{}
	for _, r := range h {
		if r.Event == journal.AlertFired && !r.At.Before(since) {
			n[r.Rule]++
		}
	}
	return n
}

// planted are faults, and within how many minutes each is found at 0.2, 5 and 300 events a minute; 0: not by this rule.
var planted = []struct {
	rule, what string
	begin      func(s *month, minute int, now *minute)
	within     [3]int
}{
	{"came_again", "340 copies in 12 minutes", func(_ *month, i int, now *minute) {
		if i < 12 {
			now.again += 28
		}
	}, [3]int{4, 4, 7}},
	{"silent_source", "nothing comes any more", func(_ *month, _ int, now *minute) { *now = minute{} }, [3]int{240, 30, 13}},
	{"first_attempts_fail", "every second first attempt fails", func(_ *month, _ int, now *minute) { now.failed = (now.first + 1) / 2 }, [3]int{120, 30, 10}},
	{"secret_rotated", "the sender has a new secret", func(_ *month, _ int, now *minute) {
		*now = minute{unverified: now.verified}
	}, [3]int{0, 60, 5}},
	{"secret_rotated", "a hundred requests a minute are forged beside genuine ones", func(_ *month, _ int, now *minute) { now.unverified += 100 }, [3]int{0, 0, 0}},
	{"conflict", "one key comes with other content", func(_ *month, i int, now *minute) {
		if i == 0 {
			now.conflicts = 1
		}
	}, [3]int{1, 1, 1}},
	{"died", "a delivery is given up", func(_ *month, i int, now *minute) {
		if i == 0 {
			now.dead = 1
		}
	}, [3]int{1, 1, 1}},
	{"backlog_old", "what was accepted at the beginning stays open", func(s *month, i int, _ *minute) {
		if i == 0 {
			at := s.now
			s.oldest = &at
		}
	}, [3]int{18, 18, 18}},
	{"senders_refused", "senders are answered 503", func(_ *month, _ int, now *minute) { now.ours = 1 }, [3]int{2, 2, 2}},
	{"probing", "forty requests are forged", func(_ *month, i int, now *minute) {
		if i == 0 {
			now.unverified += 40
		}
	}, [3]int{60, 1, 1}},
}

// In a month of each shape no rule raises more than one false alarm, and every fault is found in time. Four weeks are judged,
// after one in which it is learned what is usual.
func TestMonth(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	for i, sh := range shapes {
		t.Run(fmt.Sprintf("%g a minute in clumps of %g", sh.rate, sh.clump), func(t *testing.T) {
			t.Parallel()
			s := &month{world: newWorld(t, 1), shape: sh, draw: rand.New(rand.NewPCG(7, uint64(i)))}
			s.settings.Addresses = nil
			for s.m < 35*24*60 {
				s.step()
			}
			alarms := s.fired(began.Add(7 * 24 * time.Hour))
			for rule, n := range alarms {
				if n > 1 {
					t.Errorf("%s fires %d times in 28 days in which nothing is wrong", rule, n)
				}
			}
			t.Logf("%g %% come again, %g %% of first attempts fail: false alarms in 28 days: %v", 100*sh.again, 100*sh.failed, alarms)
			for _, p := range planted {
				s.plant(p.rule, p.what, p.within[i/2], p.begin)
			}
		})
	}
}

// plant lets something be wrong on the next day at noon, and expects a rule to fire within so many minutes, 0: does not.
func (s *month) plant(rule, what string, within int, begin func(*month, int, *minute)) {
	s.Helper()
	for range 10 * 60 {
		s.step() // all is forgotten
	}
	for s.now.Hour() != 12 {
		s.step()
	}
	first, after := s.m, 0
	since := began.Add(time.Duration(first) * time.Minute)
	s.fault = func(now *minute) { begin(s, s.m-first, now) }
	for after == 0 && s.m-first < max(within, 60)+2 {
		if s.step(); s.fired(since)[rule] > 0 {
			after = s.m - first
		}
	}
	s.fault, s.dead, s.oldest = nil, 0, nil
	s.Logf("%s (%s): after %d minutes", rule, what, after)
	if within == 0 && after > 0 {
		s.Errorf("%s: %s fires after %d minutes", rule, what, after)
	}
	if within > 0 && (after == 0 || after > within) {
		s.Errorf("%s: %s is found after %d minutes, want at most %d", rule, what, after, within)
	}
}

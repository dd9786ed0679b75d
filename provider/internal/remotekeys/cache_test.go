package remotekeys

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testskip"
)

// issuer has the keys of a sender: those whose names begin with "genuine".
type issuer struct {
	takes   time.Duration
	lasts   Validity // of keys, counted from now
	err     error    // of all questions
	hold    chan struct{}
	fetches atomic.Int64
	atOnce  atomic.Int64
	most    atomic.Int64
}

func (i *issuer) cache(p Pace) *Cache[int] { return New(p, i.fetch) }

func (i *issuer) fetch(ctx context.Context, name string, _ time.Time) (key int, use Validity, err error) {
	i.fetches.Add(1)
	i.most.Store(max(i.most.Load(), i.atOnce.Add(1)))
	defer i.atOnce.Add(-1)
	if i.hold != nil {
		<-i.hold
	}
	time.Sleep(i.takes)
	switch {
	case i.err != nil:
		return 0, use, i.err
	case len(name) < 7 || name[:7] != "genuine":
		return 0, use, &StatusError{"issuer.example", http.StatusNotFound}
	}
	return 7, i.lasts, nil
}

var now = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

// from returns a request that came at that time.
func from(at time.Time) *hookonce.Request { return &hookonce.Request{Now: at} }

// lasting is the validity of a key for that long after now.
func lasting(d time.Duration) Validity { return RenewedAfter(now, d) }

func TestKeyCacheFetchesOneNameOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{takes: 100 * time.Millisecond, lasts: lasting(time.Hour)}
		c := i.cache(OfFiles)
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				if key, err := c.Get("genuine", from(now)); key != 7 || err != nil {
					t.Errorf("got %v, %v", key, err)
				}
			})
		}
		all.Wait()
		if n := i.fetches.Load(); n != 1 {
			t.Errorf("%d fetches of one name", n)
		}
	})
}

// TestKeyCacheForgetsInTime: what the sender does not have is not asked for again for a minute, and what it could not be
// asked for not for some seconds.
func TestKeyCacheForgetsInTime(t *testing.T) {
	missing, away := &StatusError{"issuer.example", http.StatusNotFound}, outage{errors.New("away")}
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{lasts: lasting(time.Hour)}
		c := i.cache(OfFiles)
		for _, s := range []struct {
			at      time.Duration
			err     error
			fetches int64
			found   bool
		}{
			{0, missing, 1, false},
			{keepFailure - 1, nil, 1, false},
			{keepFailure, away, 2, false},
			{keepFailure + keepOutage - 1, nil, 2, false},
			{keepFailure + keepOutage, nil, 3, true},
			{time.Hour - 1, away, 3, true},
		} {
			i.err = s.err
			_, err := c.Get("genuine", from(now.Add(s.at)))
			if n := i.fetches.Load(); n != s.fetches || (err == nil) != s.found {
				t.Errorf("after %v: %d fetches, want %d (%v)", s.at, n, s.fetches, err)
			}
		}
	})
}

// TestKeysAreUsedWhileTheyAreRenewed: a key that was good is used while it is fetched anew, and while the sender is away
// until its time is over; not any more once the sender says that there is none.
func TestKeysAreUsedWhileTheyAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{takes: time.Second, lasts: lasting(time.Hour)}
		c := i.cache(OfAccount)
		for _, s := range []struct {
			at      time.Duration
			err     error
			fetches int64
			waits   time.Duration
			found   bool
		}{
			{0, nil, 1, time.Second, true},
			{time.Hour - 1, nil, 1, 0, true},
			{time.Hour, outage{errors.New("away")}, 2, 0, true}, // at once, and renewed meanwhile
			{time.Hour + keepFailure - 1, nil, 2, 0, true},      // not again at once
			{time.Hour + keepFailure, errors.New("no key"), 3, 0, true},
			{time.Hour + keepStale - 1, outage{errors.New("away")}, 4, 0, true},
			{time.Hour + keepStale, outage{errors.New("away")}, 5, time.Second, false}, // its time is over
		} {
			i.err = s.err
			start := time.Now()
			_, err := c.Get("genuine", from(now.Add(s.at)))
			took := time.Since(start)
			time.Sleep(2 * time.Second) // until it is renewed
			synctest.Wait()
			if n := i.fetches.Load(); n != s.fetches || took != s.waits || (err == nil) != s.found {
				t.Errorf("after %v: %d fetches in %v, want %d in %v (%v)", s.at, n, took, s.fetches, s.waits, err)
			}
		}
		i.err = nil
		if _, err := c.Get("genuine-2", from(now)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		i.err = &StatusError{"issuer.example", http.StatusGone}
		c.Get("genuine-2", from(now.Add(time.Hour)))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if _, err := c.Get("genuine-2", from(now.Add(time.Hour))); err == nil {
			t.Error("a key that the sender has withdrawn is used")
		}
	})
}

// TestMadeUpNamesAreBounded: strangers can make up any number of names, and have few of them fetched or remembered.
func TestMadeUpNamesAreBounded(t *testing.T) {
	testskip.Race(t)
	for name, p := range map[string]Pace{"files": OfFiles, "account": OfAccount} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := &issuer{takes: 100 * time.Millisecond}
				c := i.cache(p)
				const long = 4 * time.Second
				flood(t, c, long, 5000, always, func() {
					c.mu.Lock()
					defer c.mu.Unlock()
					if len(c.queue) > keepQueued || len(c.flights) > keepQueued+2*fetchAtOnce || c.missing.Len() > keepMissing || c.asked.Len() > keepAsked {
						t.Errorf("%d wait, %d are under way, %d are known to be missing, %d were asked for", len(c.queue), len(c.flights), c.missing.Len(), c.asked.Len())
					}
				})
				if n, most := float64(i.fetches.Load()), p.burst+(long.Seconds()+1)*p.perSecond; n > most {
					t.Errorf("%v fetches in %v, want at most %v", n, long, most)
				}
				if n := i.most.Load(); n > fetchAtOnce {
					t.Errorf("%d fetches at once, want at most %d", n, fetchAtOnce)
				}
				c.mu.Lock()
				defer c.mu.Unlock()
				if len(c.flights) != 0 || len(c.queue) != 0 || c.unknown != 0 {
					t.Errorf("after the flood %d are under way", len(c.flights))
				}
			})
		})
	}
}

// always makes up a name for each request.
func always(n int) int { return n }

// flood asks for made-up names for a while, so many times per second, and waits for all. It calls each after every
// hundredth.
func flood(t *testing.T, c *Cache[int], long time.Duration, perSecond int, name func(n int) int, each func()) {
	t.Helper()
	var all sync.WaitGroup
	for n := range int(long.Seconds()) * perSecond {
		all.Go(func() {
			if _, err := c.Get(fmt.Sprint("made-up-", name(n)), from(now)); err == nil {
				t.Error("a key out of nowhere")
			}
		})
		time.Sleep(time.Second / time.Duration(perSecond))
		if each != nil && n%100 == 0 {
			each()
		}
	}
	all.Wait()
	time.Sleep(fetchTimeout) // for what is under way
}

// TestGenuineKeysAreFetchedBesideMadeUpOnes: 120 genuine requests come beside a thousand forged ones a second, whose names
// are made up, and at least 99 % of them have their key within a second: whether the flood was there before, the key is
// known, and they come one after the other or at once.
func TestGenuineKeysAreFetchedBesideMadeUpOnes(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	const requests = 120
	const most = 4 * time.Second // of the flood after that: it tells nothing more once the key is there
	names := map[string]func(int) int{
		"each once":        always,
		"each three times": func(n int) int { return n / 3 },
		"200 in turns":     func(n int) int { return n % 200 },
		"1000 in turns":    func(n int) int { return n % 1000 },
	}
	for pn, p := range map[string]Pace{"files": OfFiles, "account": OfAccount} {
		for nn, name := range names {
			for _, lead := range []time.Duration{0, 4 * time.Second} { // for which the flood is there before
				for _, gap := range []time.Duration{0, 100 * time.Millisecond, 250 * time.Millisecond} {
					if nn == "1000 in turns" && gap > 100*time.Millisecond {
						continue // the genuine name must come clearly more often than a made-up one
					}
					for _, warm := range []bool{false, true}[:1+int(gap/(250*time.Millisecond))] {
						t.Run(fmt.Sprintf("%s/%s/lead %v/gap %v/warm %v", pn, nn, lead, gap, warm), func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) {
								i := &issuer{takes: 100 * time.Millisecond, lasts: lasting(time.Hour)}
								c := i.cache(p)
								at := now
								if warm {
									if _, err := c.Get("genuine", from(now)); err != nil {
										t.Fatal(err)
									}
									at = now.Add(time.Hour) // when it has to be renewed
								}
								var strangers sync.WaitGroup
								strangers.Go(func() { flood(t, c, lead+min(requests*gap, most)+time.Second, 1000, name, nil) })
								time.Sleep(lead)
								if n := knocks(c, requests, gap, at); n < requests-requests/100 {
									t.Errorf("%d of %d have their key within a second", n, requests)
								}
								strangers.Wait()
							})
						})
					}
				}
			}
		}
	}
}

// knocks asks for the genuine key so many times, with gaps, and returns how often it is there within a second.
func knocks(c *Cache[int], requests int, gap time.Duration, at time.Time) int64 {
	var good atomic.Int64
	var all sync.WaitGroup
	for range requests {
		all.Go(func() {
			start := time.Now()
			if key, err := c.Get("genuine", from(at)); key == 7 && err == nil && time.Since(start) <= time.Second {
				good.Add(1)
			}
		})
		time.Sleep(gap)
	}
	all.Wait()
	return good.Load()
}

// TestASenderThatWaitsForItsAnswerGetsIn: one who sends the next request when the last was answered is asked to come again
// a few times at the most.
func TestASenderThatWaitsForItsAnswerGetsIn(t *testing.T) {
	for name, p := range map[string]Pace{"files": OfFiles, "account": OfAccount} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := &issuer{takes: 100 * time.Millisecond, lasts: lasting(time.Hour)}
				c := i.cache(p)
				var strangers sync.WaitGroup
				strangers.Go(func() { flood(t, c, 10*time.Second, 1000, always, nil) })
				time.Sleep(5 * time.Second)
				refused := 0
				for range 120 {
					if _, err := c.Get("genuine", from(now)); err != nil {
						refused++
					}
				}
				if refused > 1 {
					t.Errorf("%d of 120 are refused", refused)
				}
				strangers.Wait()
			})
		})
	}
}

// TestMadeUpNamesTakeNoSlotOfKnownOnes: nor while they are being fetched.
func TestMadeUpNamesTakeNoSlotOfKnownOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{lasts: lasting(time.Hour)}
		c := i.cache(OfAccount)
		if _, err := c.Get("genuine", from(now)); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		slow := &issuer{takes: fetchTimeout, lasts: lasting(time.Hour)}
		c.fetch = func(ctx context.Context, name string, at time.Time) (int, Validity, error) {
			if name == "genuine" {
				return i.fetch(ctx, name, at)
			}
			return slow.fetch(ctx, name, at)
		}
		for n := range 2 * fetchAtOnce {
			all.Go(func() { c.Get(fmt.Sprint(n), from(now)) })
		}
		synctest.Wait()
		start := time.Now()
		if _, err := c.Get("genuine", from(now.Add(time.Hour+keepStale))); err != nil || time.Since(start) > 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		all.Wait()
		time.Sleep(fetchTimeout)
		if n := slow.most.Load(); n != fetchAtOnce {
			t.Errorf("%d fetches at once, want %d", n, fetchAtOnce)
		}
	})
}

// TestRequestsDoNotWaitLong: neither for a sender that does not answer, nor for their turn; the key is there when it has
// come.
func TestRequestsDoNotWaitLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{takes: fetchWait + time.Second, lasts: lasting(time.Hour)}
		c := i.cache(OfFiles)
		start := time.Now()
		if _, err := c.Get("genuine", from(now)); !errors.Is(err, errFetchSlow) || time.Since(start) != fetchWait {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.Sleep(time.Second)
		if _, err := c.Get("genuine", from(now)); err != nil || i.fetches.Load() != 1 {
			t.Errorf("%v after %d fetches", err, i.fetches.Load())
		}
	})
}

// TestWhoIsInAHurryDoesNotHope: made-up names hold up nobody who has others to attend to, and a key that is fetched at
// once is waited for.
func TestWhoIsInAHurryDoesNotHope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{takes: 100 * time.Millisecond, lasts: lasting(time.Hour)}
		c := i.cache(OfAccount)
		hurry := &hookonce.Request{Now: now, Hurry: true}
		if _, err := c.Get("genuine", hurry); err != nil {
			t.Error(err)
		}
		var strangers sync.WaitGroup
		strangers.Go(func() { flood(t, c, 5*time.Second, 1000, always, nil) })
		time.Sleep(4 * time.Second)
		start := time.Now()
		for n := range 100 {
			c.Get(fmt.Sprint("hurried-", n), hurry)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("100 made-up names took %v", took)
		}
		strangers.Wait()
	})
}

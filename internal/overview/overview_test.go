package overview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tally"
)

// store counts what it is asked, and is away when it is told to be.
type store struct {
	questions atomic.Int64
	away      atomic.Bool
	hangs     atomic.Bool
	hour      []tally.Point

	mu    sync.Mutex
	slow  map[string]int           // questions that are not answered in time, and how often they were asked
	took  map[string]time.Duration // until they are answered all the same; none: never
	fails map[string]int           // how often questions still fail at once
	under int                      // slow ones that wait for an answer
	most  int                      // of them at a time
}

var errGone = errors.New("connection refused")

func (s *store) ask(ctx context.Context) error {
	s.questions.Add(1)
	if s.hangs.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if s.away.Load() {
		return errGone
	}
	return nil
}

// askFor is ask, for one question of those that may be slow.
func (s *store) askFor(ctx context.Context, what string) error {
	s.mu.Lock()
	n, is := s.slow[what]
	if is {
		s.slow[what] = n + 1
	}
	took, fails := s.took[what], s.fails[what] > 0
	if fails {
		s.fails[what]--
	} else if is {
		s.under++
		s.most = max(s.most, s.under)
	}
	s.mu.Unlock()
	switch {
	case fails:
		return errGone
	case !is:
		return s.ask(ctx)
	}
	defer func() {
		s.mu.Lock()
		s.under--
		s.mu.Unlock()
	}()
	var answered <-chan time.Time
	if took > 0 {
		answered = time.After(took)
	}
	select {
	case <-answered:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *store) Open(ctx context.Context) ([]journal.OpenCount, error) {
	return []journal.OpenCount{{Destination: "ledger", State: journal.Pending, Count: 5}, {Destination: "gone", State: journal.Pending, Count: 1}}, s.askFor(ctx, "open")
}

func (s *store) Tallies(ctx context.Context, q tally.Query) ([]tally.Point, error) {
	if q.Step == time.Hour {
		within := func(p tally.Point) bool {
			return !p.Minute.Before(q.From) && p.Minute.Before(q.Until) && (q.Source == "" || p.Source == q.Source) && slices.Contains(q.Whats, p.What)
		}
		what := "hours"
		if q.Source != "" {
			what = "before"
		}
		return slices.DeleteFunc(slices.Clone(s.hour), func(p tally.Point) bool { return !within(p) }), s.askFor(ctx, what)
	}
	return nil, s.askFor(ctx, "minutes")
}

func (s *store) FailureGroups(ctx context.Context, _ time.Time) (journal.Failures, error) {
	return journal.Failures{}, s.ask(ctx)
}

func (s *store) History(ctx context.Context, _ int64) (*journal.History, error) {
	return nil, s.ask(ctx)
}

func (s *store) List(ctx context.Context, _ journal.Filter, _ int64, _ int) (journal.Page, error) {
	return journal.Page{}, s.ask(ctx)
}

func (s *store) Stats(ctx context.Context) (journal.Stats, error) {
	return journal.Stats{Events: 7}, s.askFor(ctx, "rows")
}

// Why a delivery failed is one thing, and that the attempt was no try another.
func TestFailuresSayWhy(t *testing.T) {
	if f := failure(&journal.FailureGroup{Error: "status 500" + journal.SparedNote}); f.Error != "status 500" {
		t.Errorf("it failed for %q", f.Error)
	}
}

func newOverview(s *store) *Overview {
	return New(Options{
		Fleet: func(ctx context.Context) (fleet.DestinationList, error) {
			return fleet.DestinationList{Destinations: []fleet.Destination{{Name: "ledger"}}}, s.ask(ctx)
		},
		Records: s,
		Recent: func(q tally.Query) []tally.Point {
			now := q.Until.Add(-time.Minute).Truncate(time.Minute)
			return []tally.Point{{Minute: now, Source: "orders", What: tally.Received, N: 3}, {Minute: now, Source: "orders", What: tally.Accepted, N: 2},
				{Minute: now, Source: "orders", Destination: "ledger", What: tally.First, N: 4}, {Minute: now, Source: "orders", Destination: "ledger", What: tally.FirstFailed, N: 1}}
		},
		Sources: func() []SourceState { return []SourceState{{Name: "orders"}} },
		Ready: func() error {
			if s.away.Load() || s.hangs.Load() {
				return errGone
			}
			return nil
		},
		Upkeep: func() Upkeep { return Upkeep{} },
		Free:   func() int64 { return 0 },
		Now:    time.Now,
	})
}

// Of several secrets it is known how often each was used, over an hour, a day and a week, and of a single one that it was.
func TestUsesOfSecrets(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 30, 0, 0, time.UTC)
	at := func(hours int, source string, what tally.What, n int64) tally.Point {
		return tally.Point{Minute: now.Add(time.Duration(-hours) * time.Hour).Truncate(time.Hour), Source: source, What: what, N: n}
	}
	until := now.Add(time.Hour)
	configured := []Secret{{Until: &until}, {}, {}, {}, {}}
	v := newOverview(&store{})
	defer v.Close()
	v.past = []tally.Point{at(400, "orders", tally.Secret(2), 7), at(100, "orders", tally.Secret(1), 40), at(20, "orders", tally.Secret(5), 5), at(2, "orders", tally.Secret(2), 2),
		at(1, "mail", tally.Secret(1), 1000), at(1, "mail", tally.Verified, 9)}
	c := newCounts(now, nil, []tally.Point{{Minute: now, Source: "orders", What: tally.Secret(1), N: 3}, {Minute: now, Source: "mail", What: tally.Verified, N: 4}})
	v.past = append(v.past, at(0, "orders", tally.Secret(1), 3))
	for name, want := range map[string]struct {
		has   []Secret
		since time.Time
		is    []Secret
	}{
		"orders": {configured, at(400, "", "", 0).Minute, []Secret{{Until: &until, Hour: 3, Day: 3, Week: 43}, {Day: 2, Week: 2}, {}, {Day: 5, Week: 5, Shared: true}, {}}},
		"mail":   {[]Secret{{}}, at(1, "", "", 0).Minute, []Secret{{Hour: 4, Day: 9, Week: 9}}},
		"gone":   {nil, time.Time{}, nil},
	} {
		o := SourceState{Name: name, Secrets: want.has}
		v.drawSecrets(&o, c, now)
		if !slices.Equal(o.Secrets, want.is) || !o.SecretsSince.Equal(want.since) {
			t.Errorf("%s: %+v since %s, want %+v since %s", name, o.Secrets, o.SecretsSince, want.is, want.since)
		}
	}
	if configured[0].Hour != 0 {
		t.Error("what is configured was changed")
	}
}

// However many look, the store is asked one set of questions a second.
func TestManyWatchersAskOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s store
		v := newOverview(&s)
		defer v.Close()
		const seconds, set = 60, 5 // destinations, what is open, rows, minutes and hours; nothing failed
		var watchers sync.WaitGroup
		for range 50 {
			watchers.Go(func() {
				for range seconds * 5 {
					if _, err := v.Snapshot(t.Context()); err != nil {
						t.Error(err)
					}
					time.Sleep(200 * time.Millisecond)
				}
			})
		}
		watchers.Wait()
		// Destinations each second, what is open every five, minutes every ten, rows and hours once.
		if n := s.questions.Load(); n > seconds+seconds/5+seconds/10+set {
			t.Errorf("%d questions in a minute", n)
		}
	})
}

// While the store is away, or hangs, what was known is shown with its age, and nobody waits for it.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s store
		v := newOverview(&s)
		defer v.Close()
		look := func() *Snapshot {
			time.Sleep(1100 * time.Millisecond)
			began := time.Now()
			got, err := v.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 300*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			return got
		}
		first := look()
		if first.Store.Away != nil || first.Store.Events != 7 || len(first.Destinations) != 2 || first.Sources[0].Five.Received != 3 {
			t.Fatalf("at first: %+v", first)
		}
		s.away.Store(true)
		for range 5 {
			got := look()
			if a := got.Store.Away; a == nil || a.Error != errGone.Error() || got.Store.Events != 7 || len(got.Destinations) != 2 || got.Sources[0].Five.Received != 3 {
				t.Fatalf("away: %+v", got)
			}
			if p := got.Parts[0]; p.Error == "" || !p.Read.Equal(first.At) {
				t.Errorf("it says of its age %+v", p)
			}
		}
		s.away.Store(false)
		if got := look(); got.Store.Away != nil {
			t.Errorf("back: %+v", got.Store.Away)
		}
		s.hangs.Store(true)
		for range 5 {
			look()
		}
		if got := look(); got.Store.Away == nil {
			t.Error("a store that hangs is not away")
		}
	})
}

// A store that is slow to answer some questions, and takes events, is not away: those parts are old, are asked for no more
// often than they would be, and the others are there.
func TestSlowQuestions(t *testing.T) {
	for _, c := range []struct {
		slow  string
		every time.Duration
	}{{"open", openEvery}, {"rows", statsEvery}, {"minutes", minuteEvery}, {"hours", hourEvery}} {
		synctest.Test(t, func(t *testing.T) {
			s := store{slow: map[string]int{c.slow: 0}}
			v := newOverview(&s)
			defer v.Close()
			began := time.Now()
			for time.Since(began) < time.Minute {
				got, err := v.Snapshot(t.Context())
				if err != nil || got.Store.Away != nil || len(got.Sources) != 1 {
					t.Fatalf("%s is slow: %+v (%v)", c.slow, got, err)
				}
				for _, p := range got.Parts {
					if p.Name == "failures" || (p.Name == c.slow) == (p.Error != "" && p.Read.IsZero()) {
						continue
					}
					t.Fatalf("%s is slow: %+v", c.slow, p)
				}
				time.Sleep(time.Second)
			}
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			if n, most := s.slow[c.slow], int(time.Since(began)/c.every)+1; n == 0 || n > most {
				t.Errorf("%s was asked for %d times in a minute, want at most %d", c.slow, n, most)
			}
		})
	}
}

// What takes longer to answer than the others wait is answered all the same, and nobody waits for
// it; it does not keep the store busy, and what was read before is shown meanwhile.
func TestSlowAnswersCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 8 * time.Second
		s := store{slow: map[string]int{"open": 0}, took: map[string]time.Duration{"open": takes}}
		v := newOverview(&s)
		defer v.Close()
		open := func(got *Snapshot) *Part {
			return &got.Parts[slices.IndexFunc(got.Parts, func(p Part) bool { return p.Name == PartOpen })]
		}
		first, err := v.Snapshot(t.Context())
		if err != nil || !open(first).Unanswered(first.At) || len(first.Old()) != 1 || len(first.Destinations) != 1 || first.Store.Events != 7 {
			t.Fatalf("at first: %+v, %v", first, err)
		}
		time.Sleep(takes)
		const long = 10 * time.Minute
		for began := time.Now(); time.Since(began) < long; time.Sleep(1500 * time.Millisecond) {
			asked := time.Now()
			got, err := v.Snapshot(t.Context())
			if err != nil || open(got).Unanswered(got.At) || len(got.Destinations) != 2 || got.Destinations[1].Backlog != 5 {
				t.Fatalf("after %v: %+v, %v", time.Since(began), got, err)
			}
			if took := time.Since(asked); took > 300*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			if old := got.At.Sub(open(got).Read) > time.Minute; len(got.Old()) > 0 != old {
				t.Errorf("after %v it says that it is old: %+v", time.Since(began), got.Old())
			}
			if age := got.At.Sub(open(got).Read); age < 0 || age > (leisure+1)*takes+openEvery {
				t.Errorf("it says that it is %v old", age)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if n, most := s.slow["open"], int(long/(leisure*takes))+2; n < 3 || n > most {
			t.Errorf("it was asked for %d times, want at most %d", n, most)
		}
	})
}

// One question at a time goes on beside the others: of several that are slow each is answered, in
// turn.
func TestSlowAnswersComeOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 8 * time.Second
		s := store{slow: map[string]int{"open": 0, "minutes": 0, "hours": 0}, took: map[string]time.Duration{"open": takes, "minutes": takes, "hours": takes}}
		v := newOverview(&s)
		defer v.Close()
		read := map[string]map[time.Time]bool{"open": {}, "minutes": {}}
		for began := time.Now(); time.Since(began) < 10*time.Minute; time.Sleep(1500 * time.Millisecond) {
			got, err := v.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range got.Parts {
				if of := read[p.Name]; of != nil && !p.Read.IsZero() {
					of[p.Read] = true
				}
			}
			if late := time.Since(began) > time.Minute+2*takes; late && len(got.Old()) > 0 {
				t.Fatalf("after %v: %+v", time.Since(began), got.Old())
			}
			s.mu.Lock()
			most := s.most
			s.mu.Unlock()
			if most > 2 { // one beside the others, and one of them for as long as these wait
				t.Fatalf("%d questions were put at a time", most)
			}
		}
		for name, at := range read {
			if len(at) < 5 {
				t.Errorf("%s was answered %d times in ten minutes", name, len(at))
			}
		}
	})
}

// A store that was away is asked at once what it did not answer before.
func TestSlowQuestionsAfterAnAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store{slow: map[string]int{"open": 0}}
		v := newOverview(&s)
		defer v.Close()
		look := func() *Snapshot {
			t.Helper()
			time.Sleep(1100 * time.Millisecond)
			got, err := v.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if got := look(); len(got.Old()) != 1 {
			t.Fatalf("at first: %+v", got.Old())
		}
		s.away.Store(true)
		if got := look(); got.Store.Away == nil {
			t.Fatalf("away: %+v", got.Store)
		}
		s.away.Store(false)
		s.mu.Lock()
		s.slow = nil
		s.mu.Unlock()
		if got := look(); len(got.Old()) != 0 || got.Store.Away != nil {
			t.Errorf("back: %+v", got.Old())
		}
	})
}

// What failed by chance is asked for again soon, and not only when an answer would be too old.
func TestFailuresAreAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store{fails: map[string]int{"hours": 1}}
		v := newOverview(&s)
		defer v.Close()
		for _, want := range []int{1, 0} {
			got, err := v.Snapshot(t.Context())
			if err != nil || len(got.Old()) != want {
				t.Errorf("%+v, %v; want %d that are old", got.Old(), err, want)
			}
			time.Sleep(againEvery)
		}
	})
}

// While the store is away all that was read before the last minute is old; else what it does not
// answer is.
func TestOldParts(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 30, 0, 0, time.UTC)
	s := Snapshot{At: now, Parts: []Part{{Name: "hours", Read: now.Add(-4 * time.Minute)}, {Name: "open", Read: now.Add(-time.Minute), Error: "timeout"}, {Name: "rows", Read: now.Add(-time.Minute)}, {Name: "marks"}}}
	for name, c := range map[string]struct {
		away *Trouble
		want []string
	}{"it answers": {nil, []string{"open", "marks"}}, "it is away": {&Trouble{Since: now}, []string{"hours", "open", "marks"}}} {
		s.Store.Away = c.away
		var got []string
		for _, p := range s.Old() {
			got = append(got, p.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: old are %q, want %q", name, got, c.want)
		}
	}
}

// The numbers of the day have what this process counted a moment ago, and not twice what the store has of it.
func TestNumbersAreOfTheMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s store
		v := newOverview(&s)
		defer v.Close()
		for range 3 {
			got, err := v.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n := got.Numbers; n.First.First != 4 || n.First.FirstFailed != 1 || n.Events != 2 || n.FirstShares[len(n.FirstShares)-1] != 0.25 || got.Destinations[1].Six.First != 4 {
				t.Fatalf("%+v, %+v", n, got.Destinations[1])
			}
			for what, counts := range map[string]any{"six hours": got.Destinations[1].Six, "a day": got.Numbers.First} { // what is not read of them is not said to be 0
				if text, err := json.Marshal(counts); err != nil || string(text) != `{"first":4,"first_failed":1}` {
					t.Fatalf("%s: %s, %v", what, text, err)
				}
			}
			s.hour = []tally.Point{{Minute: time.Now().Truncate(time.Hour), Source: "orders", Destination: "ledger", What: tally.First, N: 3}}
			time.Sleep(hourEvery)
		}
	})
}

// One request that is refused while the map of cells changes is no fault; if that goes on it is one.
func TestRefusalsForTheMapOfCells(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 30, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		minutes []int // ago
		ours    int64
	}{
		"a moment ago": {[]int{0}, 0}, "within one window": {[]int{0, 5}, 0}, "over": {[]int{6}, 0}, "from one window into the next": {[]int{1, 2, 6}, 2}, "and long before": {[]int{1, 12}, 0},
	} {
		points := []tally.Point{{Minute: now.Add(-2 * time.Minute), Source: "orders", What: tally.Rejected("store"), N: 1}}
		for _, m := range c.minutes {
			points = append(points, tally.Point{Minute: now.Add(time.Duration(-m) * time.Minute), Source: "orders", What: tally.Rejected("cell_map"), N: 1})
		}
		var s store
		v := newOverview(&s)
		o := SourceState{Name: "orders"}
		v.drawSource(&o, newCounts(now, points, nil), nil, now)
		v.Close()
		if o.Five.Ours != c.ours+1 || o.Hour.Ours != int64(len(c.minutes))+1 {
			t.Errorf("%s: %d in five minutes and %d in an hour, want %d and %d", name, o.Five.Ours, o.Hour.Ours, c.ours+1, len(c.minutes)+1)
		}
		if o.Five.OursBy["cell_map"] != c.ours || o.Five.OursBy["store"] != 1 {
			t.Errorf("%s: by reason %v, want %d for the map", name, o.Five.OursBy, c.ours)
		}
	}
}

// What a stranger can cause is no fault of ours: he names a key that nobody has, sends what a source does not take, or so much that
// there is no room for the bodies of others. Each reason there is belongs to one class.
func TestRefusalsThatStrangersCause(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 30, 0, 0, time.UTC)
	classes := map[string]string{}
	for class, reasons := range map[string]string{
		"ours":       "queue_full store timeout row_refused cell_away cell_refused cell_map panic internal",
		"unverified": "signature_missing signature_malformed signature_mismatch timestamp_missing timestamp_old timestamp_future unverified undecided",
		"not taken":  "unanswered address rate loop too_large headers_too_large slow truncated crowded closing",
		"none":       "unknown_source method handshake_refused", // no event was to come of it
	} {
		for reason := range strings.FieldsSeq(reasons) {
			classes[reason] = class
		}
	}
	for _, what := range tally.Match("rejected:*") {
		reason := strings.TrimPrefix(string(what), "rejected:")
		v := newOverview(&store{})
		o := SourceState{Name: "orders"}
		points := []tally.Point{{Minute: now, Source: "orders", What: what, N: 3}, {Minute: now.Add(-6 * time.Minute), Source: "orders", What: what, N: 4}}
		v.drawSource(&o, newCounts(now, points, nil), nil, now)
		v.Close()
		got := "none"
		for class, by := range map[string]map[string]int64{"ours": o.Five.OursBy, "unverified": o.Five.Unverified, "not taken": o.Five.NotTaken} {
			if by[reason] == 3 && len(by) == 1 {
				got = class
			} else if len(by) > 0 {
				t.Errorf("%s is counted in %+v", reason, o.Five)
			}
		}
		if got != classes[reason] || (o.Five.Ours == 3) != (got == "ours") {
			t.Errorf("%s is %s, want %q: %+v", reason, got, classes[reason], o.Five)
		}
	}
}

// Since when a source is silent, and since when what it sends fails, is the same when the minutes that say so are not counted any
// more, for as long as it is configured.
func TestSilenceKeepsItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hour := time.Now().Truncate(time.Hour)
		last, failed := hour.Add(2*time.Minute), hour.Add(5*time.Minute)
		s := store{hour: []tally.Point{{Minute: hour, Source: "orders", What: tally.Active, N: 1}}}
		v := newOverview(&s)
		defer v.Close()
		configured := []SourceState{{Name: "orders"}}
		v.opt.Sources = func() []SourceState { return slices.Clone(configured) }
		v.opt.Recent = func(q tally.Query) []tally.Point {
			all := []tally.Point{{Minute: last, Source: "orders", What: tally.Verified, N: 1}}
			for at := failed; at.Before(q.Until); at = at.Add(time.Minute) {
				all = append(all, tally.Point{Minute: at, Source: "orders", What: tally.Rejected("signature_mismatch"), N: 1})
			}
			return all
		}
		after := func(d time.Duration) *Snapshot {
			t.Helper()
			time.Sleep(d)
			got, err := v.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		for range 40 {
			if o := after(5 * time.Minute).Sources[0]; !o.LastVerified.Equal(last) || !o.FailedSince.Equal(failed) {
				t.Fatalf("after %v it was last authentic at %v, and failed since %v; want %v and %v", time.Since(hour), o.LastVerified, o.FailedSince, last, failed)
			}
		}
		s.hour = append(s.hour, tally.Point{Minute: hour.Add(time.Hour), Source: "orders", What: tally.Active, N: 1})
		if o, want := after(10 * time.Minute).Sources[0], hour.Add(119*time.Minute); !o.LastVerified.Equal(want) || !o.FailedSince.After(want) {
			t.Errorf("what came in a later hour: last %v, failed since %v; want %v, and later", o.LastVerified, o.FailedSince, want)
		}
		s.hour = s.hour[:1]
		configured = nil
		after(10 * time.Minute)
		configured = []SourceState{{Name: "orders"}}
		if o, want := after(10 * time.Minute).Sources[0], hour.Add(59*time.Minute); !o.LastVerified.Equal(want) {
			t.Errorf("taken out and put back: last %v, want %v", o.LastVerified, want)
		}
	})
}

// Of what came in the minute of the last authentic request nobody knows that it came after it.
func TestFailuresSinceTheLastAuthenticRequest(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 30, 0, 0, time.UTC)
	ago := func(minutes int) time.Time { return now.Add(time.Duration(-minutes) * time.Minute) }
	for name, c := range map[string]struct {
		verified, failed []int // minutes ago
		since            time.Time
	}{
		"in the same minute":      {[]int{3}, []int{9, 3}, time.Time{}},
		"in the minute after":     {[]int{9, 3}, []int{9, 3, 2, 0}, ago(2)},
		"nothing is authentic":    {nil, []int{9, 3}, ago(9)},
		"an authentic one is new": {[]int{0}, []int{9, 3, 0}, time.Time{}},
	} {
		var points []tally.Point
		for what, minutes := range map[tally.What][]int{tally.Verified: c.verified, tally.Rejected("signature_mismatch"): c.failed} {
			for _, m := range minutes {
				points = append(points, tally.Point{Minute: ago(m), Source: "orders", What: what, N: 5})
			}
		}
		v := newOverview(&store{})
		o := SourceState{Name: "orders"}
		v.drawSource(&o, newCounts(now, points, nil), nil, now)
		v.Close()
		if !o.FailedSince.Equal(c.since) || o.Hour.Active != int64(len(c.verified)) {
			t.Errorf("%s: failed since %v, want %v; active in %d minutes, want %d", name, o.FailedSince, c.since, o.Hour.Active, len(c.verified))
		}
	}
}

// A source of which something is expected is known to be silent since it sent last, also longer than its rhythm is learned from.
func TestLastOfWhatIsExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := map[string]time.Time{}
		var s store
		for name, days := range map[string]int{"yesterday": 1, "29 days ago": 29, "99 days ago": 99, "101 days ago": 101, "not expected": 29} {
			last[name] = time.Now().Truncate(time.Hour).Add(-time.Duration(days) * 24 * time.Hour)
			s.hour = append(s.hour, tally.Point{Minute: last[name].Add(-time.Hour), Source: name, What: tally.Active, N: 1},
				tally.Point{Minute: last[name], Source: name, What: tally.Reseen, N: 1}, tally.Point{Minute: last[name].Add(time.Hour), Source: name, What: tally.Secret(1), N: 1})
		}
		v := newOverview(&s)
		defer v.Close()
		v.opt.Sources = func() (all []SourceState) {
			for name := range last {
				o := SourceState{Name: name}
				if name != "not expected" {
					o.ExpectEvery = 3600
				}
				all = append(all, o)
			}
			return all
		}
		got, err := v.Snapshot(t.Context())
		if err != nil || len(got.Sources) != len(last) {
			t.Fatalf("%+v, %v", got, err)
		}
		for _, o := range got.Sources {
			want := last[o.Name].Add(59 * time.Minute)
			if o.Name == "101 days ago" || o.Name == "not expected" {
				want = time.Time{}
			}
			if !o.LastVerified.Equal(want) {
				t.Errorf("%s: last %v, want %v", o.Name, o.LastVerified, want)
			}
		}
	})
}

// Where it cannot be read what sources sent lately, nobody takes what they sent long ago for the last of them.
func TestLastBeforeAnUnknownTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store{slow: map[string]int{"hours": 0}}
		for _, ago := range []time.Duration{29 * 24 * time.Hour, 2 * time.Hour} {
			s.hour = append(s.hour, tally.Point{Minute: time.Now().Truncate(time.Hour).Add(-ago), Source: "mail", What: tally.Active, N: 1})
		}
		v := newOverview(&s)
		defer v.Close()
		v.opt.Sources = func() []SourceState { return []SourceState{{Name: "mail", ExpectEvery: 3600}} }
		got, err := v.Snapshot(t.Context())
		if err != nil || !got.Sources[0].LastVerified.IsZero() {
			t.Errorf("%+v, %v", got.Sources, err)
		}
	})
}

// What is open joins what the gateways know, and what they knew first stays.
func TestOpenDeliveriesJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s store
		v := newOverview(&s)
		defer v.Close()
		for range 3 {
			got, err := v.Snapshot(t.Context())
			if err != nil || len(got.Destinations) != 2 || got.Destinations[0].Name != "gone" || got.Destinations[1].Backlog != 5 || got.Destinations[0].Configured {
				t.Fatalf("%+v (%v)", got, err)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

// What no route wanted is counted beside all that was new, for a day.
func TestRoutedInADay(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 30, 0, 0, time.UTC)
	at := func(hours int, source string, what tally.What, n int64) tally.Point {
		return tally.Point{Minute: now.Add(time.Duration(-hours) * time.Hour).Truncate(time.Hour), Source: source, What: what, N: n}
	}
	v := newOverview(&store{})
	defer v.Close()
	v.past = []tally.Point{at(25, "orders", tally.Accepted, 100), at(24, "orders", tally.Accepted, 10), at(24, "orders", tally.Unrouted, 9), at(3, "mail", tally.Unrouted, 50),
		at(0, "orders", tally.Unkeyed, 2), at(0, "orders", tally.Reseen, 7), at(0, "orders", tally.Unrouted, 1)}
	if got, want := routed(v.hoursBySource()["orders"], now), (Routed{New: 12, Unrouted: 10}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A backlog is gone when it goes on getting shorter as it did, by its own counts of the last minutes, whatever is done meanwhile:
// not where more comes than that, nor of what is paused, nor of a name that nobody delivers to any more. What was seen once is
// not known to get shorter or longer.
func TestDrains(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 30, 0, 0, time.UTC)
	type read struct {
		ago     time.Duration
		backlog int64
	}
	configured, never := fleet.Destination{Name: "ledger", Configured: true}, new(0.0)
	for name, c := range map[string]struct {
		d     fleet.Destination
		reads []read
		want  *float64
	}{
		"it gets shorter":             {configured, []read{{5 * time.Minute, 400}, {150 * time.Second, 90}, {0, 100}}, new(100.0)},
		"it grows, and much is done":  {configured, []read{{5 * time.Minute, 100}, {0, 200}}, never},
		"it stays":                    {configured, []read{{5 * time.Minute, 100}, {150 * time.Second, 300}, {0, 100}}, never},
		"it has just begun":           {configured, []read{{5 * time.Minute, 0}, {0, 100}}, never},
		"it is gone":                  {configured, []read{{5 * time.Minute, 100}, {0, 0}}, nil},
		"it was longer an hour ago":   {configured, []read{{time.Hour, 1000}, {time.Minute, 40}, {0, 50}}, never},
		"looked at after an hour":     {configured, []read{{time.Hour, 1000}, {0, 50}}, nil},
		"looked at once":              {configured, []read{{0, 50}}, nil},
		"looked at for a moment":      {configured, []read{{5 * time.Second, 60}, {0, 50}}, nil},
		"looked at for half a minute": {configured, []read{{30 * time.Second, 60}, {0, 50}}, new(150.0)},
		"the clock went back":         {configured, []read{{-time.Hour, 10}, {time.Minute, 80}, {0, 50}}, new(100.0)},
		"paused":                      {fleet.Destination{Name: "ledger", Configured: true, Pause: &fleet.Pause{At: now}}, []read{{5 * time.Minute, 400}, {0, 100}}, never},
		"paused until lately":         {configured, []read{{4 * time.Minute, 100}, {2 * time.Minute, 400}, {0, 100}}, new(40.0)},
		"not configured":              {fleet.Destination{Name: "ledger"}, []read{{5 * time.Minute, 400}, {0, 100}}, never},
	} {
		t.Run(name, func(t *testing.T) {
			v := newOverview(&store{})
			defer v.Close()
			v.minutes.value = []tally.Point{{Minute: now.Add(-2 * time.Minute), Source: "orders", Destination: "ledger", What: tally.Done, N: 150}}
			var s *Snapshot
			for i, r := range c.reads {
				at, d := now.Add(-r.ago), c.d
				if name == "paused until lately" && i == 0 {
					d.Pause = &fleet.Pause{At: at}
				}
				v.open.value = []journal.OpenCount{{Destination: "ledger", State: journal.Dead, Count: 7 + r.backlog, Oldest: at, Since: at}, {Destination: "ledger", State: journal.Failed, Count: r.backlog / 2, Oldest: at, Since: at},
					{Destination: "ledger", State: journal.Pending, Count: r.backlog - r.backlog/2, Oldest: at, Since: at}, {Destination: "renamed " + r.ago.String(), State: journal.Pending, Count: 1, Oldest: at, Since: at}}
				v.open.read = at
				v.joined = fleet.DestinationList{Destinations: []fleet.Destination{d}}.WithOpen(v.open.value)
				v.draw(at)
				s = v.draw(at.Add(time.Second)) // of the same count
			}
			if got := s.Destinations[0].DrainsIn; (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
				t.Errorf("it drains in %s s, want %s", seconds(got), seconds(c.want))
			}
			if len(v.backlogs) > len(c.reads) || slices.ContainsFunc(v.backlogs, func(b backlogSample) bool { return now.Sub(b.at) > DrainSpan }) {
				t.Errorf("%d counts are kept: %v", len(v.backlogs), v.backlogs)
			}
		})
	}
}

// What is dead waits for nobody, and what was replayed waits since it was due.
func TestABacklogWaitsSince(t *testing.T) {
	v := newOverview(&store{})
	defer v.Close()
	now := time.Date(2026, 11, 22, 12, 30, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	dead, came, due, fresh := ago(72*time.Hour), ago(48*time.Hour), ago(time.Minute), ago(time.Second)
	v.open.value = []journal.OpenCount{{Destination: "ledger", State: journal.Dead, Count: 7, Oldest: dead, Since: dead}, {Destination: "ledger", State: journal.Failed, Count: 1, Oldest: fresh, Since: fresh},
		{Destination: "ledger", State: journal.Pending, Count: 5, Oldest: came, Since: due}, {Destination: "ledger", State: journal.Processing, Count: 1, Oldest: fresh, Since: fresh}}
	v.joined = fleet.DestinationList{}.WithOpen(v.open.value)
	if d := v.draw(now).Destinations[0]; d.Oldest == nil || !d.Oldest.Equal(came) || d.Since == nil || !d.Since.Equal(due) {
		t.Errorf("%+v", d)
	}
}

func seconds(s *float64) string {
	if s == nil {
		return "unknown"
	}
	return fmt.Sprint(*s)
}

// What was before the hours that are known is asked for as seldom as they are, also while they take long at the turn of an hour.
func TestLastEventsAreNotAskedForAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store{slow: map[string]int{"hours": 0, "before": 0}, took: map[string]time.Duration{"hours": 20 * time.Second, "before": time.Millisecond}}
		v := newOverview(&s)
		v.opt.Sources = func() []SourceState { return []SourceState{{Name: "mail", ExpectEvery: 3600}} }
		defer v.Close()
		time.Sleep(4 * time.Minute) // so that hours were asked for a minute before an hour ends, and are not again at once
		const long = 2 * time.Hour
		for began := time.Now(); time.Since(began) < long; time.Sleep(1100 * time.Millisecond) {
			if _, err := v.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if n, most := s.slow["before"], int(long/hourEvery)+4; n < 3 || n > most {
			t.Errorf("it was asked for %d times, want at most %d", n, most)
		}
	})
}

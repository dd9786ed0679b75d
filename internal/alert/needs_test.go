package alert

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/overview"
	"github.com/hookonce/hookonce/internal/tally"
)

// ailing is a store in which there is something for every rule that goes by what a store says, at
// the times of now. It does not answer one question: at once, or before whoever asks gives up.
type ailing struct {
	now     time.Time
	without string
	hangs   bool
}

func (s *ailing) answer(ctx context.Context, part string) error {
	switch {
	case part != s.without:
		return nil
	case s.hangs:
		<-ctx.Done()
		return ctx.Err()
	}
	return errors.New("canceling statement due to statement timeout")
}

func (s *ailing) Open(ctx context.Context) ([]journal.OpenCount, error) {
	old := s.now.Add(-time.Hour)
	return []journal.OpenCount{
		{Destination: "ledger", State: journal.Dead, Count: 2, Oldest: old, Since: old}, {Destination: "ledger", State: journal.Pending, Count: 5, Oldest: old, Since: old},
		{Destination: "ordered", State: journal.Failed, Count: 1, Oldest: s.now, Since: s.now}, {Destination: "ordered", State: journal.Pending, Count: 3, Oldest: s.now, Since: s.now},
	}, s.answer(ctx, overview.PartOpen)
}

func (s *ailing) Tallies(ctx context.Context, q tally.Query) (all []tally.Point, _ error) {
	add := func(ago time.Duration, source, destination string, counts map[tally.What]int64) {
		for what, n := range counts {
			all = append(all, tally.Point{Minute: s.now.Add(-ago).Truncate(q.Step), Source: source, Destination: destination, What: what, N: n})
		}
	}
	switch {
	case q.Source != "": // what came before the hours
		add(40*24*time.Hour, q.Source, "", map[tally.What]int64{tally.Active: 1})
		return all, s.answer(ctx, overview.PartLast)
	case q.Step == time.Minute:
		const lately = 3 * time.Minute
		add(lately, "orders", "", map[tally.What]int64{tally.Received: 200, tally.Verified: 170, tally.Accepted: 50, tally.Reseen: 16, tally.Copies: 800, tally.Conflicts: 1,
			tally.Rejected("store"): 4, tally.Rejected("signature_missing"): 30})
		add(lately, "rotated", "", map[tally.What]int64{tally.Received: 30, tally.Rejected("signature_mismatch"): 30})
		add(lately, "clock", "", map[tally.What]int64{tally.Received: 30, tally.Rejected("timestamp_old"): 30})
		add(lately, "ends", "", map[tally.What]int64{tally.Verified: 30})
		add(lately, "astray", "", map[tally.What]int64{tally.Accepted: 20, tally.Unrouted: 20})
		add(lately, "orders", "ledger", map[tally.What]int64{tally.First: 100, tally.FirstFailed: 90, tally.Done: 5})
		add(20*time.Minute, "orders", "slow", map[tally.What]int64{tally.First: 10, tally.FirstFailed: 2})
		return all, s.answer(ctx, overview.PartMinutes)
	}
	for ago := 200 * time.Hour; ago > 0; ago -= time.Hour {
		add(ago, "orders", "", map[tally.What]int64{tally.Accepted: 10, tally.Active: 5})
		add(ago, "", "", map[tally.What]int64{tally.Stored: 10, tally.StoredBytes: 20 << 20})
		if ago > 3*time.Hour {
			add(ago, "silent", "", map[tally.What]int64{tally.Active: 60})
		}
	}
	add(170*time.Hour, "unused", "", map[tally.What]int64{tally.Secret(1): 1})
	add(10*time.Hour, "unused", "", map[tally.What]int64{tally.Secret(1): 100})
	add(10*time.Hour, "lost", "", map[tally.What]int64{tally.Accepted: 20, tally.Unrouted: 20})
	add(40*time.Hour, "ended", "", map[tally.What]int64{tally.Verified: 30})
	add(3*time.Hour, "orders", "slow", map[tally.What]int64{tally.First: 1000, tally.FirstFailed: 300})
	slices.SortStableFunc(all, func(a, b tally.Point) int { return a.Minute.Compare(b.Minute) })
	return all, s.answer(ctx, overview.PartHours)
}

func (s *ailing) FailureGroups(ctx context.Context, _ time.Time) (journal.Failures, error) {
	refund := journal.FailureSample{EventID: 5, Source: "orders", Type: "refund"}
	return journal.Failures{Open: []journal.FailureGroup{
		{Destination: "ledger", Kind: "status", Status: 422, Error: "status 422", Count: 2, Dead: 2, Samples: []journal.FailureSample{refund, refund}},
		{Destination: "ordered", Kind: "status", Status: 500, Error: "status 500", Count: 1, Samples: []journal.FailureSample{{EventID: 7, Source: "orders"}}},
	}}, s.answer(ctx, overview.PartFailures)
}

func (s *ailing) History(context.Context, int64) (*journal.History, error) {
	return &journal.History{Summary: journal.Summary{ID: 7, Source: "orders", Resource: "invoice-1"}}, nil
}

func (s *ailing) List(context.Context, journal.Filter, int64, int) (journal.Page, error) {
	return journal.Page{Events: make([]journal.Summary, 3)}, nil
}

func (s *ailing) Stats(ctx context.Context) (journal.Stats, error) {
	return journal.Stats{Events: 2000, Bytes: 1 << 30}, s.answer(ctx, overview.PartRows)
}

// look returns what a gateway knows that was started a moment ago.
func (s *ailing) look(t *testing.T) *overview.Snapshot {
	t.Helper()
	tomorrow, old := s.now.Add(24*time.Hour), s.now.Add(-30*time.Hour)
	v := overview.New(overview.Options{
		Fleet: func(ctx context.Context) (fleet.DestinationList, error) {
			err := s.answer(ctx, overview.PartDestinations)
			if err != nil {
				return fleet.DestinationList{}, err
			}
			return fleet.DestinationList{Destinations: []fleet.Destination{
				{Name: "ledger", Configured: true, Health: &fleet.Health{State: "ill", Since: &old}}, {Name: "mail", Configured: true, Pause: &fleet.Pause{At: old}},
				{Name: "ordered", Configured: true, Order: "by_resource"}, {Name: "slow", Configured: true},
			}}, nil
		},
		Records: s, Recent: func(tally.Query) []tally.Point { return nil },
		Sources: func() []overview.SourceState {
			return []overview.SourceState{
				{Name: "orders", Destinations: []string{"ledger"}, Compared: &overview.Compared{Every: 900}},
				{Name: "rotated"}, {Name: "clock"}, {Name: "silent"}, {Name: "expected", ExpectEvery: 3600},
				{Name: "astray", Destinations: []string{"ledger"}}, {Name: "lost", Destinations: []string{"ledger"}},
				{Name: "ends", Secrets: []overview.Secret{{Until: &tomorrow}}}, {Name: "ended", Secrets: []overview.Secret{{Until: &tomorrow}}},
				{Name: "unused", Secrets: []overview.Secret{{}, {}}},
			}
		},
		Ready: func() error { return nil }, Upkeep: func() overview.Upkeep { return overview.Upkeep{} }, Free: func() int64 { return 0 },
		Capacity: func() int64 { return 2 << 30 }, Now: time.Now,
		Reconciled: func(ctx context.Context) ([]overview.Reconciled, error) {
			return []overview.Reconciled{{At: s.now, Until: s.now.Add(24 * time.Hour), Table: "payments", Doubled: 1}}, s.answer(ctx, overview.PartReconciliations)
		},
		Marks: func(ctx context.Context) ([]journal.Mark, error) {
			return []journal.Mark{{Source: "orders", Last: journal.MarkResult{Ended: s.now, Error: "the token was refused"}}}, s.answer(ctx, overview.PartMarks)
		},
		Missing: func(ctx context.Context) ([]journal.MissingCount, error) {
			return []journal.MissingCount{{Source: "orders", Kept: 1, First: s.now}}, s.answer(ctx, overview.PartMissing)
		},
	})
	defer v.Close()
	got, err := v.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A rule that finds less without a part of what is known is one that goes by it, and no other one
// is. So nothing counts as over because nobody could look.
func TestNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * time.Minute) // half past: there are minutes of the hour that goes on
		whole := (&ailing{now: time.Now()}).look(t)
		found := Judge(whole).Alerts
		for rule := range needs {
			if !slices.ContainsFunc(found, func(a Alert) bool { return a.Rule == rule }) {
				t.Errorf("%s finds nothing: nothing is learned of it", rule)
			}
		}
		if blind := (Settings{}).Blind(whole); len(blind) > 0 {
			t.Errorf("all is known, and blind are %+v", blind)
		}
		for _, part := range whole.Parts {
			less := Judge((&ailing{now: time.Now(), without: part.Name}).look(t)).Alerts
			lost := map[string]bool{}
			for _, a := range found {
				if !slices.ContainsFunc(less, func(b Alert) bool { return b.Fingerprint() == a.Fingerprint() }) {
					lost[a.Rule] = true
				}
			}
			for _, r := range rules {
				if goes := slices.Contains(needs[r.Name], part.Name); goes != lost[r.Name] {
					t.Errorf("without %s: %s finds less: %t; it is said to go by that: %t", part.Name, r.Name, lost[r.Name], goes)
				}
			}
		}
	})
}

// Where the store is too slow for a question nobody says that all is well, and a ticket says what
// is not known.
func TestASlowQuestionIsNoGoodNews(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		for _, part := range []string{overview.PartOpen, overview.PartMinutes, overview.PartHours, overview.PartRows} {
			synctest.Test(t, func(t *testing.T) {
				s := (&ailing{now: time.Now(), without: part, hangs: hangs}).look(t)
				s.Destinations, s.Sources, s.Reconciled, s.Store = nil, nil, nil, overview.StoreState{} // nothing else is wrong
				a := only(t, s, storeUnread, Ticket)
				v := Judge(s)
				if !strings.Contains(a.Headline, part+" (") || v.Headline != a.Headline || v.Healthy != (part == overview.PartRows) {
					t.Errorf("%s: %q, healthy: %t", part, v.Headline, v.Healthy)
				}
				if part == overview.PartOpen && (!strings.Contains(a.Headline, "backlog_old, died") || v.Lost.Text != "No, but the store does not say what is given up by now.") {
					t.Errorf("%q, %q", a.Headline, v.Lost.Text)
				}
				off := Settings{storeUnread: {Off: true}}.Judge(s)
				if len(off.Alerts) > 0 || off.Healthy != v.Healthy || strings.Contains(off.Headline, "Everything") {
					t.Errorf("%s, with the rule off: %+v", part, off)
				}
				for _, is := range (Settings{}).Stand(s) {
					if unknown := strings.HasPrefix(is.Now, "not known: the store"); unknown != slices.Contains(needs[is.Rule], part) {
						t.Errorf("%s: %s is shown to be at %q", part, is.Rule, is.Now)
					}
				}
			})
		}
	}
}

// One question that was not answered makes nobody blind: what was read a moment before still says how things are.
func TestOneFailureMakesNobodyBlind(t *testing.T) {
	for fails, blind := range map[time.Duration]bool{0: false, time.Minute - time.Second: false, time.Minute: true, time.Hour: true} {
		s := &overview.Snapshot{At: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
		s.Parts = []overview.Part{{Name: overview.PartOpen, Read: s.At.Add(-fails - time.Second), Error: "timeout", Failing: s.At.Add(-fails)}}
		if v := Judge(s); v.Healthy == blind || strings.Contains(v.Headline, "Everything is well") == blind {
			t.Errorf("after %v: healthy: %t, %q", fails, v.Healthy, v.Headline)
		}
	}
}

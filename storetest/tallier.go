package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// RunTallier checks what a store does with what processes counted. The stores that cfg opens must implement
// [hookonce.Tallier]. With Config's FailCommit it covers commits whose outcome nobody knows.
func RunTallier[Tx any](t *testing.T, cfg TxConfig[Tx]) {
	cfg.cases(t, "tallier", []txCase[Tx]{
		{"what is added is there by the minute and by the hour", talliesAdded[Tx]},
		{"the same batch twice is once, and so is an earlier one", talliesTwice[Tx]},
		{"a batch of which nothing is known is sent again", talliesUnknown[Tx]},
		{"what several processes add at once adds up", talliesTogether[Tx]},
		{"a source that no handler can have is refused", talliesRefused[Tx]},
		{"minutes and hours are forgotten when they are old enough", talliesForgotten[Tx]},
	})
}

func tallier(t testing.TB, s hookonce.Store) hookonce.Tallier {
	t.Helper()
	tallier, is := s.(hookonce.Tallier)
	if !is {
		t.Fatalf("%T is no Tallier", s)
	}
	return tallier
}

// tallyMinute is the last minute of an hour, a while before the clock's first time.
var tallyMinute = NewClock().Now().Truncate(time.Hour).Add(-time.Minute)

// ever covers all that cases add.
func ever(hours bool) hookonce.TallyQuery {
	return hookonce.TallyQuery{From: tallyMinute.Truncate(time.Hour), Until: tallyMinute.Add(24 * time.Hour), Hours: hours}
}

// tallied checks the sums by the minute and by the hour.
func tallied(t testing.TB, s hookonce.Tallier, want ...hookonce.Tally) {
	t.Helper()
	for _, hours := range []bool{false, true} {
		got, err := s.Tallies(t.Context(), ever(hours))
		ok(t, err)
		same(t, fmt.Sprintf("tallies, by the hour %t", hours), got, want)
	}
}

func counted(minute time.Time, status string, n int64) hookonce.Tally {
	return hookonce.Tally{Minute: minute, Source: "billing", Status: status, N: n}
}

// sum is how often something came of events of billing.
func sum(status string, n int64) hookonce.Tally { return counted(time.Time{}, status, n) }

func talliesAdded[Tx any](t *testing.T, f *txFixture[Tx]) {
	ctx, s := t.Context(), tallier(t, f.TxStore)
	tallied(t, s)
	next := tallyMinute.Add(time.Minute) // in the next hour
	other := hookonce.Tally{Minute: next, Source: "shop", Status: "accepted", N: 4}
	ok(t, s.AddTallies(ctx, "p", 1, []hookonce.Tally{counted(tallyMinute, "duplicate", 2), counted(tallyMinute, "accepted", 3), counted(tallyMinute.Add(-time.Minute), "accepted", 1)}))
	ok(t, s.AddTallies(ctx, "p", 2, []hookonce.Tally{counted(tallyMinute, "accepted", 5), counted(next, "accepted", 7), other}))
	other.Minute = time.Time{}
	tallied(t, s, sum("accepted", 16), sum("duplicate", 2), other)
	for name, c := range map[string]struct {
		q    hookonce.TallyQuery
		want []hookonce.Tally
	}{
		"from a minute on":         {hookonce.TallyQuery{From: next, Until: next.Add(time.Minute)}, []hookonce.Tally{sum("accepted", 7), other}},
		"before a minute":          {hookonce.TallyQuery{From: tallyMinute, Until: next}, []hookonce.Tally{sum("accepted", 8), sum("duplicate", 2)}},
		"an hour":                  {hookonce.TallyQuery{From: tallyMinute.Truncate(time.Hour), Until: next, Hours: true}, []hookonce.Tally{sum("accepted", 9), sum("duplicate", 2)}},
		"an hour by its beginning": {hookonce.TallyQuery{From: tallyMinute.Truncate(time.Hour), Until: tallyMinute.Truncate(time.Hour).Add(time.Minute), Hours: true}, []hookonce.Tally{sum("accepted", 9), sum("duplicate", 2)}},
		"the hour afterwards":      {hookonce.TallyQuery{From: next, Until: next.Add(time.Hour), Hours: true}, []hookonce.Tally{sum("accepted", 7), other}},
	} {
		got, err := s.Tallies(ctx, c.q)
		ok(t, err)
		same(t, name, got, c.want)
	}
}

func talliesTwice[Tx any](t *testing.T, f *txFixture[Tx]) {
	ctx, s := t.Context(), tallier(t, f.TxStore)
	first, second := []hookonce.Tally{counted(tallyMinute, "accepted", 1)}, []hookonce.Tally{counted(tallyMinute, "accepted", 10)}
	ok(t, s.AddTallies(ctx, "p", 1, first))
	ok(t, s.AddTallies(ctx, "p", 2, second))
	ok(t, s.AddTallies(ctx, "p", 2, second))
	ok(t, s.AddTallies(ctx, "p", 1, first))
	tallied(t, s, sum("accepted", 11))
	ok(t, tallier(t, f.another(0)).AddTallies(ctx, "q", 1, first)) // another process has numbers of its own
	tallied(t, s, sum("accepted", 12))
}

func talliesUnknown[Tx any](t *testing.T, f *txFixture[Tx]) {
	if f.db.FailCommit == nil {
		return
	}
	ctx, s := t.Context(), tallier(t, f.TxStore)
	for seq, persisted := range []bool{false, true} {
		batch := []hookonce.Tally{counted(tallyMinute, "accepted", 5), counted(tallyMinute, "failed", 1)}
		f.db.FailCommit(persisted)
		if err := s.AddTallies(ctx, "p", int64(seq+1), batch); err == nil {
			t.Fatal("a batch whose commit failed was reported as added")
		}
		ok(t, s.AddTallies(ctx, "p", int64(seq+1), batch))
		tallied(t, s, sum("accepted", 5*int64(seq+1)), sum("failed", int64(seq+1)))
	}
}

// talliesTogether has processes add to the same rows, in orders of their own, and each send its batches twice at once, while
// one forgets.
func talliesTogether[Tx any](t *testing.T, f *txFixture[Tx]) {
	const processes, batches = 3, 4
	ctx := t.Context()
	var all sync.WaitGroup
	for p := range processes {
		s := tallier(t, f.another(time.Minute))
		for range 2 {
			all.Go(func() {
				for seq := range int64(batches) {
					batch := []hookonce.Tally{counted(tallyMinute, "accepted", 1), counted(tallyMinute.Add(time.Minute), "duplicate", 1), counted(tallyMinute.Add(2*time.Minute), "failed", 1)}
					batch = append(batch[p:], batch[:p]...)
					if err := s.AddTallies(ctx, fmt.Sprint("process ", p), seq+1, batch); err != nil {
						t.Errorf("AddTallies: %v", err)
					}
				}
			})
		}
		all.Go(func() {
			if _, err := s.ForgetTallies(ctx); err != nil {
				t.Errorf("ForgetTallies: %v", err)
			}
		})
	}
	all.Wait()
	tallied(t, tallier(t, f.TxStore), sum("accepted", processes*batches), sum("duplicate", processes*batches), sum("failed", processes*batches))
}

func talliesRefused[Tx any](t *testing.T, f *txFixture[Tx]) {
	s := tallier(t, f.TxStore)
	for name, ref := range invalidRefs() {
		if ref.Source == "billing" {
			continue
		}
		err := s.AddTallies(t.Context(), "p", 1, []hookonce.Tally{{Minute: tallyMinute, Source: ref.Source, Status: "accepted", N: 1}})
		if !errors.Is(err, hookonce.ErrInvalidRef) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tallied(t, s)
}

func talliesForgotten[Tx any](t *testing.T, f *txFixture[Tx]) {
	ctx, s := t.Context(), tallier(t, f.TxStore)
	at := f.clock.Now().Truncate(time.Hour)
	for i := range 4 { // over more time than is deleted at once
		ok(t, s.AddTallies(ctx, "p", int64(i+1), []hookonce.Tally{counted(at.Add(time.Duration(i)*20*time.Hour), "accepted", 1)}))
	}
	all := func(hours bool) (n int64) {
		got, err := s.Tallies(ctx, hookonce.TallyQuery{From: at, Until: at.Add(1000 * time.Hour), Hours: hours})
		ok(t, err)
		for _, p := range got {
			n += p.N
		}
		return n
	}
	passed := time.Duration(0)
	for _, step := range []struct {
		after          time.Duration
		minutes, hours int64
		calls          int // an hour of minutes each, or a day of hours
	}{
		{47 * time.Hour, 4, 4, 1},
		{49 * time.Hour, 3, 4, 2},
		{(60 + 49) * time.Hour, 0, 4, 4},
		{99 * 24 * time.Hour, 0, 4, 1},
		{(100*24 + 1) * time.Hour, 0, 3, 1},
		{(100*24 + 61) * time.Hour, 0, 0, 2},
	} {
		f.clock.Advance(step.after - passed)
		passed = step.after
		calls := 0
		for more := true; more; calls++ {
			var err error
			if more, err = s.ForgetTallies(ctx); err != nil || calls > 100 {
				t.Fatalf("after %v: %d calls, %v", step.after, calls, err)
			}
		}
		if calls != step.calls {
			t.Errorf("after %v it took %d calls, want %d", step.after, calls, step.calls)
		}
		if minutes, hours := all(false), all(true); minutes != step.minutes || hours != step.hours {
			t.Errorf("after %v there are %d by the minute and %d by the hour, want %d and %d", step.after, minutes, hours, step.minutes, step.hours)
		}
	}
}

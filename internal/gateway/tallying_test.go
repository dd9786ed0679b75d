package gateway

import (
	"context"
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/tally"
)

// What a gateway counted is on record when it has stopped, and agrees with what it did.
func TestTalliesOutliveACleanStop(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		sink := newSink(t)
		cfg := configured(store, sink.URL)
		c := client(t)
		const events, rounds = 40, 2
		hour := func() int64 { return time.Now().Unix() / 3600 }
		began := hour()
		for round := range rounds {
			g := start(t, cfg)
			var sent []string
			for _, id := range ids(fmt.Sprint("round ", round, " "), events) {
				for range 3 { // an event and two copies
					if r, err := post(t, c, g, cfg.Sources[0], event(id)); err != nil || r.status != 200 {
						t.Fatalf("%+v, %v", r, err)
					}
				}
				sent = append(sent, id)
			}
			sink.awaitIDs(t, sent)
			closeNow(t, g)
		}
		got := tallied(t, store)
		// An event comes again once in each hour: one whose copies a full hour parts is counted twice.
		if more := got[tally.Reseen] - events*rounds; 0 < more && more <= hour()-began {
			got[tally.Reseen] -= more
		}
		for what, want := range map[tally.What]int64{
			tally.Received: 3 * events * rounds, tally.Verified: 3 * events * rounds, tally.Accepted: events * rounds,
			tally.Copies: 2 * events * rounds, tally.Reseen: events * rounds, tally.Stored: events * rounds, tally.Attempts: events * rounds,
			tally.Done: events * rounds, tally.First: events * rounds, tally.FirstFailed: 0, tally.Conflicts: 0,
			"age:1s": 2 * events * rounds,
		} {
			if got[what] != want && what != "age:1s" || what == "age:1s" && got[what]+got["age:10s"] != want {
				t.Errorf("%s: %d, want %d", what, got[what], want)
			}
		}
	})
}

// tallied returns what a store has by word, from the hours, which agree with the minutes.
func tallied(t *testing.T, store config.Store) map[tally.What]int64 {
	t.Helper()
	ctx := context.Background()
	s, _, err := openStore(ctx, storePlan{Store: store, migrate: true}, Options{}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sums := map[time.Duration]map[tally.What]int64{time.Minute: {}, time.Hour: {}}
	for step, sum := range sums {
		points, err := s.Tallies(ctx, tally.Query{From: time.Now().Add(-24 * time.Hour), Until: time.Now().Add(time.Hour), Step: step, Total: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range points {
			sum[p.What] += p.N
		}
	}
	if fmt.Sprint(sums[time.Minute]) != fmt.Sprint(sums[time.Hour]) {
		t.Errorf("by the minute %v, by the hour %v", sums[time.Minute], sums[time.Hour])
	}
	return sums[time.Hour]
}

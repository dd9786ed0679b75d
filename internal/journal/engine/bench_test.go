package engine_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// instant is a store that does nothing at all, so that a benchmark sees the engine alone.
type instant struct{ journal.Store }

func (instant) Accept(_ context.Context, batch []*journal.Record, _, _ time.Time) ([]journal.Result, error) {
	results := make([]journal.Result, len(batch))
	for i, e := range batch {
		results[i] = journal.Result{Status: journal.Accepted, ID: e.ID}
	}
	return results, nil
}

func (instant) Take(context.Context, time.Time, time.Time, journal.Wanted) ([]*journal.Work, error) {
	return nil, nil
}

func (instant) Extend(_ context.Context, held []journal.Held, _ time.Time) ([]bool, error) {
	return yes(len(held)), nil
}

func (instant) Finish(_ context.Context, outcomes []journal.Outcome) ([]bool, error) {
	return yes(len(outcomes)), nil
}

func (instant) Orphans(context.Context, time.Time) (int, error) { return 0, nil }

func (instant) Purge(context.Context, journal.Purge) (journal.Purged, error) {
	return journal.Purged{}, nil
}

func (instant) ForgetTallies(context.Context, time.Time) (bool, error) { return false, nil }

func (instant) Pauses(context.Context) ([]journal.Pause, error) { return nil, nil }

func (instant) RecordDuplicates(context.Context, []journal.DuplicateReceipt) error { return nil }

func (instant) Stats(context.Context) (journal.Stats, error) { return journal.Stats{}, nil }

func yes(n int) []bool {
	all := make([]bool, n)
	for i := range all {
		all[i] = true
	}
	return all
}

// BenchmarkAccept measures the engine's own cost of a fresh event, with 64 callers per processor as a
// busy server has them: without a destination, and delivered at once by a worker that does nothing.
func BenchmarkAccept(b *testing.B) {
	for _, destinations := range [][]string{nil, {"app"}} {
		b.Run(fmt.Sprintf("destinations=%d", len(destinations)), func(b *testing.B) {
			j := open(b, instant{}, engine.Options{DoneKeys: journaltest.NoDoneKeys})
			go func() {
				for w := range j.Work() {
					j.Finish(journal.Outcome{Held: w.Held, State: journal.Done})
				}
			}()
			body := make([]byte, 2048)
			digest := make([]byte, 16)
			var next atomic.Int64
			b.ReportAllocs()
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					e := &journal.Event{
						Source: "bench", Key: strconv.FormatInt(next.Add(1), 36), Type: "bench.ran",
						Digest: digest, Body: body, Destinations: destinations, ReceivedAt: time.Now(),
					}
					if _, err := j.Accept(context.Background(), []*journal.Event{e}); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// BenchmarkDuplicate measures copies of a finished event, which never reach the store.
func BenchmarkDuplicate(b *testing.B) {
	j := open(b, instant{}, engine.Options{})
	e := entry("evt_1")
	e.Destinations = nil
	if _, err := j.Accept(context.Background(), []*journal.Event{e}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			res, err := j.Accept(context.Background(), []*journal.Event{e})
			if err != nil || res[0].Status != journal.Duplicate {
				b.Error(res, err)
			}
		}
	})
}

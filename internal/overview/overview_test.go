package overview

import (
	"context"
	"errors"
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

func (s *store) Tallies(ctx context.Context, _ tally.Query) ([]tally.Point, error) {
	return nil, s.ask(ctx)
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
	return journal.Stats{Events: 7}, s.ask(ctx)
}

func newOverview(s *store) *Overview {
	return New(Options{
		Fleet: func(ctx context.Context) (fleet.DestinationList, error) {
			return fleet.DestinationList{Destinations: []fleet.Destination{{Name: "ledger"}}}, s.ask(ctx)
		},
		Records: s,
		Recent: func(q tally.Query) []tally.Point {
			return []tally.Point{{Minute: q.Until.Add(-time.Minute).Truncate(time.Minute), Source: "orders", What: tally.Received, N: 3}}
		},
		Sources: func() []SourceState { return []SourceState{{Name: "orders"}} },
		Ready:   func() error { return nil },
		Upkeep:  func() Upkeep { return Upkeep{} },
		Free:    func() int64 { return 0 },
		Now:     time.Now,
	})
}

// However many look, the store is asked one set of questions a second.
func TestManyWatchersAskOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s store
		v := newOverview(&s)
		defer v.Close()
		const seconds, set = 60, 4 // destinations, rows, minutes and hours; nothing failed
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
		// Destinations each second, rows every five, minutes every ten, hours once.
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
		if first.Store.Away != nil || first.Store.Events != 7 || len(first.Destinations) != 1 || first.Sources[0].Five.Received != 3 {
			t.Fatalf("at first: %+v", first)
		}
		s.away.Store(true)
		for range 5 {
			got := look()
			if a := got.Store.Away; a == nil || a.Error != errGone.Error() || got.Store.Events != 7 || len(got.Destinations) != 1 || got.Sources[0].Five.Received != 3 {
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

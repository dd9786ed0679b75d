package pg_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/pg"
)

// storm is a life of some partitions: work is accepted, taken, done, failed, given up, lost and replayed while
// partitions are made, emptied of what is needed, and dropped under it.
type storm struct {
	*calendar
	ctx    context.Context
	stores []*pg.Store
	clock  atomic.Int64 // minutes since noon
	left   atomic.Int64 // events that are not done
	mu     sync.Mutex
	done   map[string]int
}

func (s *storm) time() time.Time { return noon.Add(time.Duration(s.clock.Load()) * time.Minute) }

func (s *storm) any() *pg.Store { return s.stores[rand.IntN(len(s.stores))] }

// accepting stores events under the time of the moment.
func (s *storm) accepting(worker, events int) {
	ids := journal.NewIDs(worker+1, 0)
	for n := range events {
		now := s.time()
		e := entry(fmt.Sprintf("evt_%d_%d", worker, n))
		e.ID, e.Hold, e.ReceivedAt = ids.Next(now), nil, now
		if _, err := s.any().Accept(s.ctx, []*journal.Record{e}, now, now.Add(time.Minute)); err != nil {
			s.Errorf("Accept: %v", err)
		}
	}
}

// working takes and ends work in every way until all is done.
func (s *storm) working() {
	for s.left.Load() > 0 && s.ctx.Err() == nil {
		now := s.time()
		work, err := s.any().Take(s.ctx, now, now.Add(20*time.Minute), journal.Wanted{Deliveries: 5})
		if err != nil {
			s.Errorf("Take: %v", err)
			return
		}
		for _, w := range work {
			if len(w.Body) != 2048 {
				s.Errorf("%s has lost its body", w.Key)
			}
			o := journal.Outcome{Held: w.Held, Started: now, Due: now.Add(90 * time.Minute)}
			o.State = []journal.State{journal.Failed, journal.Dead, journal.Pending, journal.Done, journal.Done}[rand.IntN(5)]
			if rand.IntN(6) == 0 {
				continue // its process died
			}
			s.end(w, o)
		}
	}
}

func (s *storm) end(w *journal.Work, o journal.Outcome) {
	applied, err := s.any().Finish(s.ctx, []journal.Outcome{o})
	if err != nil {
		s.Errorf("Finish: %v", err)
		return
	}
	if applied[0] && o.State == journal.Done {
		s.mu.Lock()
		s.done[w.Key]++
		s.mu.Unlock()
		s.left.Add(-1)
	}
}

// keeping looks after the partitions, redrives what is dead, and lets time pass.
func (s *storm) keeping(dropped *atomic.Int64) {
	for s.left.Load() > 0 && s.ctx.Err() == nil {
		now := s.time()
		store := s.any()
		if _, err := store.EnsurePartitions(s.ctx, now, &s.keep); err != nil {
			s.Errorf("Provide: %v", err)
		}
		d, err := store.DropPartitions(s.ctx, now, &s.keep)
		if err != nil {
			s.Errorf("Drop: %v", err)
		}
		if len(d.Rows) > 0 {
			dropped.Add(1)
		}
		purge := journal.Purge{Kind: journal.KindBodies, Before: now.Add(-s.keep.Bodies), Others: true, Limit: 20}
		if _, err := store.Purge(s.ctx, purge); err != nil {
			s.Errorf("Purge: %v", err)
		}
		if _, err := store.Replay(s.ctx, journal.Replay{Start: now, By: "ada", Reason: "x"}, 50); err != nil {
			s.Errorf("Replay: %v", err)
		}
		s.clock.Add(10)
	}
}

// TestWorkSurvivesDrops: whatever happens to the partitions, all work is done once, with its body.
func TestWorkSurvivesDrops(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s := &storm{calendar: newCalendar(t), ctx: ctx, done: map[string]int{}}
	s.keep.Bodies, s.keep.Attempts = 2*time.Hour, 2*time.Hour
	s.stores = []*pg.Store{s.store, open(t, s.dsn, ""), open(t, s.dsn, "")}
	const workers, events = 3, 60
	s.left.Store(workers * events)
	var all sync.WaitGroup
	var dropped atomic.Int64
	for worker := range workers {
		all.Go(func() { s.accepting(worker, events) })
		all.Go(s.working)
	}
	for range 2 {
		all.Go(func() { s.keeping(&dropped) })
	}
	all.Wait()
	for key, n := range s.done {
		if n != 1 {
			t.Errorf("%s was done %d times", key, n)
		}
	}
	if len(s.done) != workers*events {
		t.Errorf("%d events were done, want %d", len(s.done), workers*events)
	}
	if dropped.Load() == 0 {
		t.Error("no partition was dropped: this tests nothing")
	}
	stats, err := s.store.Stats(t.Context())
	if err != nil || len(stats.Open) != 0 {
		t.Errorf("open: %v, %v", stats.Open, err)
	}
}

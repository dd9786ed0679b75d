package engine_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// sink counts deliveries by key, as the app behind the gateway does.
type sink struct {
	mu   sync.Mutex
	seen map[string]int
}

func (s *sink) deliver(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[key]++
}

// work delivers until the journal closes; some attempts fail first.
func (s *sink) work(j *engine.Engine) {
	for w := range j.Work() {
		o := journal.Outcome{Held: w.Held, State: journal.Done}
		switch {
		case !j.Current(w.Held):
			o.State, o.Due = journal.Pending, time.Now()
		case w.Tries < 3 && rand.IntN(4) == 0:
			o.State, o.Due = journal.Failed, time.Now().Add(time.Duration(rand.IntN(3000))*time.Millisecond)
		default:
			s.deliver(w.Key)
		}
		j.Finish(o)
	}
}

// Two processes on one store, 200 ids with 8 copies at once each, in the bubble and under the race
// detector: everything is accepted once and delivered once.
func TestStorm(t *testing.T) {
	const ids, copies = 200, 8
	synctest.Test(t, func(t *testing.T) {
		store := journaltest.NewMemory()
		var processes []*engine.Engine
		for n := range 2 {
			processes = append(processes, open(t, store, engine.Options{
				MaxBatch: 16, MaxHeld: 64, IDs: journal.NewIDs(n, 0),
			}))
		}
		s := &sink{seen: map[string]int{}}
		for _, j := range processes {
			for range 4 {
				go s.work(j)
			}
		}
		var mu sync.Mutex
		statuses := map[journal.Status]int{}
		var wg sync.WaitGroup
		for i := range ids * copies {
			wg.Go(func() {
				e := entry(key(i % ids))
				a := result(processes[i/ids%2].Accept(context.Background(), []*journal.Event{e}))
				if a.err != nil {
					t.Error(a.err)
				}
				mu.Lock()
				defer mu.Unlock()
				statuses[a.Status]++
			})
		}
		wg.Wait()
		if statuses[journal.Accepted] != ids || statuses[journal.Duplicate] != ids*(copies-1) {
			t.Errorf("statuses %v", statuses)
		}
		sleep(time.Minute)
		s.check(t, ids)
		for _, j := range processes {
			if err := j.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if left := store.Deliveries(); len(left) != 0 {
			t.Errorf("%d deliveries open", len(left))
		}
	})
}

// check fails the test unless every one of n keys was delivered exactly once.
func (s *sink) check(t *testing.T, n int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range n {
		if got := s.seen[key(i)]; got != 1 {
			t.Errorf("%s was delivered %d times", key(i), got)
		}
	}
}

// A store that fails at random, before and after the commit, while senders retry until they get an
// answer and processes come and go: every acknowledged event is delivered, and every key is stored
// once.
func TestStorm_withFaults(t *testing.T) {
	const ids = 100
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			store := journaltest.NewMemory()
			fault := journaltest.NewFaulty(store)
			opt := engine.Options{MaxBatch: 8, MaxHeld: 16, Lease: 3 * time.Second}
			s := &sink{seen: map[string]int{}}
			processes := 0
			start := func() *engine.Engine {
				opt.IDs = journal.NewIDs(processes, 0)
				processes++
				j := open(t, fault, opt)
				for range 3 {
					go s.work(j)
				}
				return j
			}
			j := start()
			ops := []journaltest.Op{journaltest.OpAccept, journaltest.OpTake, journaltest.OpExtend, journaltest.OpFinish}
			for i := range ids {
				if random.IntN(3) == 0 {
					mode := journaltest.Mode(random.IntN(2))
					fault.Fail(ops[random.IntN(len(ops))], 1+random.IntN(5), mode)
				}
				for result(j.Accept(context.Background(), []*journal.Event{entry(key(i)), entry(key(i))})).err != nil {
					sleep(100 * time.Millisecond)
				}
				if i%25 == 24 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					_ = j.Close(ctx)
					cancel()
					j = start()
				}
			}
			sleep(2 * time.Minute)
			for i := range ids {
				if s.seen[key(i)] == 0 {
					t.Errorf("seed %d: %s was acknowledged and lost", seed, key(i))
				}
			}
			if store.Events() != ids || len(store.Deliveries()) != 0 {
				t.Errorf("seed %d: %d events, open %+v", seed, store.Events(), store.Deliveries())
			}
		})
	}
}

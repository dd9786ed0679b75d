package journaltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// orderStorm runs senders, each of which tells about the same few resources, and workers that finish,
// fail and lose work, on all stores at once. While somebody has a delivery of a resource nobody else may
// get one, and nothing begins before what was stored earlier is done.
func orderStorm(c *suite) {
	const resources, rounds = 6, 15
	ctx, cancel := context.WithTimeout(c.Context(), 2*time.Minute)
	defer cancel()
	s := &orderly{suite: c, groups: map[string]*watched{}}
	s.left.Store(resources * rounds * workers / 2)
	parallel(func(worker int) {
		if worker < workers/2 {
			for round := range rounds {
				s.tell(ctx, worker, round, resources)
			}
			return
		}
		for s.left.Load() > 0 && ctx.Err() == nil && !c.Failed() {
			s.work(ctx)
			s.tick()
		}
	})
	if n := s.left.Load(); n != 0 {
		c.Errorf("%d deliveries were not done", n)
	}
	c.open(nil)
}

// orderly watches what happens in each ordering group.
type orderly struct {
	*suite
	clock atomic.Int64 // milliseconds since start
	calm  sync.RWMutex // held while the clock moves on, so that leases run out only where work was lost
	left  atomic.Int64

	mu     sync.Mutex
	groups map[string]*watched
}

// watched is an ordering group as its watchers know it for certain.
type watched struct {
	stored []int64 // accepted and not known to be done, in any order
	done   map[int64]bool
	holder journal.Held // whose worker has not begun to finish it; zero: nobody
	since  time.Time    // when that was taken
}

func (s *orderly) at() time.Time { return start.Add(time.Duration(s.clock.Load()) * time.Millisecond) }

// tell accepts one event about each resource.
func (s *orderly) tell(ctx context.Context, worker, round, resources int) {
	var batch []*journal.Record
	for _, r := range rand.Perm(resources) {
		batch = append(batch, s.entry(fmt.Sprintf("evt_%d_%d_%d", worker, round, r), of(fmt.Sprintf("r%d", r))))
	}
	if _, err := s.store.Accept(ctx, batch, s.at(), s.at().Add(lease)); err != nil {
		s.Errorf("Accept: %v", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range batch {
		if l := s.group(e.Resource); !l.done[e.ID] {
			l.stored = append(l.stored, e.ID)
		}
	}
}

// group returns the watched ordering group of a resource. The caller holds the mutex.
func (s *orderly) group(resource string) *watched {
	if s.groups[resource] == nil {
		s.groups[resource] = &watched{done: map[int64]bool{}}
	}
	return s.groups[resource]
}

// known returns the oldest stored event of each ordering group.
func (s *orderly) known() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := map[string]int64{}
	for r, l := range s.groups {
		if len(l.stored) > 0 {
			oldest[r] = slices.Min(l.stored)
		}
	}
	return oldest
}

// tick lets time go by while nobody works.
func (s *orderly) tick() {
	s.calm.Lock()
	defer s.calm.Unlock()
	s.clock.Add(500)
}

// work takes some deliveries, and finishes most of them.
func (s *orderly) work(ctx context.Context) {
	s.calm.RLock()
	defer s.calm.RUnlock()
	oldest, now := s.known(), s.at()
	work, err := s.store.Take(ctx, now, now.Add(lease), journal.Wanted{
		Deliveries: 8, Destinations: []journal.Want{{Destination: "app", Deliveries: 8}},
	})
	if err != nil {
		s.Errorf("Take: %v", err)
		return
	}
	for _, w := range work {
		s.begin(w, oldest[w.Resource], now)
	}
	outcomes := s.lose(work, now)
	s.end(work, outcomes)
	applied, err := s.store.Finish(ctx, outcomes)
	if err != nil {
		s.Errorf("Finish: %v", err)
		return
	}
	for i, o := range outcomes {
		if applied[i] && o.State == journal.Done {
			s.left.Add(-1)
		}
	}
}

// begin checks a delivery that was taken at now.
func (s *orderly) begin(w *journal.Work, oldest int64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.group(w.Resource)
	held := l.holder.Token != 0
	if held && now.Before(l.since.Add(lease)) {
		s.Errorf("%s: %+v begins while %+v is under way", w.Resource, w.Held, l.holder)
	}
	// What was lost goes on first, although an older event may have been stored meanwhile.
	lost := held && l.holder.EventID == w.EventID
	if oldest != 0 && oldest < w.EventID && !lost && slices.Contains(l.stored, oldest) {
		s.Errorf("%s: %d begins before %d, which was stored earlier", w.Resource, w.EventID, oldest)
	}
	l.holder, l.since = w.Held, now
}

// end notes, before it happens, what is going to be finished.
func (s *orderly) end(work []*journal.Work, outcomes []journal.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, o := range outcomes {
		l := s.group(work[i].Resource)
		if l.holder == o.Held {
			l.holder = journal.Held{}
		}
		if o.State == journal.Done {
			l.done[o.EventID] = true
			l.stored = slices.DeleteFunc(l.stored, func(id int64) bool { return id == o.EventID })
		}
	}
}

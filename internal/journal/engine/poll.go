package engine

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/inflight"
)

// poller takes due work from the store.
type poller struct {
	*core
	inflight *inflight.Set
	schedule *schedule
	issue    func(*inflight.Item)
}

// run polls until Close begins: at once, then when something is known to be due, and at the latest after
// every Poll interval.
func (p *poller) run() {
	for {
		p.schedule.begin(p.opt.Now())
		p.poll()
		if !p.wait(p.opt.Now().Add(p.opt.Poll)) {
			return
		}
	}
}

// wait waits until the given time, or until something is due earlier. It reports false when Close
// has begun.
func (p *poller) wait(next time.Time) bool {
	for {
		d := p.schedule.earliest(next).Sub(p.opt.Now())
		if d <= 0 {
			return !p.closing()
		}
		if !wait(d, p.stop, p.schedule.changed) {
			return false
		}
	}
}

// poll takes one batch into the free room.
func (p *poller) poll() {
	room := p.inflight.Offer()
	if room.Deliveries == 0 {
		return
	}
	now := p.opt.Now()
	lease := now.Add(p.opt.Lease)
	var work []*journal.Work
	err := p.call(opTake, min(p.opt.Timeout, p.opt.Lease), room.Deliveries, func(ctx context.Context) (err error) {
		work, err = p.store.Take(ctx, now, lease, room)
		return err
	})
	if err != nil || !p.opt.Now().Before(lease) {
		work = nil // what was taken in spite of it comes back when its lease ends, and has cost no try
	}
	for _, it := range p.inflight.Taken(room, work, lease) {
		p.issue(it)
	}
}

// maxDues bounds how many due times are remembered. Beyond it the poll interval has to do.
const maxDues = 4096

// schedule knows the times at which something becomes due that the poller should not be late for.
type schedule struct {
	changed chan struct{} // receives when the earliest time changed

	mu   sync.Mutex
	dues timeHeap
}

func newSchedule() *schedule { return &schedule{changed: make(chan struct{}, 1)} }

// note has the poller look at t, or as soon as it can when t has passed or is zero.
func (s *schedule) note(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := len(s.dues) == 0 || t.Before(s.dues[0])
	if !first && len(s.dues) >= maxDues {
		return
	}
	heap.Push(&s.dues, t)
	if first {
		signal(s.changed)
	}
}

// begin forgets the times up to now, because the poller looks now.
func (s *schedule) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.dues) > 0 && !s.dues[0].After(now) {
		heap.Pop(&s.dues)
	}
}

// earliest returns the earliest noted time, at most limit.
func (s *schedule) earliest(limit time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.dues) > 0 && s.dues[0].Before(limit) {
		return s.dues[0]
	}
	return limit
}

type timeHeap []time.Time

func (h timeHeap) Len() int { return len(h) }

func (h timeHeap) Less(i, k int) bool { return h[i].Before(h[k]) }

func (h timeHeap) Swap(i, k int) { h[i], h[k] = h[k], h[i] }

func (h *timeHeap) Push(t any) { *h = append(*h, t.(time.Time)) }

func (h *timeHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	*h = (*h)[:last]
	return t
}

package engine

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// poller takes due work from the store until Close begins: at once, then when something is known to
// be due, and at the latest after every Poll interval.
func (j *Engine) poller() {
	for {
		j.schedule.begin(j.opt.Now())
		j.poll()
		if !j.waitPoll(j.opt.Now().Add(j.opt.Poll)) {
			return
		}
	}
}

// waitPoll waits until the given time, or until something is due earlier. It reports false when Close
// has begun.
func (j *Engine) waitPoll(next time.Time) bool {
	for {
		d := j.schedule.earliest(next).Sub(j.opt.Now())
		if d <= 0 {
			return !j.closing()
		}
		timer := time.NewTimer(d)
		select {
		case <-timer.C:
		case <-j.schedule.changed:
			timer.Stop()
		case <-j.stop:
			timer.Stop()
			return false
		}
	}
}

// poll takes one batch into the free room.
func (j *Engine) poll() {
	room := j.held.room()
	if room.Deliveries == 0 {
		return
	}
	now := j.opt.Now()
	lease := now.Add(j.opt.Lease)
	var work []*journal.Work
	err := j.call(opTake, min(j.opt.Timeout, j.opt.Lease), room.Deliveries, func(ctx context.Context) (err error) {
		work, err = j.store.Take(ctx, now, lease, room)
		return err
	})
	if err != nil || !j.opt.Now().Before(lease) {
		work = nil // what was taken in spite of it comes back when its lease ends
	}
	for _, it := range j.held.took(room, work, lease) {
		j.issue(it)
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
		select {
		case s.changed <- struct{}{}:
		default:
		}
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

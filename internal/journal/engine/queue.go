package engine

import (
	"bytes"
	"slices"
	"sync"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// queue holds requests until a writer commits them, and knows which keys are on their way.
type queue struct {
	maxEntries int
	maxBytes   int64
	wake       chan struct{} // tells one writer that requests wait; closed when the queue is

	mu        sync.Mutex
	closed    bool
	requests  []*request
	inflight  map[hookonce.Ref]*slot // the first copy of every key that is queued or being committed
	entries   int
	bytes     int64
	gone      int  // of the requests: nobody waits for them
	fruitless bool // the last look for such as can go found none, and nothing has changed since
}

func newQueue(maxEntries int, maxBytes int64) *queue {
	return &queue{
		maxEntries: maxEntries,
		maxBytes:   maxBytes,
		wake:       make(chan struct{}, 1),
		inflight:   map[hookonce.Ref]*slot{},
	}
}

// add queues r's slots, or attaches them to the first copies of their events. It fails with ErrFull or ErrClosed and then
// has changed nothing. A request that alone exceeds the bounds is let into an empty queue, or it
// could never be accepted.
func (q *queue) add(r *request) error {
	for i := range r.slots {
		r.bytes += r.slots[i].event.Size()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return journal.ErrClosed
	case q.fits(r):
	default:
		if q.dropGone(r); !q.fits(r) {
			return journal.ErrFull
		}
	}
	q.entries += len(r.slots)
	q.bytes += r.bytes
	r.left = len(r.slots)
	for i := range r.slots {
		if s := &r.slots[i]; !q.follow(s) {
			r.lead = append(r.lead, s)
		}
	}
	if len(r.lead) > 0 {
		r.queued = true
		q.requests = append(q.requests, r)
		q.signal()
	}
	return nil
}

func (q *queue) fits(r *request) bool {
	return q.entries == 0 || q.entries+len(r.slots) <= q.maxEntries && q.bytes+r.bytes <= q.maxBytes
}

// abandon says that nobody waits for r any more. It is stored all the same, unless others need its place: while the store hangs,
// senders that were told to come again would keep out those that nobody has told yet.
func (q *queue) abandon(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.gone = true; r.queued {
		q.gone++
	}
	q.fruitless = false
}

// dropGone takes out requests that nobody waits for, the oldest first, until next fits. Those stay whose events somebody else sent as
// well, who waits for them. The caller holds the mutex.
func (q *queue) dropGone(next *request) {
	if q.gone == 0 || q.fruitless {
		return
	}
	before := len(q.requests)
	q.requests = slices.DeleteFunc(q.requests, func(r *request) bool {
		if !r.gone || q.fits(next) || len(r.lead) < len(r.slots) || slices.ContainsFunc(r.lead, (*slot).awaited) {
			return false
		}
		for _, s := range r.lead {
			q.removeAll(s)
		}
		q.gone--
		return true
	})
	q.fruitless = len(q.requests) == before
}

// awaited reports whether somebody waits for a copy of s. The caller holds the mutex of the queue.
func (s *slot) awaited() bool {
	for f := s.followers; f != nil; f = f.next {
		if !f.request.gone {
			return true
		}
	}
	return false
}

// follow attaches s to the first copy of its event, if that is on its way. A copy with another digest
// does not follow: only the store can say which of the two is in conflict with what it holds. Nor does
// what coalesces: the store may have found already that an earlier event waits, which may have begun by
// now. An event from a list neither follows nor is followed: it has no digest, and re-drives nothing.
func (q *queue) follow(s *slot) bool {
	e := s.event
	if e.Key == "" || journal.Coalesces(e.Key) || e.Listed {
		return false
	}
	lead, ok := q.inflight[e.Ref()]
	if !ok {
		q.inflight[e.Ref()] = s
		return false
	}
	if !bytes.Equal(lead.event.Digest, e.Digest) {
		return false
	}
	s.next, lead.followers = lead.followers, s
	return true
}

// signal wakes a writer. The caller holds the mutex and the queue is not closed.
func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// drain appends the next slots to commit to batch: whole requests, at most limit slots unless the
// first request alone has more, and none after those of [journal.MaxBatchBytes]. It reports false when the queue is empty
// and closed.
func (q *queue) drain(batch []*slot, limit int) ([]*slot, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, int64(0)
	for n < len(q.requests) && bytes < journal.MaxBatchBytes {
		lead := q.requests[n].lead
		if len(batch) > 0 && len(batch)+len(lead) > limit {
			break
		}
		batch = append(batch, lead...)
		for _, s := range lead { // what follows them does not go to the store
			bytes += s.event.Size()
		}
		if q.requests[n].queued = false; q.requests[n].gone {
			q.gone--
		}
		n++
	}
	left := copy(q.requests, q.requests[n:])
	clear(q.requests[left:])
	q.requests = q.requests[:left]
	if left > 0 && !q.closed {
		q.signal()
	}
	return batch, len(batch) > 0 || !q.closed
}

// leave forgets slots whose commit has ended, with their followers, which nobody can join any more.
func (q *queue) leave(batch []*slot) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range batch {
		q.removeAll(s)
	}
	q.fruitless = false
}

// removeAll forgets a slot, which nothing can follow any more, and those that do.
func (q *queue) removeAll(s *slot) {
	if k := s.event.Ref(); q.inflight[k] == s {
		delete(q.inflight, k)
	}
	q.forget(s)
	for f := s.followers; f != nil; f = f.next {
		q.forget(f)
	}
}

func (q *queue) forget(s *slot) {
	q.entries--
	q.bytes -= s.event.Size()
}

// close refuses further requests; what is queued can still be drained.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	close(q.wake)
}

// depth returns how many entries and bytes wait.
func (q *queue) depth() (entries int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.entries, q.bytes
}

// full reports whether the queue is at one of its bounds.
func (q *queue) full() bool {
	entries, bytes := q.depth()
	return entries >= q.maxEntries || bytes >= q.maxBytes
}

// request is one call of [Engine.Accept] on its way through the queue.
type request struct {
	slots   []slot  // the events that need the store, or follow a copy that does
	lead    []*slot // those of them that go to the store
	bytes   int64
	results []journal.Result
	settled chan struct{} // receives once when no slot is left
	queued  bool          // it is among the queue's requests, whose mutex guards it
	gone    bool          // and nobody waits for it

	mu   sync.Mutex
	left int
	err  error
}

func newRequest() any { return &request{settled: make(chan struct{}, 1)} }

// reset makes r ready for n events. The slots must not move once they are queued, so they get their
// room here.
func (r *request) reset(n int) {
	if cap(r.slots) < n {
		r.slots = make([]slot, 0, n)
	}
	r.results = make([]journal.Result, n)
}

// slot is one event of a request. Copies of it that arrive before its commit follow it.
type slot struct {
	event     *journal.Event
	request   *request
	index     int
	followers *slot // the first of a list linked through next
	next      *slot
}

// settle answers one slot and wakes the caller when it was the last. The slot must not be touched
// afterwards.
func (s *slot) settle(res journal.Result, err error) {
	r := s.request
	r.mu.Lock()
	r.results[s.index] = res
	if err != nil {
		r.err = err
	}
	r.left--
	last := r.left == 0
	r.mu.Unlock()
	if last {
		r.settled <- struct{}{}
	}
}

// settleAll answers s and the copies that follow it. None may be touched afterwards.
func (s *slot) settleAll(res, followers journal.Result, err error) {
	for f := s.followers; f != nil; {
		next := f.next
		f.settle(followers, err)
		f = next
	}
	s.settle(res, err)
}

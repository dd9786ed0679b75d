package ingest

import (
	"container/heap"
	"container/list"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/connlimit"
	"github.com/hookonce/hookonce/internal/quota"
)

// stallTime is how long a body may be on its way without having doubled before it is the first to go when there is
// no room: a sender that means it has sent its body by then.
const stallTime = time.Second

// bodies is the memory for bodies, which all sources share.
type bodies struct {
	quota.Pool
	mu      sync.Mutex // of all that they hold: one source makes room for another
	sources []*bodyMemory
}

// source returns the part of one more source, which holds nothing.
func (b *bodies) source() *bodyMemory {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &bodyMemory{all: b, share: b.Share(), senders: map[netip.Prefix]*sender{}}
	b.sources = append(b.sources, s)
	return s
}

// stalled returns the body that has stalled for longest in the source that holds the most, of those that hold more than held;
// nil: there is none. The caller holds the mutex.
func (b *bodies) stalled(held int64) (h *requestState) {
	for _, s := range b.sources {
		used := s.share.Used()
		if used <= held {
			continue
		}
		if stalled := s.stalled(); stalled != nil {
			h, held = stalled, used
		}
	}
	return h
}

// bodyMemory is what the requests to one source hold of the memory for bodies.
//
// Within it every address has a share as every source has one of the whole: an address that holds something of requests that
// are not verified gets more only while as much as it then holds is left free, beside what its source must leave. One
// address alone comes to hold a third of the memory, or a half if there is one source only, and there always is
// something left for the next one.
//
// Where there is no room, room is made: the body that has stalled for longest is given up, or else the oldest of the address
// that holds the most, unless whoever asks holds more. A sender that completes its body at once gets in, wherever
// it sends from. Where that makes no room in the source, one that has stalled in a source that holds more is given up: so
// bodies that never end, at however many sources, leave room for the next one.
type bodyMemory struct {
	all   *bodies
	share *quota.Share

	// The rest is guarded by all.mu.
	senders  map[netip.Prefix]*sender
	arriving list.List // bodies that can be given up, the one that grew least recently first
	weights  weights   // the senders of these
	leaving  int64     // what is still held by those that were given up for it
	queue    list.List // whoever waits for that
	wanted   int64     // by them
}

// sender is an address that sends bodies which are not verified.
type sender struct {
	from     netip.Prefix
	bytes    int64
	arriving list.List // its part of that of bodyMemory
	index    int       // in weights
}

// requestState is what one request holds. It belongs to the goroutine of the request.
type requestState struct {
	of     *bodyMemory
	from   netip.Prefix
	socket *http.ResponseController

	// The rest is guarded by of.all.mu.
	bytes    int64
	sender   *sender     // nil before it holds anything, and when it is verified
	settled  bool        // it is complete, or nothing can end a read of it: it is not given up
	evicted  *bodyMemory // for which it was given up; nil: it was not
	grown    time.Time
	order    [2]*list.Element // in arriving of bodyMemory and of sender
	asked    int64            // while it waits
	place    *list.Element    // in queue, while it waits
	answered chan bool
}

// hold returns what a request from an address holds: nothing yet. The owner calls release in the end.
func (s *bodyMemory) hold(from netip.Addr, w http.ResponseWriter) *requestState {
	return &requestState{of: s, from: connlimit.Network(from), socket: http.NewResponseController(w)}
}

// Take takes n bytes, if need be when others that were given up have left them. It returns false if there is no room, or if the
// request itself was given up.
func (h *requestState) Take(n int64) bool {
	s := h.of
	s.all.mu.Lock()
	switch {
	case h.evicted != nil:
		s.all.mu.Unlock()
		return false
	case s.grab(h, n):
		s.all.mu.Unlock()
		return true
	}
	for s.leaving < s.wanted+n && s.evict(h) {
	}
	if s.leaving == 0 || h.evicted != nil {
		s.all.mu.Unlock()
		return false
	}
	h.asked, h.place, h.answered = n, s.queue.PushBack(h), make(chan bool, 1)
	s.wanted += n
	s.all.mu.Unlock()
	return <-h.answered
}

// grab takes n bytes if they are free. The caller holds the mutex, here and below.
func (s *bodyMemory) grab(h *requestState, n int64) bool {
	from := s.senders[h.from]
	if from == nil {
		from = &sender{from: h.from, index: -1}
	}
	if !s.share.TakeBeside(n, from.bytes) {
		return false
	}
	s.senders[h.from], h.sender = from, from
	h.bytes += n
	s.weigh(from, n)
	s.arrive(h)
	return true
}

// arrive puts h behind all that grew before.
func (s *bodyMemory) arrive(h *requestState) {
	if h.settled {
		return
	}
	h.grown = time.Now() // beside the deadlines of sockets, which count in real time
	if h.order[0] != nil {
		s.arriving.MoveToBack(h.order[0])
		h.sender.arriving.MoveToBack(h.order[1])
		return
	}
	h.order = [2]*list.Element{s.arriving.PushBack(h), h.sender.arriving.PushBack(h)}
	if h.sender.index < 0 {
		heap.Push(&s.weights, h.sender)
	}
}

// settle takes h out of those that can be given up.
func (s *bodyMemory) settle(h *requestState) {
	h.settled = true
	if h.order[0] == nil {
		return
	}
	s.arriving.Remove(h.order[0])
	h.sender.arriving.Remove(h.order[1])
	h.order = [2]*list.Element{}
	if h.sender.arriving.Len() == 0 {
		heap.Remove(&s.weights, h.sender.index)
	}
}

// weigh adds n to what a sender holds, and forgets one that holds nothing.
func (s *bodyMemory) weigh(from *sender, n int64) {
	from.bytes += n
	if from.index >= 0 {
		heap.Fix(&s.weights, from.index)
	}
	if from.bytes == 0 {
		delete(s.senders, from.from)
	}
}

// past is a time at which every read is over.
var past = time.Unix(1, 0)

// evict gives a body up in favour of another, and returns false if there is none that should go rather than that one. Those
// whose reads cannot be ended stay.
func (s *bodyMemory) evict(favour *requestState) bool {
	for h := s.victim(favour); h != nil; h = s.victim(favour) {
		h.of.settle(h)
		switch {
		case h.place != nil:
			h.of.answer(h, false)
		case h.socket.SetReadDeadline(past) != nil:
			continue
		}
		h.evicted = s
		s.leaving += h.bytes
		return true
	}
	return false
}

// victim returns the body that goes first, nil if there is none.
func (s *bodyMemory) victim(favour *requestState) *requestState {
	if h := s.own(favour); h != nil {
		return h
	}
	return s.all.stalled(s.share.Used())
}

// own returns the body of the source that goes first, nil if there is none.
func (s *bodyMemory) own(favour *requestState) *requestState {
	h := s.stalled()
	if h == nil && len(s.weights) > 0 {
		heaviest := s.weights[0]
		if from := s.senders[favour.from]; from != nil && from.bytes > heaviest.bytes {
			return nil
		}
		h = heaviest.arriving.Front().Value.(*requestState)
	}
	if h == favour {
		return nil
	}
	return h
}

// stalled returns the body that has stalled for longest, nil if none has.
func (s *bodyMemory) stalled() *requestState {
	oldest := s.arriving.Front()
	if oldest == nil {
		return nil
	}
	h := oldest.Value.(*requestState)
	if time.Since(h.grown) < stallTime {
		return nil
	}
	return h
}

// answer ends the waiting of h.
func (s *bodyMemory) answer(h *requestState, ok bool) {
	s.queue.Remove(h.place)
	s.wanted -= h.asked
	h.place = nil
	h.answered <- ok
}

// serve answers those that wait, as far as there is room, or none to come.
func (s *bodyMemory) serve() {
	for first := s.queue.Front(); first != nil; first = s.queue.Front() {
		h := first.Value.(*requestState)
		switch {
		case s.grab(h, h.asked):
			s.answer(h, true)
		case s.leaving > 0 || s.evict(h):
			return
		default:
			s.answer(h, false)
		}
	}
}

// Give returns n bytes.
func (h *requestState) Give(n int64) {
	h.of.all.mu.Lock()
	defer h.of.all.mu.Unlock()
	h.drop(n)
}

func (h *requestState) drop(n int64) {
	if n == 0 {
		return
	}
	s := h.of
	s.share.Give(n)
	h.bytes -= n
	if h.sender != nil {
		s.weigh(h.sender, -n)
	}
	if h.bytes == 0 {
		h.sender = nil
	}
	if to := h.evicted; to != nil {
		to.leaving -= n
		to.serve()
	}
	if h.evicted != s {
		s.serve()
	}
}

// complete says that the body is there. It returns false if it was given up before.
func (h *requestState) complete() bool {
	h.of.all.mu.Lock()
	defer h.of.all.mu.Unlock()
	if h.evicted == nil {
		h.of.settle(h)
	}
	return h.evicted == nil
}

// verified says that the sender is who it should be: what it holds counts no more towards what its address may. What another cell
// hands on is held as that one's, and h is nil.
func (h *requestState) verified() {
	if h == nil {
		return
	}
	h.of.all.mu.Lock()
	defer h.of.all.mu.Unlock()
	if h.sender != nil {
		h.of.weigh(h.sender, -h.bytes)
		h.sender = nil
	}
}

// release gives everything back.
func (h *requestState) release() {
	h.of.all.mu.Lock()
	defer h.of.all.mu.Unlock()
	if h.evicted == nil {
		h.of.settle(h)
	}
	h.drop(h.bytes)
}

// weights are senders whose bodies can be given up, the one that holds the most first.
type weights []*sender

func (w weights) Len() int           { return len(w) }
func (w weights) Less(i, j int) bool { return w[i].bytes > w[j].bytes }
func (w weights) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].index, w[j].index = i, j
}

func (w *weights) Push(x any) {
	s := x.(*sender)
	s.index = len(*w)
	*w = append(*w, s)
}

func (w *weights) Pop() any {
	last := len(*w) - 1
	s := (*w)[last]
	s.index, (*w)[last] = -1, nil
	*w = (*w)[:last]
	return s
}

package bypass

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// passage is one event that is delivered past the store.
type passage struct {
	event *journal.Event
	id    int64
	// The mutex of passages guards these two: it is being delivered, or recorded as far as it is done.
	underway, recording bool

	mu   sync.Mutex
	done map[string]journal.Outcome // by destination
}

func (p *passage) took(o journal.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[o.Destination] = o
}

// missing returns the destinations that have not taken the event.
func (p *passage) missing() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.event.Destinations), func(name string) bool {
		_, done := p.done[name]
		return done
	})
}

// complete reports whether everything was delivered that was asked for. The caller holds the mutex of passages.
func (p *passage) complete() bool { return !p.underway && len(p.missing()) == 0 }

// outcomes returns what the destinations came to that have taken the event, in their order.
func (p *passage) outcomes() (all []journal.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.done)) {
		all = append(all, p.done[name])
	}
	return all
}

// work is a delivery under no token.
func (p *passage) work(destination string) *journal.Work {
	e := p.event
	return &journal.Work{
		Held:   journal.Held{EventID: p.id, Destination: destination},
		Source: e.Source, Key: e.Key, Type: e.Type, Tries: 1, Header: e.Lines(), Body: e.Body,
		ReceivedAt: e.ReceivedAt, Resource: e.Resource, Rank: e.Rank, Vouched: e.Vouched, Unprotected: true,
	}
}

// duplicate is what a copy of the event learns.
func (p *passage) duplicate(e *journal.Event) journal.Result {
	res := journal.Result{Status: journal.Duplicate, ID: p.id, Done: true}
	if !e.Listed && !bytes.Equal(p.event.Digest, e.Digest) {
		res.Status = journal.Conflict
	}
	return res
}

// passages are the events that were delivered past the store and are not on record yet, and what is remembered of those that came
// on record lately.
type passages struct {
	maxEvents int
	maxBytes  int64
	late      time.Duration // for how long it is remembered, see recorded
	wake      chan struct{} // receives when there is something to record
	count     atomic.Int64  // of what is in of and in taken: usually none, which costs nothing to know

	mu    sync.Mutex
	of    map[hookonce.Ref]*passage
	taken map[hookonce.Ref][]string // of what is on record: the destinations that have taken it
	bytes int64
}

func newPassages(maxEvents int, maxBytes int64, late time.Duration) *passages {
	return &passages{
		maxEvents: maxEvents, maxBytes: maxBytes, late: late, wake: make(chan struct{}, 1),
		of: map[hookonce.Ref]*passage{}, taken: map[hookonce.Ref][]string{},
	}
}

// begin returns the passage of an event, under this identifier if it is new. It is the caller's until end. A nil
// one comes with the result of a copy: the event's is complete.
func (s *passages) begin(e *journal.Event, id int64) (*passage, journal.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := e.Ref()
	switch p := s.of[key]; {
	case s.taken[key] != nil:
		return nil, journal.Result{}, errRecorded
	case p == nil:
	case p.complete():
		return nil, p.duplicate(e), nil
	case p.underway || p.recording:
		return nil, journal.Result{}, errUnderway
	case p.duplicate(e).Status == journal.Conflict:
		return nil, journal.Result{}, fmt.Errorf("%w: and the event has the key of another that is not recorded yet", journal.ErrUnavailable)
	default:
		p.underway = true
		return p, journal.Result{Status: journal.Unprotected, ID: p.id}, nil
	}
	weight := e.Size()
	if len(s.of)+len(s.taken) >= s.maxEvents || s.bytes+weight > s.maxBytes {
		return nil, journal.Result{}, fmt.Errorf("%w: of events that were delivered past the store", journal.ErrFull)
	}
	p := &passage{event: e, id: id, underway: true, done: map[string]journal.Outcome{}}
	s.of[key] = p
	s.bytes += weight
	s.counted()
	return p, journal.Result{Status: journal.Unprotected, ID: id}, nil
}

// end gives a passage back. If nobody took the event there is nothing to remember.
func (s *passages) end(p *passage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.underway = false; len(p.outcomes()) == 0 {
		s.forget(p)
		s.counted()
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// lookup answers for a copy of an event that was delivered past the store. One whose delivery is not
// complete can be recorded neither as new nor as done.
func (s *passages) lookup(e *journal.Event) (res journal.Result, known bool, err error) {
	if s.count.Load() == 0 || e.Key == "" {
		return journal.Result{}, false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch p := s.of[e.Ref()]; {
	case p == nil:
		return journal.Result{}, false, nil
	case p.complete():
		return p.duplicate(e), true, nil
	}
	return journal.Result{}, false, errUnderway
}

// has reports whether an event is being delivered past the store, or was and is not on record, or a destination of one that came
// on record lately has taken it.
func (s *passages) has(source, key, destination string) bool {
	if s.count.Load() == 0 || key == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ref := hookonce.Ref{Source: source, Key: key}
	return s.of[ref] != nil || slices.Contains(s.taken[ref], destination)
}

// known says which keys of a source are those of passages that have ended and are to be recorded.
func (s *passages) known(source string, keys []string) map[string]journal.Known {
	if s.count.Load() == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[string]journal.Known{}
	for _, key := range keys {
		p := s.of[hookonce.Ref{Source: source, Key: key}]
		if p == nil || p.underway {
			continue
		}
		k := journal.Known{ID: p.id, ReceivedAt: p.event.ReceivedAt, Verified: true, State: journal.Pending}
		if p.complete() {
			k.State = journal.Done
		}
		known[key] = k
	}
	return known
}

// batch returns passages that have ended and are to be recorded, and takes them for the caller.
func (s *passages) batch(limit int) (batch []*passage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bytes := int64(0)
	for _, p := range s.of {
		if len(batch) == limit || bytes >= journal.MaxBatchBytes {
			break
		}
		if !p.underway && !p.recording {
			p.recording = true
			batch = append(batch, p)
			bytes += p.event.Size()
		}
	}
	return batch
}

// recorded forgets passages that are on record, or gives them back. What their destinations have taken is remembered for a while:
// a call that leased it to this process before may be answered only now, because its answer was lost and sent again.
func (s *passages) recorded(batch []*passage, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []hookonce.Ref
	for _, p := range batch {
		if p.recording = false; ok {
			s.forget(p)
			key := p.event.Ref()
			for _, o := range p.outcomes() {
				s.taken[key] = append(s.taken[key], o.Destination)
			}
			keys = append(keys, key)
		}
	}
	s.counted()
	if ok {
		time.AfterFunc(s.late, func() { s.lapse(keys) })
	}
}

// lapse forgets what is on record.
func (s *passages) lapse(keys []hookonce.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		delete(s.taken, key)
	}
	s.counted()
}

// unrecorded returns how many are not on record.
func (s *passages) unrecorded() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of)
}

// forget removes a passage. The caller holds the mutex, and calls counted.
func (s *passages) forget(p *passage) {
	delete(s.of, p.event.Ref())
	s.bytes -= p.event.Size()
}

// counted follows a change of what is remembered. The caller holds the mutex.
func (s *passages) counted() { s.count.Store(int64(len(s.of) + len(s.taken))) }

package engine

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hookonce/hookonce/internal/journal"
)

// detour is one event on its way past the store.
type detour struct {
	entry *journal.Event
	// The mutex of detours guards these two: it is being delivered, or recorded as far as it is done.
	underway, recording bool

	mu   sync.Mutex
	done map[string]journal.Outcome // by destination
}

func (d *detour) took(o journal.Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done[o.Destination] = o
}

// missing returns the destinations that have not taken the event.
func (d *detour) missing() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.entry.Destinations), func(name string) bool {
		_, done := d.done[name]
		return done
	})
}

// complete reports whether everything was delivered that was asked for. The caller holds the mutex of detours.
func (d *detour) complete() bool { return !d.underway && len(d.missing()) == 0 }

// outcomes returns what the destinations came to that have taken the event, in their order.
func (d *detour) outcomes() (all []journal.Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(d.done)) {
		all = append(all, d.done[name])
	}
	return all
}

// work is a delivery under no token.
func (d *detour) work(destination string) *journal.Work {
	e := d.entry
	return &journal.Work{
		Held:   journal.Held{EventID: e.ID, Destination: destination},
		Source: e.Source, Key: e.Key, Type: e.Type, Tries: 1, Header: e.Lines(), Body: e.Body,
		ReceivedAt: e.ReceivedAt, Resource: e.Resource, Rank: e.Rank, Vouched: e.Vouched, Unprotected: true,
	}
}

// copyResult is what a copy of the event learns.
func (d *detour) copyResult(e *journal.Event) journal.Result {
	res := journal.Result{Status: journal.Duplicate, ID: d.entry.ID, Done: true}
	if !bytes.Equal(d.entry.Digest, e.Digest) {
		res.Status = journal.Conflict
	}
	return res
}

// detours are the events that were delivered past the store and are not on record yet.
type detours struct {
	maxEntries int
	maxBytes   int64
	wake       chan struct{} // tells the reconciler that there is something to record
	count      atomic.Int64  // of what is in of: usually none, which costs nothing to know

	mu    sync.Mutex
	of    map[ref]*detour
	bytes int64
}

func newDetours(opt Options) *detours {
	return &detours{maxEntries: opt.QueueEntries, maxBytes: opt.QueueBytes, wake: make(chan struct{}, 1), of: map[ref]*detour{}}
}

// begin returns the detour of an event, which is the caller's until end, or nil and the result of a copy if
// it is complete.
func (s *detours) begin(e *journal.Event) (*detour, journal.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := ref{e.Source, e.Key}
	switch d := s.of[key]; {
	case d == nil:
	case d.complete():
		return nil, d.copyResult(e), nil
	case d.underway || d.recording:
		return nil, journal.Result{}, errOnItsWay
	case d.copyResult(e).Status == journal.Conflict:
		return nil, journal.Result{}, fmt.Errorf("%w: and the event has the key of another that is not recorded yet", journal.ErrUnavailable)
	default:
		d.underway = true
		return d, journal.Result{Status: journal.Unprotected, ID: d.entry.ID}, nil
	}
	weight := e.Size()
	if len(s.of) >= s.maxEntries || s.bytes+weight > s.maxBytes {
		return nil, journal.Result{}, fmt.Errorf("%w: of events that were delivered past the store", journal.ErrFull)
	}
	d := &detour{entry: e, underway: true, done: map[string]journal.Outcome{}}
	s.of[key] = d
	s.bytes += weight
	s.count.Add(1)
	return d, journal.Result{Status: journal.Unprotected, ID: e.ID}, nil
}

// end gives a detour back. If nobody took the event there is nothing to remember.
func (s *detours) end(d *detour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.underway = false; len(d.outcomes()) == 0 {
		s.forget(d)
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// forget removes a detour. The caller holds the mutex.
func (s *detours) forget(d *detour) {
	delete(s.of, ref{d.entry.Source, d.entry.Key})
	s.bytes -= d.entry.Size()
	s.count.Add(-1)
}

// lookup answers for a copy of an event that was delivered past the store. One whose delivery is not
// complete can be recorded neither as new nor as done.
func (s *detours) lookup(e *journal.Event) (res journal.Result, known bool, err error) {
	if s.count.Load() == 0 || e.Key == "" {
		return journal.Result{}, false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch d := s.of[ref{e.Source, e.Key}]; {
	case d == nil:
		return journal.Result{}, false, nil
	case d.complete():
		return d.copyResult(e), true, nil
	}
	return journal.Result{}, false, errOnItsWay
}

// has reports whether an event is on its way past the store, or was delivered so and is not on record.
func (s *detours) has(source, key string) bool {
	if s.count.Load() == 0 || key == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[ref{source, key}] != nil
}

// batch returns detours that have ended and are to be recorded, and takes them for the caller.
func (s *detours) batch(limit int) (batch []*detour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.of {
		if len(batch) == limit {
			break
		}
		if !d.underway && !d.recording {
			d.recording = true
			batch = append(batch, d)
		}
	}
	return batch
}

// recorded forgets detours that are on record, or gives them back.
func (s *detours) recorded(batch []*detour, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range batch {
		if d.recording = false; ok {
			s.forget(d)
		}
	}
}

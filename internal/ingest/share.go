package ingest

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
)

// pool bounds something that the requests of all sources use at the same moment, such as memory. Every
// source has a share of it.
//
// A source that holds something already gets more of it only while as much as it then holds is left
// free. One source alone thus comes to hold a half, two a third each, and there always is something left
// for the next one, without a part that is set aside for each and mostly lies idle.
type pool struct {
	max     atomic.Int64
	several atomic.Bool // sources
	used    atomic.Int64

	waiters atomic.Int64 // of claims
	mu      sync.Mutex
	freed   chan struct{} // closed when something is given back; nil if nobody has looked for it
}

// share is the part of one source.
type share struct {
	*pool
	own atomic.Int64
}

// take takes n, or fails at once, and the sender comes again. What alone is more than there is
// gets it when nobody holds anything, or it never would.
func (s *share) take(n int64) bool { return s.takeBeside(n, 0) }

// takeBeside is take for one of several that use the share, which holds some already and follows the same rule within it: as
// much as it then holds must be left free beside what the source must leave.
func (s *share) takeBeside(n, already int64) bool {
	left := int64(0)
	if already > 0 {
		left = already + n
	}
	if own, all := s.own.Add(n), s.used.Add(n); !s.fits(n, own, all, left) {
		s.give(n)
		return false
	}
	return true
}

// fits reports whether a source may take n if it then has own, and everybody all, and left must be left free besides.
func (s *share) fits(n, own, all, left int64) bool {
	if s.several.Load() && own > n {
		left += own
	}
	return all == n || all+left <= s.max.Load()
}

// claim takes n and waits until there is room for it, which nobody else can take meanwhile: what is freed is left to
// those who have a claim. It fails when ctx ends before.
func (s *share) claim(ctx context.Context, n int64) error {
	s.add(n)
	s.waiters.Add(1)
	defer s.waiters.Add(-1)
	for {
		freed := s.watch()
		if s.fits(n, s.own.Load(), s.used.Load(), 0) {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			s.give(n)
			return context.Cause(ctx)
		}
	}
}

// watch returns a channel that is closed when something is given back from now on.
func (p *pool) watch() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.freed == nil {
		p.freed = make(chan struct{})
	}
	return p.freed
}

// add takes n whether there is room or not.
func (s *share) add(n int64) {
	s.own.Add(n)
	s.used.Add(n)
}

// give returns what was taken.
func (s *share) give(n int64) {
	s.add(-n)
	if s.waiters.Load() > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.freed != nil {
			close(s.freed)
			s.freed = nil
		}
	}
}

// pools are those of a handler.
type pools struct {
	reading        pool // bytes of bodies, and of answers of services: see Options.MaxReading
	waiting        pool // bytes of bodies whose events are stored part after part: half of those for reading
	entries, bytes pool // of the journal's queue
	turns          turns
}

// fit makes the pools those for these sources. That of bodies has room for one of the largest
// source at least, which could never be accepted otherwise, and for what its address and its source must leave free.
func (p *pools) fit(o Options) {
	largest := int64(0)
	for _, s := range o.Sources {
		largest = max(largest, 2*(cmp.Or(s.MaxBody, DefaultMaxBody)+1)) // see grow
	}
	for _, s := range o.Services {
		largest = max(largest, 2*(cmp.Or(s.MaxBody, DefaultMaxBody)+1)+s.MaxAnswer) // see keptBody
	}
	several := len(o.Sources)+len(o.Services) > 1
	reading := 2 * largest // and its address must leave as much
	if several {
		reading += largest // and its source
	}
	reading = max(o.MaxReading, reading)
	p.reading.fit(reading, several)
	p.waiting.fit(reading/2, several)
	p.turns.fit(partsOf(o))
	p.entries.fit(int64(o.MaxQueued), several)
	p.bytes.fit(o.MaxQueuedBytes, several)
}

// fit sets the bound. What is taken stays taken.
func (p *pool) fit(most int64, several bool) {
	p.max.Store(most)
	p.several.Store(several)
}

// shares are those of one source.
type shares struct {
	reading                 *reading
	waiting, entries, bytes *share
	lane                    *lane
}

func (p *pools) share() shares {
	return shares{
		reading: newReading(&share{pool: &p.reading}), waiting: &share{pool: &p.waiting},
		entries: &share{pool: &p.entries}, bytes: &share{pool: &p.bytes}, lane: &lane{turns: &p.turns},
	}
}

// room is what was taken of the journal's queue.
type room struct {
	of             *shares
	entries, bytes int64
	claimed        bool // by waiting
}

// queue takes room in the journal's queue, if there is any.
func (s *shares) queue(entries int, bytes int64) (room, bool) {
	n := int64(entries)
	if !s.entries.take(n) {
		return room{}, false
	}
	if !s.bytes.take(bytes) {
		s.entries.give(n)
		return room{}, false
	}
	return room{of: s, entries: n, bytes: bytes}, true
}

// claim waits for room in the journal's queue. That is for whoever has its turn: of several that hold room and wait for more
// none would get it.
func (s *shares) claim(ctx context.Context, entries int, bytes int64) (room, error) {
	n := int64(entries)
	if err := s.entries.claim(ctx, n); err != nil {
		return room{}, err
	}
	if err := s.bytes.claim(ctx, bytes); err != nil {
		s.entries.give(n)
		return room{}, err
	}
	return room{of: s, entries: n, bytes: bytes, claimed: true}, nil
}

// become changes the room to what is used of it. If that is more it waits, unless it was there without waiting. On an error the
// room may be smaller, and is to be left all the same.
func (r *room) become(ctx context.Context, entries int, bytes int64) error {
	r.of.entries.give(r.entries - int64(entries))
	r.entries = int64(entries)
	if bytes <= r.bytes {
		r.of.bytes.give(r.bytes - bytes)
		r.bytes = bytes
		return nil
	}
	if r.of.bytes.take(bytes - r.bytes) {
		r.bytes = bytes
		return nil
	}
	if !r.claimed {
		return errFull
	}
	r.of.bytes.give(r.bytes)
	r.bytes = 0
	if err := r.of.bytes.claim(ctx, bytes); err != nil {
		return err
	}
	r.bytes = bytes
	return nil
}

// leave gives the room back.
func (r room) leave() {
	r.of.entries.give(r.entries)
	r.of.bytes.give(r.bytes)
}

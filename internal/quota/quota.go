// Package quota divides what several use at the same moment, such as memory or places in a queue, among
// them by one rule and without a part that is set aside for each and mostly lies idle: whoever holds
// something already gets more only while as much as he then holds is left free.
//
// One alone thus comes to hold a half, two a third each, and however many give nothing back, there always
// is something left for the next one.
package quota

import (
	"context"
	"sync"
	"sync/atomic"
)

// Leave returns how much must be left free by somebody who holds own and gets n more: as much as he then
// holds, or nothing if he held nothing.
func Leave(own, n int64) int64 {
	if own <= 0 {
		return 0
	}
	return own + n
}

// More returns how much somebody who holds own may get of what is free, for those who ask for as much as
// there is: the most that leaves what it must, see [Leave]. Of nothing it makes a half, and something as
// long as anything is free. It is never negative.
func More(own, free int64) int64 {
	if own <= 0 {
		return max(0, (free+1)/2)
	}
	return max(0, (free-own)/2)
}

// Pool is what is divided. The zero Pool has nothing to give but to one who asks while nobody holds anything;
// see [Pool.Resize]. Its methods are safe for concurrent use.
type Pool struct {
	size    atomic.Int64
	several atomic.Bool
	used    atomic.Int64

	waiters atomic.Int64 // in Claim
	mu      sync.Mutex
	freed   chan struct{} // closed when something is given back; nil if nobody has looked for it
}

// Resize sets how much there is, and whether several shares use it: one alone may take all of it. What is taken
// stays taken.
func (p *Pool) Resize(size int64, several bool) {
	p.size.Store(size)
	p.several.Store(several)
}

// Size returns how much there is, taken or free.
func (p *Pool) Size() int64 { return p.size.Load() }

// Used returns how much is taken.
func (p *Pool) Used() int64 { return p.used.Load() }

// Share is the part of one of those who use a [Pool]. Create it with [Pool.Share]; its methods are safe for
// concurrent use.
type Share struct {
	pool *Pool
	own  atomic.Int64
}

// Share returns a share of the pool that holds nothing.
func (p *Pool) Share() *Share { return &Share{pool: p} }

// Used returns how much the share holds.
func (s *Share) Used() int64 { return s.own.Load() }

// Take takes n, or takes nothing and reports false. What is more than there is at all can be taken while
// nobody holds anything, or it never could.
func (s *Share) Take(n int64) bool { return s.TakeBeside(n, 0) }

// TakeBeside is Take for one of several that divide the share among them by the same rule, and that holds
// already of it: what he must leave has to be free besides what the share must leave.
func (s *Share) TakeBeside(n, already int64) bool {
	if own, used := s.own.Add(n), s.pool.used.Add(n); !s.fits(n, own, used, Leave(already, n)) {
		s.Give(n)
		return false
	}
	return true
}

// fits reports whether the share may get n if it then has own, and everybody used, and besides is left free.
func (s *Share) fits(n, own, used, besides int64) bool {
	if s.pool.several.Load() {
		besides += Leave(own-n, n)
	}
	return used == n || used+besides <= s.pool.size.Load()
}

// Claim takes n and waits until there is room for it, which nobody else can take meanwhile: what is given back
// is left to those who have a claim. It fails, and takes nothing, when ctx ends before.
func (s *Share) Claim(ctx context.Context, n int64) error {
	s.add(n)
	s.pool.waiters.Add(1)
	defer s.pool.waiters.Add(-1)
	for {
		freed := s.pool.watch()
		if s.fits(n, s.own.Load(), s.pool.used.Load(), 0) {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			s.Give(n)
			return context.Cause(ctx)
		}
	}
}

// Give returns n of what was taken.
func (s *Share) Give(n int64) {
	s.add(-n)
	if s.pool.waiters.Load() > 0 {
		s.pool.tell()
	}
}

// add takes n whether there is room or not.
func (s *Share) add(n int64) {
	s.own.Add(n)
	s.pool.used.Add(n)
}

// watch returns a channel that is closed when something is given back from now on.
func (p *Pool) watch() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.freed == nil {
		p.freed = make(chan struct{})
	}
	return p.freed
}

// tell closes what watch returned.
func (p *Pool) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.freed != nil {
		close(p.freed)
		p.freed = nil
	}
}

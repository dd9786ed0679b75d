package ingest

import (
	"cmp"
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
}

// share is the part of one source.
type share struct {
	*pool
	own atomic.Int64
}

// take takes n, or fails at once. Nobody waits: a sender comes again. What alone is more than there is
// gets it when nobody holds anything, or it never would.
func (s *share) take(n int64) bool {
	own, all := s.own.Add(n), s.used.Add(n)
	switch {
	case all == n:
		return true
	case all <= s.max.Load() && (own == n || !s.several.Load() || own+all <= s.max.Load()):
		return true
	}
	s.give(n)
	return false
}

// give returns what was taken.
func (s *share) give(n int64) {
	s.own.Add(-n)
	s.used.Add(-n)
}

// pools are those of a handler.
type pools struct {
	reading        pool // bytes of bodies: see Options.MaxReading
	entries, bytes pool // of the journal's queue
}

// fit makes the pools those for these sources. That of bodies has room for one of the largest
// source at least, which could never be accepted otherwise, and for as much again that is left free.
func (p *pools) fit(o Options) {
	several, reading := len(o.Sources)+len(o.Services) > 1, o.MaxReading
	for _, s := range o.Sources {
		largest := 2 * (cmp.Or(s.MaxBody, DefaultMaxBody) + 1) // see grow
		if several {
			largest *= 2
		}
		reading = max(reading, largest)
	}
	for _, s := range o.Services {
		reading = max(reading, 2*(cmp.Or(s.MaxBody, DefaultMaxBody)+s.MaxAnswer))
	}
	p.reading.fit(reading, several)
	p.entries.fit(int64(o.MaxQueued), several)
	p.bytes.fit(o.MaxQueuedBytes, several)
}

// fit sets the bound. What is taken stays taken.
func (p *pool) fit(most int64, several bool) {
	p.max.Store(most)
	p.several.Store(several)
}

// shares are those of one source.
type shares struct{ reading, entries, bytes *share }

func (p *pools) share() shares {
	return shares{reading: &share{pool: &p.reading}, entries: &share{pool: &p.entries}, bytes: &share{pool: &p.bytes}}
}

// queue takes room in the journal's queue, and returns what gives it back, or nil if there is none.
func (s shares) queue(entries int, bytes int64) (leave func()) {
	n := int64(entries)
	if !s.entries.take(n) {
		return nil
	}
	if !s.bytes.take(bytes) {
		s.entries.give(n)
		return nil
	}
	return func() {
		s.entries.give(n)
		s.bytes.give(bytes)
	}
}

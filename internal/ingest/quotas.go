package ingest

import (
	"context"

	"github.com/hookonce/hookonce/internal/quota"
)

// pools are what the requests of all sources use at the same moment. Every source has a share of each.
type pools struct {
	reading        bodies     // bytes of bodies, and of answers of services: see Options.MaxReading
	waiting        quota.Pool // bytes of bodies whose events are stored part after part: half of those for reading
	entries, bytes quota.Pool // of the journal's queue
	turns          turns
}

// fit makes the pools those for these sources. That of bodies has room for one of the largest
// source at least, which could never be accepted otherwise, and for what its address and its source must leave free.
func (p *pools) fit(o Options) {
	largest := int64(0)
	for _, s := range o.Sources {
		largest = max(largest, 2*(s.MaxBody+1)) // see grow
	}
	for _, s := range o.Services {
		largest = max(largest, 2*(s.MaxBody+1)+s.MaxAnswer) // see keptBody
	}
	several := len(o.Sources)+len(o.Services) > 1
	reading := 2 * largest // and its address must leave as much
	if several {
		reading += largest // and its source
	}
	reading = max(o.MaxReading, reading)
	p.reading.Resize(reading, several)
	p.waiting.Resize(reading/2, several)
	p.turns.fit(partsOf(o))
	p.entries.Resize(int64(o.MaxQueued), several)
	p.bytes.Resize(o.MaxQueuedBytes, several)
}

// shares are those of one source.
type shares struct {
	reading                 *bodyMemory
	waiting, entries, bytes *quota.Share
	turns                   *sourceTurns
}

func (p *pools) share() shares {
	return shares{
		reading: p.reading.source(), waiting: p.waiting.Share(),
		entries: p.entries.Share(), bytes: p.bytes.Share(), turns: &sourceTurns{turns: &p.turns},
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
	if !s.entries.Take(n) {
		return room{}, false
	}
	if !s.bytes.Take(bytes) {
		s.entries.Give(n)
		return room{}, false
	}
	return room{of: s, entries: n, bytes: bytes}, true
}

// claim waits for room in the journal's queue. That is for whoever has its turn: of several that hold room and wait for more
// none would get it.
func (s *shares) claim(ctx context.Context, entries int, bytes int64) (room, error) {
	n := int64(entries)
	if err := s.entries.Claim(ctx, n); err != nil {
		return room{}, err
	}
	if err := s.bytes.Claim(ctx, bytes); err != nil {
		s.entries.Give(n)
		return room{}, err
	}
	return room{of: s, entries: n, bytes: bytes, claimed: true}, nil
}

// become changes the room to what is used of it. If that is more it waits, unless it was there without waiting. On an error the
// room may be smaller, and is to be left all the same.
func (r *room) become(ctx context.Context, entries int, bytes int64) error {
	r.of.entries.Give(r.entries - int64(entries))
	r.entries = int64(entries)
	if bytes <= r.bytes {
		r.of.bytes.Give(r.bytes - bytes)
		r.bytes = bytes
		return nil
	}
	if r.of.bytes.Take(bytes - r.bytes) {
		r.bytes = bytes
		return nil
	}
	if !r.claimed {
		return errFull
	}
	r.of.bytes.Give(r.bytes)
	r.bytes = 0
	if err := r.of.bytes.Claim(ctx, bytes); err != nil {
		return err
	}
	r.bytes = bytes
	return nil
}

// leave gives the room back.
func (r room) leave() {
	r.of.entries.Give(r.entries)
	r.of.bytes.Give(r.bytes)
}

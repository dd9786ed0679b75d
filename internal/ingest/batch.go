package ingest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// A request of many events is stored part after part, each in a commit of its own. Only the part that is in the
// queue is in memory, beside the body of the request.
const (
	// partEvents and partBytes are the most that a part has. It is 1/queueParts of the journal's queue, if that is less. Its
	// last event may go beyond the bytes, as far as there is room in the queue for it.
	partEvents = 256
	partBytes  = 1 << 20
	queueParts = 32
	// factsRoom is more than the facts of most events take, in bytes.
	factsRoom = 1 << 10
)

// parts says how large the parts are.
type parts struct {
	events int
	bytes  int64
}

func partsOf(o Options) parts {
	return parts{
		events: max(1, min(partEvents, o.MaxQueued/queueParts)),
		bytes:  max(1, min(partBytes, o.MaxQueuedBytes/queueParts)),
	}
}

// batch is the events of one request on their way into the journal.
type batch struct {
	*endpoint
	delivery *hookonce.Verified
	header   []byte // of the request, in the form of the journal
	now      time.Time
	left     int   // events that are still to be built
	leftSize int64 // of them, in bytes: their bodies, and about what is stored with each
	bypassed bool  // the store is unavailable, and what is left goes past it
	tally    tally
}

// chunk are those events of a batch that are stored together.
type chunk struct {
	events  []*hookonce.Event
	entries []*journal.Event
	bytes   int64
}

func (e *endpoint) batch(header []byte, d *hookonce.Verified, now time.Time) batch {
	b := batch{endpoint: e, delivery: d, header: header, now: now, left: d.Len()}
	b.leftSize = int64(b.left) * (int64(len(b.header)) + factsRoom)
	if d.Batch != nil {
		b.leftSize += d.Batch.Size
		return b
	}
	for i := range d.Events {
		b.leftSize += int64(len(d.Events[i].Body))
	}
	return b
}

// add builds the entry of an event.
func (b *batch) add(c *chunk, ev *hookonce.Event) {
	entry := b.entry(b.header, ev, b.delivery.Proof, b.now)
	c.events = append(c.events, ev)
	c.entries = append(c.entries, entry)
	c.bytes += entry.Size()
}

// one makes the event of a request that carries one durable.
func (b *batch) one(ctx context.Context) (c chunk, results []journal.Result, err error) {
	b.add(&c, first(b.delivery))
	room, ok := b.shares.queue(1, c.bytes)
	if !ok {
		return c, nil, errFull
	}
	defer room.leave()
	results, err = b.keep(ctx, &c)
	if err == nil {
		err = b.note(ctx, &c, results)
	}
	return c, results, err
}

// first returns the first event of a request that has one.
func first(d *hookonce.Verified) (ev *hookonce.Event) {
	if d.Batch == nil {
		return &d.Events[0]
	}
	for ev = range d.Batch.All {
		break
	}
	return ev
}

// all makes the events of a request durable, in order. What fits in a part, and finds room in the queue at once, is stored
// together. Anything else waits for its turn and for room, part after part, until the sender has been kept waiting for long
// enough. On an error nothing may be acknowledged: what was stored before it, or beside a row that was refused, is a
// duplicate when the sender comes again. Held is how large the body of the request is.
func (b *batch) all(ctx context.Context, held int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(b.acceptTimeout, b.source.Deadline)-b.endpoint.now().Sub(b.now))
	defer cancel()
	next, stop := iter.Pull(b.delivery.All())
	defer stop()
	var refused error
	turn := &turn{of: b.shares.lane}
	defer turn.end()
	if room, ok := b.fits(); ok {
		refused = b.part(ctx, next, room)
	} else if !b.shares.waiting.Take(held) {
		return errFull
	} else {
		defer b.shares.waiting.Give(held)
	}
	for b.left > 0 && (refused == nil || errors.Is(refused, errRowRefused)) {
		if err := b.nextPart(ctx, next, turn); err != nil {
			refused = err
		}
	}
	if _, more := next(); more && refused == nil {
		return b.miscounted()
	}
	return refused
}

// miscounted is the error of a provider that yields more events than it has said, or fewer.
func (b *batch) miscounted() error {
	return fmt.Errorf("the provider %s counts %d events in a batch and yields others", b.profile.Name, b.delivery.Len())
}

// fits takes room for all of the events, unless they are more than a part or there is none now.
func (b *batch) fits() (room, bool) {
	if p := b.shares.lane.parts(); b.left > p.events || b.leftSize > p.bytes {
		return room{}, false
	}
	return b.shares.queue(b.left, b.leftSize)
}

// nextPart stores the next events when it is their turn and there is room in the queue.
func (b *batch) nextPart(ctx context.Context, next func() (*hookonce.Event, bool), turn *turn) error {
	if err := turn.await(ctx, b.leftSize); err != nil {
		return fmt.Errorf("%w: waiting for the turn of a batch: %w", errFull, err)
	}
	p := b.shares.lane.parts()
	room, err := b.shares.claim(ctx, min(p.events, b.left), min(p.bytes, b.leftSize))
	if err != nil {
		return fmt.Errorf("%w: waiting for room for a part of a batch: %w", errFull, err)
	}
	return b.part(ctx, next, room)
}

// part builds events for which room was taken, and makes them durable.
func (b *batch) part(ctx context.Context, next func() (*hookonce.Event, bool), room room) error {
	defer func() { room.leave() }()
	var c chunk
	for int64(len(c.entries)) < room.entries && (c.bytes < room.bytes || len(c.entries) == 0) {
		ev, ok := next()
		if !ok {
			return b.miscounted()
		}
		b.add(&c, ev)
		b.left--
		b.leftSize -= int64(len(b.header)) + factsRoom + int64(len(ev.Body))
	}
	if err := room.become(ctx, len(c.entries), c.bytes); err != nil {
		return fmt.Errorf("%w: waiting for room for a large event of a batch: %w", errFull, err)
	}
	results, err := b.keep(ctx, &c)
	if err != nil {
		return err
	}
	return b.note(ctx, &c, results)
}

// keep makes events durable, or delivers them past the store if it is unavailable and all of the request may go there.
func (b *batch) keep(ctx context.Context, c *chunk) ([]journal.Result, error) {
	if !b.bypassed {
		results, err := b.store(ctx, c.entries)
		if err == nil || !b.opens(err, b.delivery) {
			return results, err
		}
		b.bypassed = true
		again := chunk{} // the journal may still have the entries
		for _, ev := range c.events {
			b.add(&again, ev)
		}
		*c = again
	}
	return b.bypass(ctx, c.entries, b.now)
}

// note says what became of events, and returns an error if the store refused one of them.
func (b *batch) note(ctx context.Context, c *chunk, results []journal.Result) (refused error) {
	for i, result := range results {
		ev := c.events[i]
		if result.Err != nil {
			refused = fmt.Errorf("%w: key %q: %w", errRowRefused, ev.Key, result.Err)
			continue
		}
		b.tally.add(result.Status)
		b.count(c.entries[i], result)
		routed := len(c.entries[i].Destinations) > 0
		b.log.event(ctx, b.now, ev, b.noted(b.delivery.Proof), result, routed)
		b.watcher.Stored(b.source.Name, ev, result, routed)
	}
	return refused
}

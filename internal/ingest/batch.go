package ingest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tracing"
)

// intake makes the events of one source durable.
type intake struct {
	source        Source
	router        *router
	drops         map[string]bool // types whose later logical duplicates are not delivered; none in mode sync
	journal       Journal
	bypasser      Bypasser
	attempt       journal.Attempter
	open          []pattern     // types that are delivered past the store; none: all
	shares        shares        // of what all sources use
	storing       *atomic.Int64 // requests that wait for the journal, of all sources
	acceptTimeout time.Duration
	now           func() time.Time
	log           eventLog
	watcher       Watcher
	metrics       sourceMetrics
}

func newIntake(s Source, o Options, log eventLog, m sourceMetrics, of shares, storing *atomic.Int64) *intake {
	in := newEntries(s)
	in.journal, in.bypasser, in.attempt, in.open = o.Journal, o.Bypasser, o.BypassAttempt, patterns(s.OpenTypes)
	in.shares, in.storing, in.acceptTimeout = of, storing, acceptTimeout(s, o)
	in.now, in.log, in.watcher, in.metrics = o.Now, log, o.Watcher, m
	return in
}

// newEntries returns an intake that only makes entries of events.
func newEntries(s Source) *intake {
	in := &intake{source: s, router: newRouter(s.Routes), drops: map[string]bool{}}
	if !s.Sync {
		for _, t := range s.DropLogicalDuplicates {
			in.drops[t] = true
		}
	}
	return in
}

// acceptTimeout is how long the journal may take: with Open, half of what there is.
func acceptTimeout(s Source, o Options) time.Duration {
	switch {
	case s.Open:
		return min(o.AcceptTimeout, s.Deadline/2)
	case s.Sync:
		return min(o.AcceptTimeout, s.Deadline)
	}
	return o.AcceptTimeout
}

// batch is the events of one request on their way into the journal.
type batch struct {
	*intake
	delivery *hookonce.Verified
	trace    *tracing.Request
	header   []byte // of the request, in the form of the journal
	now      time.Time
	delivers int64       // the number of the event that the request is a delivery of, as it says; 0: of none
	left     int         // events that are still to be built
	leftSize int64       // of them, in bytes: their bodies, and about what is stored with each
	bypassed bool        // the store is unavailable, and what is left goes past it
	cellMap  int64       // by which the events are accepted here, see [journal.Event]
	built    int         // events that were built
	stored   func(n int) // is told of each event of several that is on record, by its number; nil: nobody is
	statuses statusCounts
}

// chunk are those events of a batch that are stored together.
type chunk struct {
	from    int // the number of the first
	events  []*hookonce.Event
	entries []*journal.Event
	traces  []*tracing.Event // of each, or none at all
	bytes   int64
}

// fail ends the traces of events that were not stored.
func (c *chunk) fail(now time.Time) {
	for _, t := range c.traces {
		t.Fail(now)
	}
}

func (in *intake) batch(header []byte, d *hookonce.Verified, trace *tracing.Request, now time.Time) batch {
	b := batch{intake: in, delivery: d, trace: trace, header: header, now: now, left: d.Len()}
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
	entry.CellMap = b.cellMap
	c.events = append(c.events, ev)
	if t := b.trace.Event(ev, b.intake.now()); t != nil {
		c.traces = append(c.traces, t)
		entry.Facts = traced(entry.Facts, t)
	}
	c.entries = append(c.entries, entry)
	c.bytes += entry.Size()
}

// one makes the event of a request that carries one durable.
func (b *batch) one(ctx context.Context) (c chunk, results []journal.Result, err error) {
	b.add(&c, first(b.delivery))
	defer func() {
		if err != nil {
			c.fail(b.intake.now())
		}
	}()
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
func first(d *hookonce.Verified) *hookonce.Event {
	if d.Batch == nil {
		return &d.Events[0]
	}
	return firstOf(d.Batch)
}

// firstOf is apart because its loop has a variable in the heap, as requests without a batch need not.
func firstOf(b *hookonce.Batch) (ev *hookonce.Event) {
	for ev = range b.All {
		break
	}
	return ev
}

// all makes the events of a request durable, in order. What fits in a part, and finds room in the queue at once, is stored
// together. Anything else waits for its turn and for room, part after part, until the sender has been kept waiting for long
// enough. On an error nothing may be acknowledged: what was stored before it, or beside a row that was refused, is a
// duplicate when the sender comes again. Held is how large the body of the request is.
func (b *batch) all(ctx context.Context, held int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(b.acceptTimeout, b.source.Deadline)-b.intake.now().Sub(b.now))
	defer cancel()
	next, stop := iter.Pull(b.delivery.All())
	defer stop()
	var refused error
	turn := &turn{of: b.shares.turns}
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
	return fmt.Errorf("the provider %s counts %d events in a batch and yields others", b.source.Provider.Profile().Name, b.delivery.Len())
}

// fits takes room for all of the events, unless they are more than a part or there is none now.
func (b *batch) fits() (room, bool) {
	if p := b.shares.turns.parts(); b.left > p.events || b.leftSize > p.bytes {
		return room{}, false
	}
	return b.shares.queue(b.left, b.leftSize)
}

// nextPart stores the next events when it is their turn and there is room in the queue.
func (b *batch) nextPart(ctx context.Context, next func() (*hookonce.Event, bool), turn *turn) error {
	if err := turn.await(ctx, b.leftSize); err != nil {
		return fmt.Errorf("%w: waiting for the turn of a batch: %w", errFull, err)
	}
	p := b.shares.turns.parts()
	room, err := b.shares.claim(ctx, min(p.events, b.left), min(p.bytes, b.leftSize))
	if err != nil {
		return fmt.Errorf("%w: waiting for room for a part of a batch: %w", errFull, err)
	}
	return b.part(ctx, next, room)
}

// part builds events for which room was taken, and makes them durable.
func (b *batch) part(ctx context.Context, next func() (*hookonce.Event, bool), room room) (err error) {
	defer func() { room.leave() }()
	c := chunk{from: b.built}
	defer func() {
		if err != nil {
			c.fail(b.intake.now())
		}
	}()
	for int64(len(c.entries)) < room.entries && (c.bytes < room.bytes || len(c.entries) == 0) {
		ev, ok := next()
		if !ok {
			return b.miscounted()
		}
		b.add(&c, ev)
		b.built++
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
		c.fail(b.intake.now())
		again := chunk{from: c.from} // the journal may still have the entries
		for _, ev := range c.events {
			b.add(&again, ev)
		}
		*c = again
	}
	return b.bypass(ctx, c.entries, b.now)
}

// note says what became of events, and returns an error if the store refused one of them, or if one came back as its own delivery:
// that would be done as soon as it was acknowledged, and have reached nobody.
func (b *batch) note(ctx context.Context, c *chunk, results []journal.Result) (refused error) {
	for i, result := range results {
		ev := c.events[i]
		if c.traces != nil {
			c.traces[i].End(result, b.intake.now())
		}
		if result.Err != nil {
			refused = fmt.Errorf("%w: key %q: %w", errRowRefused, ev.Key, result.Err)
			continue
		}
		if b.delivers != 0 && b.delivers == result.ID { // a new event has another number
			refused = fmt.Errorf("%w: key %q: event %d", errLoop, ev.Key, result.ID)
			continue
		}
		b.statuses.add(result.Status)
		if b.stored != nil {
			b.stored(c.from + i)
		}
		b.count(c.entries[i], result)
		routed := len(c.entries[i].Destinations) > 0
		b.log.event(ctx, b.now, ev, b.noted(b.delivery.Proof), result, routed)
		b.watcher.Stored(b.source.Name, ev, result, routed)
	}
	return refused
}

// store hands the entries to the journal under a deadline of its own: a sender that hangs up does
// not cancel what it sent.
func (in *intake) store(ctx context.Context, entries []*journal.Event) ([]journal.Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), in.acceptTimeout)
	defer cancel()
	in.storing.Add(1)
	defer in.storing.Add(-1)
	results, err := in.journal.Accept(ctx, entries)
	if err == nil && len(results) != len(entries) {
		err = fmt.Errorf("the journal answered %d of %d entries", len(results), len(entries))
	}
	return results, err
}

// opens reports whether the events of a request that could not be stored are delivered past the store: all
// of them, or none. What has no key of its own could not be recognised when the store is back, and is not.
func (in *intake) opens(err error, d *hookonce.Verified) bool {
	if !in.source.Open || !journal.IsOutage(err) {
		return false
	}
	for ev := range d.All() {
		if ev.Key == "" || ev.Coalesce || len(in.router.destinations(ev)) == 0 || !in.opensType(ev.Type) {
			return false
		}
	}
	return true
}

func (in *intake) opensType(kind string) bool {
	return len(in.open) == 0 || slices.ContainsFunc(in.open, func(p pattern) bool { return p.matches(kind) })
}

// bypass delivers events past the store, in what is left of the time that the sender waits.
func (in *intake) bypass(ctx context.Context, entries []*journal.Event, start time.Time) ([]journal.Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), in.source.Deadline-in.now().Sub(start))
	defer cancel()
	return in.bypasser.Bypass(ctx, entries, in.attempt)
}

// entry is an event in the form of the journal. All of a request share its headers: there can be thousands.
func (in *intake) entry(header []byte, ev *hookonce.Event, proof hookonce.Proof, now time.Time) *journal.Event {
	to := in.router.destinations(ev)
	return &journal.Event{
		Source:               in.source.Name,
		Key:                  stored(ev),
		Type:                 ev.Type,
		Digest:               ev.Digest,
		Header:               header,
		Facts:                facts(ev),
		Body:                 ev.Body,
		Destinations:         to,
		ReceivedAt:           now,
		Resource:             ev.Scope,
		Rank:                 ev.Rank,
		Vouched:              proof.Vouched,
		LogicalKey:           in.logical(ev, to, now),
		DropLogicalDuplicate: ev.Logical != "" && in.drops[ev.Type],
	}
}

// logical is the key that logical duplicates have in common. Time is cut into windows, and only events of one window
// have it in common: what comes back to an earlier content later on is another change, and to miss logical duplicates
// on two sides of a cut only costs a label. Where logical duplicates are dropped, only events for the same destinations
// have it in common, or one would be dropped that its destination never got.
func (in *intake) logical(ev *hookonce.Event, to []string, now time.Time) string {
	if ev.Logical == "" || in.source.LogicalDuplicateWindow == 0 && len(in.drops) == 0 {
		return ev.Logical
	}
	var window int64
	if in.source.LogicalDuplicateWindow > 0 {
		window = now.UnixNano() / int64(in.source.LogicalDuplicateWindow)
	}
	parts := []string{strconv.FormatInt(window, 10)}
	if len(in.drops) > 0 {
		parts = append(parts, slices.Sorted(slices.Values(to))...)
	}
	return hookonce.NormalKey(hookonce.JoinKey(append(parts, ev.Logical)...))
}

// stored is the key under which an event is kept.
func stored(ev *hookonce.Event) string {
	if ev.Coalesce {
		return journal.CoalesceKey(ev.Key)
	}
	return ev.Key
}

// facts returns the header lines of an event, which come after those of its request: what an application that
// did not see the request's signature wants to know of it, and the journal has no use for. Nobody else's
// lines have these names (see package header).
func facts(ev *hookonce.Event) []byte {
	f := make(header.Facts, 0, 256)
	f.Add(header.HookonceProvider, ev.Provider)
	if ev.Key != "" {
		f.Add(header.HookonceKeySigned, strconv.FormatBool(ev.KeySigned))
	}
	if !ev.Rank.IsZero() {
		f.Add(header.HookonceRank, string(ev.Rank.Kind)+":"+strconv.FormatInt(ev.Rank.N, 10))
	}
	f.AddTime(header.HookonceTime, ev.Time)
	f.Add(header.HookonceResource, ev.Resource)
	f.Add(header.HookonceTenant, ev.Tenant)
	f.Add(header.HookonceSenderAttemptID, ev.AttemptID)
	f.Add(header.HookonceLogical, ev.Logical)
	f.Add(header.HookonceDigest, hex.EncodeToString(ev.Digest))
	return f
}

// traced returns facts with the trace in which their event was accepted.
func traced(facts header.Facts, t *tracing.Event) []byte {
	facts.Add(header.HookonceTrace, t.Context())
	return facts
}

// count notes what became of an event.
func (in *intake) count(entry *journal.Event, r journal.Result) {
	in.metrics.events[r.Status].Inc()
	if r.ID != 0 && (r.Status == journal.Duplicate || r.Status == journal.Conflict) && !journal.Coalesces(entry.Key) {
		in.metrics.copied(r.ID, entry.ReceivedAt)
	}
	if r.Status != journal.Accepted && r.Status != journal.Unkeyed {
		return
	}
	if len(entry.Destinations) == 0 {
		in.metrics.unrouted.Inc()
	}
	if r.LogicalDuplicateOf != 0 {
		in.metrics.logicalDuplicates.Inc()
	}
}

// noted is the part of the proof that is worth a word with each event: by which secret, where there
// are several.
func (in *intake) noted(p hookonce.Proof) hookonce.Proof {
	if in.source.Secrets < 2 {
		p.Secret = 0
	}
	return p
}

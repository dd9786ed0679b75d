// Package bypass delivers events past a store that is absent, remembers them, and records them as soon as it
// is back: what the setting on_store_down: open asks for. Package ingest decides that an event goes this way; it is
// answered as unprotected, and is unrecorded until the store has it.
package bypass

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/inflight"
)

// Store is what a bypass needs of a store that is back.
type Store interface {
	journal.Accepter
	Ping(ctx context.Context) error
}

// Options are what a [Bypass] works with. All are required.
type Options struct {
	Store Store
	// Call runs one call of the store that is about so many events, under a deadline.
	Call func(events int, do func(context.Context) error) error
	// InFlight are the deliveries of events that are on record: theirs are no other's.
	InFlight *inflight.Set
	// Done answers for an event that is known to be done.
	Done func(*journal.Event) (journal.Result, bool)
	// Recorded is called when it was tried to record events, with how many are on record: none when that failed. Something may
	// be left to be done for them in both cases: what failed may be stored all the same.
	Recorded func(events int)

	Timeout   time.Duration // of a call of the store
	MaxEvents int           // that are remembered at once
	MaxBytes  int64         // of their headers and bodies
	MaxBatch  int           // that are recorded in one transaction
	Lease     time.Duration
	IDs       *journal.IDs
	Now       func() time.Time
	Logger    *slog.Logger
}

// Bypass is for events that could not be recorded because the store is unavailable, and that are worth more now
// than the certainty that they run once. Create it with [New]; its methods are safe for concurrent use.
type Bypass struct {
	opt      Options
	passages *passages
}

// New returns a bypass. Nothing is recorded until [Bypass.Record] is called.
func New(opt Options) *Bypass {
	return &Bypass{opt: opt, passages: newPassages(opt.MaxEvents, opt.MaxBytes, lateness*opt.Timeout)}
}

// attempts is how many attempts of one call of Deliver are under way at once.
const attempts = 8

// lateness is for how many timeouts of a call it is remembered what is on record: one in which a call that had begun before may be
// answered, and one for what follows from the answer.
const lateness = 2

var (
	// errUnderway says that somebody else is delivering an event.
	errUnderway = fmt.Errorf("%w: and the event is being delivered already", journal.ErrUnavailable)
	// errRecorded says that an event went past the store before, and is on record.
	errRecorded = fmt.Errorf("%w: and the event is on record already", journal.ErrUnavailable)
)

// Deliver delivers events past the store. Each has a key of its own and a destination at least.
//
// It returns results when every event was taken by all of its destinations: [journal.Unprotected], or that of
// a copy for one that was delivered so before. With an error nothing may be acknowledged; what was taken
// all the same is remembered, and not delivered again. There is a bound on what is remembered, and beyond it
// nothing is delivered.
//
// What was delivered is recorded as soon as the store is back. Until then this process takes copies of it for
// copies, and hands out no other work for its key; see [Bypass.Has]. Other processes on the store know nothing of it, and
// if this one dies before, nobody does: then a copy is new.
func (b *Bypass) Deliver(ctx context.Context, events []*journal.Event, attempt journal.Attempter) ([]journal.Result, error) {
	results := make([]journal.Result, len(events))
	begun := make([]*passage, len(events))
	var failed error
	for i, e := range events {
		if begun[i], results[i], failed = b.begin(e); failed != nil {
			break
		}
	}
	if failed == nil {
		failed = deliver(ctx, begun, attempt)
	}
	for _, p := range begun {
		if p != nil {
			b.passages.end(p)
		}
	}
	if failed != nil {
		return nil, failed
	}
	return results, nil
}

// begin begins the passage of an event. It returns nil and the result of a copy if the event was delivered
// before.
func (b *Bypass) begin(e *journal.Event) (*passage, journal.Result, error) {
	own := *e
	own.DropLogicalDuplicate = false
	p, res, err := b.passages.begin(&own, b.opt.IDs.Next(b.opt.Now()))
	if p == nil {
		return nil, res, err
	}
	// Whoever hands out work asks Has after it is in flight, so that one of us sees the other.
	// Whoever finishes it remembers that before it is in flight no more.
	if b.opt.InFlight.HasKey(e.Source, e.Key) {
		b.passages.end(p)
		return nil, journal.Result{}, errUnderway
	}
	if known, ok := b.opt.Done(e); ok {
		b.passages.end(p)
		return nil, known, nil
	}
	return p, res, nil
}

// deliver delivers events to those of their destinations that have not taken them yet.
func deliver(ctx context.Context, passages []*passage, attempt journal.Attempter) error {
	var group errgroup.Group
	group.SetLimit(attempts)
	for _, p := range passages {
		if p == nil {
			continue
		}
		for _, destination := range p.missing() {
			w := p.work(destination)
			group.Go(func() error {
				o := attempt(ctx, w)
				if o.State != journal.Done {
					return fmt.Errorf("%w: and the destination %q did not take the event: %s", journal.ErrUnavailable, destination, o.Error)
				}
				p.took(o)
				return nil
			})
		}
	}
	return group.Wait()
}

// Lookup answers for a copy of an event that was delivered past the store and is not on record yet. It fails with
// [journal.ErrUnavailable] while that is going on.
func (b *Bypass) Lookup(e *journal.Event) (res journal.Result, known bool, err error) {
	return b.passages.lookup(e)
}

// Known says which keys of a source belong to events that were delivered past the store and will be recorded.
func (b *Bypass) Known(source string, keys []string) map[string]journal.Known {
	return b.passages.known(source, keys)
}

// Has reports whether work that was leased to this process may be delivered past the store: the event is on that way, or was and
// is not on record, or this destination has taken it so and the lease may be of a time before that was on record, because calls
// of the store that had begun by then may still be answered. It does not block.
func (b *Bypass) Has(source, key, destination string) bool {
	return b.passages.has(source, key, destination)
}

// Unrecorded returns how many events were delivered past the store, or are being so, and are on no record.
func (b *Bypass) Unrecorded() int { return b.passages.unrecorded() }

package ingest

import (
	"context"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
)

// Lister makes journal events of what a provider's list has of a source's events: with the routes, the headers and the facts
// that the source's webhooks get. It is safe for concurrent use.
type Lister struct {
	intake  *intake
	headers *header.Rule
}

// NewLister returns the lister of a source, which needs Name, Provider, and what is set of Routes, Headers, Sync and logical
// duplicates.
func NewLister(s Source) *Lister {
	return &Lister{intake: newEntries(s), headers: ruleOf(&s)}
}

// Event returns an event from the list in the form of the journal: received now, without a digest, and with nothing that
// vouches for it. It needs a key of its own, or a webhook could not be recognised: errors wrap [hookonce.ErrInvalidRef], also
// where the headers are too large to be kept.
func (l *Lister) Event(ev *hookonce.Event, now time.Time) (*journal.Event, error) {
	if ev.Key == "" || ev.Coalesce {
		return nil, fmt.Errorf("%w: an event of the source %s has no key of its own, so that its webhook could not be recognised: have the provider send it again",
			hookonce.ErrInvalidRef, l.intake.source.Name)
	}
	kept, err := l.headers.Encode(ev.Header)
	if err != nil {
		return nil, fmt.Errorf("%w: the headers of the event %q: %w", hookonce.ErrInvalidRef, ev.Key, err)
	}
	own := *ev
	own.Digest, own.KeySigned = nil, false
	entry := l.intake.entry(kept, &own, hookonce.Proof{}, now)
	entry.Listed = true
	return entry, nil
}

// Ingest stores an event from a provider's list under the source that ev names, as if a webhook had brought it, and has it
// delivered. It waits for its commit, within the bounds that webhooks have. The status is [journal.Accepted] if no webhook had
// brought the event, and [journal.Duplicate] if one had, or an earlier list: then nothing changed.
//
// Errors: those of [Lister.Event], [ErrNoSource], and those of the journal, after which it does no harm to try again.
func (h *Handler) Ingest(ctx context.Context, ev *hookonce.Event) (journal.Result, error) {
	e := h.doors.Load().endpoints[ev.Source]
	if e == nil {
		return journal.Result{}, fmt.Errorf("%w: %q", ErrNoSource, ev.Source)
	}
	in, now := e.intake, e.now()
	entry, err := (&Lister{intake: in, headers: e.headers}).Event(ev, now)
	if err != nil {
		return journal.Result{}, err
	}
	if e.cells != nil {
		p, err := e.cells.Place(ctx, ev.Source, &hookonce.Verified{Events: []hookonce.Event{*ev}}, nil, nil)
		if err == nil {
			err = p.Stranger()
		}
		if err != nil {
			return journal.Result{}, err
		}
		entry.CellMap = p.Map
	}
	room, ok := in.shares.queue(1, entry.Size())
	if !ok {
		return journal.Result{}, journal.ErrFull
	}
	defer room.leave()
	results, err := in.store(ctx, []*journal.Event{entry})
	if err != nil {
		return journal.Result{}, err
	}
	r := results[0]
	if r.Err != nil || r.Status != journal.Accepted {
		return r, r.Err
	}
	routed := len(entry.Destinations) > 0
	in.count(entry, r)
	in.log.event(ctx, now, ev, hookonce.Proof{}, r, routed)
	in.watcher.Stored(in.source.Name, ev, r, routed)
	return r, nil
}

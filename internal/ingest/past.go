package ingest

import (
	"context"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// opens reports whether the events of a request that could not be stored are delivered past the store: all
// of them, or none. What has no key of its own could not be recognised when the store is back, and is not.
func (e *endpoint) opens(err error, d *hookonce.Verified) bool {
	if !e.source.Open || !journal.IsOutage(err) {
		return false
	}
	for ev := range d.All() {
		if ev.Key == "" || ev.Coalesce || len(e.router.destinations(ev)) == 0 || !e.opensType(ev.Type) {
			return false
		}
	}
	return true
}

func (e *endpoint) opensType(kind string) bool {
	return len(e.open) == 0 || slices.ContainsFunc(e.open, func(p pattern) bool { return p.matches(kind) })
}

// bypass delivers events past the store, in what is left of the time that the sender waits.
func (e *endpoint) bypass(ctx context.Context, entries []*journal.Event, start time.Time) ([]journal.Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.source.Deadline-e.now().Sub(start))
	defer cancel()
	return e.past.Bypass(ctx, entries, e.forward)
}

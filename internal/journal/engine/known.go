package engine

import (
	"context"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Known says what is on record of the keys of a source, see [journal.Reconciler.Known], and what this process delivered
// past the store and has not recorded yet. Errors are those of the store.
func (e *Engine) Known(ctx context.Context, source string, keys []string) (map[string]journal.Known, error) {
	past := e.bypass.Known(source, keys) // first: it goes from here to the store
	known, err := e.store.Known(ctx, source, keys)
	if err != nil {
		return nil, err
	}
	for key, k := range past {
		if _, recorded := known[key]; !recorded {
			known[key] = k
		}
	}
	return known, nil
}

// Beside is a process beside the gateways on a store, which stores events for them to deliver. Notifier and Destinations
// may be nil; all other fields are required.
type Beside struct {
	// Store has the events.
	Store journal.Accepter
	// Notifier tells the gateways that there is work. Nil: they find it when they poll.
	Notifier journal.Notifier
	// Destinations say which of them deliver in order. Nil: none does.
	Destinations map[string]journal.Destination
	// IDs makes the identifiers of events, with a writer number of its own.
	IDs *journal.IDs
	// Now is the clock.
	Now func() time.Time
}

// Ingest stores events from a provider's list ([journal.Event.Listed]) for gateways on the store to deliver, from a
// process that delivers nothing itself: their deliveries are due at once, in order where a destination wants that, and
// wait where one is paused. It is one transaction, and returns one result per event. After an error nothing is known, and
// it does no harm to do it again. A process that runs an [Engine] accepts such events with [Engine.Accept].
func (b Beside) Ingest(ctx context.Context, events []*journal.Event) ([]journal.Result, error) {
	now := b.Now()
	batch := make([]*journal.Record, len(events))
	for i, e := range events {
		batch[i] = &journal.Record{Event: e, ID: b.IDs.Next(now)}
		for _, name := range e.Destinations {
			if b.Destinations[name].Orders(e.Resource) {
				batch[i].Ordered = append(batch[i].Ordered, name)
			}
		}
	}
	results, err := b.Store.Accept(ctx, batch, now, now)
	if err == nil {
		err = journal.CheckAnswers(len(results), len(batch))
	}
	if err != nil {
		return nil, err
	}
	if b.Notifier != nil {
		_ = b.Notifier.Notify(ctx) // who is not told finds it when it polls
	}
	return results, nil
}

package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tally"
)

// Options configure an [Engine]. Every field is required unless it says otherwise.
type Options struct {
	// MaxBatch is how many events, deliveries or outcomes share one transaction. A single request
	// with more events than that still is one transaction.
	MaxBatch int
	// QueueEntries bounds the events that wait for their commit, copies of them included; beyond it
	// Accept answers [journal.ErrFull]. As many may be delivered past the store and not be recorded yet, or
	// have been recorded within two timeouts.
	QueueEntries int
	// QueueBytes bounds the same events by the bytes of their headers and bodies.
	QueueBytes int64
	// MaxHeld bounds the deliveries that are leased to this process: waiting in Work, under way, or
	// with an outcome that is not stored yet. What is beyond it waits in the store.
	MaxHeld int
	// HeldBytes bounds the same deliveries by the bytes of their headers and bodies. The last one
	// from the poller may go beyond it, and what is accepted while the poller takes may come on top,
	// at most as much again.
	HeldBytes int64
	// Destinations are those that this process delivers to, by name. Work for others is left in the
	// store, to the processes that know them. Nil: all, none of them ordered.
	Destinations map[string]journal.Destination
	// Partitions is the store's side that divides tables by time. Nil: it divides none.
	Partitions journal.Partitioned
	// Notifier tells the processes on one store of work that is due at once. Nil: they find it when they poll.
	Notifier journal.Notifier
	// Lease is how long a delivery stays ours without a sign of life: what a crash costs in delay.
	// It is extended when a third of it has passed.
	Lease time.Duration
	// Poll is the longest time between two looks into the store for work that is due. Known retries
	// and re-driven events are looked for at once.
	Poll time.Duration
	// Timeout bounds every call of the store; a call that exceeds it has an unknown outcome.
	Timeout time.Duration
	// DoneKeys is how many finished keys are remembered, so that their late copies need no store.
	// Each is a few objects that the garbage collector visits, and events that arrive
	// meanwhile wait for it. 0: none.
	DoneKeys int
	// Retention says how long events, and what belongs to them, are kept.
	Retention *journal.Retention
	// IDs makes the identifiers of events. Processes that share a store need different writer
	// numbers.
	IDs *journal.IDs
	// Now is the clock.
	Now func() time.Time
	// Logger receives what operators need to know: outages, lost leases, refused rows. Never bodies.
	Logger *slog.Logger
	// Tally has the counters of what happens by the minute. Nil: nobody reads them.
	Tally *tally.Registry
	// Registerer receives the metrics. Nil: they are kept but not registered.
	Registerer prometheus.Registerer
}

// validate refuses what is missing or makes no sense.
func (o *Options) validate() error {
	var errs []error
	for _, f := range []struct {
		name         string
		value, least int64
	}{
		{"MaxBatch", int64(o.MaxBatch), 1}, {"QueueEntries", int64(o.QueueEntries), 1}, {"QueueBytes", o.QueueBytes, 1},
		{"MaxHeld", int64(o.MaxHeld), 1}, {"HeldBytes", o.HeldBytes, 1}, {"DoneKeys", int64(o.DoneKeys), 0},
		{"Lease", int64(o.Lease), 1}, {"Poll", int64(o.Poll), 1}, {"Timeout", int64(o.Timeout), 1},
	} {
		if f.value < f.least {
			errs = append(errs, fmt.Errorf("journal: Options.%s is %d; it must be at least %d", f.name, f.value, f.least))
		}
	}
	for _, f := range []struct {
		name    string
		missing bool
	}{{"Retention", o.Retention == nil}, {"IDs", o.IDs == nil}, {"Now", o.Now == nil}, {"Logger", o.Logger == nil}} {
		if f.missing {
			errs = append(errs, fmt.Errorf("journal: Options.%s is missing", f.name))
		}
	}
	if o.Retention != nil {
		errs = append(errs, o.Retention.Validate())
	}
	return errors.Join(errs...)
}

package engine

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/journal"
)

// MaxHeldBytes is what deliveries that are held take at most with the default of HeldBytes in [Options]: twice that.
const MaxHeldBytes = 128 << 20

// Options configure a [Engine]. The zero value of every field means its default.
type Options struct {
	// MaxBatch is how many entries, deliveries or outcomes share one transaction. A single request
	// with more entries than that still is one transaction. Default 256.
	MaxBatch int
	// Writers is how many accepting transactions run at the same time. One makes the largest batches,
	// which is what costs least; a second helps where a commit spends most of its time waiting for a
	// network. Default 1.
	Writers int
	// QueueEntries bounds the entries that wait for their commit, copies that wait for their twin
	// included; beyond it Accept answers [journal.ErrFull]. Default 8192.
	QueueEntries int
	// QueueBytes bounds the same entries by the bytes of their headers and bodies. Default 64 MiB.
	QueueBytes int64
	// MaxHeld bounds the deliveries that are leased to this process: waiting in Work, under way, or
	// with an outcome that is not stored yet. What is beyond it waits in the store. Default 4096.
	MaxHeld int
	// HeldBytes bounds the same deliveries by the bytes of their headers and bodies. The last one
	// from the poller may go beyond it, and what is accepted while the poller takes may come on top,
	// at most as much again. Default 64 MiB.
	HeldBytes int64
	// Destinations are those that this process delivers to, by name. Work for others is left in the
	// store, to the processes that know them. Nil: all, none of them ordered.
	Destinations map[string]journal.Destination
	// Records is the store's side for people: sightings are recorded there, and pauses read. Nil: neither.
	Records journal.Records
	// Partitions is the store's side that divides tables by time. Nil: it divides none.
	Partitions journal.Partitioned
	// Notifier tells the processes on one store of work that is due at once. Nil: they find it when they poll.
	Notifier journal.Notifier
	// Lease is how long a delivery stays ours without a sign of life: what a crash costs in delay.
	// Held work is extended when a third of it has passed. Default 9 s.
	Lease time.Duration
	// Poll is the longest time between two looks into the store for work that is due. Known retries
	// and re-driven events are looked for at once. Default 1 s.
	Poll time.Duration
	// Timeout bounds every call of the store; a call that exceeds it has an unknown outcome.
	// Default 10 s.
	Timeout time.Duration
	// DoneKeys is how many finished keys are remembered, so that their late copies need no store.
	// Each is a few objects that the garbage collector visits, and events that arrive
	// meanwhile wait for it. Negative: none. Default 16384, some 5 MB when full.
	DoneKeys int
	// Retention says how long events, and what belongs to them, are kept. Default: [journal.DefaultRetention].
	Retention *journal.Retention
	// IDs makes the identifiers of events. Processes that share a store need different writer
	// numbers. Default: a generator with a random writer number.
	IDs *journal.IDs
	// Now is the clock. Default [time.Now].
	Now func() time.Time
	// Logger receives what operators need to know: outages, lost leases, refused rows. Never
	// bodies. Default: nothing is logged.
	Logger *slog.Logger
	// Registerer receives the metrics. Default: they are kept but not registered.
	Registerer prometheus.Registerer
}

// withDefaults fills in what is zero and refuses what makes no sense.
func (o Options) withDefaults() (Options, error) {
	o.MaxBatch = cmp.Or(o.MaxBatch, 256)
	o.Writers = cmp.Or(o.Writers, 1)
	o.QueueEntries = cmp.Or(o.QueueEntries, 8192)
	o.QueueBytes = cmp.Or(o.QueueBytes, 64<<20)
	o.MaxHeld = cmp.Or(o.MaxHeld, 4096)
	o.HeldBytes = cmp.Or(o.HeldBytes, MaxHeldBytes/2)
	o.Lease = cmp.Or(o.Lease, 9*time.Second)
	o.Poll = cmp.Or(o.Poll, time.Second)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.DoneKeys = cmp.Or(o.DoneKeys, 16384)
	if o.Retention == nil {
		r := journal.DefaultRetention()
		o.Retention = &r
	}
	if o.IDs == nil {
		o.IDs = journal.RandomIDs()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, o.validate()
}

func (o Options) validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"MaxBatch", int64(o.MaxBatch)}, {"Writers", int64(o.Writers)},
		{"QueueEntries", int64(o.QueueEntries)}, {"QueueBytes", o.QueueBytes},
		{"MaxHeld", int64(o.MaxHeld)}, {"HeldBytes", o.HeldBytes},
		{"Lease", int64(o.Lease)}, {"Poll", int64(o.Poll)}, {"Timeout", int64(o.Timeout)},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("journal: Options.%s is negative (%d)", f.name, f.value))
		}
	}
	return errors.Join(append(errs, o.Retention.Validate())...)
}

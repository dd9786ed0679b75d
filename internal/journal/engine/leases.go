package engine

import (
	"context"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/inflight"
)

// extendBatch is how many leases one call extends.
const extendBatch = 1000

// extender keeps the leases of deliveries in flight alive.
type extender struct {
	*core
	inflight *inflight.Set
}

// run extends leases until the engine's context ends. It looks twice as often as leases need it, and tries
// again sooner after a failure.
func (x *extender) run() {
	for wait := x.opt.Lease / 6; x.pause(wait); {
		if x.extend() {
			wait = x.opt.Lease / 6
		} else {
			wait = x.opt.Lease / 30
		}
	}
}

// extend extends the leases of which a third has passed, and reports whether the store answered.
func (x *extender) extend() bool {
	for batch := range x.inflight.Aging(x.opt.Now().Add(x.opt.Lease*2/3), extendBatch) {
		lease := x.opt.Now().Add(x.opt.Lease)
		var still []bool
		err := x.call(opExtend, x.opt.Lease/3, len(batch), func(ctx context.Context) (err error) {
			still, err = x.store.Extend(ctx, batch, lease)
			if err == nil {
				err = journal.CheckAnswers(len(still), len(batch))
			}
			return err
		})
		if err != nil {
			return false
		}
		for i, h := range batch {
			if x.inflight.Extended(h, still[i], lease) {
				x.metrics.lost.Inc()
				x.opt.Logger.Warn("journal: a lease was lost; the delivery may be attempted twice",
					"event", journal.IDText(h.EventID), "destination", h.Destination, "token", h.Token)
			}
		}
	}
	return true
}

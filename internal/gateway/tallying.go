package gateway

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/tally"
)

// tallyTime is how long one hand-over of what was counted may take.
const tallyTime = 5 * time.Second

// tallying hands what this process counts to the store.
type tallying struct {
	*tally.Registry
	opt   Options
	to    tally.Adder
	stop  chan struct{} // nil: it has not begun
	ended chan struct{}
}

// newTallying returns what counts from now on, in memory until begin is called.
func newTallying(o Options) *tallying {
	t := &tallying{Registry: tally.NewRegistry(o.Now), opt: o}
	o.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "hookonce_tally_points_lost_total",
		Help: "Counts of a minute that were given up, because the store was away for so long that too many waited for it.",
	}, func() float64 { return float64(t.Lost()) }), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hookonce_tally_last_flush_timestamp_seconds",
		Help: "When all that was counted by the minute had been handed over to the store last; 0 if it never had.",
	}, func() float64 {
		if at := t.Flushed(); !at.IsZero() {
			return float64(at.Unix())
		}
		return 0
	}))
	return t
}

// begin hands over what was counted so far, and from now on.
func (t *tallying) begin(to tally.Adder) {
	t.to, t.stop, t.ended = to, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(t.ended)
		t.Run(t.stop, to, tallyTime, func(err error) {
			t.opt.strange.Warn("gateway: what was counted waits for the store; it is handed over later", "error", err)
		})
	}()
}

// end hands over what is left, when nothing more is counted and before the store is closed. That it fails costs counts of the
// last seconds, and is no failure to stop.
func (t *tallying) end(ctx context.Context) {
	if t == nil || t.stop == nil {
		return
	}
	close(t.stop)
	<-t.ended
	ctx, cancel := context.WithTimeout(ctx, tallyTime)
	defer cancel()
	if err := t.Flush(ctx, t.to); err != nil {
		t.opt.Logger.Warn("gateway: what was counted last is lost", "error", err)
	}
}

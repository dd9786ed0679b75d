// Package deliver takes leased work from the journal, POSTs it to its destination, and hands the
// outcome back. The guarantee is at least once with a stable key: a destination may see an event
// again, always under the same Idempotency-Key.
package deliver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/journal"
)

// Defaults of the settings that may be left zero.
const (
	DefaultConcurrency = 64
	DefaultTimeout     = 15 * time.Second
)

// Journal is what deliver needs of the journal.
type Journal interface {
	// Work returns the channel of leased deliveries. It is closed when the journal is.
	Work() <-chan *journal.Work
	// Current reports whether the lease of a delivery still is ours. It does not block.
	Current(journal.Held) bool
	// Finish records an outcome. It does not block.
	Finish(journal.Outcome)
}

// Destination is one place to deliver to.
type Destination struct {
	// Name is what the journal calls it.
	Name string
	// URL is where events are POSTed to, http or https. A user and password in it are sent as basic
	// authentication.
	URL string
	// Timeout bounds one attempt, from dialling to the status of the answer. Zero means
	// [DefaultTimeout].
	Timeout time.Duration
	// Schedule says when failed attempts are tried again. Nil means [DefaultSchedule].
	Schedule Schedule
}

// Options are the settings of a [Deliverer].
type Options struct {
	Journal Journal
	// Destinations are the places to deliver to, by name. The journal is expected to bring work for
	// these alone; other work is handed back.
	Destinations map[string]Destination
	// Concurrency is how many attempts are under way at once, over all destinations. Zero means
	// [DefaultConcurrency].
	Concurrency int
	// Transport makes the attempts. Nil means one that keeps a connection per worker and
	// destination, follows no proxy from the environment, and asks for no compression.
	Transport http.RoundTripper
	// Rand returns the jitter of a retry, in [0, 1). Nil means [rand.Float64].
	Rand func() float64
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
	// Logger receives a debug line per delivery, a warning per failed attempt and an error per event
	// that is given up; never a body or a secret. Nil discards them.
	Logger *slog.Logger
	// Registerer receives the metrics; nil means that they are not exported.
	Registerer prometheus.Registerer
}

// Deliverer runs the workers. Its methods are safe for concurrent use.
type Deliverer struct {
	opt          Options
	destinations map[string]*destination
	metrics      *metrics

	stopping chan struct{}
	stop     sync.Once
	workers  sync.WaitGroup
	// attempts is the context of all attempts: it ends when a shutdown has waited long enough.
	attempts context.Context
	abort    context.CancelFunc
}

// New returns a deliverer that does nothing until it is started. It fails when the address of a
// destination can not be used, and panics when the metrics are registered already.
func New(o Options) (*Deliverer, error) {
	o = o.withDefaults()
	d := &Deliverer{
		opt:          o,
		destinations: make(map[string]*destination, len(o.Destinations)),
		metrics:      newMetrics(o.Registerer),
		stopping:     make(chan struct{}),
	}
	for name, settings := range o.Destinations {
		dest, err := newDestination(settings)
		if err != nil {
			return nil, fmt.Errorf("deliver: destination %q: %w", name, err)
		}
		d.destinations[name] = dest
	}
	d.attempts, d.abort = context.WithCancel(context.Background())
	return d, nil
}

func (o Options) withDefaults() Options {
	o.Concurrency = cmp.Or(o.Concurrency, DefaultConcurrency)
	if o.Transport == nil {
		o.Transport = newTransport(o.Concurrency)
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	return o
}

// Start starts the workers. Call it once.
func (d *Deliverer) Start() {
	for range d.opt.Concurrency {
		d.workers.Go(d.work)
	}
}

// Stop takes no more work and waits for the attempts under way. When ctx ends first they are
// cancelled and their work is handed back to the journal as not attempted; Stop then returns the
// cause of ctx's end, after every outcome was handed to the journal. Close the journal afterwards.
func (d *Deliverer) Stop(ctx context.Context) error {
	d.stop.Do(func() { close(d.stopping) })
	defer context.AfterFunc(ctx, d.abort)()
	d.workers.Wait()
	if c, ok := d.opt.Transport.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
	if d.attempts.Err() != nil {
		return context.Cause(ctx)
	}
	d.abort()
	return nil
}

// work delivers until the deliverer is stopped or the journal closed.
func (d *Deliverer) work() {
	for {
		select {
		case <-d.stopping:
			return
		default:
		}
		select {
		case <-d.stopping:
			return
		case w, ok := <-d.opt.Journal.Work():
			if !ok {
				return
			}
			d.deliver(w)
		}
	}
}

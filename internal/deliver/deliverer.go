// Package deliver takes leased work from the journal, POSTs it to its destination, and hands the
// outcome back. The guarantee is at least once with a stable key: a destination may see an event
// again, always under the same Idempotency-Key.
package deliver

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
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
	// Suspend brings as little work for a destination as r says. The zero Rest ends that. It does not block.
	Suspend(destination string, r journal.Rest)
}

// Options are the settings of a [Deliverer].
type Options struct {
	Journal Journal
	// Destinations are the places to deliver to, by name. The journal is expected to bring work for
	// these alone; other work is handed back.
	Destinations map[string]Destination
	// Concurrency is how many attempts at a destination are under way at once, unless it has a number
	// of its own. Zero means [DefaultConcurrency].
	Concurrency int
	// Relayed are the sources whose senders are answered what the destination answered: the answers to
	// their events are read whole and become a part of the outcome.
	Relayed map[string]bool
	// Paused reports whether an operator has paused a destination: what waits for it goes back to the
	// journal, which brings nothing for it meanwhile. It must not block. Nil: none ever is.
	Paused func(destination string) bool
	// Transport makes the attempts, without regard to TLS settings and address policies. Nil means one
	// for each destination that keeps a connection per attempt under way, follows no proxy from the
	// environment, and asks for no compression.
	Transport http.RoundTripper
	// Rand returns the jitter of a retry, in [0, 1). Nil means [rand.Float64].
	Rand func() float64
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
	// Logger receives a debug line per delivery, a warning per failed attempt and an error per event
	// that is given up; never a body or a secret. Nil discards them.
	Logger *slog.Logger
	// Watcher is told of every attempt. Nil: nobody is.
	Watcher Watcher
	// Registerer receives the metrics; nil means that they are not exported.
	Registerer prometheus.Registerer
}

// Watcher is told of every attempt, for people who look on. Attempted is called by many goroutines at a time
// and must not block.
type Watcher interface {
	Attempted(w *journal.Work, o journal.Outcome)
}

// Deliverer makes the attempts. Its methods are safe for concurrent use.
type Deliverer struct {
	opt      Options
	metrics  *metrics
	answered atomic.Pointer[map[string]bool] // see Options.Relayed

	mu    sync.RWMutex     // guards lanes, and keeps Reload and Stop apart; taken before that of a lane
	lanes map[string]*lane // by the name of the destination; those that are gone as well

	stopping chan struct{}
	stop     sync.Once
	workers  sync.WaitGroup // the reader of work, and what the lanes begin
	// attempts is the context of all attempts: it ends when a shutdown has waited long enough.
	attempts context.Context
	abort    context.CancelFunc
}

// New returns a deliverer that does nothing until it is started. It fails when the settings of a
// destination make no sense, and panics when the metrics are registered already.
func New(o Options) (*Deliverer, error) {
	o = o.withDefaults()
	d := &Deliverer{
		opt:      o,
		lanes:    make(map[string]*lane, len(o.Destinations)),
		metrics:  newMetrics(o.Registerer),
		stopping: make(chan struct{}),
	}
	d.attempts, d.abort = context.WithCancel(context.Background())
	return d, d.Reload(o.Destinations, o.Relayed)
}

func (o Options) withDefaults() Options {
	o.Concurrency = cmp.Or(o.Concurrency, DefaultConcurrency)
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

// Start begins to take work. Call it once.
func (d *Deliverer) Start() { d.workers.Go(d.read) }

// Stop takes no more work, hands back what waits, and waits for the attempts under way. When ctx ends
// first they are cancelled and their work is handed back to the journal as not attempted; Stop then
// returns the cause of ctx's end, after every outcome was handed to the journal. Close the journal
// afterwards.
func (d *Deliverer) Stop(ctx context.Context) error {
	d.mu.Lock()
	d.stop.Do(func() { close(d.stopping) })
	d.mu.Unlock()
	defer context.AfterFunc(ctx, d.abort)()
	for _, l := range d.lanes { // which nobody changes any more
		l.close()
	}
	d.workers.Wait()
	for _, l := range d.lanes {
		closeIdle(l.dest.transport)
	}
	if d.attempts.Err() != nil {
		return context.Cause(ctx)
	}
	d.abort()
	return nil
}

// strangerDelay is how long work for a destination that is not ours is left alone, for somebody who
// knows it. It costs no try.
const strangerDelay = time.Minute

// read brings work into the lanes until the deliverer is stopped or the journal closed. It waits for
// nothing else, so that no destination holds up another.
func (d *Deliverer) read() {
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
			if l := d.lane(w.Destination); l != nil {
				l.add(w)
				continue
			}
			d.opt.Journal.Finish(journal.Outcome{Held: w.Held, State: journal.Pending, Due: d.opt.Now().Add(strangerDelay)})
		}
	}
}

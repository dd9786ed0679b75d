// Package deliver takes leased work from the journal, POSTs it to its destination, and hands the
// outcome back. The guarantee is at least once with a stable key: a destination may see an event
// again, always under the same Idempotency-Key.
package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/hookonce/hookonce/internal/journal"
)

// Deliverer makes the attempts. Its methods are safe for concurrent use.
type Deliverer struct {
	opt       Options
	transport http.RoundTripper // makes the attempts; nil: each destination has one
	random    func() float64    // the jitter of a retry, in [0, 1)
	metrics   *metrics
	answered  atomic.Pointer[map[string]bool] // see Options.Relayed

	mu     sync.RWMutex          // guards send queues, and keeps Reload and Stop apart; taken before that of a send queue
	queues map[string]*sendQueue // by the name of the destination; those that are gone as well

	stopping chan struct{}
	stop     sync.Once
	workers  sync.WaitGroup // the reader of work, and what the send queues begin
	// attempts is the context of all attempts: it ends when a shutdown has waited long enough.
	attempts context.Context
	abort    context.CancelFunc
}

// New returns a deliverer that does nothing until it is started. It fails when the settings of a
// destination make no sense, and panics when the metrics are registered already.
func New(o Options) (*Deliverer, error) { return newDeliverer(o, nil, rand.Float64) }

func newDeliverer(o Options, transport http.RoundTripper, random func() float64) (*Deliverer, error) {
	d := &Deliverer{
		transport: transport,
		random:    random,
		opt:       o,
		queues:    make(map[string]*sendQueue, len(o.Destinations)),
		metrics:   newMetrics(o.Registerer),
		stopping:  make(chan struct{}),
	}
	d.attempts, d.abort = context.WithCancel(context.Background())
	return d, d.Reload(o.Destinations, o.Relayed)
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
	for _, q := range d.queues { // which nobody changes any more
		q.close()
	}
	d.workers.Wait()
	for _, q := range d.queues {
		closeIdle(q.dest.transport)
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

// read brings work into the send queues until the deliverer is stopped or the journal closed. It waits for
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
			if q := d.queue(w.Destination); q != nil {
				q.add(w)
				continue
			}
			d.opt.Journal.Finish(journal.Outcome{Held: w.Held, State: journal.Pending, Due: d.opt.Now().Add(strangerDelay)})
		}
	}
}

// errStopped says that a reload came too late.
var errStopped = errors.New("deliver: stopped")

// Reload makes these the destinations, and these the sources whose senders are answered what the
// destination answered. It is all or nothing: when the settings of one destination make no sense, or the
// deliverer was stopped, nothing is changed.
//
// Attempts under way end as they began. What waits for a destination follows its new settings, and goes
// back to the journal where there are none any more; the journal should bring nothing for it by then. A
// destination with another URL or other certificates is another one, whose health is not known yet, and
// so is one whose breaker has other settings. The others keep theirs, their connections, and what is
// left of an unchanged rate.
func (d *Deliverer) Reload(destinations map[string]Destination, relayed map[string]bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.stopping:
		return errStopped
	default:
	}
	outfits := make(map[string]*outfit, len(destinations))
	for name, s := range destinations {
		o, err := d.outfit(name, s, d.queues[name])
		if err != nil {
			return fmt.Errorf("deliver: destination %q: %w", name, err)
		}
		outfits[name] = o
	}
	d.answered.Store(&relayed)
	for name, o := range outfits {
		if d.queues[name] == nil {
			d.queues[name] = &sendQueue{Deliverer: d, name: name, gone: true}
		}
		d.queues[name].fit(o)
	}
	for name, q := range d.queues {
		if _, stays := outfits[name]; !stays {
			q.leave()
		}
	}
	return nil
}

// queue returns the send queue of a destination, nil if there never was one.
func (d *Deliverer) queue(name string) *sendQueue {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.queues[name]
}

// outfit is what the settings of a destination make of its send queue. It is not changed afterwards.
type outfit struct {
	settings    Destination
	dest        *destination
	concurrency int
	limiter     *rate.Limiter // nil: no rate
	breaker     Breaker
}

// outfit makes one of settings, with what can be kept of that of a send queue; which is nil if it is new.
func (d *Deliverer) outfit(name string, s Destination, q *sendQueue) (*outfit, error) {
	before := q.before()
	o := &outfit{settings: s, concurrency: s.Concurrency}
	transport := d.transport
	switch {
	case transport != nil:
	case before != nil && before.connects(o):
		transport = before.dest.transport
	default:
		transport = newTransport(s, o.concurrency)
	}
	var err error
	if o.dest, err = newDestination(name, s, transport); err != nil {
		return nil, err
	}
	if o.breaker, err = s.Breaker.fit(o.dest.schedule); err != nil {
		return nil, err
	}
	switch {
	case before != nil && before.settings.Rate == s.Rate:
		o.limiter = before.limiter
	case s.Rate > 0:
		// A tenth of a second may be made up for after a pause.
		o.limiter = rate.NewLimiter(rate.Limit(s.Rate), max(1, int(s.Rate/10)))
	}
	return o, nil
}

// connects reports whether another outfit connects in the same way.
func (o *outfit) connects(other *outfit) bool {
	a, b := o.settings, other.settings
	return a.TLS == b.TLS && o.concurrency == other.concurrency && reflect.DeepEqual(a.Policy, b.Policy)
}

// same reports whether what is known about the health of the destination holds for another outfit.
func (o *outfit) same(other *outfit) bool {
	a, b := o.settings, other.settings
	return a.URL == b.URL && a.TLS == b.TLS && o.breaker == other.breaker
}

// before returns the outfit of a send queue, nil if there is none.
func (q *sendQueue) before() *outfit {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.outfit
}

// fit gives the send queue an outfit, and goes on with it.
func (q *sendQueue) fit(o *outfit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := q.outfit
	q.outfit = o
	if q.gone || !before.same(o) {
		q.health = newHealth(o.breaker, o.concurrency, q.opt.Now())
		q.metrics.breaker.WithLabelValues(q.name).Set(Healthy.number())
		if before != nil {
			q.opt.Journal.Suspend(q.name, journal.Rest{})
		}
	}
	q.health.resize(o.concurrency)
	q.gone = false
	if before != nil && !before.connects(o) {
		closeIdle(before.dest.transport)
	}
	if q.wake != nil { // for a rate that may be another
		q.wake.Stop()
		q.wake = nil
	}
	q.advance()
}

// leave hands back what waits, now and until the send queue gets an outfit again. Attempts under way go on.
func (q *sendQueue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone {
		return
	}
	q.gone = true
	q.metrics.breaker.DeleteLabelValues(q.name)
	q.handBack(q.waiting.drain(), q.opt.Now())
	closeIdle(q.dest.transport)
}

// closeIdle closes the connections of a transport that nobody uses; the others close when they are not
// used any more.
func closeIdle(t http.RoundTripper) {
	if c, ok := t.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Status is how a destination stands at the moment, in this process.
type Status struct {
	Name  string
	State State
	// Since is when the state began, Cause the error that made it ill, Until when an ill one is tried again at the
	// latest. Since is zero for a healthy one, and the others are for any that is not ill.
	Since, Until time.Time
	Cause        string
	// Limit is how many attempts may be under way at once, at the moment.
	Limit int
	// Waiting deliveries are held for their turn, Underway are being attempted.
	Waiting, Underway int
}

// Destinations returns how every destination stands, by name. Safe for concurrent use.
func (d *Deliverer) Destinations() []Status {
	d.mu.RLock()
	defer d.mu.RUnlock()
	all := make([]Status, 0, len(d.queues))
	for _, q := range d.queues {
		if s, ok := q.status(); ok {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b Status) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// status reports false for a destination that is gone.
func (q *sendQueue) status() (Status, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.health
	s := Status{Name: q.name, State: h.state, Limit: min(h.limit, q.concurrency), Waiting: q.waiting.len, Underway: q.underway}
	if h.state != Healthy {
		s.Since = h.since
	}
	if h.ill() {
		s.Cause, s.Until = h.cause, h.until
	}
	return s, !q.gone
}

// number is the state as the metrics have it.
func (s State) number() float64 {
	return map[State]float64{Healthy: 0, Recovering: 1, Ill: 2}[s]
}

// paused reports whether an operator wants nothing to begin.
func (q *sendQueue) paused() bool { return q.opt.Journal.Paused(q.name) }

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
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/retry"
)

// Deliverer makes the attempts. Its methods are safe for concurrent use.
type Deliverer struct {
	*sender
	transport http.RoundTripper // makes the attempts; nil: each destination has one

	mu     sync.RWMutex          // guards queues, and keeps Reload and Stop apart; taken before that of a queue
	queues map[string]*sendQueue // by the name of the destination; those that are gone as well

	stopping chan struct{}
	stop     sync.Once
}

// New returns a deliverer that does nothing until it is started. It fails when the settings of a
// destination make no sense, and panics when the metrics are registered already.
func New(o Options) (*Deliverer, error) { return newDeliverer(o, nil, rand.Float64) }

func newDeliverer(o Options, transport http.RoundTripper, random func() float64) (*Deliverer, error) {
	d := &Deliverer{
		sender:    &sender{opt: o, random: random, metrics: newMetrics(o.Registerer, o.Tally)},
		transport: transport,
		queues:    make(map[string]*sendQueue, len(o.Destinations)),
		stopping:  make(chan struct{}),
	}
	d.attempts, d.abort = context.WithCancel(context.Background())
	d.answered.Store(new(relaying))
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

// unknownDelay is how long work for a destination that this process does not know is left alone, for one that
// does. It costs no try.
const unknownDelay = time.Minute

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
			d.opt.Journal.Finish(journal.Outcome{Held: w.Held, State: journal.Pending, Due: d.opt.Now().Add(unknownDelay)})
		}
	}
}

// errStopped says that a reload came too late.
var errStopped = errors.New("deliver: stopped")

// Reload makes these the destinations, and these the sources whose senders are answered what the
// destination answered. It is all or nothing: when the settings of one destination make no sense, or the
// deliverer was stopped, nothing is changed.
//
// Attempts under way end as they began. The answers of sources whose senders waited until now are read whole for as long as
// the last of these may wait. What waits for a destination follows its new settings, and goes
// back to the journal where there are none any more; the journal should bring nothing for it by then. A
// destination with another URL or other certificates is another one, whose health is not known yet, and
// so is one whose breaker has other settings. The others keep theirs, their connections, and what is
// left of an unchanged rate.
func (d *Deliverer) Reload(destinations map[string]Destination, relayed map[string]time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.stopping:
		return errStopped
	default:
	}
	ready := make(map[string]*destination, len(destinations))
	for name, s := range destinations {
		dest, err := newDestination(name, s, d.queues[name].before(), d.transport, d.opt.Dial)
		if err != nil {
			return fmt.Errorf("deliver: destination %q: %w", name, err)
		}
		ready[name] = dest
	}
	d.answered.Store(d.answered.Load().next(relayed, d.opt.Now()))
	for name, dest := range ready {
		if d.queues[name] == nil {
			d.queues[name] = &sendQueue{sender: d.sender, name: name, gone: true}
		}
		d.queues[name].fit(dest)
	}
	for name, q := range d.queues {
		if _, stays := ready[name]; !stays {
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

// BypassAttempt makes one attempt at a delivery that the journal cannot record now, and returns the outcome
// instead of handing it to the journal. The request is that of any attempt, under the same Idempotency-Key and
// webhook-id, with Hookonce-Unprotected: true and without a number.
//
// It waits for nothing: where the destination is paused, it is ill and not to be tried now, or as much under way as it bears,
// there is no attempt, and the outcome is [journal.Failed]. The attempt ends with ctx at the latest.
func (d *Deliverer) BypassAttempt(ctx context.Context, w *journal.Work) journal.Outcome {
	refused := journal.Outcome{Held: w.Held, State: journal.Failed, Started: d.opt.Now(), Error: "not attempted: the destination is at rest or busy"}
	q := d.queue(w.Destination)
	if q == nil {
		return refused
	}
	t, ok := q.seize(w)
	if !ok {
		return refused
	}
	defer d.workers.Done()
	attempt, cancel := context.WithTimeout(ctx, t.dest.Timeout)
	defer cancel()
	defer context.AfterFunc(d.attempts, cancel)()
	d.metrics.inFlight.Inc()
	defer d.metrics.inFlight.Dec()

	o, answer, verdict := d.attempt(attempt, cancel, &t)
	late := ctx.Err() != nil
	if late {
		verdict.Signal = retry.NoSignal // it might have answered somebody with more patience
	}
	switch { // there is no record to look at: the error is all that is told
	case verdict.Result == retry.Uncounted:
		o.Error = verdict.Reason
	case late && o.Status == 0:
		o.Error = "no time was left: the sender waits no longer"
	}
	q.learn(&t, &o, verdict)
	d.metrics.observe(w, o, t.trace)
	t.trace.End(&o)
	answer.Drain()
	if next, ok := q.ended(&t); ok {
		d.workers.Go(func() { q.run(next) })
	}
	return o
}

// Package engine makes recording events in a [journal.Store] fast, and hands out their deliveries.
//
// [Engine.Accept] returns after the event is committed: concurrent callers share one transaction
// (group commit), copies of an event that is being committed wait for it instead of reaching the
// database, and a bounded memory of finished keys answers late copies. A fresh event goes from the
// committed batch straight to [Engine.Work], already leased; a poller brings what that path loses:
// retries, re-driven events, and work whose process died. [Engine.Finish] records what became of it.
//
// The guarantee is at least once with a stable key: no acknowledged event is lost, and every delivery
// carries a fencing token, so only the current attempt can record its outcome.
//
// The engine stands on a store's contract and knows nothing of databases. An [Engine] puts its parts
// together, each of which has a file: the acceptor with the queue and the writers, the poller, the finisher,
// the extender of leases, the awaiter of responses, receipts of copies, pauses, the notifier, and upkeep. What is in
// flight and what goes past the store are packages of their own.
package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/bypass"
	"github.com/hookonce/hookonce/internal/journal/inflight"
)

// Engine accepts events into a [journal.Store] and hands out their deliveries. Create it with [New]; all
// methods are safe for concurrent use.
type Engine struct {
	*core
	inflight *inflight.Set
	bypass   *bypass.Bypass
	queue    *queue
	done     *doneCache
	schedule *schedule
	acceptor *acceptor
	awaiter  *awaiter
	receipts *receipts
	notifier *notifier
	pauses   *pauses
	upkeep   *upkeep
	work     chan *journal.Work // has room for everything that may be in flight

	cancel   context.CancelFunc // of the store's calls
	feeders  sync.WaitGroup     // writers and poller: what puts into work
	bypassed sync.WaitGroup     // the recorder of what was delivered past the store
	rest     sync.WaitGroup     // everything else
	retired  sync.Once
	drained  chan struct{} // closed when what came into work since Retire is handed back, all of it
	closed   sync.Once
	result   error // of Close
}

// New starts an engine on store, which stays the caller's to close. It first calls
// [journal.Worker.Orphans], so that work of a process that died begins again at once. Errors: bad
// options, metrics that are registered already, or what the store said. After the last nothing is
// registered, and New may be called again.
func New(store journal.Store, opt Options) (*Engine, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	e := build(store, opt)
	if err := e.adopt(); err != nil {
		e.cancel()
		return nil, err
	}
	if err := e.metrics.register(opt.Registerer, e); err != nil {
		e.cancel()
		return nil, fmt.Errorf("journal: %w", err)
	}
	if opt.Partitions != nil {
		e.upkeep.ensurePartitions() // before anything is stored beside them
	}
	e.start()
	return e, nil
}

// build puts the parts together.
func build(store journal.Store, opt Options) *Engine {
	done := newDoneCache(opt.DoneKeys)
	ctx, cancel := context.WithCancel(context.Background())
	c := &core{store: store, opt: opt, metrics: newMetrics(opt.Tally), ctx: ctx, stop: make(chan struct{})}
	e := &Engine{
		core:     c,
		cancel:   cancel,
		done:     done,
		queue:    newQueue(opt.QueueEntries, opt.QueueBytes),
		schedule: newSchedule(),
		receipts: newReceipts(c),
		work:     make(chan *journal.Work, opt.MaxHeld),
		drained:  make(chan struct{}),
	}
	e.inflight = inflight.New(inflight.Options{
		MaxDeliveries: opt.MaxHeld, MaxBytes: opt.HeldBytes, MaxBatch: opt.MaxBatch, Destinations: opt.Destinations, Now: opt.Now,
	}, func() { e.schedule.note(time.Time{}) })
	e.bypass = e.newBypass()
	e.acceptor = &acceptor{core: c, queue: e.queue, done: done, bypass: e.bypass, receipts: e.receipts, requests: sync.Pool{New: newRequest}}
	e.awaiter = &awaiter{core: c, inflight: e.inflight, waits: newWaits()}
	e.notifier = newNotifier(c, done, e.schedule)
	e.pauses = &pauses{core: c, inflight: e.inflight, schedule: e.schedule, notifier: e.notifier}
	e.upkeep = &upkeep{core: c}
	e.upkeep.keep.Store(opt.Retention)
	return e
}

func (e *Engine) newBypass() *bypass.Bypass {
	return bypass.New(bypass.Options{
		Store: e.store,
		Call: func(events int, do func(context.Context) error) error {
			return e.call(opReconcile, e.opt.Timeout, events, do)
		},
		InFlight: e.inflight,
		Done:     e.done.lookup,
		Recorded: func(events int) {
			e.metrics.reconciled.Add(float64(events))
			e.schedule.note(e.opt.Now()) // what is left to be done
		},
		Timeout: e.opt.Timeout, MaxEvents: e.opt.QueueEntries, MaxBytes: e.opt.QueueBytes, MaxBatch: e.opt.MaxBatch,
		Lease: e.opt.Lease, IDs: e.opt.IDs, Now: e.opt.Now, Logger: e.opt.Logger,
	})
}

// adopt frees the work of processes that are known to be dead, and reads which destinations are paused.
func (e *Engine) adopt() error {
	ctx, cancel := context.WithTimeout(e.ctx, e.opt.Timeout)
	defer cancel()
	n, err := e.store.Orphans(ctx, e.opt.Now())
	if err != nil {
		return fmt.Errorf("journal: freeing the work of a previous run: %w", err)
	}
	if n > 0 {
		e.opt.Logger.Info("journal: work of a previous run begins again", "deliveries", n)
	}
	return e.pauses.read(ctx)
}

// start starts the goroutines of all parts.
func (e *Engine) start() {
	turn := make(chan struct{}, 1)
	for range 2 {
		w := &writer{core: e.core, turn: turn, queue: e.queue, done: e.done, inflight: e.inflight, schedule: e.schedule, issue: e.issue, stored: map[string]*storedCounters{}}
		e.feeders.Go(w.run)
	}
	e.feeders.Go((&poller{core: e.core, inflight: e.inflight, schedule: e.schedule, issue: e.issue}).run)
	e.rest.Go((&finisher{core: e.core, inflight: e.inflight, done: e.done, waits: e.awaiter.waits, schedule: e.schedule, notifier: e.notifier}).run)
	e.rest.Go((&extender{core: e.core, inflight: e.inflight}).run)
	e.rest.Go(e.awaiter.run)
	e.rest.Go(e.receipts.run)
	e.rest.Go(e.pauses.watch)
	e.rest.Go(e.upkeep.purge)
	e.rest.Go(e.upkeep.count)
	if e.opt.Partitions != nil {
		e.rest.Go(e.upkeep.dropPartitions)
	}
	if e.opt.Notifier != nil {
		e.rest.Go(e.notifier.listen)
		e.rest.Go(e.notifier.run)
	}
	e.bypassed.Go(func() { e.bypass.Record(e.stop) })
}

// Accept records the events of one request in one transaction and returns, after the commit, one
// result per event in order. Nothing may be acknowledged unless err is nil and the event's Result.Err
// is nil. The contents of the events must not change any more from the call on.
//
// Errors, all of them to be answered with a retryable 503: [journal.ErrFull], [journal.ErrClosed],
// [journal.ErrUnavailable] around what the store said, and [hookonce.ErrUnknownOutcome] when ctx ended first. With
// the last two, events may be stored all the same; the sender's retry reads the truth. What is queued
// when ctx ends is stored all the same, unless others need its place.
//
// Events from a provider's list ([journal.Event.Listed]) come in here, too, and wait, are stored and delivered like any
// others, under the same bounds. No receipts are kept of those that are known.
func (e *Engine) Accept(ctx context.Context, events []*journal.Event) ([]journal.Result, error) {
	return e.acceptor.accept(ctx, events)
}

// Full reports whether the queue is at one of its bounds at this moment, so that the next Accept
// would most likely be refused with [journal.ErrFull].
func (e *Engine) Full() bool { return e.queue.full() }

// Await waits until an attempt at a delivery has come to its end, here or in another process on the same
// store, and says what it came to. What it returns is durable. A response that is not a success is known
// only in the process that got it; elsewhere there is the state alone. A delivery that is put off, because
// its destination is at rest, is [journal.Pending], and one whose event is not on record [journal.Absent]. It fails when
// ctx or the engine ends first.
func (e *Engine) Await(ctx context.Context, d journal.DeliveryID) (journal.DeliveryStatus, error) {
	return e.awaiter.await(ctx, d)
}

// Bypass delivers events past the store, see [bypass.Bypass.Deliver]. It is for those that Accept could not
// record because the store is unavailable ([journal.IsOutage]). It fails with [journal.ErrNoCells] once the store said that: what
// another cell owns would be delivered twice.
func (e *Engine) Bypass(ctx context.Context, events []*journal.Event, attempt journal.Attempter) ([]journal.Result, error) {
	switch {
	case e.closing():
		return nil, journal.ErrClosed
	case e.celled.Load():
		return nil, journal.ErrNoCells
	}
	return e.bypass.Deliver(ctx, events, attempt)
}

// Work returns the channel of deliveries leased to this process, in the order in which they should
// begin. It is closed when Close has begun and nothing more comes. See [Engine.Finish] for the
// receiver's duty.
func (e *Engine) Work() <-chan *journal.Work { return e.work }

// Current reports whether a piece of work still is ours to do. It costs no call of the store; ask it
// right before beginning an attempt that had to wait.
func (e *Engine) Current(h journal.Held) bool { return e.inflight.Current(h, e.opt.Now()) }

// Finish reports what became of a piece of work. Every work received from [Engine.Work] must be
// finished exactly once; one that was not begun, or whose lease is not current any more, with Pending.
//
// Finish never blocks and loses nothing: the outcome is recorded together with others, and again
// until the store took it or the token turned out not to be current.
func (e *Engine) Finish(o journal.Outcome) {
	if !e.inflight.Finish(o) {
		e.metrics.stale.Inc()
		e.opt.Logger.Warn("journal: an outcome for work that is not held was ignored",
			"event", journal.IDText(o.EventID), "destination", o.Destination, "token", o.Token, "state", o.State)
	}
}

// issue hands work in flight to the workers, unless the event is being delivered past the store, or was. Then it is left alone for
// a lease, here and in other processes: the passage is recorded by then, if it is over, and ends it, unless it did so before. No
// passage lasts as long as the longest leases do, and what it did not deliver waits for so long.
func (e *Engine) issue(it *inflight.Item) {
	if e.bypass.Has(it.Source, it.Key, it.Destination) {
		e.Finish(journal.Outcome{Held: it.Held, State: journal.Pending, Due: e.opt.Now().Add(min(max(e.opt.Lease, time.Second), 30*time.Second))})
		return
	}
	e.work <- &it.Work
}

// Suspend brings little for a destination, or nothing, as r says, by the decision of whoever
// delivers. The zero Rest ends that. What is in flight already stays with its receiver, who can hand it back. Only
// destinations that [Options.Destinations] names can be suspended.
//
// Suspend does not block and lasts as long as the process.
func (e *Engine) Suspend(destination string, r journal.Rest) {
	e.inflight.Destinations.Suspend(destination, r)
	e.schedule.note(r.Until)
}

// Paused reports whether an operator has paused a destination, as far as this process knows: what other
// processes do about it is known here within a second. It does not block.
func (e *Engine) Paused(destination string) bool { return e.pauses.names()[destination] }

// SetPaused pauses a destination, or resumes it, for all processes on the store. Nothing is taken for it
// any more; what waits in a process goes back without losing an attempt, and attempts under way come to
// their end. It lasts until somebody resumes the destination, restarts included.
func (e *Engine) SetPaused(ctx context.Context, p journal.Pause, paused bool) (changed bool, err error) {
	return e.pauses.set(ctx, p, paused)
}

// Replay has deliveries begin again, see [journal.Operator.Replay]. This process looks for them at once, and
// like all that hear of it asks the store again what is done. After an error nothing is known: they are told all the same
// where what is done may have begun again.
func (e *Engine) Replay(ctx context.Context, r journal.Replay, limit int) (journal.Replayed, error) {
	r.Ordered = append(e.inflight.Destinations.InOrder(), r.Ordered...)
	done, err := e.store.Replay(ctx, r, limit)
	if r.DryRun {
		return done, err
	}
	if r.Done() {
		e.done.forget()
	}
	if err == nil {
		e.metrics.replayed.WithLabelValues("true").Add(float64(done.Forced))
		e.metrics.replayed.WithLabelValues("false").Add(float64(done.Deliveries - done.Forced))
	}
	if err == nil || r.Done() {
		e.Look()
	}
	return done, err
}

// Look has the pollers of all processes look for due work now, because it is known that there is some.
func (e *Engine) Look() {
	e.schedule.note(e.opt.Now())
	e.notifier.tell()
}

// Reload makes these the destinations that this process delivers to, in place of [Options.Destinations],
// which must not have been nil, and this the retention. It fails, and changes nothing, if the retention
// makes no sense.
//
// What is in flight for a destination that is gone stays with its receiver, who should hand it back; nothing more
// is taken for it, and its deliveries wait in the store for whoever knows it. An event is in an order, or is
// not, by what held when it was accepted.
func (e *Engine) Reload(destinations map[string]journal.Destination, keep *journal.Retention) error {
	if err := keep.Validate(); err != nil {
		return err
	}
	e.inflight.Destinations.Reload(destinations, e.pauses.names())
	e.upkeep.keep.Store(keep)
	e.schedule.note(e.opt.Now())
	return nil
}

// Ping reports whether the store can be written to.
func (e *Engine) Ping(ctx context.Context) error { return e.store.Ping(ctx) }

// Stats counts the store's rows.
func (e *Engine) Stats(ctx context.Context) (journal.Stats, error) { return e.store.Stats(ctx) }

// Retire has the engine take nothing more, and hands back what nobody has received or what comes yet, so that other processes begin
// it: the receiver of [Engine.Work] has been told to stop, or is about to be. What is accepted from now on waits in the store.
// Close does that first; call Retire where it takes a while until Close may be called. Later calls do nothing.
func (e *Engine) Retire() {
	e.retired.Do(func() {
		e.inflight.Close()
		go func() {
			defer close(e.drained)
			for w := range e.work {
				e.Finish(journal.Outcome{Held: w.Held, State: journal.Pending, Due: e.opt.Now()})
			}
		}()
	})
}

// Close stops accepting, commits and answers what is queued, hands back the work that nobody received,
// closes the Work channel, and waits until all received work is finished, and its outcomes and what went past the store are
// recorded. When ctx ends first it gives up: what is not recorded begins again when its lease ends,
// and the error says how much that is; of what went past the store the log says it. All goroutines have ended when Close
// returns. The store stays open. Later calls wait for the first and return its result.
func (e *Engine) Close(ctx context.Context) error {
	e.closed.Do(func() { e.result = e.close(ctx) })
	return e.result
}

func (e *Engine) close(ctx context.Context) error {
	defer context.AfterFunc(ctx, e.cancel)()
	e.Retire()
	close(e.stop)
	idle := e.inflight.Close()
	e.queue.close()
	e.feeders.Wait()
	close(e.work)
	<-e.drained
	e.bypassed.Wait() // the end of Close would cancel what it does
	e.bypassed.Go(func() {
		e.bypass.RecordRest(ctx)
		e.receipts.recordRest() // those of copies of what is on record only now, too
	})
	select {
	case <-idle:
	case <-ctx.Done():
	}
	e.bypassed.Wait()
	e.notifier.notify() // resources whose turn it was here wait for somebody else
	e.cancel()
	e.rest.Wait()
	if n := e.inflight.Count(); n > 0 {
		return fmt.Errorf("journal: closed with %d deliveries unfinished; they begin again when their leases end: %w",
			n, context.Cause(ctx))
	}
	return nil
}

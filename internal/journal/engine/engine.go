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
// The engine stands on a store's contract and knows nothing of databases.
package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Engine accepts events into a [journal.Store] and hands out their deliveries. Create it with [New]; all
// methods are safe for concurrent use.
type Engine struct {
	store    journal.Store
	opt      Options
	metrics  *metrics
	requests sync.Pool // of *request
	queue    *queue
	turns    chan struct{} // holds one for each accepting transaction; room for Options.Writers
	done     *doneCache
	held     *holds
	schedule *schedule
	waits    *waits
	detours  *detours
	work     chan *journal.Work // has room for everything that may be held

	ropes     ropes // of Options.Bell
	sightings *sightings
	paused    atomic.Pointer[map[string]bool]   // by operators
	keep      atomic.Pointer[journal.Retention] // see Options.Retention

	ctx    context.Context // of the store's calls; canceled when Close gives up or is through
	cancel context.CancelFunc
	stop   chan struct{} // closed when Close begins
	passed chan struct{} // closed when the reconciler has ended

	feeders sync.WaitGroup // writers and poller: what puts into work
	rest    sync.WaitGroup // everything else
	closed  sync.Once
	result  error // of Close
}

// New starts a journal on store, which stays the caller's to close. It first calls [journal.Store.Orphans], so
// that work of a process that died begins again at once. Errors: bad options, metrics that are
// registered already, or what the store said.
func New(store journal.Store, options Options) (*Engine, error) {
	opt, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	j := &Engine{
		store:    store,
		opt:      opt,
		requests: sync.Pool{New: newRequest},
		queue:    newQueue(opt.QueueEntries, opt.QueueBytes),
		turns:    make(chan struct{}, opt.Writers),
		schedule: newSchedule(),
		waits:    newWaits(),
		detours:  newDetours(opt),
		work:     make(chan *journal.Work, opt.MaxHeld),
		stop:     make(chan struct{}),
		passed:   make(chan struct{}),

		ropes:     newRopes(),
		sightings: newSightings(),
	}
	j.held = newHolds(opt, func() { j.schedule.note(time.Time{}) })
	j.keep.Store(opt.Retention)
	if j.done, err = newDoneCache(opt.DoneKeys); err != nil {
		return nil, err
	}
	if j.metrics, err = newMetrics(j); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	if err := j.adopt(); err != nil {
		j.cancel()
		return nil, err
	}
	if opt.Partitions != nil {
		j.provide() // before anything is stored beside them
	}
	j.start()
	return j, nil
}

// adopt frees the work of processes that are known to be dead, and reads which destinations are paused.
func (j *Engine) adopt() error {
	ctx, cancel := context.WithTimeout(j.ctx, j.opt.Timeout)
	defer cancel()
	n, err := j.store.Orphans(ctx, j.opt.Now())
	if err != nil {
		return fmt.Errorf("journal: freeing the work of a previous run: %w", err)
	}
	if n > 0 {
		j.opt.Logger.Info("journal: work of a previous run begins again", "deliveries", n)
	}
	if j.opt.Records == nil {
		return nil
	}
	return j.readPauses(ctx)
}

func (j *Engine) start() {
	for range j.opt.Writers + 1 {
		w := &writer{Engine: j}
		j.feeders.Go(w.run)
	}
	j.feeders.Go(j.poller)
	j.rest.Go((&finisher{Engine: j}).run)
	j.rest.Go(j.extender)
	j.rest.Go(j.janitor)
	j.rest.Go(j.counter)
	j.rest.Go(j.answerer)
	j.rest.Go(j.reconciler)
	if j.opt.Partitions != nil {
		j.rest.Go(j.dropper)
	}
	if j.opt.Notifier != nil {
		j.rest.Go(j.listener)
		j.rest.Go(j.ringer)
	}
	if j.opt.Records != nil {
		j.rest.Go(j.recorder)
		j.rest.Go(j.watchPauses)
	}
}

// Work returns the channel of deliveries leased to this process, in the order in which they should
// begin. It is closed when Close has begun and nothing more comes. See [Engine.Finish] for the
// receiver's duty.
func (j *Engine) Work() <-chan *journal.Work { return j.work }

// Ping reports whether the store can be written to.
func (j *Engine) Ping(ctx context.Context) error { return j.store.Ping(ctx) }

// Stats counts the store's rows.
func (j *Engine) Stats(ctx context.Context) (journal.Stats, error) { return j.store.Stats(ctx) }

// Close stops accepting, commits and answers what is queued, hands back the work that nobody received,
// closes the Work channel, and waits until all received work is finished and its outcomes are
// recorded. When ctx ends first it gives up: what is not recorded begins again when its lease ends,
// and the error says how much that is. All goroutines have ended when Close returns. The store stays
// open. Later calls wait for the first and return its result.
func (j *Engine) Close(ctx context.Context) error {
	j.closed.Do(func() { j.result = j.close(ctx) })
	return j.result
}

func (j *Engine) close(ctx context.Context) error {
	defer context.AfterFunc(ctx, j.cancel)()
	close(j.stop)
	j.held.close()
	j.queue.close()
	j.handBack()
	j.feeders.Wait()
	j.handBack()
	close(j.work)
	j.reconcileRest()
	j.recordRest()
	select {
	case <-j.held.idle:
	case <-ctx.Done():
	}
	j.ring() // resources whose turn it was here wait for somebody else
	j.cancel()
	j.rest.Wait()
	if n := j.held.count(); n > 0 {
		return fmt.Errorf("journal: closed with %d deliveries unfinished; they begin again when their leases end: %w",
			n, context.Cause(ctx))
	}
	return nil
}

// handBack returns to the store, unattempted, the work that waits in the channel.
func (j *Engine) handBack() {
	for {
		select {
		case w := <-j.work:
			j.Finish(journal.Outcome{Held: w.Held, State: journal.Pending, Due: j.opt.Now()})
		default:
			return
		}
	}
}

// closing reports whether Close has begun.
func (j *Engine) closing() bool {
	select {
	case <-j.stop:
		return true
	default:
		return false
	}
}

// pause waits for d and reports true, or false when the journal's context ended first.
func (j *Engine) pause(d time.Duration) bool { return wait(d, j.ctx.Done()) }

// pauseUntilStop waits for d and reports true, or false when Close began first.
func (j *Engine) pauseUntilStop(d time.Duration) bool { return wait(d, j.stop) }

func wait(d time.Duration, end <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-end:
		return false
	}
}

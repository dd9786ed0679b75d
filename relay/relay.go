package relay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
)

// Relay takes effects from an outbox and carries them out.
type Relay struct {
	worker
	names []string
	wake  wake
}

// wake makes a relay look for effects.
type wake chan struct{}

func (w wake) up() {
	select {
	case w <- struct{}{}:
	default: // it is about to look anyway
	}
}

// New returns a relay that gives the effects in queue to the handler of their name. Effects of other names
// stay where they are, for other relays; a name under which effects wait for longer than a minute is logged
// once. New panics if there is no queue or no handler, or if an option
// makes no sense.
func New(queue hookonce.EffectQueue, handlers map[string]Handler, opts ...Option) *Relay {
	if queue == nil || len(handlers) == 0 {
		panic("relay: New needs a queue and a handler")
	}
	r := &Relay{worker: worker{settings: defaults(), queue: queue, handlers: maps.Clone(handlers), lost: &lostTakes{excused: map[int64]bool{}}}, wake: make(wake, 1)}
	r.names = slices.Sorted(maps.Keys(handlers))
	for _, name := range r.names {
		if name == "" || handlers[name] == nil {
			panic(fmt.Sprintf("relay: the handler %q has no name or is nil", name))
		}
	}
	for _, o := range opts {
		o(&r.settings)
	}
	if err := r.validate(); err != nil {
		panic(err)
	}
	return r
}

// Wake makes the relay look for effects at once. It never blocks, and costs one query however often it is
// called meanwhile. Call it after a commit that enqueued something, for instance from the observer of an
// endpoint ([hookonce.WithObserver]), which is called when an event's outcome is durable.
func (r *Relay) Wake() { r.wake.up() }

// Run carries out effects until ctx ends. It then takes no more, lets the handlers finish for the time of
// [WithGrace], ends their contexts, and hands back what they do not finish, to be tried again at once,
// here or elsewhere. It returns nil when all is on record.
//
// It returns an error if handlers do not return, and at once if the tables are missing or newer
// than the program ([hookonce.ErrSchemaMissing], [hookonce.ErrSchemaNewer]) or the queue says that no waiting
// mends its error ([hookonce.Permanent]), and logs that it ends.
// A program that goes on without it carries out no effects: end it with the error. While the store
// cannot be reached Run goes on trying. It may be called again, and by several goroutines.
func (r *Relay) Run(ctx context.Context) error {
	attempts, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	run := &run{worker: r.worker, places: newPlaces(r.names, r.concurrency), most: r.concurrency, wake: r.wake, turns: map[string]bool{}}
	run.attempts = attempts
	looking, enough := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() { run.lookForUnhandled(looking) })
	defer looks.Wait()
	defer enough()
	return errors.Join(run.loop(ctx), run.drain(stop))
}

const (
	// storeTimeout bounds one question to the store.
	storeTimeout = 10 * time.Second
	// longestPause is between two questions when the store fails.
	longestPause = 30 * time.Second
)

var errStopped = errors.New("relay: the relay stops")

// run is one call of Run.
type run struct {
	worker
	places  *places
	most    int // that is taken at once; less while the store does not hand over so many payloads in time
	wake    wake
	turns   map[string]bool // names of which a suspect was taken since every name had its turn
	running sync.WaitGroup
}

// loop takes effects whenever there is room for some.
func (r *run) loop(ctx context.Context) error {
	pause := r.poll
	for ctx.Err() == nil {
		names, limit := r.places.room()
		if limit < 1 {
			select {
			case <-ctx.Done():
			case <-r.places.freed:
			}
			continue
		}
		limit = min(limit, r.most)
		n, err := r.take(names, limit)
		switch {
		case err == nil:
			r.most = min(2*r.most, r.concurrency)
		case errors.Is(err, context.DeadlineExceeded):
			r.most = max(limit/2, 1)
		}
		var freed wake
		switch {
		case errors.Is(err, hookonce.ErrSchemaMissing), errors.Is(err, hookonce.ErrSchemaNewer):
			r.log.ErrorContext(ctx, "relay: it ends, and no effect is carried out any more, because the tables are missing or newer than this program; run the migrations, or a newer program, and start it again", "error", err)
			return err
		case hookonce.IsPermanent(err):
			r.log.ErrorContext(ctx, "relay: it ends, and no effect is carried out any more", "error", err)
			return err
		case err != nil:
			pause = min(2*pause, longestPause)
			r.log.ErrorContext(ctx, "relay: effects could not be taken; trying again", "error", err, "in", pause)
		case n == limit: // there may be more
			pause = r.poll
			continue
		default:
			pause = r.poll
			if len(names) < len(r.places.names) { // the others may have effects that wait for a place
				freed = r.places.freed
			}
		}
		r.rest(ctx, pause, freed)
	}
	return nil
}

// take takes effects of these names, up to the limit, begins them, and returns how many there were.
// It is not interrupted: what is taken is begun.
func (r *run) take(names []string, limit int) (int, error) {
	suspects, release := suspects()
	asked := time.Now()
	batch, err := r.inTurn(context.WithoutCancel(r.attempts), hookonce.TakeRequest{Names: names, Limit: limit, Suspects: suspects, Lease: r.lease})
	if err != nil {
		r.lost.add(r.now())
	}
	if !slices.ContainsFunc(batch, suspicious) {
		release()
	}
	for _, e := range batch {
		free := func() {}
		if suspicious(e) {
			free = func() { release(); r.wake.up() } // there may be others
		}
		leave := r.places.enter(e.Name)
		r.running.Go(func() {
			defer free()
			defer leave()
			r.carryOut(e, asked, free)
		})
	}
	return len(batch), err
}

// inTurn takes what the request asks for, and a suspect first of the names that had no turn since all others had one:
// in the order of time those of a receiver that hangs, each of which takes as long as it may, would all come before the
// next one of another name. Where there are no suspects it asks once.
func (r *run) inTurn(ctx context.Context, req hookonce.TakeRequest) (batch []hookonce.QueuedEffect, err error) {
	ask := func(req hookonce.TakeRequest) (found bool, err error) {
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		more, err := r.queue.TakeEffects(ctx, req)
		err = because(ctx, err) // drivers say of their own that they were interrupted
		batch = append(batch, more...)
		i := slices.IndexFunc(more, suspicious)
		if i >= 0 {
			r.turns[more[i].Name] = true
		}
		return i >= 0, err
	}
	if req.Suspects > 0 && len(r.turns) > 0 {
		next := req
		next.Names = slices.DeleteFunc(slices.Clone(req.Names), func(name string) bool { return r.turns[name] })
		found, err := ask(next)
		switch {
		case found:
			req.Suspects = 0
		case err == nil: // the next look is for all names again, also if this one leaves no place for them
			clear(r.turns)
		}
		if req.Limit -= len(batch); err != nil || req.Limit == 0 {
			return batch, err
		}
	}
	_, err = ask(req)
	return batch, err
}

// rest waits for the time to look again, or until a place is free, if freed tells.
func (r *run) rest(ctx context.Context, d time.Duration, freed wake) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-r.wake:
	case <-freed:
	case <-timer.C:
	}
}

// drain waits for the handlers, and then makes them stop.
func (r *run) drain(stop context.CancelCauseFunc) error {
	returned := make(chan struct{})
	go func() {
		r.running.Wait()
		close(returned)
	}()
	if within(returned, r.grace) {
		return nil
	}
	stop(errStopped)
	if within(returned, returnTime) {
		return nil
	}
	return fmt.Errorf("relay: %d handler(s) did not return %v after the end of their contexts: their effects are tried again when the leases have run out", r.places.busy(), returnTime)
}

// Package tallies counts what comes of events and requests, by the minute, in the store's database, so that package dashboard
// shows what is usual: how much is done, how many copies come, how much fails.
//
//	counts := tallies.New(store)
//	observed := hookonce.WithObserver(counts.Observe) // at each handler
//	err := counts.Run(ctx)                            // beside them, until ctx ends
//
// It counts in memory and adds to the store every ten seconds, on a connection of the pool and never in a handler's
// transaction: no handler waits for it. What was not added when the process dies is not counted. A batch whose outcome is
// unknown is sent again and added once.
package tallies

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/tally"
)

const (
	// Every is how often [Tallies.Run] adds to the store, on the clock: at :00, :10 and so on.
	Every = tally.Every
	// MaxSources is how many sources are told apart. The others are counted as [Other].
	MaxSources = 100
	// Other is the source of what came after there were too many sources.
	Other = tally.Other

	forgetEvery = time.Hour
	// patience is how long the store may take to add, or to forget.
	patience = 5 * time.Second
)

// statuses are what may come of an event or request: those of [hookonce.Observation].
var statuses = []string{"accepted", "duplicate", "conflict", "unkeyed", "busy", "failed", "dead", "rejected"}

// Tallies counts. It is safe for concurrent use. What waits for a store that is away is bounded by 100 000 numbers, one for each
// source and status that was seen in a minute: ten sources with three statuses each wait for two days, some ten megabytes.
// Beyond that the oldest minutes are given up, and Run logs how many numbers that were.
type Tallies struct {
	store    hookonce.Tallier
	now      func() time.Time
	log      *slog.Logger
	counters *tally.Registry

	mu      sync.Mutex
	sources map[string]bool
}

// Option changes a default of [New].
type Option func(*Tallies)

// WithClock sets the clock by which minutes are told. Default [time.Now].
func WithClock(now func() time.Time) Option { return func(t *Tallies) { t.now = now } }

// WithLogger sets where it is logged that the store is away, and that it is back. Default [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(t *Tallies) { t.log = l } }

// New returns what counts for a store, whose tables are made by `hookonce migrate` or package schema. It starts nothing: see
// [Tallies.Run]. It panics without a store, and if an option is given nil.
func New(store hookonce.Tallier, opts ...Option) *Tallies {
	t := &Tallies{store: store, now: time.Now, log: slog.Default(), sources: map[string]bool{}}
	for _, o := range opts {
		o(t)
	}
	switch {
	case store == nil:
		panic("tallies: New needs a store")
	case t.now == nil || t.log == nil:
		panic("tallies: WithClock and WithLogger do not take nil")
	}
	t.counters = tally.NewRegistry(t.now)
	return t
}

// Observe counts an outcome. It is for [hookonce.WithObserver], does no I/O and never waits for the store. A program that has
// another observer calls both from a function of its own.
func (t *Tallies) Observe(_ context.Context, o hookonce.Observation) {
	if slices.Contains(statuses, o.Status) {
		t.counters.Counter(t.known(o.Source), "", tally.What(o.Status)).Inc()
	}
}

// known is the source under which something is counted.
func (t *Tallies) known(source string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.sources[source] {
		if len(t.sources) >= MaxSources || (hookonce.Ref{Source: source}).Validate() != nil {
			return Other
		}
		t.sources[source] = true
	}
	return source
}

// Run adds what was counted to the store every ten seconds, and once more when ctx ends; then it
// returns nil, at most ten seconds later. Every hour it has the store forget what is old. It
// returns an error at once if the tables are missing or newer than the program
// ([hookonce.ErrSchemaMissing], [hookonce.ErrSchemaNewer]), and logs that it ends. Other errors are
// logged, once while they last, and what could not be added waits. Call it once.
func (t *Tallies) Run(ctx context.Context) error {
	err := t.run(ctx)
	if err != nil {
		t.log.Error("tallies: it ends, and what is counted is added no more, because the tables are missing or newer than this program; run the migrations, or a newer program, and start it again", "error", err)
	}
	return err
}

// run is Run, and returns no other errors than [unusable] ones.
func (t *Tallies) run(ctx context.Context) error {
	var forget time.Time
	var lost int64
	away := false
	for {
		now := t.now()
		var forgot error
		if !now.Before(forget) {
			forget = now.Add(forgetEvery)
			forgot = t.forget(ctx)
		}
		timer := time.NewTimer(now.Truncate(Every).Add(Every).Sub(now))
		if unusable(forgot) {
			timer.Stop()
			return forgot
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		err := t.flush()
		switch {
		case unusable(err):
			return err
		case err == nil && away:
			t.log.Info("tallies: the store takes again what is counted")
		case err != nil && !away:
			t.log.Error("tallies: what was counted could not be added; it waits, and is added when the store takes it again", "error", err)
		}
		away = err != nil
		if forgot != nil && ctx.Err() == nil {
			t.log.Error("tallies: old tallies could not be deleted; it is tried again in an hour", "error", forgot)
		}
		if n := t.counters.Lost(); n > lost {
			t.log.Error("tallies: the store is away for so long that the oldest minutes were given up", "numbers", n-lost)
			lost = n
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// unusable reports whether the tables are not for this program.
func unusable(err error) bool {
	return errors.Is(err, hookonce.ErrSchemaMissing) || errors.Is(err, hookonce.ErrSchemaNewer)
}

// flush adds to the store what was counted, whether or not Run is to end.
func (t *Tallies) flush() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return t.counters.Flush(ctx, adder{t.store})
}

// forget has the store forget what is old.
func (t *Tallies) forget(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if more, err := t.store.ForgetTallies(ctx); err != nil || !more {
			return err
		}
	}
}

// adder is a store, as what counts wants it.
type adder struct{ store hookonce.Tallier }

func (a adder) AddTallies(ctx context.Context, process string, seq int64, points []tally.Point) error {
	counted := make([]hookonce.Tally, len(points))
	for i, p := range points {
		counted[i] = hookonce.Tally{Minute: p.Minute, Source: p.Source, Status: string(p.What), N: p.N}
	}
	return a.store.AddTallies(ctx, process, seq, counted)
}

package janitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
)

// Janitor purges a store by its retention. It is safe for concurrent use.
type Janitor struct {
	settings
	store hookonce.Purger
	tasks []task
}

// New returns a janitor. It panics if there is no store, or if the retention or an option makes no sense:
// see [Retention.Validate].
func New(store hookonce.Purger, r Retention, opts ...Option) *Janitor {
	if store == nil {
		panic("janitor: New needs a store")
	}
	if err := r.Validate(); err != nil {
		panic(err)
	}
	j := &Janitor{settings: defaults(), store: store, tasks: r.tasks()}
	for _, o := range opts {
		o(&j.settings)
	}
	if err := j.validate(); err != nil {
		panic(err)
	}
	return j
}

// Run purges at once and then at every interval, until ctx ends; then it returns nil. It returns an
// error at once if the tables are missing or newer than the program ([hookonce.ErrSchemaMissing],
// [hookonce.ErrSchemaNewer]), and logs that it ends. Other errors are observed and logged, and what
// they kept from being deleted is deleted the next time.
func (j *Janitor) Run(ctx context.Context) error {
	for {
		err := j.Sweep(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case unusable(err):
			j.log.ErrorContext(ctx, "janitor: it ends, and nothing is purged any more, because the tables are missing or newer than this program; run the migrations, or a newer program, and start it again", "error", err)
			return err
		}
		rest(ctx, j.interval)
	}
}

// Sweep purges once all that is old by now, for programs that have a schedule of their own. It goes on with the rest
// when something fails, and returns all errors.
func (j *Janitor) Sweep(ctx context.Context) error {
	var failed []error
	for _, t := range j.tasks {
		if ctx.Err() != nil {
			return errors.Join(append(failed, context.Cause(ctx))...)
		}
		start := time.Now()
		n, err := j.purge(ctx, t)
		j.report(ctx, Observation{Kind: t.kind, Source: t.source, Deleted: n, Err: err, Duration: time.Since(start)})
		if err != nil {
			failed = append(failed, fmt.Errorf("janitor: purge %s: %w", t, err))
		}
	}
	return errors.Join(failed...)
}

// purge deletes what one task is about, in steps.
func (j *Janitor) purge(ctx context.Context, t task) (total int, err error) {
	req := hookonce.PurgeRequest{Kind: t.kind, Source: t.source, Except: t.except, Before: j.now().Add(-t.period), Limit: j.batch}
	for {
		n, err := j.store.Purge(ctx, req)
		if total += n; err != nil || n < req.Limit {
			return total, err
		}
		if !rest(ctx, j.pause) {
			return total, context.Cause(ctx)
		}
	}
}

// unusable reports whether the tables are not for this program, which no waiting mends.
func unusable(err error) bool {
	return errors.Is(err, hookonce.ErrSchemaMissing) || errors.Is(err, hookonce.ErrSchemaNewer)
}

// tell calls the observer, whose panic changes nothing: what it is told has happened.
func (j *Janitor) tell(ctx context.Context, o Observation) {
	defer func() {
		if p := recover(); p != nil {
			j.log.ErrorContext(ctx, "the observer panicked", "kind", string(o.Kind), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	j.observe(ctx, o)
}

func (j *Janitor) report(ctx context.Context, o Observation) {
	j.tell(ctx, o)
	level, message := slog.LevelDebug, "old records were purged"
	switch {
	case o.Err == nil || ctx.Err() != nil:
	case unusable(o.Err):
		level, message = slog.LevelError, "old records could not be purged"
	default:
		level, message = slog.LevelError, "old records could not be purged; it is tried again at the next sweep"
	}
	attrs := []slog.Attr{slog.String("kind", string(o.Kind)), slog.Int("deleted", o.Deleted), slog.Duration("took", o.Duration)}
	if o.Source != "" {
		attrs = append(attrs, slog.String("source", o.Source))
	}
	if o.Err != nil {
		attrs = append(attrs, slog.String("error", o.Err.Error()))
	}
	j.log.LogAttrs(ctx, level, "janitor: "+message, attrs...)
}

// rest waits, and reports whether ctx still runs.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// task is what one purge of a sweep is about.
type task struct {
	kind   hookonce.PurgeKind
	source string   // one, or
	except []string // all but these
	period time.Duration
}

func (t task) String() string {
	if t.source == "" {
		return string(t.kind)
	}
	return fmt.Sprintf("%s of %q", t.kind, t.source)
}

// tasks returns what a sweep does, in a fixed order.
func (r Retention) tasks() []task {
	var all []task
	add := func(kind hookonce.PurgeKind, period time.Duration, exceptions map[string]time.Duration) {
		names := slices.Sorted(maps.Keys(exceptions))
		if period > 0 {
			all = append(all, task{kind: kind, except: names, period: period})
		}
		for _, name := range names {
			if d := exceptions[name]; d > 0 {
				all = append(all, task{kind: kind, source: name, period: d})
			}
		}
	}
	r = r.withDefaults()
	add(hookonce.PurgeEvents, r.Events, r.Sources)
	add(hookonce.PurgeFailed, r.Failed, r.FailedSources)
	add(hookonce.PurgeOnce, r.Once, r.Scopes)
	add(hookonce.PurgeVersions, r.Versions, nil)
	add(hookonce.PurgeStates, r.States, nil)
	if r.Effects == 0 {
		add(hookonce.PurgeEffects, r.Events, r.Sources)
	} else {
		add(hookonce.PurgeEffects, r.Effects, nil)
	}
	return all
}

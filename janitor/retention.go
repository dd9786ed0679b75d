package janitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hookonce/hookonce"
)

const (
	// DefaultEvents is how long claims of events are kept: twice and more what any provider of the catalogue goes on
	// sending again.
	DefaultEvents = 90 * 24 * time.Hour
	// Shortest is the least that a [Retention] may say. Nothing that goes on sending does so for less.
	Shortest = 24 * time.Hour
	// Forever keeps what would be deleted otherwise.
	Forever time.Duration = -1
)

// Retention says how long what is finished is kept, counted from its last change. Periods are at least [Shortest].
type Retention struct {
	// Events is the period of claims of events and requests, and of the answers that are kept with them. Zero:
	// [DefaultEvents]. It is at least twice as long as any of the senders goes on sending. Where claims expire by themselves
	// (redisstore, dynamostore), the shorter of the two periods holds: with [Forever] it is the store's.
	Events time.Duration
	// Sources are those whose claims have another period than Events.
	Sources map[string]time.Duration
	// Failed is the period of claims of events and requests that failed, or were given up, and were not tried again
	// since. Zero: for ever. They are what tells that something was received and never done, and a stranger who can make
	// a handler fail can make many. A copy that comes after it is new.
	Failed time.Duration
	// FailedSources are those whose failed claims have another period than Failed.
	FailedSources map[string]time.Duration
	// Once is the period of what [hookonce.Once] took. Zero: for ever. Whatever asks for such work again
	// after it has it done a second time.
	Once time.Duration
	// Scopes are scopes of Once with another period.
	Scopes map[string]time.Duration
	// Versions is the period of what [hookonce.Newer] recorded. Zero: for ever. After it any version is the
	// newest, an old one as well.
	Versions time.Duration
	// States is the period of what [hookonce.Transition] recorded. Zero: for ever. After it a state machine is
	// where it began.
	States time.Duration
	// Effects is the period of effects of the outbox that are done. Zero: that of the claims of their source.
	Effects time.Duration
}

// Validate returns an error that names every period that is too short.
func (r Retention) Validate() error {
	var wrong []error
	check := func(what string, d time.Duration) {
		if d != 0 && d != Forever && d < Shortest {
			wrong = append(wrong, fmt.Errorf("janitor: %s are kept for %v, which is so short that copies would run again; keep them for at least %v, or Forever", what, d, Shortest))
		}
	}
	check("events", r.Events)
	for source, d := range r.Sources {
		check(fmt.Sprintf("events of %q", source), orTooShort(d))
	}
	check("failed events", r.Failed)
	for source, d := range r.FailedSources {
		check(fmt.Sprintf("failed events of %q", source), orTooShort(d))
	}
	check("keys of Once", r.Once)
	for scope, d := range r.Scopes {
		check(fmt.Sprintf("keys of Once in %q", scope), orTooShort(d))
	}
	check("versions", r.Versions)
	check("states", r.States)
	check("effects", r.Effects)
	for _, names := range []map[string]time.Duration{r.Sources, r.FailedSources, r.Scopes} {
		if _, ok := names[""]; ok {
			wrong = append(wrong, errors.New("janitor: a source, or a scope, has no name; set the period of all of them with Events, Failed or Once"))
		}
	}
	for _, t := range r.tasks() {
		wrong = append(wrong, hookonce.PurgeRequest{Kind: t.kind, Source: t.source, Except: t.except}.Validate(time.Time{}))
	}
	return errors.Join(wrong...)
}

// orTooShort makes a zero, which is no default where a name is given, too short as well.
func orTooShort(d time.Duration) time.Duration {
	if d == 0 {
		return 1
	}
	return d
}

func (r Retention) withDefaults() Retention {
	if r.Events == 0 {
		r.Events = DefaultEvents
	}
	return r
}

// Defaults of a [Janitor].
const (
	DefaultInterval = time.Hour
	DefaultBatch    = 1000
	DefaultPause    = 100 * time.Millisecond
)

// Option changes a default of [New].
type Option func(*settings)

type settings struct {
	interval, pause time.Duration
	batch           int
	now             func() time.Time
	log             *slog.Logger
	observe         func(context.Context, Observation)
}

func defaults() settings {
	return settings{interval: DefaultInterval, pause: DefaultPause, batch: DefaultBatch, now: time.Now, log: slog.Default(), observe: func(context.Context, Observation) {}}
}

func (s *settings) validate() error {
	switch {
	case s.interval <= 0 || s.pause < 0 || s.batch < 1:
		return errors.New("janitor: WithInterval must be more than 0, the number of WithBatch at least 1, and its pause not negative")
	case s.now == nil || s.log == nil || s.observe == nil:
		return errors.New("janitor: WithClock, WithLogger and WithObserver do not take nil")
	}
	return nil
}

// WithInterval sets how long Run rests between two sweeps. Default [DefaultInterval].
func WithInterval(d time.Duration) Option { return func(s *settings) { s.interval = d } }

// WithBatch sets how many rows one statement deletes at most, and how long to wait before the next. Default
// [DefaultBatch] and [DefaultPause], which is about 10 000 rows a second at most.
func WithBatch(n int, pause time.Duration) Option {
	return func(s *settings) { s.batch, s.pause = n, pause }
}

// WithClock sets the clock that says how old things are. Default [time.Now]. It must agree with those that wrote them.
func WithClock(now func() time.Time) Option { return func(s *settings) { s.now = now } }

// WithLogger sets where failures are logged, as errors; what went well at the debug level. Default [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(s *settings) { s.log = l } }

// WithObserver calls f after each purge of a sweep, also when there was nothing to delete. It is the place for metrics.
// A sweep waits for it. A panic of f is logged with its stack and changes nothing.
func WithObserver(f func(context.Context, Observation)) Option {
	return func(s *settings) { s.observe = f }
}

// Observation is one purge of a sweep, for metrics.
type Observation struct {
	// Kind is what was purged.
	Kind hookonce.PurgeKind
	// Source is the source, or scope, that has a period of its own. Empty: all the others.
	Source string
	// Deleted is how many rows went, also beside an error.
	Deleted int
	// Err is why there may be more.
	Err error
	// Duration is how long it took, with the pauses.
	Duration time.Duration
}

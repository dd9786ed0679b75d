package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/hookonce/hookonce/internal/lease"
	"github.com/hookonce/hookonce/internal/retry"
)

// Defaults of a [Relay].
const (
	DefaultConcurrency = 8
	DefaultPoll        = time.Second
	DefaultLease       = 30 * time.Second
	DefaultTimeout     = time.Minute
	DefaultGrace       = 10 * time.Second
	DefaultDeaths      = 3
)

// Option changes a default of [New].
type Option func(*settings)

type settings struct {
	concurrency, deaths         int
	poll, lease, timeout, grace time.Duration
	schedule                    Schedule
	now                         func() time.Time
	log                         *slog.Logger
	observe                     func(context.Context, Observation)
}

func defaults() settings {
	return settings{
		concurrency: DefaultConcurrency, deaths: DefaultDeaths, poll: DefaultPoll, lease: DefaultLease, timeout: DefaultTimeout, grace: DefaultGrace,
		schedule: DefaultSchedule(), now: time.Now, log: slog.Default(), observe: func(context.Context, Observation) {},
	}
}

func (s *settings) validate() error {
	switch {
	case s.concurrency < 1:
		return errors.New("relay: WithConcurrency must be at least 1")
	case s.deaths < 2:
		return errors.New("relay: WithDeaths must be at least 2: the first death says only that an effect was there when a process died")
	case s.poll <= 0 || s.timeout <= 0:
		return errors.New("relay: WithPoll and WithTimeout must be more than 0")
	case s.lease < lease.MinLength:
		return fmt.Errorf("relay: WithLease(%v): the lease is too short to be extended in time; it must be at least %v", s.lease, lease.MinLength)
	case s.grace < 0:
		return errors.New("relay: WithGrace does not take a negative time")
	case s.schedule == nil || s.now == nil || s.log == nil || s.observe == nil:
		return errors.New("relay: WithSchedule, WithClock, WithLogger and WithObserver do not take nil")
	}
	return nil
}

// WithConcurrency sets how many effects are carried out at the same time. Default
// [DefaultConcurrency]. No more are taken from the outbox than can begin at once. A place is kept
// for each name that has no effect under way, up to half of them, so that a receiver that hangs
// does not hold up the other names. If n is at least twice the number of names, no number of
// receivers that hang does.
func WithConcurrency(n int) Option { return func(s *settings) { s.concurrency = n } }

// WithPoll sets how often to look for effects when there were none. Default [DefaultPoll]. See [Relay.Wake]
// for a way not to wait.
func WithPoll(d time.Duration) Option { return func(s *settings) { s.poll = d } }

// WithLease sets for how long an effect is held before other relays may take it over: how long it rests
// when a relay dies in the middle of it. Default [DefaultLease]. It is extended at every third of it while
// the handler runs. 10 ms is the least.
func WithLease(d time.Duration) Option { return func(s *settings) { s.lease = d } }

// WithTimeout bounds one call of a handler: its context ends then. Default [DefaultTimeout]. A handler
// that goes on all the same loses its lease in the end, and keeps its place among those of [WithConcurrency].
func WithTimeout(d time.Duration) Option { return func(s *settings) { s.timeout = d } }

// WithGrace sets how long handlers may take to finish after the end of Run's context, before their own
// contexts end. Default [DefaultGrace].
func WithGrace(d time.Duration) Option { return func(s *settings) { s.grace = d } }

// WithSchedule sets when failed effects are tried again, and how often. Default [DefaultSchedule].
func WithSchedule(schedule Schedule) Option { return func(s *settings) { s.schedule = schedule } }

// WithDeaths sets after how many attempts in a row that left no outcome an effect is dead, without
// another one. Default [DefaultDeaths]. At the first the effect may have been a neighbour of what
// ended the process. From then on it is a suspect, of which a process runs one at a time, so each
// further death is taken for its own: with 3 an effect is given up when the process died twice
// while it was the suspect. A healthy one is not given up as long as fewer than that many others
// end a process beside it at their first attempt. An attempt whose lease ran out for another reason
// counts, too: the store was away, or the handler did not heed its context. What a relay took
// without hearing of it, because the store's answer was lost within the last day, it begins once
// more before it gives it up. 2 is the least.
func WithDeaths(n int) Option { return func(s *settings) { s.deaths = n } }

// WithClock sets the clock that tells when a failed effect is due again. Default [time.Now]. It must agree
// with the clock of the store.
func WithClock(now func() time.Time) Option { return func(s *settings) { s.now = now } }

// WithLogger sets where attempts are logged: failures as warnings, effects that are given up as errors,
// what went well at the debug level; never a payload. Default [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(s *settings) { s.log = l } }

// WithObserver calls f once for every attempt, when its outcome is on record, or given up. It is the place
// for metrics. f is called from many goroutines and must be quick. A panic of f is logged with its stack and changes
// nothing.
func WithObserver(f func(context.Context, Observation)) Option {
	return func(s *settings) { s.observe = f }
}

// Schedule says how long to wait after an attempt has failed, which is the given one since the effect was
// enqueued or redriven, counted from 1; and whether to try again at all. It may be called concurrently.
type Schedule func(tries int) (delay time.Duration, again bool)

// Exponential returns a schedule for the given number of attempts. Its delays begin with first and grow by
// factor until they reach longest; each is made shorter by chance, by half at the most, so that what failed
// together is not tried again together.
func Exponential(first, longest time.Duration, factor float64, attempts int) Schedule {
	return jittered(retry.Schedule{Attempts: attempts, First: first, Longest: longest, Factor: factor})
}

// DefaultSchedule makes 13 attempts: after 5 seconds, 15, 45 and so on, tripling up to a day, each made
// shorter by chance. The last comes some 3.5 days after the first at the latest.
func DefaultSchedule() Schedule { return jittered(retry.Default()) }

func jittered(s retry.Schedule) Schedule {
	return func(tries int) (time.Duration, bool) { return s.Delay(tries, rand.Float64()) }
}

// Observation is one attempt, for metrics.
type Observation struct {
	// Name is the effect's name.
	Name string
	// Status is one of the Status constants: the set is closed.
	Status string
	// Tries is the number of this attempt since the effect was enqueued or redriven.
	Tries int
	// Deaths is how many attempts before this one left no outcome; see [WithDeaths].
	Deaths int
	// Err is why it failed, or why it could not be recorded.
	Err error
	// Duration is how long the handler took.
	Duration time.Duration
}

// What became of an attempt.
const (
	StatusDone       = "done"        // carried out, and on record
	StatusFailed     = "failed"      // to be tried again
	StatusDead       = "dead"        // given up
	StatusHandedBack = "handed back" // interrupted because the relay stops, or not begun; due at once
	StatusStale      = "stale"       // somebody else has it by now, and records what becomes of it
	StatusUnrecorded = "unrecorded"  // the store did not answer: tried again when the lease has run out, or on record all the same
)

package hookonce

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Option changes a default of [Webhook].
type Option func(*settings)

// Defaults of [Webhook]. The handler's deadline is below the time that providers wait where they
// wait long, and the wait for a copy is below the time that the impatient ones wait (3 s).
const (
	DefaultTimeout = 20 * time.Second
	DefaultWait    = 2 * time.Second
	DefaultMaxBody = 1 << 20
)

type settings struct {
	source  string
	url     string
	timeout time.Duration
	wait    time.Duration
	maxBody int64
	now     func() time.Time
	log     *slog.Logger
	observe func(context.Context, Observation)
}

// validate returns an error if no event could be handled with the settings.
func (s *settings) validate() error {
	switch {
	case s.timeout <= 0:
		return fmt.Errorf("hookonce: WithTimeout(%v): the handler needs time", s.timeout)
	case s.wait < 0:
		return fmt.Errorf("hookonce: WithWait(%v): the wait is negative", s.wait)
	case s.maxBody <= 0:
		return fmt.Errorf("hookonce: WithMaxBody(%d): no body is that small", s.maxBody)
	case s.now == nil || s.log == nil || s.observe == nil:
		return errors.New("hookonce: WithClock, WithLogger and WithObserver do not take nil")
	}
	return checkSource(s.source)
}

// WithSource names the source, the scope of the keys. Default: the provider's name. Two endpoints of
// one provider (two accounts, live and test) need two sources; so does every endpoint whose work is
// independent of the others'. Renaming a source forgets its claims.
func WithSource(name string) Option { return func(s *settings) { s.source = name } }

// WithPublicURL sets the address under which the provider calls this endpoint, for schemes that sign
// it. The query of a request is added if url has none. Default: https, the Host header and the
// request's path and query, which is wrong behind most proxies that rewrite.
func WithPublicURL(url string) Option { return func(s *settings) { s.url = url } }

// WithTimeout bounds the handler and its transaction, per event. Default [DefaultTimeout]. The
// sender's hang-up never cancels the handler; this deadline does.
func WithTimeout(d time.Duration) Option { return func(s *settings) { s.timeout = d } }

// WithWait bounds how long a copy waits in this process for the one that is being handled, before
// it is answered 503. Default [DefaultWait]. Copies that wait hold no database connection. The wait
// for another process is the store's.
func WithWait(d time.Duration) Option { return func(s *settings) { s.wait = d } }

// WithMaxBody limits the body, in bytes; a larger one is answered 413. Default: what the provider
// says that it sends at most, or [DefaultMaxBody].
func WithMaxBody(n int64) Option { return func(s *settings) { s.maxBody = n } }

// WithClock sets the clock against which signed timestamps are judged. Default [time.Now].
func WithClock(now func() time.Time) Option { return func(s *settings) { s.now = now } }

// WithLogger sets where outcomes are logged, with source, key and type, never a body or a secret:
// failures as errors, conflicts, unkeyed events and rejected requests as warnings, everything else at
// the debug level. Default [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(s *settings) { s.log = l } }

// WithObserver calls f once for every event that was verified, after its outcome is durable, and
// once for every rejected request. It is the place for metrics. f is called from many goroutines
// and must be quick: the answer waits for it.
func WithObserver(f func(context.Context, Observation)) Option {
	return func(s *settings) { s.observe = f }
}

// Observation is one outcome, for metrics.
type Observation struct {
	// Source and Provider are set always; Type only for verified events.
	Source, Provider, Type string
	// Status is what the answer's Hookonce-Status header says (accepted, duplicate, conflict,
	// unkeyed), or "busy", "failed", "dead" or "rejected".
	Status string
	// Reason is the reason of a rejection, one of the Reason constants.
	Reason string
	// Proof says how the request was authenticated: by which of several secrets, for one that is to be
	// retired. Zero for a rejection.
	Proof Proof
	// Err is the handler's or the store's error, if any.
	Err error
	// Duration is the time from the verified request to the outcome, waiting included.
	Duration time.Duration
}

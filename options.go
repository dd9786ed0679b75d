package hookonce

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/lease"
	"github.com/hookonce/hookonce/internal/lines"
	"github.com/hookonce/hookonce/internal/recorder"
)

// Option changes a default of [Webhook], [WebhookLease], [Idempotent] or [IdempotentLease]. Each says which of
// them it is for, if not all; another one panics.
type Option func(*settings)

// Defaults. The handler's deadline is below the time that providers wait where they wait long, and the wait
// of [Webhook] for a copy is below the time that the impatient ones wait (3 s).
const (
	DefaultTimeout     = 20 * time.Second
	DefaultWait        = 2 * time.Second
	DefaultMaxBody     = 1 << 20
	DefaultMaxResponse = 1 << 20
	DefaultMaxKey      = 255
	DefaultLease       = 15 * time.Second
)

// kind says which handlers an option is for, a bit each.
type kind int

const (
	forWebhook kind = 1 << iota
	forWebhookLease
	forIdempotent
	forIdempotentLease

	forEvents = forWebhook | forWebhookLease
	forKeys   = forIdempotent | forIdempotentLease
	forLeases = forWebhookLease | forIdempotentLease
)

func (k kind) String() string {
	switch k {
	case forWebhook:
		return "Webhook"
	case forWebhookLease:
		return "WebhookLease"
	case forIdempotent:
		return "Idempotent"
	}
	return "IdempotentLease"
}

type settings struct {
	of        kind
	misplaced []string // options for others

	source  string
	timeout time.Duration
	wait    time.Duration
	maxBody int64
	now     func() time.Time
	log     *slog.Logger // at a bounded rate
	each    *slog.Logger // for the outcomes of events that are authentic
	observe func(context.Context, Observation)

	url           string // of handlers of events
	unkeyedRecord bool

	scope         func(*http.Request) (string, error)
	unscoped      bool
	strictKey     bool
	optionalKey   bool
	maxKey        int
	maxResponse   int
	fingerprint   []string // canonical names, sorted
	named         bool     // by WithFingerprint
	content       func(r *http.Request, body []byte) []byte
	keep          func(status int) bool
	documentation string

	lease time.Duration // of handlers without a transaction
}

// newIdempotency returns the settings of a handler for requests with an Idempotency-Key. It panics if they
// make no sense.
func newIdempotency(of kind, source string, opts []Option) settings {
	s := settings{
		of: of, source: source, maxBody: DefaultMaxBody,
		maxKey: DefaultMaxKey, maxResponse: DefaultMaxResponse, fingerprint: []string{"Content-Type"},
		keep: keepByDefault, documentation: DefaultDocumentation, lease: DefaultLease,
	}
	s.apply(opts)
	return s
}

// DefaultDocumentation is the page that faults link to unless [WithDocumentation] names another. It has a section for
// each type of problem, whose anchor is the type.
const DefaultDocumentation = "https://github.com/hookonce/hookonce/blob/main/docs/idempotency.md"

// apply sets what is the same for all handlers and then what opts say. It panics if that makes no sense.
func (s *settings) apply(opts []Option) {
	s.timeout, s.now, s.log = DefaultTimeout, time.Now, slog.Default()
	s.observe = func(context.Context, Observation) {}
	for _, o := range opts {
		o(s)
	}
	err := s.validate()
	if err == nil && s.of&forKeys != 0 {
		err = s.validateKeys()
	}
	if err != nil {
		panic(err)
	}
	s.log, s.each = lines.Bound(s.log), lines.Unbound(s.log)
	s.observe = s.contained(s.observe)
}

// contained returns an observer that does what f does and never panics: what it is told has happened, and the
// answer has yet to go out.
func (s *settings) contained(f func(context.Context, Observation)) func(context.Context, Observation) {
	return func(ctx context.Context, o Observation) {
		defer func() {
			if p := recover(); p != nil {
				s.log.ErrorContext(ctx, "the observer panicked", "source", o.Source, "panic", p, "stack", string(debug.Stack()))
			}
		}()
		f(ctx, o)
	}
}

// validate returns an error if nothing could be handled with the settings.
func (s *settings) validate() error {
	switch {
	case len(s.misplaced) > 0:
		return fmt.Errorf("hookonce: %s makes no sense for %v: remove it", s.misplaced[0], s.of)
	case s.timeout <= 0:
		return fmt.Errorf("hookonce: WithTimeout(%v): the handler needs time", s.timeout)
	case s.wait < 0:
		return fmt.Errorf("hookonce: WithWait(%v): the wait is negative", s.wait)
	case s.maxBody <= 0:
		return fmt.Errorf("hookonce: WithMaxBody(%d): no body is that small", s.maxBody)
	case s.of&forLeases != 0 && s.lease < lease.MinLength:
		return fmt.Errorf("hookonce: WithLease(%v): a lease that short cannot be kept", s.lease)
	case s.now == nil || s.log == nil || s.observe == nil:
		return errors.New("hookonce: WithClock, WithLogger and WithObserver do not take nil")
	}
	return checkSource(s.source)
}

// validateKeys is validate for what only handlers of requests with keys have.
func (s *settings) validateKeys() error {
	switch {
	case s.scope == nil && !s.unscoped:
		return fmt.Errorf("hookonce: %v needs WithScope, which says whose keys are whose, or WithoutScope: without scopes, whoever sends the key of another gets the other's answer", s.of)
	case s.scope != nil && s.unscoped:
		return errors.New("hookonce: WithScope and WithoutScope contradict each other: remove one")
	case s.maxKey <= 0:
		return fmt.Errorf("hookonce: WithMaxKey(%d): no key is that short", s.maxKey)
	case s.maxResponse <= 0:
		return fmt.Errorf("hookonce: WithMaxResponse(%d): no answer is that small", s.maxResponse)
	case s.keep == nil:
		return errors.New("hookonce: WithKeep does not take nil")
	case slices.ContainsFunc(s.fingerprint, func(name string) bool { return !recorder.IsToken(name) }):
		return fmt.Errorf("hookonce: WithFingerprint(%q): not all of these are names of header fields", s.fingerprint)
	case s.named && s.content != nil:
		return errors.New("hookonce: WithFingerprint and WithFingerprintFunc contradict each other: have the function return the header fields, too")
	case s.documentation != "" && !isAddress(s.documentation):
		return fmt.Errorf("hookonce: WithDocumentation(%q): this is no absolute URL", s.documentation)
	}
	return nil
}

func isAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.IsAbs() && !strings.ContainsAny(s, `<>" `)
}

// only returns an option for some handlers.
func only(of kind, name string, set func(*settings)) Option {
	return func(s *settings) {
		if s.of&of == 0 {
			s.misplaced = append(s.misplaced, name)
			return
		}
		set(s)
	}
}

// WithPublicURL sets the address under which the provider calls this endpoint, for schemes that sign
// it. The query of a request is added if url has none. Default: https, the Host header and the
// request's path and query, which is wrong behind most proxies that rewrite. For [Webhook] and [WebhookLease].
func WithPublicURL(url string) Option {
	return only(forEvents, "WithPublicURL", func(s *settings) { s.url = url })
}

// WithUnkeyedRecord acknowledges an event that has no key, or only says that something changed, when its
// handler gave up with [Permanent], as soon as that is on record: as a dead claim of the same source, whose key
// begins with "sha256:unkeyed:", as no sender's does, and goes on at random. Each such delivery is a claim of
// its own, because nothing tells copies of the event apart from other events. Without this option it is
// answered 503 each time that it is sent. For [Webhook] and [WebhookLease].
func WithUnkeyedRecord() Option {
	return only(forEvents, "WithUnkeyedRecord", func(s *settings) { s.unkeyedRecord = true })
}

// WithTimeout bounds the handler and its transaction, per event or request. Default [DefaultTimeout]. The
// sender's hang-up never cancels the handler; this deadline does. A handler that does not heed the end of its
// context, and never returns, is given up 5 s later (after [WithWait] as well, for requests with keys): copies that
// come to its process then ask the store, which knows whether the work is done, free or still held.
func WithTimeout(d time.Duration) Option { return func(s *settings) { s.timeout = d } }

// WithWait bounds how long a copy waits for the one that is being handled. With [Webhook] and [WebhookLease]
// it waits in this process only, before it is answered 503; default [DefaultWait]; the wait for another
// process is the store's, and none for a lease. With [Idempotent] and [IdempotentLease] it waits for the first request's answer, wherever that
// is being made, to give the same, and is answered 409 after that; default 0. Copies that wait hold no
// database connection, save one for each process and key that asks whether another process is done.
func WithWait(d time.Duration) Option { return func(s *settings) { s.wait = d } }

// WithMaxBody limits the body, in bytes; a larger one is answered 413. Default: what the provider
// says that it sends at most, or [DefaultMaxBody].
func WithMaxBody(n int64) Option { return func(s *settings) { s.maxBody = n } }

// WithClock sets the clock against which signed timestamps are judged, and with which durations are
// measured. Default [time.Now].
func WithClock(now func() time.Time) Option { return func(s *settings) { s.now = now } }

// WithLogger sets where outcomes are logged, with source, key and type, never a body, a secret or a scope:
// failures as errors, conflicts, unkeyed events and rejected requests as warnings, everything else at
// the debug level. Default [slog.Default]. A panic of its handler is not contained, because there would be no place
// to report it: the connection is cut, and a copy of what was committed before is answered as a duplicate.
//
// What strangers can cause is bounded, for each handler: 10 lines a second with the same message, reason and status, 100
// of all, and 512 bytes of a value (8 KiB of a stack). How many more there were is told at the end of the second, as
// suppressed. Handlers of requests with keys have all their lines so; the outcome of an event that was verified always
// has its line.
func WithLogger(l *slog.Logger) Option { return func(s *settings) { s.log = l } }

// WithObserver calls f once for every event that was verified, or request that has a key or needs none,
// after its outcome is durable, and once for every rejected request. It is the place for metrics. f is
// called from many goroutines and must be quick: the answer waits for it. A panic of f is logged with its stack and
// changes nothing.
func WithObserver(f func(context.Context, Observation)) Option {
	return func(s *settings) { s.observe = f }
}

// WithScope says on whose behalf a request is sent: the tenant or principal to whom its key belongs, as
// authenticated before. Equal keys of two scopes have nothing to do with each other, and no scope is ever
// given the answer of another. It must be the same when the client sends the request again: the id of the
// account, not a token that is renewed. Only a digest of it is stored. A request for which f returns an
// error or the empty text is answered 403; 503 if the error is marked with [RetryAfter]. f must not read
// the body.
//
// Where the handler is a proxy, f must go by what the service behind it sees. [net/http/httputil.ReverseProxy] takes off
// every header that the client names in Connection, so that "Connection: X-Tenant" leaves the service without the tenant
// that f reads, and the answer to nobody becomes that of the tenant; and to many an application X_Tenant is the same
// header as X-Tenant. Authenticate in front, or refuse such requests. The same goes for [WithFingerprint]. For [Idempotent] and [IdempotentLease], which ask for this option or [WithoutScope].
func WithScope(f func(*http.Request) (string, error)) Option {
	return only(forKeys, "WithScope", func(s *settings) { s.scope = f })
}

// WithoutScope says that all callers share their keys, because there is only one, or because no answer is
// private. Whoever sends the key and the request of another is given the other's answer. For [Idempotent]
// and [IdempotentLease].
func WithoutScope() Option {
	return only(forKeys, "WithoutScope", func(s *settings) { s.unscoped = true })
}

// WithStrictKey takes keys only as the draft has them, in double quotes: "8e03978e". Otherwise 8e03978e is
// the same key. For [Idempotent] and [IdempotentLease].
func WithStrictKey() Option {
	return only(forKeys, "WithStrictKey", func(s *settings) { s.strictKey = true })
}

// WithOptionalKey handles requests without a key instead of answering 400: each of them anew. For
// [Idempotent] and [IdempotentLease].
func WithOptionalKey() Option {
	return only(forKeys, "WithOptionalKey", func(s *settings) { s.optionalKey = true })
}

// WithMaxKey limits the key, in bytes; a longer one is answered 400. Default [DefaultMaxKey]. For
// [Idempotent] and [IdempotentLease].
func WithMaxKey(n int) Option {
	return only(forKeys, "WithMaxKey", func(s *settings) { s.maxKey = n })
}

// WithMaxResponse limits what is kept of an answer, body and header together, in bytes. A handler that
// writes more gets [ErrResponseTooLarge], and its work is rolled back. Default [DefaultMaxResponse]. For
// [Idempotent] and [IdempotentLease].
func WithMaxResponse(n int) Option {
	return only(forKeys, "WithMaxResponse", func(s *settings) { s.maxResponse = n })
}

// WithFingerprint names the header fields in which requests under one key must agree, besides method,
// address and body. Default: Content-Type. Leave out what changes when a request is sent again, such as
// dates, traces and tokens. For [Idempotent] and [IdempotentLease].
func WithFingerprint(headers ...string) Option {
	return only(forKeys, "WithFingerprint", func(s *settings) {
		s.fingerprint, s.named = nil, true
		for _, name := range headers {
			s.fingerprint = append(s.fingerprint, http.CanonicalHeaderKey(name))
		}
		slices.Sort(s.fingerprint)
		s.fingerprint = slices.Compact(s.fingerprint)
	})
}

// WithFingerprintFunc says what requests under one key must agree in, besides method, path and query: in what f
// returns, instead of header fields and body. It is for clients that change something whenever they send a request
// again, such as a timestamp in the body. What f leaves out is not compared: a request that differs in nothing else
// is a copy, and gets the answer of the first. f gets the request with a body that can be read, and the same body in
// full, which it must not change; it is called once for each request. For [Idempotent] and [IdempotentLease].
//
// Default: the header fields of [WithFingerprint] and the body byte for byte, or, of multipart/form-data, the parts
// with their headers in their order, without the boundary, which clients make up anew. A form that does not parse is
// compared byte by byte.
func WithFingerprintFunc(f func(r *http.Request, body []byte) []byte) Option {
	return only(forKeys, "WithFingerprintFunc", func(s *settings) {
		if s.content = f; f == nil {
			panic("hookonce: WithFingerprintFunc does not take nil")
		}
	})
}

// WithKeep says which answers of 400 and above are kept and given to every copy. The work under one that is
// not kept is undone, the client gets it all the same, and the next copy runs the handler again. Default:
// all but 401, 403, 407, 408, 425, 429 and 5xx. Answers below 400 are always kept, and with [IdempotentLease] a 409
// only if it answers the first attempt: an earlier one may be at work where a later one is told of a conflict.
// For [Idempotent] and [IdempotentLease].
func WithKeep(keep func(status int) bool) Option {
	return only(forKeys, "WithKeep", func(s *settings) { s.keep = keep })
}

// WithDocumentation is the address of the page that tells clients how to use keys here. Every fault links to
// it, with its type as the anchor unless url has one: #idempotency-key-reused. Default: [DefaultDocumentation].
// Empty: no link. For [Idempotent] and [IdempotentLease].
func WithDocumentation(url string) Option {
	return only(forKeys, "WithDocumentation", func(s *settings) { s.documentation = url })
}

// WithLease is how long a claim outlives the process that holds it, and so how long copies are answered 409
// or 503 after a crash. It is extended while the handler runs, however long that is. Default [DefaultLease],
// at least 10 ms. For [WebhookLease] and [IdempotentLease].
func WithLease(d time.Duration) Option {
	return only(forLeases, "WithLease", func(s *settings) { s.lease = d })
}

// Observation is one outcome, for metrics.
type Observation struct {
	// Source is set always, Provider always by [Webhook] and [WebhookLease]. Type is that of a verified event, or the pattern
	// or else the method of a request with a key.
	Source, Provider, Type string
	// Status is what the answer's Hookonce-Status header says (accepted, duplicate, conflict,
	// unkeyed), or "busy", "failed", "dead" or "rejected". A request with a key is a duplicate when it is
	// given the answer of another, and failed, too, when the answer is not kept.
	Status string
	// Reason is the reason of a rejection, one of the Reason constants; empty if it is the method or the
	// body of a request with a key.
	Reason string
	// Proof says how the request was authenticated: by which of several secrets, for one that is to be
	// retired. Zero for a rejection.
	Proof Proof
	// Err is the handler's or the store's error, if any.
	Err error
	// Duration is the time from the verified request to the outcome, waiting included.
	Duration time.Duration
}

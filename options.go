package hookonce

import (
	"cmp"
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

	"github.com/hookonce/hookonce/internal/body"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/lease"
	"github.com/hookonce/hookonce/internal/loglimit"
	"github.com/hookonce/hookonce/internal/problem"
	"github.com/hookonce/hookonce/internal/publicurl"
)

// The options of each constructor. A function that returns one of the types below fits those constructors that it
// names, and no other: an option in the wrong place does not compile.
type (
	// WebhookOption changes a default of [Webhook].
	WebhookOption interface{ webhook(*eventSettings) }
	// WebhookLeaseOption changes a default of [WebhookLease].
	WebhookLeaseOption interface{ webhookLease(*eventSettings) }
	// IdempotentOption changes a default of [Idempotent].
	IdempotentOption interface{ idempotent(*keySettings) }
	// IdempotentLeaseOption changes a default of [IdempotentLease].
	IdempotentLeaseOption interface{ idempotentLease(*keySettings) }
)

// Option fits all four constructors.
type Option func(*settings)

func (o Option) webhook(s *eventSettings)       { o(&s.settings) }
func (o Option) webhookLease(s *eventSettings)  { o(&s.settings) }
func (o Option) idempotent(s *keySettings)      { o(&s.settings) }
func (o Option) idempotentLease(s *keySettings) { o(&s.settings) }

// EventOption fits the constructors for events: [Webhook] and [WebhookLease].
type EventOption func(*eventSettings)

func (o EventOption) webhook(s *eventSettings)      { o(s) }
func (o EventOption) webhookLease(s *eventSettings) { o(s) }

// KeyOption fits the constructors for requests with a key: [Idempotent] and [IdempotentLease].
type KeyOption func(*keySettings)

func (o KeyOption) idempotent(s *keySettings)      { o(s) }
func (o KeyOption) idempotentLease(s *keySettings) { o(s) }

// LeaseOption fits the constructors without a transaction: [WebhookLease] and [IdempotentLease].
type LeaseOption func(*settings)

func (o LeaseOption) webhookLease(s *eventSettings)  { o(&s.settings) }
func (o LeaseOption) idempotentLease(s *keySettings) { o(&s.settings) }

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

// recordTimeout bounds how long it is tried to record what came of a request.
const recordTimeout = 5 * time.Second

// settings are those of all handlers.
type settings struct {
	constructor string // for errors
	requests    string // what they are, for the log
	sender      string // the provider; empty for clients with a key
	leased      bool   // the work shares no transaction with the claim

	source  string
	timeout time.Duration
	wait    time.Duration
	maxBody int64
	now     func() time.Time
	log     *slog.Logger // at a bounded rate
	each    *slog.Logger // for the outcomes of events that are authentic
	observe func(context.Context, Observation)
	lease   time.Duration // where there is one
}

// eventSettings are those of handlers of events.
type eventSettings struct {
	settings
	url           string
	unkeyedRecord bool
}

// keySettings are those of handlers of requests with a key.
type keySettings struct {
	settings
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
}

// defaultSettings returns what is so without options. Lease is zero where the work shares a transaction with the claim.
func defaultSettings(constructor, requests, source string, lease time.Duration) settings {
	return settings{
		constructor: constructor, requests: requests, source: source, leased: lease != 0, lease: lease, timeout: DefaultTimeout, maxBody: DefaultMaxBody,
		now: time.Now, log: slog.Default(), observe: func(context.Context, Observation) {},
	}
}

func defaultKeySettings(constructor, source string, lease time.Duration) keySettings {
	return keySettings{
		settings: defaultSettings(constructor, "idempotent request", source, lease), maxKey: DefaultMaxKey, maxResponse: DefaultMaxResponse,
		fingerprint: []string{"Content-Type"}, keep: keepByDefault, documentation: DefaultDocumentation,
	}
}

// DefaultDocumentation is the page that problems link to unless [WithDocumentation] names another. It has a row for each
// type of problem, whose anchor is the type.
const DefaultDocumentation = "https://github.com/hookonce/hookonce/blob/main/docs/problems.md"

// settle completes the settings when the options were applied. It panics if they make no sense.
func (s *settings) settle() {
	if err := s.validate(); err != nil {
		panic(err)
	}
	s.log, s.each = loglimit.Bound(s.log), loglimit.Unbound(s.log)
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

// reject logs and observes a request that is answered with p and of which nothing came: as an error if that is our fault.
func (s *settings) reject(ctx context.Context, p *problem.Details) {
	level := slog.LevelWarn
	if p.Type == problem.Unavailable {
		level = slog.LevelError
	}
	attrs := []slog.Attr{slog.String("source", s.source), slog.String("reason", p.Reason), slog.Int("status", p.Status), slog.String("detail", p.Detail)}
	if p.Instance != "" {
		attrs = append(attrs, slog.String("instance", p.Instance))
	}
	if p.Cause != nil {
		attrs = append(attrs, slog.String("error", p.Cause.Error()))
	}
	s.log.LogAttrs(ctx, level, s.requests+" rejected", attrs...)
	s.observe(ctx, Observation{Source: s.source, Provider: s.sender, Status: "rejected", Reason: p.Reason, Err: p.Cause})
}

// readBody returns the raw body of at most maxBody bytes, or the refusal to answer with. A reader whose error is marked
// with [RetryAfter] has the request come again. It is our fault, and no sender can mend it, that a middleware has taken
// something of the body.
func (s *settings) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *problem.Details) {
	raw, err := body.ReadWhole(r, s.maxBody)
	delay, later := RetryDelay(err)
	switch {
	case err == nil:
		return raw, nil
	case later: // the handler in front refuses the rest for now
		return nil, undecided("the request is not taken now; send it again", cmp.Or(max(delay, 0), defaultRetry), err)
	case errors.Is(err, body.ErrTooLarge):
		body.HangUp(w)
		return nil, s.tooLarge(err)
	case errors.Is(err, body.ErrTouched):
		return nil, undecided("the request could not be read", defaultRetry, fmt.Errorf("a middleware has read, parsed, closed, cut or replaced the body of a request before it came to the handler: put the handler in front of that middleware, or have it set r.Body to the whole body again; one that replaces the body by another, which is shorter, sets r.ContentLength to the new length, or to -1 (%d bytes declared, %d arrived)", r.ContentLength, len(raw)))
	case errors.Is(err, body.ErrSlow):
		return nil, rejection(problem.BodyTooSlow, ReasonSlow, "the body did not arrive in time")
	}
	return nil, rejection(problem.BodyTruncated, ReasonTruncated, "the body ended before it was complete")
}

// tooLarge refuses a body, and tells the log whose limit that is.
func (s *settings) tooLarge(err error) *problem.Details {
	limit, whose := s.maxBody, "WithMaxBody, or of max_body of the gateway"
	var front *http.MaxBytesError
	if errors.As(err, &front) {
		limit, whose = front.Limit, "a middleware (http.MaxBytesReader)"
	}
	p := rejection(problem.BodyTooLarge, ReasonTooLarge, fmt.Sprintf("the body is larger than %d bytes", limit))
	p.Cause = fmt.Errorf("%d bytes is the limit of %s", limit, whose)
	return p
}

// validate returns an error if nothing could be handled with the settings.
func (s *settings) validate() error {
	switch {
	case s.timeout <= 0:
		return fmt.Errorf("hookonce: WithTimeout(%v): the timeout must be more than 0", s.timeout)
	case s.wait < 0:
		return fmt.Errorf("hookonce: WithWait(%v): the wait must not be negative", s.wait)
	case s.maxBody <= 0:
		return fmt.Errorf("hookonce: WithMaxBody(%d): the limit must be at least 1 byte", s.maxBody)
	case s.leased && s.lease < lease.MinLength:
		return fmt.Errorf("hookonce: WithLease(%v): the lease is too short to be extended in time; it must be at least %v", s.lease, lease.MinLength)
	case s.now == nil || s.log == nil || s.observe == nil:
		return errors.New("hookonce: WithClock, WithLogger and WithObserver do not take nil")
	}
	return checkSource(s.source)
}

// settle is that of the settings, and of what only handlers of events have.
func (s *eventSettings) settle() {
	s.settings.settle()
	if s.url != "" && !publicurl.Valid(s.url) {
		panic(errors.New("hookonce: WithPublicURL: the URL is not " + publicurl.Rule + "; write one such as https://shop.example/webhooks"))
	}
}

// settle is that of the settings, and of what only handlers of requests with keys have.
func (s *keySettings) settle() {
	s.settings.settle()
	if err := s.validate(); err != nil {
		panic(err)
	}
}

// validate returns an error if no request with a key could be handled with the settings.
func (s *keySettings) validate() error {
	switch {
	case s.scope == nil && !s.unscoped:
		return fmt.Errorf("hookonce: %s needs WithScope, which says whose keys are whose, or WithoutScope: without scopes, a client that sends the key of another gets the other's answer", s.constructor)
	case s.scope != nil && s.unscoped:
		return errors.New("hookonce: WithScope and WithoutScope contradict each other: remove one")
	case s.maxKey <= 0:
		return fmt.Errorf("hookonce: WithMaxKey(%d): the limit must be at least 1 byte", s.maxKey)
	case s.maxResponse <= 0:
		return fmt.Errorf("hookonce: WithMaxResponse(%d): the limit must be at least 1 byte", s.maxResponse)
	case s.keep == nil:
		return errors.New("hookonce: WithKeep does not take nil")
	case slices.ContainsFunc(s.fingerprint, func(name string) bool { return !header.ValidName(name) }):
		return fmt.Errorf("hookonce: WithFingerprint(%q): not all of these are names of header fields", s.fingerprint)
	case slices.ContainsFunc(s.fingerprint, header.HopByHop):
		return fmt.Errorf("hookonce: WithFingerprint(%q): not all of these can be compared, because some belong to the connection and net/http takes them; for the host have WithScope or WithFingerprintFunc return r.Host", s.fingerprint)
	case s.named && s.content != nil:
		return errors.New("hookonce: WithFingerprint and WithFingerprintFunc contradict each other: have the function return the header fields, too")
	case s.documentation != "" && !isAddress(s.documentation):
		return fmt.Errorf("hookonce: WithDocumentation(%q): this is not an absolute URL; write one such as https://example.com/faults", s.documentation)
	}
	return nil
}

func isAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.IsAbs() && !strings.ContainsAny(s, `<>" `)
}

// WithPublicURL sets the address under which the provider calls this endpoint, for schemes that sign
// it: an absolute http or https URL without a fragment. The query of a request is added if url has none, and replaces that
// of url if it begins with it. Default: https, the Host header and the request's path and query, which is wrong behind
// most proxies that rewrite.
func WithPublicURL(url string) EventOption {
	return func(s *eventSettings) { s.url = url }
}

// WithUnkeyedRecord acknowledges an event that has no key, or only says that something changed, when its
// handler gave up with [Permanent], as soon as that is on record: as a dead claim of the same source, whose key
// begins with "sha256:unkeyed:", as no sender's does, and goes on at random. Each such delivery is a claim of
// its own, because nothing tells copies of the event apart from other events. Without this option it is
// answered 503 each time that it is sent.
func WithUnkeyedRecord() EventOption {
	return func(s *eventSettings) { s.unkeyedRecord = true }
}

// WithTimeout bounds the handler and its transaction, per event or request. Default [DefaultTimeout]. The
// sender's hang-up never cancels the handler; this deadline does. A handler that does not heed the end of its
// context, and never returns, is given up 5 s later (after [WithWait] as well, for requests with keys): copies that
// come to its process then ask the store, which knows whether the work is done, free or still held.
func WithTimeout(d time.Duration) Option { return func(s *settings) { s.timeout = d } }

// WithWait bounds how long a copy waits for the one that is being handled. With [Webhook] and [WebhookLease]
// it waits in this process only, before it is answered 503; default [DefaultWait]. The wait for another
// process is the store's, and there is none for a lease. With [Idempotent] and [IdempotentLease] it waits for the first
// request's answer, in whatever process that is being made, to give the same, and is answered 409 after that; default 0.
// Copies that wait hold no database connection, save one for each process and key that asks whether another process is
// done.
func WithWait(d time.Duration) Option { return func(s *settings) { s.wait = d } }

// WithMaxBody limits the body, in bytes; a larger one is answered 413. Default: what the provider
// says that it sends at most, or [DefaultMaxBody].
func WithMaxBody(n int64) Option { return func(s *settings) { s.maxBody = n } }

// WithClock sets the clock against which signed timestamps are judged, and with which durations are
// measured. Default [time.Now].
func WithClock(now func() time.Time) Option { return func(s *settings) { s.now = now } }

// WithLogger sets where outcomes are logged, with source, key and type, never a body, a secret or a scope:
// failures as errors, and requests that could not be judged; conflicts, unkeyed events and rejected requests as
// warnings, everything else at the debug level. Default [slog.Default]. A panic of its handler is not contained, because there would be no place
// to report it: the connection is cut, and a copy of what was committed before is answered as a duplicate.
//
// Lines that strangers can cause are bounded, for each handler: 10 a second with the same message, reason and status,
// 100 of all, and 512 bytes of a value (8 KiB of a stack). The number of those above it is told at the end of the second,
// as suppressed. Handlers of requests with keys have all their lines so; the outcome of an event that was verified always
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
// If the handler is a proxy, f must go by what the service behind it sees. [net/http/httputil.ReverseProxy] takes off
// every header that the client names in Connection, so that "Connection: X-Tenant" leaves the service without the tenant
// that f reads, and the answer to nobody becomes that of the tenant; and to many an application X_Tenant is the same
// header as X-Tenant. Authenticate in front, or refuse such requests. The same goes for [WithFingerprint].
//
// [Idempotent] and [IdempotentLease] ask for this option or [WithoutScope].
func WithScope(f func(*http.Request) (string, error)) KeyOption {
	return func(s *keySettings) { s.scope = f }
}

// WithoutScope says that all callers share their keys, because there is only one, or because no answer is
// private. A client that sends the key and the request of another is given the other's answer.
func WithoutScope() KeyOption {
	return func(s *keySettings) { s.unscoped = true }
}

// WithStrictKey takes keys only as the draft has them, in double quotes: "8e03978e". Otherwise 8e03978e is
// the same key.
func WithStrictKey() KeyOption {
	return func(s *keySettings) { s.strictKey = true }
}

// WithOptionalKey handles requests without a key instead of answering 400: each of them anew.
func WithOptionalKey() KeyOption {
	return func(s *keySettings) { s.optionalKey = true }
}

// WithMaxKey limits the key, in bytes; a longer one is answered 400. Default [DefaultMaxKey].
func WithMaxKey(n int) KeyOption {
	return func(s *keySettings) { s.maxKey = n }
}

// WithMaxResponse limits what is kept of an answer, body and header together, in bytes. A handler that
// writes more gets [ErrResponseTooLarge], and its work is rolled back. Default [DefaultMaxResponse].
func WithMaxResponse(n int) KeyOption {
	return func(s *keySettings) { s.maxResponse = n }
}

// WithFingerprint names the header fields in which requests under one key must agree, besides method, path, query and
// body. Default: Content-Type. Leave out what changes when a request is sent again, such as dates, traces and tokens.
// Fields that belong to the connection, such as Host, cannot be compared: an endpoint that answers differently under
// several hosts has [WithScope] tell them apart, or [WithFingerprintFunc].
func WithFingerprint(headers ...string) KeyOption {
	return func(s *keySettings) {
		s.fingerprint, s.named = nil, true
		for _, name := range headers {
			s.fingerprint = append(s.fingerprint, http.CanonicalHeaderKey(name))
		}
		slices.Sort(s.fingerprint)
		s.fingerprint = slices.Compact(s.fingerprint)
	}
}

// WithFingerprintFunc says what requests under one key must agree in, besides method, path and query: in what f
// returns, instead of header fields and body. It is for clients that change something whenever they send a request
// again, such as a timestamp in the body. Everything else is not compared: a request that differs in nothing that f returns
// is a copy, and gets the answer of the first. f gets the request with a body that can be read, and the same body in
// full, which it must not change; it is called once for each request.
//
// Default: the header fields of [WithFingerprint] and the body byte for byte, or, of multipart/form-data, the parts
// with their headers in their order, without the boundary, which clients make up anew. A form that does not parse, or
// has more than 1000 parts or 10 000 lines of header in them, is compared byte by byte.
func WithFingerprintFunc(f func(r *http.Request, body []byte) []byte) KeyOption {
	return func(s *keySettings) {
		if s.content = f; f == nil {
			panic("hookonce: WithFingerprintFunc does not take nil")
		}
	}
}

// WithKeep says which answers of 400 and above are kept and given to every copy. The work under one that is
// not kept is undone, the client gets it all the same, and the next copy runs the handler again. Default:
// all but 401, 403, 407, 408, 425, 429 and 5xx. Answers below 400 are always kept, and with [IdempotentLease] a 409
// only if it answers the first attempt: an earlier one may be at work where a later one is told of a conflict.
func WithKeep(keep func(status int) bool) KeyOption {
	return func(s *keySettings) { s.keep = keep }
}

// keepByDefault is the policy of [WithKeep]. Answers that say to come again are not kept, nor those to a caller who
// was not let in: nothing happened, and a caller who is let in later is to get in.
func keepByDefault(status int) bool {
	return status < http.StatusInternalServerError && status != http.StatusRequestTimeout && !turnedAway(status)
}

// turnedAway reports whether the answer says that nothing was done: the caller has no right to ask, or comes too early
// or too often. It leaves no claim behind, or strangers could fill the table.
func turnedAway(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return false
}

// WithDocumentation is the address of the page that tells clients how to use keys here. Every fault links to
// it, with its type as the anchor unless url has one: #idempotency-key-reused. Default: [DefaultDocumentation].
// Empty: no link.
func WithDocumentation(url string) KeyOption {
	return func(s *keySettings) { s.documentation = url }
}

// WithLease is how long a claim outlives the process that holds it, and so how long copies are answered 409
// or 503 after a crash. It is extended while the handler runs, until [WithTimeout] has passed: a handler that
// goes on after that may be run again beside itself. Default [DefaultLease],
// at least 10 ms.
func WithLease(d time.Duration) LeaseOption {
	return func(s *settings) { s.lease = d }
}

// Observation is one outcome, for metrics.
type Observation struct {
	// Source is set always, Provider always by [Webhook] and [WebhookLease]. Type is that of a verified event, or the pattern
	// or else the method of a request with a key.
	Source, Provider, Type string
	// Status is what the answer's Hookonce-Status header says (accepted, duplicate, conflict,
	// unkeyed), or "busy", "failed", "dead" or "rejected". A request with a key is a duplicate when it is
	// given the answer of another, and failed, too, when the answer is not kept, or cannot be.
	Status string
	// Attempt is the number of the attempt that was made at an event under its key, from 1. 0: none was, because the event was
	// done or others had it, or it has no key; always for a request with a key.
	Attempt int64
	// Reason is the reason of a rejection, one of the Reason constants.
	Reason string
	// Proof says how the request was authenticated: by which of several secrets, for one that is to be
	// retired. Zero for a rejection.
	Proof Proof
	// Err is the handler's or the store's error, if any, and of a rejection what says more than the reason, if anything.
	Err error
	// Duration is the time from the verified request to the outcome, waiting included.
	Duration time.Duration
}

package hookonce

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/problem"
	"github.com/hookonce/hookonce/internal/singleflight"
)

// Webhook returns a handler for one webhook endpoint: it verifies the raw body, finds the event's
// key, claims it and runs handle in the same transaction, and answers as the provider expects.
// Guarantee: atomic. The effect that handle writes through tx commits with the claim or not at all.
//
// # Source
//
// Source names the endpoint, and is the scope of its keys: "stripe-live". Every endpoint needs a source of its
// own, because two with one source take each other's events for copies of theirs, also two of one provider
// (two accounts, live and test). Two instances of one endpoint have the same source. Renaming a source
// forgets its claims. Events that the gateway delivers (provider.Hookonce) bring the name of its source along,
// and are claimed under that; of them source names the endpoint alone.
//
// # Answers
//
// Answers to verified events have a header Hookonce-Status. The sender gets:
//
//   - the provider's success answer when the work is committed (accepted), when it was committed
//     earlier (duplicate; conflict if the content differs from the first copy's), when an event
//     without a usable key was handled (unkeyed), and when handle gave up with [Permanent] (dead);
//   - 503 with Retry-After when handle failed (failed), when another copy is still being handled
//     after the bounded wait (busy), and when the store cannot be reached. A [Permanent] failure of
//     an event without a key is answered so too, each time that it is sent, unless [WithUnkeyedRecord]
//     keeps it on record. Never a 4xx for a fault on this side: providers disable endpoints that
//     answer so;
//   - 401 when the request is not authentic, 405 for methods other than POST, 413 for a body above
//     the limit, 400 for one that ends early, 408 for one that is too slow. Nothing is stored then;
//   - 503 when a middleware has read the body before: the log says so, as an error. Put the handler in front of
//     what reads bodies.
//
// The provider's [Profile] may take other methods too, and have statuses of its own in place of 401 and 503. Replies to
// handshakes are plain text or JSON, whatever the provider says. An event that only says that something changed
// ([Event.Coalesce]) is handled each time that it comes, without a claim.
//
// # The handler
//
// The handler's context ends after [WithTimeout], not when the sender hangs up. An error from handle
// rolls its transaction back and leaves a durable trace: the claim is failed, with the attempt's
// number and the error's text, and the sender's next copy tries again. A panic in handle is treated
// as an error. A request with several events handles each in its own transaction, all of them even
// when one fails; it succeeds when all of them did. They are built one after another, so that a request takes the
// memory of its body, which [WithMaxBody] bounds, and of one event. How many requests are served at once is the
// server's to bound.
//
// The handler may be used concurrently. Webhook panics if store, p or handle is nil, or an option
// or the provider's profile makes no sense, or source cannot be one: empty, longer than [MaxKeyLen], or beginning with
// "once:" (see [Once]). A handler that refuses every event would be noticed too late.
func Webhook[Tx any](store TxStore[Tx], source string, p Provider, handle func(ctx context.Context, tx Tx, ev *Event) error, opts ...WebhookOption) http.Handler {
	if store == nil || p == nil || handle == nil {
		panic("hookonce: Webhook needs a store, a provider and a handler")
	}
	h := newWebhook("Webhook", source, 0, p)
	for _, o := range opts {
		o.webhook(&h.eventSettings)
	}
	h.settle()
	h.attempt = func(ctx context.Context, req ClaimRequest, ev *Event, given error) (Claim, error) {
		c, err := store.Within(ctx, req, func(tx Tx, c Claim) error {
			if given != nil {
				return ofWork(given)
			}
			ev.Attempt = c.Token
			at := lend(ctx, store, c, ev, tx)
			return ofWork(cmp.Or(handle(at, tx, ev), at.work.unreturned()))
		})
		if c.Verdict != Acquired {
			ev.Attempt = 0 // a store may run the handler ahead, and find then that there was nothing to do
		}
		return c, err
	}
	return h
}

// WebhookLease is [Webhook] for effects that share no transaction with the claim: calls to other systems, with
// claims in Redis, say. Guarantee: at least once with a stable key. Copies of done work do not run handle, and of
// several at once one does. But a process that dies between the effect and the record of it leaves the claim
// to its lease ([WithLease]), and then the next copy runs handle again; so does one that came to the end of a
// lease that was lost. Make what handle does outside repeatable by sending keys along: [Transport] derives
// them from the claim in its context.
//
// Everything is as with Webhook, except:
//
//   - the lease is extended at a third of its length while handle runs, until [WithTimeout] has passed. When it
//     is lost, the handler's context ends. Only what was recorded under the current token counts: a delivery
//     whose claim was taken over meanwhile is answered 503 (busy), and so are copies while another process has
//     the lease, at once. Leases end by the store's clock in each process: these clocks must agree to well within a
//     lease, or two copies of one event run handle at once;
//   - success is acknowledged when it is on record that the event is done. If that cannot be recorded for 5 s,
//     the answer is 503, and the next copy runs handle again after the lease;
//   - an error or a panic frees the claim at once, with a trace; but nothing is rolled back;
//   - there is no transaction in the handler's context, so [Enqueue], [Newer], [Transition] and [Once] have
//     nothing to work in. Effects that can wait belong in an outbox, where there is a database.
//
// The handler may be used concurrently. WebhookLease panics when Webhook would.
func WebhookLease(store Store, source string, p Provider, handle func(ctx context.Context, ev *Event) error, opts ...WebhookLeaseOption) http.Handler {
	if store == nil || p == nil || handle == nil {
		panic("hookonce: WebhookLease needs a store, a provider and a handler")
	}
	h := newWebhook("WebhookLease", source, DefaultLease, p)
	for _, o := range opts {
		o.webhookLease(&h.eventSettings)
	}
	h.settle()
	h.attempt = func(ctx context.Context, req ClaimRequest, ev *Event, given error) (Claim, error) {
		return UnderLease(ctx, store, req, func(ctx context.Context, c Claim) error {
			if given != nil {
				return ofWork(given)
			}
			ev.Attempt = c.Token
			return ofWork(handle(&workContext{Context: ctx, work: work{ref: c.Ref, event: ev}}, ev))
		})
	}
	return h
}

// newWebhook returns a handler to which no option was given yet. It panics if there is no handling p.
func newWebhook(constructor, source string, lease time.Duration, p Provider) *webhook {
	profile := p.Profile()
	if err := profile.check(); err != nil {
		panic("hookonce: " + err.Error())
	}
	s := eventSettings{settings: defaultSettings(constructor, "webhook", source, lease)}
	s.sender, s.wait, s.maxBody = profile.Name, DefaultWait, cmp.Or(profile.MaxBody, DefaultMaxBody)
	return &webhook{eventSettings: s, profile: profile, provider: p}
}

// webhook is what [Webhook] and [WebhookLease] have in common: which event is which, who waits for whom, and
// what is answered. How an event is handled once is theirs.
type webhook struct {
	eventSettings
	profile  Profile
	provider Provider
	// attempt claims req and handles the event, or says what came of it earlier. Given an error, it records
	// that instead of handling anything.
	attempt func(ctx context.Context, req ClaimRequest, ev *Event, given error) (Claim, error)
	calls   singleflight.Group[Ref, outcome]
}

// outcome is what became of one event.
type outcome struct {
	verdict  Verdict
	conflict bool
	digest   []byte // of the content that it is about: that is stored now or, beside an error, that was tried
	dead     bool   // handle gave up for good; durable
	err      error  // nil for every outcome that is acknowledged, save dead
}

// final reports whether the outcome is durable and may be acknowledged.
func (o outcome) final() bool { return o.dead || o.err == nil }

func (o outcome) status() string {
	switch {
	case o.dead:
		return "dead"
	case o.err != nil && o.verdict != Busy:
		return "failed"
	case o.conflict && o.verdict == Duplicate:
		return "conflict"
	}
	return o.verdict.String()
}

// ServeHTTP handles one delivery.
func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d, refusal := h.receive(w, r)
	switch {
	case refusal != nil:
		refusal = h.understood(refusal)
		h.reject(r.Context(), refusal)
		h.refuse(w, refusal)
	case d.Handshake != nil:
		reply(w, d.Handshake.Inert())
	default:
		if d.Unreadable != nil {
			h.log.WarnContext(r.Context(), "webhook verified but not readable, handled with what its header says", "source", h.source, "error", d.Unreadable)
		}
		status, failed := h.all(r.Context(), d)
		h.answer(w, status, failed)
	}
}

// receive returns what the request carries, or the refusal to answer with.
func (h *webhook) receive(w http.ResponseWriter, r *http.Request) (*Verified, *problem.Details) {
	body, refusal := h.read(w, r)
	if refusal != nil {
		return nil, refusal
	}
	d, err := h.open(&Request{Method: r.Method, URL: h.publicURL(r), Header: r.Header, Body: body, Now: h.now(), Lazy: true})
	switch {
	case errors.Is(err, ErrUnverified):
		return nil, unverified(err)
	case err != nil:
		return nil, undecided("the request could not be verified now", defaultRetry, err)
	}
	return d, nil
}

// read returns the raw body, or the refusal to answer with. Greetings have no body that counts.
func (h *webhook) read(w http.ResponseWriter, r *http.Request) ([]byte, *problem.Details) {
	switch {
	case r.Method == http.MethodPost:
	case h.profile.Takes(r.Method):
		return nil, nil
	default:
		return nil, rejection(problem.MethodNotAllowed, ReasonMethod, "webhooks are sent with POST")
	}
	return h.readBody(w, r)
}

// open shields the server from a provider that panics: law 9, our fault is a 503.
func (h *webhook) open(req *Request) (d *Verified, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("provider %s panicked: %v\n%s", h.profile.Name, p, debug.Stack())
		}
	}()
	d, err = h.provider.Open(req)
	switch {
	case err != nil:
	case d == nil:
		err = fmt.Errorf("provider %s returned neither a verified request nor an error", h.profile.Name)
	case d.Handshake != nil && d.Handshake.Status != 0 && (d.Handshake.Status < 200 || d.Handshake.Status > 599):
		err = fmt.Errorf("provider %s answers a handshake with the status %d", h.profile.Name, d.Handshake.Status)
	}
	return d, err
}

// publicURL is the address as the provider spells it. A query that it adds to each request belongs to it.
func (h *webhook) publicURL(r *http.Request) string {
	if h.url == "" {
		return "https://" + r.Host + r.URL.RequestURI()
	}
	place, own, has := strings.Cut(h.url, "?")
	if r.URL.RawQuery == "" || has && !strings.HasPrefix(r.URL.RawQuery, own+"&") {
		return h.url
	}
	return place + "?" + r.URL.RawQuery
}

// all handles every event of a request, also after one of them failed. It returns the status of the whole, and the
// first outcome that may not be acknowledged, or nil. Of a large batch nothing is kept but that.
func (h *webhook) all(ctx context.Context, d *Verified) (status string, failed *outcome) {
	defer func() {
		if p := recover(); p != nil { // events of a batch are the provider's until they are handled
			h.log.ErrorContext(ctx, "the provider panicked while it took a batch apart", "source", h.source, "panic", p, "stack", string(debug.Stack()))
			failed = &outcome{verdict: Acquired, err: fmt.Errorf("provider %s panicked: %v", h.profile.Name, p)}
			h.report(ctx, &Event{Source: h.source}, d.Proof, *failed, 0)
		}
	}()
	for ev := range d.All() {
		if ev.Gateway == (Gateway{}) || ev.Source == "" {
			ev.Source = h.source // only the gateway knows a better one
		}
		start := h.now()
		o := h.once(ctx, ev)
		h.report(ctx, ev, d.Proof, o, h.now().Sub(start))
		if failed == nil && !o.final() {
			failed = &o
		}
		if status == "" || o.status() == "accepted" {
			status = o.status()
		}
	}
	return cmp.Or(status, "accepted"), failed
}

// once handles one event, or waits for the copy of it that is being handled in this process.
func (h *webhook) once(ctx context.Context, ev *Event) outcome {
	if err := checkSource(ev.Source); err != nil {
		return outcome{verdict: Acquired, err: err}
	}
	if claimed(ev).Key == "" {
		return h.run(ctx, ev)
	}
	first, mine := h.join(ev)
	if !mine {
		return h.follow(ctx, ev, first)
	}
	return h.lead(ctx, ev, first)
}

// join returns the call for the event that is under way, and whether it is this one's.
func (h *webhook) join(ev *Event) (first *singleflight.Call[outcome], mine bool) {
	return h.calls.Join(ev.Ref(), h.timeout+recordTimeout)
}

// lead handles the event, and tells those who wait for the call what came of it.
func (h *webhook) lead(ctx context.Context, ev *Event, first *singleflight.Call[outcome]) (o outcome) {
	o = outcome{verdict: Acquired, err: errors.New("the handler did not return")}
	defer func() { h.calls.Finish(ev.Ref(), first, o) }()
	return h.run(ctx, ev)
}

// claimed is what an event claims. One that only says that something changed claims nothing: whether
// an earlier one was handled before or after this change is not known.
func claimed(ev *Event) Ref {
	if ev.Coalesce {
		return Ref{Source: ev.Source}
	}
	return ev.Ref()
}

// follow waits for the first copy. A copy shares its failure too: trying again at once would run a
// failing handler as often as there are copies. But that other content was given up says nothing of
// this one, which the sender may have corrected: it is handled as if it had come after that.
func (h *webhook) follow(ctx context.Context, ev *Event, first *singleflight.Call[outcome]) outcome {
	waiting, cancel := context.WithTimeout(ctx, h.wait)
	defer cancel()
	for mine := false; !mine; first, mine = h.join(ev) {
		o, ok := first.Wait(waiting)
		differs := ClaimRequest{Digest: ev.Digest}.Conflicts(o.digest)
		switch {
		case !ok:
			return outcome{verdict: Busy, err: ErrBusy}
		case o.err == nil:
			return outcome{verdict: Duplicate, conflict: differs}
		case !o.dead || !differs:
			return o
		}
	}
	return h.lead(ctx, ev, first)
}

// run claims the event and runs the handler, under a deadline that the sender's hang-up does not move.
func (h *webhook) run(ctx context.Context, ev *Event) (o outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			o = outcome{verdict: Acquired, err: fmt.Errorf("the handler panicked: %v", p)}
			h.log.ErrorContext(ctx, "webhook handler panicked", "source", ev.Source, "key", ev.Key, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	req := ClaimRequest{Ref: claimed(ev), Type: ev.Type, Digest: ev.Digest, Lease: h.lease}
	c, err := h.attempt(ctx, req, ev, nil)
	if h.unkeyedRecord && req.Key == "" && IsPermanent(err) {
		req.Key = unkeyedPrefix + rand.Text()
		err = h.bury(ctx, req, ev, err)
	}
	if c.Verdict == Unkeyed && ev.Coalesce {
		c.Verdict = Acquired // nothing is wrong with it
	}
	o = outcome{verdict: c.Verdict, conflict: c.Conflict, digest: c.Digest, dead: req.Key != "" && gaveUp(err), err: err}
	if err != nil {
		o.digest = ev.Digest
	}
	return o
}

// bury records, under a key that is nobody else's, that an event without a claim was given up because of err,
// which it returns with what came of that.
func (h *webhook) bury(ctx context.Context, req ClaimRequest, ev *Event, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if _, failed := h.attempt(ctx, req, ev, err); !gaveUp(failed) {
		return fmt.Errorf("%w (%w as %s: %w)", err, ErrTraceLost, req.Key, failed)
	}
	return fmt.Errorf("%w (on record as %s)", err, req.Key)
}

// gaveUp reports whether the permanent failure of a handler that had a claim is on record, so that the
// sender may be told to stop. If the trace was lost, or gave way to another attempt, that could lose an event, or have
// a client begin anew with what a copy has done: then it is an ordinary failure. What the handler itself met of the kind
// was about other work.
func gaveUp(err error) bool {
	return IsPermanent(err) && !isAround(err, ErrTraceLost) && !isAround(err, ErrUnknownOutcome)
}

// report logs and observes one outcome.
func (h *webhook) report(ctx context.Context, ev *Event, p Proof, o outcome, took time.Duration) {
	h.write(ctx, ev, p, o, took)
	h.observe(ctx, Observation{
		Source: ev.Source, Provider: h.profile.Name, Type: ev.Type, Proof: p,
		Status: o.status(), Attempt: ev.Attempt, Err: o.err, Duration: took,
	})
}

// write logs one outcome. An ordinary one is for those who look closely: the handler has its
// own log of the work.
func (h *webhook) write(ctx context.Context, ev *Event, p Proof, o outcome, took time.Duration) {
	level := slog.LevelDebug
	switch {
	case o.err != nil:
		level = slog.LevelError
	case o.conflict || o.verdict == Unkeyed:
		level = slog.LevelWarn
	}
	if !h.each.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("source", ev.Source), slog.String("key", ev.Key), slog.String("type", ev.Type),
		slog.Int64("attempt", ev.Attempt), slog.Duration("took", took),
	}
	if p.Secret > 0 {
		attrs = append(attrs, slog.Int("secret", p.Secret))
	}
	if p.Partial() {
		attrs = append(attrs, slog.String("covers", p.Covers))
	}
	if o.err != nil {
		attrs = append(attrs, slog.String("error", o.err.Error()))
	}
	h.each.LogAttrs(ctx, level, "webhook "+o.status(), attrs...)
}

// answer turns what came of a request into its response: success only if every event's outcome is durable.
func (h *webhook) answer(w http.ResponseWriter, status string, failed *outcome) {
	if failed != nil {
		w.Header().Set("Hookonce-Status", failed.status())
		h.refuse(w, h.understood(notDone(*failed)))
		return
	}
	w.Header().Set("Hookonce-Status", status)
	ok := h.profile.Acknowledgement
	ok.Status = cmp.Or(ok.Status, http.StatusOK)
	if len(ok.Body) > 0 {
		ok.ContentType = cmp.Or(ok.ContentType, plainText)
	}
	reply(w, ok)
}

// understood returns p in the way that the provider understands.
func (h *webhook) understood(p *problem.Details) *problem.Details {
	own := p.As(h.profile.Refusal(p.Status, p.Cause), defaultRetry)
	return &own
}

// refuse answers with p.
func (h *webhook) refuse(w http.ResponseWriter, p *problem.Details) {
	if p.Status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", h.profile.Allow())
	}
	p.Write(w)
}

// reply sends a. Browsers are told to believe the content type.
func reply(w http.ResponseWriter, a Answer) {
	h := w.Header()
	if a.ContentType != "" {
		h.Set("Content-Type", a.ContentType)
	}
	for name, value := range a.Header {
		h.Set(name, value)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	w.WriteHeader(a.Status)
	w.Write(a.Body) // a sender that hung up does not read it; the outcome stands
}

// notDone answers for an event whose effect is not durable. The text names no cause: causes are for
// the log, and answers are stored by providers.
func notDone(o outcome) *problem.Details {
	retry := defaultRetry
	if d, ok := RetryDelay(o.err); ok && d > 0 {
		retry = d
	}
	switch {
	case o.verdict == Busy:
		return unavailable("another copy of the event is being handled", busyRetry)
	case errors.Is(o.err, ErrUnknownOutcome):
		return unavailable("it is not known yet whether the event was handled", retry)
	}
	return unavailable("the event could not be handled now", retry)
}

// unverified tells the sender which part of the scheme failed, never what would have matched.
func unverified(err error) *problem.Details {
	reason := ReasonSignatureMismatch
	var reject *RejectError
	if errors.As(err, &reject) {
		reason = reject.Reason
	}
	p := rejection(problem.Unverified, reason, "the request's signature could not be verified")
	p.Cause = err
	return p
}

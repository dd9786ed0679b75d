package ingest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/body"
	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/connlimit"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/refusals"
	"github.com/hookonce/hookonce/internal/tracing"
)

// endpoint serves one source.
type endpoint struct {
	refuser
	source      Source
	required    *answer // the provider's own acknowledgement, where it insists on one
	headers     *header.Rule
	answers     Answers
	intake      *intake
	throttle    throttle
	shares      shares // of what all endpoints use
	bodyTimeout time.Duration
	metrics     sourceMetrics
	trace       *tracing.Source
	cells       *cells.Cells // nil: there is one
}

func newEndpoint(s Source, o Options, m *metrics, refused *refusals.Log, of shares, storing *atomic.Int64) *endpoint {
	profile := s.Provider.Profile()
	e := &endpoint{
		refuser:     newRefuser(s.Name, o, m, refused, profile, allowlist{allow: s.Allow, trusted: o.TrustedProxies}, allRefusals()...),
		source:      s,
		required:    required(profile.Acknowledgement),
		headers:     ruleOf(&s),
		answers:     o.Answers,
		throttle:    newThrottle(s.Rate, s.Burst),
		shares:      of,
		bodyTimeout: o.BodyTimeout,
		metrics:     m.of(s),
		trace:       o.Tracer.Source(s.Name, s.TrustTrace),
		cells:       o.Cells,
	}
	e.intake = newIntake(s, o, e.log, e.metrics, of, storing)
	return e
}

// ServeHTTP answers one delivery, and panics never.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := e.now()
	e.metrics.receivedAt(start)
	trace := e.trace.Request(r, start)
	var seen glimpse
	a, err := e.handle(w, r, start, trace, &seen)
	if err == nil {
		a.write(w)
	}
	end := e.now()
	trace.Observe(e.metrics.seconds, end.Sub(start).Seconds())
	if err != nil {
		a.status = e.refuse(w, r, seen, err)
	}
	trace.End(a.status, end)
}

// handle takes one delivery from the wire to the journal. Whatever panics on the way is our fault,
// and so an error that the sender is asked to retry. With an error it says what it has seen of the request.
func (e *endpoint) handle(w http.ResponseWriter, r *http.Request, now time.Time, trace *tracing.Request, seen *glimpse) (a answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	if err := e.admit(r, now); err != nil {
		seen.key = e.unverifiedKey(r, nil)
		return a, err
	}
	held := e.shares.reading.hold(e.allowlist.address(r), w)
	defer held.release()
	raw, err := e.read(w, r, held)
	whole := err == nil && r.Method == http.MethodPost // it may be empty
	if err == nil {
		a, err = e.take(r, raw, held, trace, now, nil)
	}
	if err != nil {
		seen.key = e.unverifiedKey(r, raw)
	}
	if err != nil && (whole || len(raw) > 0) {
		seen.body = refusals.BodyOf(raw)
	}
	return a, err
}

// unverifiedKey returns the key that the event of a refused request would have (UnverifiedKey of a spec.Provider), empty if
// the provider does not say.
func (e *endpoint) unverifiedKey(r *http.Request, raw []byte) string {
	p, says := e.source.Provider.(interface {
		UnverifiedKey(req *hookonce.Request) string
	})
	if !says || !e.profile.Takes(r.Method) {
		return ""
	}
	return p.UnverifiedKey(&hookonce.Request{Method: r.Method, URL: SeenURL(r), Header: r.Header, Body: raw})
}

// take has a request verified and its events recorded. hop is how it came from another cell; nil: it came from its sender.
func (e *endpoint) take(r *http.Request, raw []byte, held *requestState, trace *tracing.Request, now time.Time, hop *cells.Hop) (a answer, err error) {
	delivery, err := e.source.Provider.Open(&hookonce.Request{
		Method: r.Method, URL: SeenURL(r), Header: r.Header, Body: raw, Now: now, Lazy: true,
	})
	if err != nil {
		return a, judged(err)
	}
	held.verified()
	if delivery.Handshake != nil && hop != nil {
		return a, fmt.Errorf("%w: cell %s sees %s here, and this cell sees a handshake", cells.ErrDisagree, hop.From, hop.Part)
	}
	if delivery.Handshake != nil {
		e.log.handshake(r.Context())
		e.watcher.Greeted(e.source.Name)
		return handshake(*delivery.Handshake), nil
	}
	connlimit.Known(r.Context())
	trace.Verified()
	e.metrics.verifiedAt(now, delivery.Proof.Secret)
	if delivery.Unreadable != nil {
		e.log.unreadable(r.Context(), delivery.Unreadable)
	}
	return e.accept(&arrival{Request: r, raw: raw, delivery: delivery, trace: trace, now: now, hop: hop})
}

// judged returns what an error of the provider stands for. Whoever names a key that cannot be fetched causes one that is no
// rejection, whether he is the sender or not: that is no failure of ours. That all secrets have ended is one.
func judged(err error) error {
	var reject *hookonce.RejectError
	if errors.As(err, &reject) || errors.Is(err, hookonce.ErrNoSecret) {
		return err
	}
	return fmt.Errorf("%w: %w", errUndecided, err)
}

// admit decides whether to look at a request at all.
func (e *endpoint) admit(r *http.Request, now time.Time) error {
	if err := e.allowlist.check(r); err != nil {
		return err
	}
	return e.throttle.check(now)
}

// read returns the raw body. Greetings have none that counts.
func (e *endpoint) read(w http.ResponseWriter, r *http.Request, held *requestState) ([]byte, error) {
	switch {
	case r.Method == http.MethodPost:
		// The deadline belongs to a socket and so counts in real time. A response writer without deadlines leaves the
		// matter to the server's own timeouts.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(e.bodyTimeout))
		read, err := body.Read(r, e.source.MaxBody, held)
		if !held.complete() {
			return nil, errCrowded
		}
		return read, err
	case e.profile.Takes(r.Method):
		return nil, nil
	}
	return nil, errMethod
}

// arrival is a request that is verified.
type arrival struct {
	*http.Request
	raw      []byte
	delivery *hookonce.Verified
	trace    *tracing.Request
	now      time.Time  // when it came
	hop      *cells.Hop // how it came from another cell; nil: it came from its sender

	settled []bool       // which of its events were stored here before it was placed anew; nil: none
	before  statusCounts // of them
}

// accept makes the events durable, in the cells that they belong to, and says what became of them.
func (e *endpoint) accept(in *arrival) (answer, error) {
	if e.cells != nil {
		return e.acceptPlaced(in)
	}
	return e.acceptHere(in, in.delivery, nil)
}

// acceptHere makes those events of a request durable that d has, as they were placed; nil: there is one cell. Also after an error
// those of them that are on record stand in the arrival.
func (e *endpoint) acceptHere(in *arrival, d *hookonce.Verified, p *cells.Placement) (a answer, err error) {
	header, err := e.headers.Encode(headerOf(in.Request, in.delivery))
	if err != nil {
		return answer{}, errHeaders
	}
	b := e.intake.batch(header, d, in.trace, in.now)
	b.delivers = deliveryOf(in.Request)
	if p != nil {
		b.cellMap = p.Map
	}
	if p != nil && in.delivery.Len() > 1 {
		b.stored = func(n int) { in.settle(p, n) }
	}
	switch {
	case b.left == 0:
	case in.delivery.Len() == 1:
		a, err = e.acceptOne(in, &b)
		a.counts = b.statuses
		return a, err
	default:
		err = b.all(in.Context(), int64(len(in.raw)))
	}
	in.before.join(b.statuses)
	if err != nil {
		return answer{}, err
	}
	return e.acknowledge(ordinary(in, in.before)), nil
}

// deliveryOf returns the number of the event that a request says to be a delivery of, or 0. Another journal has that event under
// another number, unless it accepted it in the same fraction of a microsecond by its clock ([journal.IDs]).
func deliveryOf(r *http.Request) int64 {
	n, err := strconv.ParseInt(r.Header.Get(header.HookonceEventID), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// settle remembers that the n-th event that was to be accepted here is on record, so that it is not placed again.
func (in *arrival) settle(p *cells.Placement, n int) {
	if in.settled == nil {
		in.settled = make([]bool, p.Events())
	}
	if n < p.Here() { // else the provider yields other events than before, which is an error of its own
		in.settled[p.At(n)] = true
	}
}

// acceptOne makes the event of a request that carries one durable.
func (e *endpoint) acceptOne(in *arrival, b *batch) (answer, error) {
	c, results, err := b.one(in.Context())
	switch {
	case err != nil:
		return answer{}, err
	case e.source.Sync:
		return e.reply(in, c.entries[0], results[0])
	}
	return e.acknowledge(ordinary(in, b.statuses)), nil
}

// headerOf returns the header that belongs to the events: that of the request, unless it came without a body and the
// provider made one of what it says.
func headerOf(r *http.Request, d *hookonce.Verified) http.Header {
	if r.Method != http.MethodPost && len(d.Events) == 1 && d.Events[0].Header != nil {
		return d.Events[0].Header
	}
	return r.Header
}

// acknowledge is the answer a, or the provider's own where it insists on one, with the header of a.
func (e *endpoint) acknowledge(a answer) answer {
	if e.required == nil {
		return a
	}
	own := *e.required
	own.statusField, own.counts = a.statusField, a.counts
	return own
}

// reply answers the sender of one event with what the event's destination answered, now or when the first
// copy came. Which of the two it was says Hookonce-Status, as with any source.
//
// An event without a destination, and one whose answer is not kept any more, is acknowledged like those
// of other sources: it is done. A copy of one that waits for a destination which the source had before is not:
// nobody has it. Nor is an event that is not on record any more, with a database that was lost, unless it was known to be
// done: the sender has to bring it again.
func (e *endpoint) reply(in *arrival, entry *journal.Event, r journal.Result) (answer, error) {
	if len(entry.Destinations) == 0 {
		return e.acknowledge(single(r.Status, entry.Key)), nil
	}
	room, ok := e.shares.queue(1, entry.Size())
	if !ok {
		return answer{}, errFull // it is stored all the same, and a copy gets the answer
	}
	defer room.leave()
	left := in.within(e.source.Deadline) - e.now().Sub(in.now)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(in.Context()), left)
	defer cancel()
	standing, err := e.answers.Await(ctx, journal.DeliveryID{EventID: r.ID, Destination: entry.Destinations[0]})
	switch {
	case err != nil:
		return answer{}, fmt.Errorf("%w: %w", errUnanswered, err)
	case standing.Response != nil && relayable(standing.Response.Status):
		return relayed(standing.Response, r.Status), nil
	case standing.State == journal.Absent && !r.Done:
		return answer{}, fmt.Errorf("%w: while its sender waited for the answer, event %d vanished from the database, which was restored, or gave way to one that did not have it", errStore, r.ID)
	case undelivered(r) && standing.State == journal.Done && standing.Response == nil:
		return answer{}, fmt.Errorf("%w: it waits for another destination", errUnanswered)
	case standing.State == journal.Absent, standing.State == journal.Done && standing.Response == nil:
		return e.acknowledge(single(r.Status, entry.Key)), nil
	}
	return answer{}, fmt.Errorf("%w: the delivery is %s", errUnanswered, standing.State)
}

// undelivered reports whether an event was stored before and is not done. If nothing is open at the destination
// that the source has now, it waits for one that the source had then.
func undelivered(r journal.Result) bool {
	return (r.Status == journal.Duplicate || r.Status == journal.Conflict) && !r.Done
}

// relayable reports whether an answer is passed on. One that asks to come again does so in the sender's own
// way.
func relayable(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return 200 <= status && status <= 499
}

// relayed is the answer of a destination in the form of ours.
func relayed(a *journal.Response, s journal.Status) answer {
	h := header.Decode(a.Header)
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil // or the server would guess one
	}
	return answer{status: a.Status, header: h, statusField: statusFields[s], body: a.Body}
}

// ruleOf returns which headers of a source's requests are kept.
func ruleOf(s *Source) *header.Rule {
	if s.Headers != nil {
		return s.Headers
	}
	return header.NewRule(header.Spec{Secret: s.Provider.Profile().SecretHeaders})
}

// SeenURL returns the address of a request as it is seen here. A provider that knows the one that was registered with it
// takes only the query.
func SeenURL(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host + r.URL.RequestURI()
	}
	return "http://" + r.Host + r.URL.RequestURI()
}

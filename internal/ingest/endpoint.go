package ingest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/connlimit"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
)

// endpoint serves one source.
type endpoint struct {
	refuser
	source        Source
	required      *answer // the provider's own acknowledgement, where it insists on one
	headers       *header.Rule
	journal       Journal
	answers       Answers
	router        *router
	open          []pattern // types that are delivered past the store; none: all
	past          Past
	forward       journal.Forward
	drops         map[string]bool // types whose later twins are not delivered; none in mode sync
	throttle      throttle
	shares        shares        // of what all endpoints use
	storing       *atomic.Int64 // requests that wait for the journal, of all endpoints
	bodyTimeout   time.Duration
	acceptTimeout time.Duration
	metrics       sourceMetrics
}

func newEndpoint(s Source, o Options, m *metrics, of shares, storing *atomic.Int64) *endpoint {
	s.MaxBody = cmp.Or(s.MaxBody, DefaultMaxBody)
	s.Deadline = cmp.Or(s.Deadline, DefaultDeadline)
	drops := map[string]bool{}
	if !s.Sync {
		for _, t := range s.DropTwins {
			drops[t] = true
		}
	}
	return &endpoint{
		refuser:       newRefuser(s.Name, o, m, s.Provider.Profile(), doorman{allow: s.Allow, trusted: o.TrustedProxies}, problems()...),
		source:        s,
		required:      required(s.Provider.Profile().Acknowledgement),
		headers:       ruleOf(&s),
		journal:       o.Journal,
		answers:       o.Answers,
		open:          patterns(s.OpenTypes),
		past:          o.Past,
		forward:       o.Forward,
		router:        newRouter(s.Routes),
		drops:         drops,
		throttle:      newThrottle(s.Rate, s.Burst),
		shares:        of,
		storing:       storing,
		bodyTimeout:   o.BodyTimeout,
		acceptTimeout: acceptTimeout(s, o),
		metrics:       m.of(s),
	}
}

// acceptTimeout is how long the journal may take: with Open, half of what there is.
func acceptTimeout(s Source, o Options) time.Duration {
	switch {
	case s.Open:
		return min(o.AcceptTimeout, s.Deadline/2)
	case s.Sync:
		return min(o.AcceptTimeout, s.Deadline)
	}
	return o.AcceptTimeout
}

// ServeHTTP answers one delivery, and panics never.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := e.now()
	e.metrics.received.Inc()
	a, err := e.handle(w, r, start)
	if err == nil {
		a.write(w)
	}
	e.metrics.seconds.Observe(e.now().Sub(start).Seconds())
	if err != nil {
		e.refuse(w, r, err)
	}
}

// handle takes one delivery from the wire to the journal. Whatever panics on the way is our fault,
// and so an error that the sender is asked to retry.
func (e *endpoint) handle(w http.ResponseWriter, r *http.Request, now time.Time) (a answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	if err := e.admit(r, now); err != nil {
		return a, err
	}
	held := e.shares.reading.hold(e.doorman.address(r), w)
	defer held.release()
	body, err := e.read(w, r, held)
	if err != nil {
		return a, err
	}
	delivery, err := e.source.Provider.Open(&hookonce.Request{
		Method: r.Method, URL: SeenURL(r), Header: r.Header, Body: body, Now: now, Lazy: true,
	})
	if err != nil {
		return a, err
	}
	held.verified()
	if delivery.Handshake != nil {
		e.log.handshake(r.Context())
		e.watcher.Greeted(e.source.Name)
		return handshake(*delivery.Handshake), nil
	}
	connlimit.Known(r.Context())
	e.metrics.verifiedBy(delivery.Proof.Secret)
	if delivery.Unreadable != nil {
		e.log.unreadable(r.Context(), delivery.Unreadable)
	}
	return e.accept(r, delivery, int64(len(body)), now)
}

// admit decides whether to look at a request at all.
func (e *endpoint) admit(r *http.Request, now time.Time) error {
	if err := e.doorman.check(r); err != nil {
		return err
	}
	return e.throttle.check(now)
}

// read returns the raw body. Greetings have none that counts.
func (e *endpoint) read(w http.ResponseWriter, r *http.Request, held *holding) ([]byte, error) {
	switch {
	case r.Method == http.MethodPost:
		return readBody(w, r, e.source.MaxBody, e.bodyTimeout, held)
	case e.profile.Takes(r.Method):
		return nil, nil
	}
	return nil, errMethod
}

// accept makes the events durable and says what became of them. Held is how large the body of the request is.
func (e *endpoint) accept(r *http.Request, d *hookonce.Verified, held int64, now time.Time) (answer, error) {
	header, err := e.headers.Encode(r.Header)
	if err != nil {
		return answer{}, errHeaders
	}
	switch b := e.batch(header, d, now); b.left {
	case 0:
		return e.acknowledge(b.tally.batch()), nil
	case 1:
		c, results, err := b.one(r.Context())
		switch {
		case err != nil:
			return answer{}, err
		case e.source.Sync:
			return e.reply(r.Context(), c.entries[0], results[0], now)
		}
		return e.acknowledge(single(b.tally.status(), c.events[0].Key)), nil
	default:
		if err := b.all(r.Context(), held); err != nil {
			return answer{}, err
		}
		return e.acknowledge(b.tally.batch()), nil
	}
}

// count notes what became of an event.
func (e *endpoint) count(entry *journal.Event, r journal.Result) {
	e.metrics.events[r.Status].Inc()
	if r.Status != journal.Accepted && r.Status != journal.Unkeyed {
		return
	}
	if len(entry.Destinations) == 0 {
		e.metrics.unrouted.Inc()
	}
	if r.LogicalDuplicateOf != 0 {
		e.metrics.twins.Inc()
	}
}

// store hands the entries to the journal under a deadline of its own: a sender that hangs up does
// not cancel what it sent.
func (e *endpoint) store(ctx context.Context, entries []*journal.Event) ([]journal.Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.acceptTimeout)
	defer cancel()
	e.storing.Add(1)
	defer e.storing.Add(-1)
	results, err := e.journal.Accept(ctx, entries)
	if err == nil && len(results) != len(entries) {
		err = fmt.Errorf("the journal answered %d of %d entries", len(results), len(entries))
	}
	return results, err
}

// entry is an event in the form of the journal. All of a request share its headers: there can be thousands.
func (e *endpoint) entry(header []byte, ev *hookonce.Event, proof hookonce.Proof, now time.Time) *journal.Event {
	to := e.router.destinations(ev)
	return &journal.Event{
		Source:               e.source.Name,
		Key:                  stored(ev),
		Type:                 ev.Type,
		Digest:               ev.Digest,
		Header:               header,
		Facts:                facts(ev),
		Body:                 ev.Body,
		Destinations:         to,
		ReceivedAt:           now,
		Resource:             ev.Scope,
		Rank:                 ev.Rank.N,
		Vouched:              proof.Vouched,
		LogicalKey:           e.logical(ev, to, now),
		DropLogicalDuplicate: ev.Logical != "" && e.drops[ev.Type],
	}
}

// logical is the key that twins have in common. Time is cut into windows, and only events of one window
// have it in common: what comes back to an earlier content later on is another change, and to miss twins
// on two sides of a cut only costs a label. Where twins are dropped, only events for the same destinations
// have it in common, or one would be dropped that its destination never got.
func (e *endpoint) logical(ev *hookonce.Event, to []string, now time.Time) string {
	if ev.Logical == "" || e.source.TwinWindow == 0 && len(e.drops) == 0 {
		return ev.Logical
	}
	var window int64
	if e.source.TwinWindow > 0 {
		window = now.UnixNano() / int64(e.source.TwinWindow)
	}
	parts := []string{strconv.FormatInt(window, 10)}
	if len(e.drops) > 0 {
		parts = append(parts, slices.Sorted(slices.Values(to))...)
	}
	return hookonce.NormalKey(hookonce.JoinKey(append(parts, ev.Logical)...))
}

// stored is the key under which an event is kept.
func stored(ev *hookonce.Event) string {
	if ev.Coalesce {
		return journal.CoalesceKey(ev.Key)
	}
	return ev.Key
}

// acknowledge is the answer a, or the provider's own where it insists on one, with the header of a.
func (e *endpoint) acknowledge(a answer) answer {
	if e.required == nil {
		return a
	}
	own := *e.required
	own.verdict = a.verdict
	return own
}

// noted is the part of the proof that is worth a word with each event: by which secret, where there
// are several.
func (e *endpoint) noted(p hookonce.Proof) hookonce.Proof {
	if e.source.Secrets < 2 {
		p.Secret = 0
	}
	return p
}

// SeenURL returns the address of a request as it is seen here. A provider that knows the one that was registered with it
// takes only the query.
func SeenURL(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host + r.URL.RequestURI()
	}
	return "http://" + r.Host + r.URL.RequestURI()
}

// Package ingest is the door that providers knock on: it reads the raw body under limits, has the
// provider verify it, has the journal make its events durable, and only then acknowledges.
//
// It is served without [http.ServeMux], which answers some spellings of a path with a redirect that
// webhook senders do not follow.
package ingest

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
)

// Defaults of the settings that may be left zero.
const (
	DefaultMaxBody       = 1 << 20   // bytes
	DefaultMaxReading    = 128 << 20 // bytes
	DefaultBodyTimeout   = 10 * time.Second
	DefaultAcceptTimeout = 5 * time.Second
	DefaultDeadline      = 10 * time.Second
)

// Journal is what ingest needs of the journal.
type Journal interface {
	// Accept makes the entries durable and returns one result for each, in order. An error means
	// that nothing may be acknowledged. The journal may hold on to the entries after it returned.
	Accept(ctx context.Context, entries []*journal.Event) ([]journal.Result, error)
}

// Answers is what the sources need of the journal whose senders are answered what a destination answered.
type Answers interface {
	// Await waits until an attempt at a delivery has come to its end, and says what it came to. What it
	// returns is durable. An error means that it is not known in time.
	Await(ctx context.Context, delivery journal.DeliveryID) (journal.DeliveryStatus, error)
}

// Past is what the sources need of the journal whose events are worth delivering while it cannot record
// them.
type Past interface {
	// Bypass delivers events past the store and returns one result for each, in order. An error means that
	// nothing may be acknowledged.
	Bypass(ctx context.Context, entries []*journal.Event, forward journal.Forward) ([]journal.Result, error)
}

// Source is one configured endpoint, served under /in/<Name>.
type Source struct {
	// Name is the scope of the source's keys, and the last part of its path.
	Name string
	// Provider verifies the requests and says which events they carry.
	Provider hookonce.Provider
	// Secrets is how many secrets the provider was given. With several, the log says which of them
	// matched, so that one can be retired knowingly. Zero means one.
	Secrets int
	// Headers says which headers of its requests are kept with an event. Nil: those that pass where nothing is known of
	// the sender.
	Headers *header.Rule
	// MaxBody is the size in bytes of the largest body that is read. Zero means [DefaultMaxBody].
	MaxBody int64
	// Routes say where the events go. None: events are stored and are done.
	Routes []Route
	// DropTwins are the types whose events are stored and not delivered when an earlier one stands for
	// the same change.
	DropTwins []string
	// TwinWindow is how far apart two events for one change can be at the most. Zero: any time.
	TwinWindow time.Duration
	// Allow are the networks that requests may come from. None: all.
	Allow []netip.Prefix
	// Rate is how many requests per second are taken, authentic or not, and Burst how many at once. A
	// rate of zero takes all; a burst of zero is twice the rate.
	Rate  float64
	Burst int
	// Sync answers a request of one event with what its destination answered.
	Sync bool
	// Open delivers events past the store while it is unavailable: those with a key of their own, of the
	// types that one of OpenTypes matches. No OpenTypes match all.
	Open      bool
	OpenTypes []string
	// Deadline is how long a sender may be kept waiting, counted from the headers of its request. Zero means
	// [DefaultDeadline].
	Deadline time.Duration
}

// Options are the settings of a [Handler].
type Options struct {
	// Sources and Services have distinct names.
	Sources  []Source
	Services []Service
	Journal  Journal
	// Answers is needed where a source has Sync.
	Answers Answers
	// Past and Forward are needed where a source has Open. Forward makes one attempt at a delivery that is
	// on no record.
	Past    Past
	Forward journal.Forward
	// MaxReading bounds the memory in bytes of the bodies of all requests under way, verified or not, counted as they arrive, and
	// of the answers of services that work on theirs. Beyond it, or where a source or an address holds more of it than is
	// left, other bodies that are on their way are given up (see reading), or the answer is a 503. It is raised
	// to what one body of the source with the largest MaxBody may need: four times that, or six times if there are
	// several sources, and for services twice or three times their MaxAnswer besides. Zero means [DefaultMaxReading].
	MaxReading int64
	// MaxQueued and MaxQueuedBytes are the bounds of the journal's queue. A source that takes up more of
	// it than is left is answered 503, so that there is room for the others. Zero: no bound but the
	// journal's own.
	MaxQueued      int
	MaxQueuedBytes int64
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// BodyTimeout is how long the body of a request may take to arrive, where the server's
	// connection supports deadlines. Zero means [DefaultBodyTimeout].
	BodyTimeout time.Duration
	// AcceptTimeout is how long the journal may take. It does not end with the request, because a
	// sender that hangs up cancels nothing. Zero means [DefaultAcceptTimeout].
	AcceptTimeout time.Duration
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
	// Logger receives a line per event and per rejected request, at a bounded rate unless it takes the
	// level debug, never a body or a secret. Nil
	// discards them.
	Logger *slog.Logger
	// Registerer receives the metrics; nil means that they are not exported.
	Registerer prometheus.Registerer
	// Watcher is told what becomes of every request. Nil: nobody is.
	Watcher Watcher
}

// Handler serves POST /in/<source> for every configured source, the handshakes of providers that greet
// with other methods, and everything below /in/<service> for every service. It answers everything else with problem details. It is safe for concurrent
// use.
type Handler struct {
	opt     Options
	metrics *metrics
	pools   *pools
	storing atomic.Int64

	doors atomic.Pointer[doors]

	mu     sync.Mutex        // keeps calls of Reload apart
	shares map[string]shares // by source: those of sources that are gone may be in use
}

// doors are what the sources and services are served by. They are replaced as a whole.
type doors struct {
	endpoints map[string]*endpoint
	services  map[string]*service
	unknown   refuser // answers for sources that are not configured
}

// New returns the handler of the sources. It panics when the metrics are registered already.
func New(o Options) *Handler {
	o = o.withDefaults()
	metrics := newMetrics(o.Registerer)
	h := &Handler{
		opt:     o,
		metrics: metrics,
		pools:   new(pools),
		shares:  map[string]shares{},
	}
	h.doors.Store(new(doors))
	h.Reload(o.Sources, o.Services, o.TrustedProxies)
	return h
}

// MaxReading returns how many bytes bodies, and the answers that room is taken for, take at most: [Options.MaxReading], or
// more if the largest source needs it.
func (h *Handler) MaxReading() int64 { return h.pools.reading.Size() }

// Reload serves these sources and services from the next request on, in place of those that [Options] or
// the last call named. Requests under way end as they began. What a source takes up of the shared memory
// and of the journal's queue counts on, and so does an unchanged rate.
func (h *Handler) Reload(sources []Source, services []Service, trustedProxies []netip.Prefix) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.opt
	o.Sources, o.Services, o.TrustedProxies = sources, services, trustedProxies
	h.pools.fit(o)
	before := h.doors.Load()
	next := &doors{
		endpoints: make(map[string]*endpoint, len(sources)),
		services:  make(map[string]*service, len(services)),
		unknown:   newRefuser("", o, h.metrics, hookonce.Profile{}, doorman{trusted: trustedProxies}, errUnknownSource),
	}
	for _, s := range sources {
		e := newEndpoint(s, o, h.metrics, h.share(s.Name), &h.storing)
		e.throttle = e.throttle.keep(before.throttle(s.Name))
		next.endpoints[s.Name] = e
	}
	for _, s := range services {
		e := newService(s, o, h.metrics, h.share(s.Name).reading)
		e.throttle = e.throttle.keep(before.throttle(s.Name))
		next.services[s.Name] = e
	}
	h.doors.Store(next)
}

// share returns what a source has of the pools. The caller holds the mutex.
func (h *Handler) share(name string) shares {
	if _, known := h.shares[name]; !known {
		h.shares[name] = h.pools.share()
	}
	return h.shares[name]
}

// throttle returns that of a source or service, the zero throttle if there is none.
func (d *doors) throttle(name string) throttle {
	if e := d.endpoints[name]; e != nil {
		return e.throttle
	}
	if s := d.services[name]; s != nil {
		return s.throttle
	}
	return throttle{}
}

func (o Options) withDefaults() Options {
	if o.MaxReading == 0 {
		o.MaxReading = DefaultMaxReading
	}
	if o.MaxQueued == 0 {
		o.MaxQueued = math.MaxInt
	}
	if o.MaxQueuedBytes == 0 {
		o.MaxQueuedBytes = math.MaxInt64
	}
	if o.BodyTimeout == 0 {
		o.BodyTimeout = DefaultBodyTimeout
	}
	if o.AcceptTimeout == 0 {
		o.AcceptTimeout = DefaultAcceptTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Watcher == nil {
		o.Watcher = blind{}
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	return o
}

// Storing returns how many requests wait for the journal at this moment. What is cut off before that,
// or after it, is neither acknowledged nor in doubt: its sender comes again.
func (h *Handler) Storing() int { return int(h.storing.Load()) }

// ServeHTTP answers one delivery, or one request to a service.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	doors := h.doors.Load()
	if e, ok := doors.endpoints[sourceName(r.URL.Path)]; ok {
		e.ServeHTTP(w, r)
		return
	}
	if s, ok := doors.services[serviceName(r.URL.Path)]; ok && (!s.Through || sourceName(r.URL.Path) != "") {
		s.ServeHTTP(w, r)
		return
	}
	doors.unknown.refuse(w, r, errUnknownSource)
}

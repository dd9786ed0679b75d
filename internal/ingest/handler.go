// Package ingest is the door that providers knock on: it reads the raw body under limits, has the
// provider verify it, has the journal make its events durable, and only then acknowledges.
//
// What is refused, with which status and when the sender is to come again, is in refusal.go: the refusals by reason,
// and the one method that answers them, the ordinary 503 among them. How large a body may be is decided where the
// gateway is planned (maxBody in internal/gateway/plan.go), and read under that limit by internal/body.
//
// It is served without [http.ServeMux], which answers some spellings of a path with a redirect that
// webhook senders do not follow.
package ingest

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/refusals"
)

// Handler serves POST /in/<source> for every configured source, the handshakes of providers that greet
// with other methods, and everything below /in/<service> for every service. It answers everything else with
// problem details. It is safe for concurrent use.
type Handler struct {
	opt     Options
	metrics *metrics
	pools   *pools
	refused *refusals.Log
	storing atomic.Int64
	asking  atomic.Int64

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

// New returns the handler of the sources. It panics when something that is needed is missing, and when the metrics are
// registered already.
func New(o Options) *Handler {
	if err := o.validate(); err != nil {
		panic("ingest: " + err.Error())
	}
	o.Watcher = cmp.Or[Watcher](o.Watcher, blind{})
	metrics := newMetrics(o.Registerer, o.Tally)
	h := &Handler{
		opt:     o,
		metrics: metrics,
		pools:   new(pools),
		refused: refusals.NewLog(),
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
		unknown:   newRefuser("", o, h.metrics, h.refused, hookonce.Profile{}, allowlist{trusted: trustedProxies}, errUnknownSource),
	}
	for _, s := range sources {
		e := newEndpoint(s, o, h.metrics, h.refused, h.share(s.Name), &h.storing)
		e.throttle = e.throttle.keep(before.throttle(s.Name))
		next.endpoints[s.Name] = e
	}
	for _, s := range services {
		e := newService(s, o, h.metrics, h.refused, h.share(s.Name).reading, &h.asking)
		e.throttle = e.throttle.keep(before.throttle(s.Name))
		next.services[s.Name] = e
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(next.endpoints)), maps.Keys(next.services))
	h.refused.Keep(names)
	h.metrics.keep(next.endpoints)
	h.doors.Store(next)
}

// ErrNoSource says that no source is configured under a name.
var ErrNoSource = errors.New("no source is configured under this name")

// Refusals returns what is remembered of the requests that were refused. It is the same for the life of the handler.
func (h *Handler) Refusals() *refusals.Log { return h.refused }

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

// Storing returns how many requests wait for the journal at this moment. What is cut off before that,
// or after it, is neither acknowledged nor in doubt: its sender comes again.
func (h *Handler) Storing() int { return int(h.storing.Load()) }

// Asking returns for how many requests services, and observed applications, are asked at this moment, or may be; those that change
// nothing do not count. What comes of those that are cut off is not known.
func (h *Handler) Asking() int { return int(h.asking.Load()) }

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
	doors.unknown.refuse(w, r, glimpse{}, errUnknownSource)
}

// PathPrefix is what the path of every source begins with.
const PathPrefix = "/in/"

// sourceName returns the name in a path of the form /in/<name>, or the empty string. One slash at
// the end is tolerated, because a sender that is told to go elsewhere does not follow; any other
// spelling is not a source.
func sourceName(path string) string {
	name, ok := strings.CutPrefix(path, PathPrefix)
	if !ok {
		return ""
	}
	name = strings.TrimSuffix(name, "/")
	if strings.Contains(name, "/") {
		return ""
	}
	return name
}

// serviceName returns the name in a path of the form /in/<name> or /in/<name>/anything, or the empty
// string.
func serviceName(path string) string {
	rest, ok := strings.CutPrefix(path, PathPrefix)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

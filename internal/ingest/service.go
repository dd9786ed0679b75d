package ingest

import (
	"cmp"
	"net/http"
	"net/netip"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Service is a configured endpoint for requests that are no events: a handler gets everything below
// /in/<Name>.
type Service struct {
	// Name is the part of the path, as that of a [Source].
	Name string
	// Handler gets the requests, without /in/<Name> in front of their paths.
	Handler http.Handler
	// MaxBody and MaxAnswer are how much of a request and its answer the handler holds in memory, in bytes.
	MaxBody, MaxAnswer int64
	// Allow, Rate and Burst are those of a [Source].
	Allow []netip.Prefix
	Rate  float64
	Burst int
	// Through hands the requests to the path of a source, /in/<Name>, to the handler as they are: none is refused, and
	// nothing of them is held. The fields above do not count.
	Through bool
}

// service admits requests to one service.
type service struct {
	refuser
	Service
	handler  http.Handler
	throttle throttle
	room     *share // of the memory for bodies
	received prometheus.Counter
}

func newService(s Service, o Options, m *metrics, room *share) *service {
	s.MaxBody = cmp.Or(s.MaxBody, DefaultMaxBody)
	return &service{
		refuser:  newRefuser(s.Name, o, m, mannersOf(nil), doorman{allow: s.Allow, trusted: o.TrustedProxies}, errTooMany, errStranger, errCrowded),
		Service:  s,
		handler:  http.StripPrefix(PathPrefix+s.Name, s.Handler),
		throttle: newThrottle(s.Rate, s.Burst),
		room:     room,
		received: m.received.WithLabelValues(s.Name),
	}
}

// ServeHTTP admits one request, or refuses it before anything of it is read.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.received.Inc()
	if s.Through {
		s.Service.Handler.ServeHTTP(w, r)
		return
	}
	if err := s.doorman.check(r); err != nil {
		s.refuse(w, r, err)
		return
	}
	if err := s.throttle.check(s.now()); err != nil {
		s.refuse(w, r, err)
		return
	}
	n := s.needs(r)
	if !s.room.take(n) {
		s.refuse(w, r, errCrowded)
		return
	}
	defer s.room.give(n)
	s.handler.ServeHTTP(w, r)
}

// needs is how much memory a request may take up: all of it is set aside at once, because to run out of it
// after the service had its effect would be worse. Requests without an effect are handed through.
func (s *service) needs(r *http.Request) int64 {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return 0
	}
	if r.ContentLength >= 0 && r.ContentLength <= s.MaxBody {
		return r.ContentLength + s.MaxAnswer
	}
	return s.MaxBody + s.MaxAnswer
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

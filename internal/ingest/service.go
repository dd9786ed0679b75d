package ingest

import (
	"cmp"
	"io"
	"net/http"
	"net/netip"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce"
)

// Service is a configured endpoint for requests that are no events: a handler gets everything below
// /in/<Name>.
type Service struct {
	// Name is the part of the path, as that of a [Source].
	Name string
	// Handler gets the requests, without /in/<Name> in front of their paths.
	Handler http.Handler
	// MaxBody and MaxAnswer are how much of a request and its answer the handler keeps in memory, in bytes.
	MaxBody, MaxAnswer int64
	// Keeps reports whether the handler keeps anything of a request in memory. Others are handed to it as they are. Nil: it
	// does of all.
	Keeps func(*http.Request) bool
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
	reading  *reading
	received prometheus.Counter
}

func newService(s Service, o Options, m *metrics, room *reading) *service {
	s.MaxBody = cmp.Or(s.MaxBody, DefaultMaxBody)
	return &service{
		refuser:  newRefuser(s.Name, o, m, hookonce.Profile{}, doorman{allow: s.Allow, trusted: o.TrustedProxies}, errTooMany, errStranger, errCrowded),
		Service:  s,
		handler:  http.StripPrefix(PathPrefix+s.Name, s.Handler),
		throttle: newThrottle(s.Rate, s.Burst),
		reading:  room,
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
	if s.Keeps != nil && !s.Keeps(r) {
		s.handler.ServeHTTP(w, r)
		return
	}
	held := s.reading.hold(s.doorman.address(r), w)
	defer held.release()
	body := &keptBody{ReadCloser: r.Body, held: held, header: w.Header(), body: s.MaxBody + 1, answer: s.MaxAnswer}
	own := *r
	own.Body = body
	s.handler.ServeHTTP(w, &own)
	if body.err != nil {
		s.rejected[errCrowded].Inc()
		held.release()
		linger(w, r)
	}
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

// keptBody is the body of a request to a service that keeps it in memory, and its answer: room for the body is taken as it is
// read, and room for the whole answer when it is complete, before the service is asked, because to run out of that after the
// service had its effect would be worse. A read for which there is no room fails with an error that says when to come again.
type keptBody struct {
	io.ReadCloser
	held         *holding
	header       http.Header // of the answer
	body, answer int64       // the largest
	read, taken  int64
	complete     bool
	err          error // there was no room
}

// errNoRoom is what the handler is told: the library answers it 503.
var errNoRoom = hookonce.RetryAfter(0, errCrowded)

// Read implements io.Reader.
func (k *keptBody) Read(p []byte) (int, error) {
	if k.err != nil {
		return 0, k.err
	}
	n, err := k.ReadCloser.Read(p)
	k.read += int64(n)
	if !k.complete && !k.room(err) {
		k.err = errNoRoom
		if !k.complete {
			k.header.Set("Connection", "close")
		}
		return 0, k.err
	}
	return n, err
}

// room takes what is needed after a read that ended with err: twice the body while it is read, because the handler puts it together from parts.
func (k *keptBody) room(err error) bool {
	for k.taken < min(2*k.read, 2*k.body) {
		step := min(max(firstStep, k.taken), 2*k.body-k.taken)
		if !k.held.take(step) {
			return false
		}
		k.taken += step
	}
	if err == nil {
		return true
	}
	if !k.held.complete() {
		return false
	}
	if err != io.EOF {
		return true
	}
	k.complete = true
	k.held.give(k.taken - min(k.read, k.taken))
	return k.held.take(k.answer)
}

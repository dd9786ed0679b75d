package ingest

import (
	"io"
	"net/http"
	"sync/atomic"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/body"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/refusals"
)

// service admits requests to one service.
type service struct {
	refuser
	Service
	handler  http.Handler
	throttle throttle
	reading  *bodyMemory
	received counter
	asking   *atomic.Int64
}

func newService(s Service, o Options, m *metrics, refused *refusals.Log, room *bodyMemory, asking *atomic.Int64) *service {
	return &service{
		refuser:  newRefuser(s.Name, o, m, refused, hookonce.Profile{}, allowlist{allow: s.Allow, trusted: o.TrustedProxies}, errTooMany, errNotAllowed, errCrowded),
		Service:  s,
		handler:  http.StripPrefix(PathPrefix+s.Name, s.Handler),
		throttle: newThrottle(s.Rate, s.Burst),
		reading:  room,
		received: m.receivedOf(s.Name),
		asking:   asking,
	}
}

// ServeHTTP admits one request, or refuses it before anything of it is read.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.received.Inc()
	if s.Through {
		s.ask(s.Service.Handler, w, r)
		return
	}
	if err := s.allowlist.check(r); err != nil {
		s.refuse(w, r, glimpse{}, err)
		return
	}
	if err := s.throttle.check(s.now()); err != nil {
		s.refuse(w, r, glimpse{}, err)
		return
	}
	if s.Keeps != nil && !s.Keeps(r) {
		s.ask(s.handler, w, r)
		return
	}
	held := s.reading.hold(s.allowlist.address(r), w)
	defer held.release()
	kept := &keptBody{ReadCloser: r.Body, held: held, header: w.Header(), body: s.MaxBody + 1, answer: s.MaxAnswer, asking: s.asking}
	defer kept.leave()
	own := *r
	own.Body = kept
	s.handler.ServeHTTP(w, &own)
	if kept.err != nil {
		s.note(r, glimpse{}, errCrowded)
		held.release()
		body.Linger(w, r)
	}
}

// ask hands a request on as it comes.
func (s *service) ask(h http.Handler, w http.ResponseWriter, r *http.Request) {
	if !header.SafeMethod(r.Method) {
		s.asking.Add(1)
		defer s.asking.Add(-1)
	}
	h.ServeHTTP(w, r)
}

// firstStep is how much room is taken for a body when its first byte is there.
const firstStep = 4 << 10

// keptBody is the body of a request to a service that keeps it in memory, and its answer: room for the body is taken as it is
// read, and room for the whole answer when it is complete, before the service is asked, because to run out of that after the
// service had its effect would be worse. A read for which there is no room fails with an error that says when to come again.
type keptBody struct {
	io.ReadCloser
	held         *requestState
	header       http.Header // of the answer
	body, answer int64       // the largest
	read, taken  int64
	complete     bool
	asking       *atomic.Int64 // how many are complete, of all services
	err          error         // there was no room
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
		if !k.held.Take(step) {
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
	k.asking.Add(1)
	k.held.Give(k.taken - min(k.read, k.taken))
	return k.held.Take(k.answer)
}

// leave says that the request is over.
func (k *keptBody) leave() {
	if k.complete {
		k.asking.Add(-1)
	}
}

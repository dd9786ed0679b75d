package outgoing

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// Pings are for the connections of HTTP/2, one of which carries all requests to an address. One
// that went silent, because a balancer forgot it, say, must not take them all along until the
// system gives it up.
func Pings() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second}
}

// Transport makes the connections of requests, and can leave those that are kept behind without ending a request. It is safe
// for concurrent use.
//
// A transport of package net/http cannot: it counts a connection as idle from when it has read an answer without a body, a
// little before it hands that to whoever waits for it. Closed in between, the request fails although it was answered, and is
// made again.
type Transport struct {
	make func() *http.Transport

	mu  sync.Mutex
	now *generation // all later ones have no request yet
}

// generation is a transport of package net/http that requests used until the next followed.
type generation struct {
	*http.Transport
	requests int // that have no answer yet
	left     bool
}

// NewTransport returns one that has its connections made by what the function returns, a new one each time.
func NewTransport(make func() *http.Transport) *Transport {
	return &Transport{make: make, now: &generation{Transport: make()}}
}

// RoundTrip sends a request. It implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.mu.Lock()
	g := t.now
	g.requests++
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		g.requests--
		ended := g.left && g.requests == 0
		t.mu.Unlock()
		if ended {
			g.CloseIdleConnections()
		}
	}()
	return g.Transport.RoundTrip(r)
}

// CloseIdleConnections leaves all connections behind: requests from now on make new ones. The others are closed when no
// request waits for its answer over any of them.
func (t *Transport) CloseIdleConnections() {
	next := &generation{Transport: t.make()}
	t.mu.Lock()
	g := t.now
	t.now, g.left = next, true
	unused := g.requests == 0
	t.mu.Unlock()
	if unused {
		g.CloseIdleConnections()
	}
}

// MaxRepeats is how often one request is sent again: see [Send].
const MaxRepeats = 2

// Send sends a request with a client or a transport, whose kept connections leave leaves behind: see
// [Transport.CloseIdleConnections].
//
// It bounds how often package net/http sends the request again by itself, which that does each time
// that a kept connection is closed before the answer begins, and each time that a stream of HTTP/2 is
// refused or reset. Whether the other side did that before the request came or died of it, does not show: a request that ends
// a process would end all of them at once, one for each connection. Over HTTP/1 the last time is over a new connection,
// because where the other side went away all that are kept are as good as closed, but for one that another request gives
// back meanwhile. What would be sent more often ends with [io.ErrUnexpectedEOF].
//
// The context of the request must end when its answer was read: what bounds it lasts until then.
//
// Where the time of the request ends before there was any connection, the error is that of dialling, as it is where
// the time for that ends first. From net/http alone it does not show: it is the one of an answer that does not come.
func Send(r *http.Request, send func(*http.Request) (*http.Response, error), leave func()) (*http.Response, error) {
	s := sending{send: send, body: r.GetBody}
	answer, err := s.do(r, false)
	if err != errKept {
		return answer, err
	}
	leave()
	last := r.Clone(r.Context())
	if s.body != nil {
		if last.Body, err = s.body(); err != nil {
			return nil, err
		}
	}
	return s.do(last, true)
}

// errKept says that a request is not sent over a kept connection once more.
var errKept = errors.New("no new connection")

// sending is one request of [Send].
type sending struct {
	send func(*http.Request) (*http.Response, error)
	body func() (io.ReadCloser, error)

	sent, repeats int
	shared        bool
}

// do has net/http send the request, as often as that wants to and may. Its error is errKept if the last time would be over
// a kept connection.
func (s *sending) do(r *http.Request, last bool) (*http.Response, error) {
	var dialling, connected atomic.Bool // a connection is made in a goroutine of its own
	ctx, enough := context.WithCancelCause(r.Context())
	r = r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:           func(string) { dialling.Store(true) },
		TLSHandshakeStart: func() { dialling.Store(false) },
		GotConn: func(c httptrace.GotConnInfo) {
			connected.Store(true)
			secure, is := c.Conn.(*tls.Conn)
			s.shared = is && secure.ConnectionState().NegotiatedProtocol == "h2"
			switch {
			case s.sent > MaxRepeats:
				enough(io.ErrUnexpectedEOF)
			case s.sent == MaxRepeats && !s.shared && !last && c.Reused:
				enough(errKept)
			default:
				s.sent++
				return
			}
			if !s.shared { // HTTP/1 writes before it looks at the context
				_ = c.Conn.Close()
			}
		},
	}))
	if s.body != nil {
		r.GetBody = func() (io.ReadCloser, error) {
			if s.repeats++; s.repeats > MaxRepeats && !s.shared {
				return nil, io.ErrUnexpectedEOF
			}
			return s.body()
		}
	}
	answer, err := s.send(r)
	if err == nil {
		return answer, nil
	}
	for _, ended := range []error{io.ErrUnexpectedEOF, errKept} {
		if errors.Is(context.Cause(ctx), ended) {
			return nil, ended
		}
	}
	if dialling.Load() && !connected.Load() && errors.Is(err, context.DeadlineExceeded) {
		err = &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	return nil, err
}

package observe

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/loglimit"
)

const (
	// pause is how long a sender may take for the next piece of its request, or to read the next piece of its answer.
	pause = time.Minute
	// draining is how long the rest of a request is waited for that the application does not take.
	draining = 5 * time.Second
	// finishing is how long an answer waits for an application that answers first and then reads its request. When the
	// sender gets it our server gives up what it has not read.
	finishing = 100 * time.Millisecond
	// discarded is how much is read of a request that the application does not take, in bytes.
	discarded = 256 << 10
	// lingering is how long the application may go on after its sender has left.
	lingering = time.Minute
)

// Options are what all sources have in common.
type Options struct {
	// TrustedProxies are the networks whose X-Forwarded headers are handed on as they are.
	TrustedProxies []netip.Prefix
	// URL returns the address that a request was sent to, for providers that sign it.
	URL func(*http.Request) string
	// Observer takes what is observed.
	Observer *Observer
	// Metrics counts it.
	Metrics *Metrics
	// Logger receives failures, never a body or a secret.
	Logger *slog.Logger
	// Now is the clock.
	Now func() time.Time
}

// Forwarder is the handler of one source. It is safe for concurrent use.
type Forwarder struct {
	source Source
	opt    Options
	proxy  *httputil.ReverseProxy
	base   context.Context // of all requests
	cancel context.CancelFunc

	finishing time.Duration // as the constant

	underway atomic.Int64
}

// New returns the handler of a source. Close ends what it is forwarding.
func New(s Source, o Options) *Forwarder {
	o.Logger = loglimit.Bound(o.Logger)
	o.Metrics.begin(s.Name)
	f := &Forwarder{source: s, opt: o, finishing: finishing}
	f.base, f.cancel = context.WithCancel(context.Background())
	f.proxy = &httputil.ReverseProxy{
		Rewrite:        f.rewrite,
		Transport:      s.Transport,
		FlushInterval:  -1, // as it comes
		ErrorLog:       loglimit.Std(o.Logger, slog.LevelDebug, "observe: an answer broke off", "source", s.Name),
		ModifyResponse: answered,
		ErrorHandler:   f.unanswered,
	}
	return f
}

// Close cuts off the requests under way.
func (f *Forwarder) Close() { f.cancel() }

// Idle reports whether no request is under way.
func (f *Forwarder) Idle() bool { return f.underway.Load() == 0 }

// exchange is a request under way, and what came of it.
type exchange struct {
	*Forwarder
	start  time.Time
	sender context.Context // ends when the sender is gone
	body   *body           // nil: there is none
	drain  func()          // reads the rest of it
	wrote  chan struct{}   // closed when the application has the whole request

	ending atomic.Bool // drain was called

	mu      sync.Mutex
	status  int
	took    time.Duration
	failure string
	unheard bool
}

type exchangeKey struct{}

func exchangeOf(r *http.Request) *exchange { return r.Context().Value(exchangeKey{}).(*exchange) }

// ServeHTTP forwards a request. A sender that hangs up cancels nothing: the application goes on for a minute at
// the most.
func (f *Forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.underway.Add(1)
	defer f.underway.Add(-1)
	e := &exchange{Forwarder: f, start: f.opt.Now(), sender: r.Context(), wrote: make(chan struct{})}
	wrote := sync.OnceFunc(func() { close(e.wrote) }) // it may be written again
	ctx := context.WithValue(context.WithoutCancel(r.Context()), exchangeKey{}, e)
	ctx, cancel := context.WithCancel(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { wrote() }}))
	defer cancel()
	defer context.AfterFunc(f.base, cancel)()
	left := context.AfterFunc(r.Context(), func() {
		select {
		case <-time.After(lingering):
			cancel()
		case <-ctx.Done(): // it is over, and nothing of it is held any longer
		}
	})
	socket := http.NewResponseController(w)
	_ = socket.EnableFullDuplex()           // the application may answer before it has read the request: the server must not read it then
	_ = socket.SetReadDeadline(time.Time{}) // a writer without deadlines has none that must be moved
	_ = socket.SetWriteDeadline(time.Time{})
	out := r.WithContext(ctx)
	if r.ContentLength != 0 {
		e.body = &body{ReadCloser: r.Body, room: f.opt.Observer.bodies, limit: f.source.MaxBody, before: func() {
			if !e.ending.Load() {
				_ = socket.SetReadDeadline(time.Now().Add(pause)) // sockets count in real time
			}
		}, ended: func() {
			_ = socket.SetReadDeadline(time.Time{}) // the application may take its time
		}}
		e.drain = func() {
			e.ending.Store(true)
			_ = socket.SetReadDeadline(time.Now().Add(draining))
			e.body.drain()
		}
		out.Body = e.body
	}
	said := &answer{ResponseWriter: w, socket: socket}
	defer func() { // after an abort as well
		left()
		if said.begun && e.body != nil && !e.body.finished() {
			_ = socket.Flush() // the sender may be waiting for the answer with the rest, or for ever
		}
		e.finish(socket)
		f.opt.Observer.look(e.request(r))
	}()
	f.proxy.ServeHTTP(said, out)
}

// finish reads what the application left of the request, as far as it is worth a connection, and lets nobody read on. A
// server that reads both ways at once stops the program if two read, or if the end is found after the handler.
func (e *exchange) finish(socket *http.ResponseController) {
	if e.body == nil {
		return
	}
	if !e.body.finished() {
		e.ending.Store(true)
		_ = socket.SetReadDeadline(time.Now().Add(draining))
		p := make([]byte, 4<<10)
		for n := 0; n < discarded && !e.body.finished(); n += len(p) {
			if _, err := e.body.Read(p); err != nil {
				break
			}
		}
		if !e.body.finished() {
			_ = socket.SetReadDeadline(time.Unix(1, 0)) // the connection ends with the answer
		}
	}
	e.body.leave()
}

// settle notes how the application answered, after which time, and whether its sender was still there.
func (e *exchange) settle(status int, failure string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status, e.failure, e.took = status, failure, e.opt.Now().Sub(e.start)
	if deadline := e.source.Deadline; deadline > 0 && e.took > deadline || e.sender.Err() != nil {
		e.unheard = true
	}
}

func (e *exchange) fail(failure string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failure = failure
}

// request returns what is to be looked at, after the last byte of the answer. No body is read any more.
func (e *exchange) request(r *http.Request) *request {
	q := &request{source: &e.source, log: e.opt.Logger, Request: hookonce.Request{
		Method: r.Method, URL: e.opt.URL(r), Header: r.Header, Now: e.start, Lazy: true,
		Hurry: true, // others wait to be looked at
	}}
	var broke error
	if e.body != nil {
		q.Body, q.unread, broke = e.body.take(r.ContentLength)
	}
	q.weight = int64(cap(q.Body))
	if size := headerSize(r.Header); e.opt.Observer.bodies.take(size) {
		q.weight += size
	} else {
		q.Header, q.unread = nil, cmp.Or(q.unread, ReasonMemory)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	q.came = Observation{
		Source: e.source.Name, ReceivedAt: e.start, Requests: 1,
		Status: e.status, Failure: e.failure, Took: e.took, Unheard: e.unheard,
	}
	if broke != nil {
		q.came.Unheard = true
		if q.came.Status == 0 {
			q.came.Failure = FailureSender
		}
	}
	return q
}

// headerSize is roughly how much memory a header takes up.
func headerSize(h http.Header) (n int64) {
	for name, values := range h {
		n += int64(len(name)) + 32
		for _, v := range values {
			n += int64(len(v)) + 16
		}
	}
	return n
}

// answer is what the sender reads: with the headers that the application wrote and no others, and no faster than it
// takes them.
type answer struct {
	http.ResponseWriter
	socket *http.ResponseController
	begun  bool // its header is there
}

// Unwrap lets the proxy flush.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	if status == http.StatusContinue {
		return // the server says so itself when the body is read, and that is now
	}
	for _, name := range []string{"Content-Type", "Date"} {
		if _, said := a.Header()[name]; !said && status >= 200 {
			a.Header()[name] = nil // the server makes them up otherwise
		}
	}
	a.ResponseWriter.WriteHeader(status)
	a.begun = a.begun || status >= 200
}

func (a *answer) Write(p []byte) (int, error) {
	_ = a.socket.SetWriteDeadline(time.Now().Add(pause))
	return a.ResponseWriter.Write(p)
}

// rewrite makes the request that the application would have got from the sender.
func (f *Forwarder) rewrite(r *httputil.ProxyRequest) {
	to := *f.source.To
	user := to.User
	to.User = nil
	to.RawQuery = joinQueries(to.RawQuery, r.In.URL.RawQuery)
	to.ForceQuery = r.In.URL.ForceQuery
	r.Out.URL = &to
	r.Out.Host = hostFor(r.In, &to)
	header.DropUpgrade(r.Out.Header)
	r.Out.Trailer = r.In.Trailer // which is filled when the body has come to its end
	if _, said := r.In.Header["Authorization"]; user != nil && !said {
		password, _ := user.Password()
		r.Out.SetBasicAuth(user.Username(), password)
	}
	f.forwarded(r)
}

// joinQueries returns both, as they were written.
func joinQueries(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "&" + b
}

// hostFor returns the Host that the application would have seen. A sender that addresses the gateway itself would
// have addressed the application. Otherwise an application on the same machine or network is behind a proxy, or a
// name, that senders know, and some schemes sign it; one with a public name of its own may not be found under another.
func hostFor(in *http.Request, to *url.URL) string {
	if addressed(in) || !nearby(to.Hostname()) {
		return to.Host
	}
	return in.Host
}

// addressed reports whether the Host of a request is the address that it came to.
func addressed(in *http.Request) bool {
	local, ok := in.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	host, port, bad := net.SplitHostPort(in.Host)
	if err != nil || bad != nil || port != portText(at) {
		return false
	}
	own := at.Addr().Unmap()
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap() == own || own.IsLoopback() && host == "localhost"
}

func portText(a netip.AddrPort) string {
	_, port, _ := net.SplitHostPort(a.String())
	return port
}

// nearby reports whether a host is an address, or a name that only a private network knows:
// https://www.rfc-editor.org/rfc/rfc6761, https://www.rfc-editor.org/rfc/rfc6762, and .internal by
// https://www.icann.org/en/board-activities-and-meetings/materials/approved-resolutions-special-meeting-of-the-icann-board-29-07-2024-en.
func nearby(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") {
		return true
	}
	return slices.ContainsFunc([]string{".localhost", ".local", ".internal"}, func(end string) bool { return strings.HasSuffix(strings.ToLower(host), end) })
}

// forwarded says who sent the request. A proxy on this machine, and one that is trusted, has said so already: the
// gateway stands where the application stood behind it, and adds nothing.
func (f *Forwarder) forwarded(r *httputil.ProxyRequest) {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if said, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = slices.Clone(said)
		}
	}
	peer, err := netip.ParseAddrPort(r.In.RemoteAddr)
	from := peer.Addr().Unmap().WithZone("")
	known := func(p netip.Prefix) bool { return p.Contains(from) }
	if err == nil && (from.IsLoopback() || slices.ContainsFunc(f.opt.TrustedProxies, known)) {
		return
	}
	r.SetXForwarded()
}

// errSwitched says that the application speaks another protocol, which it was not asked to.
var errSwitched = errors.New("the application switched protocols without being asked")

// answered notes the answer, and whether it comes to its end.
func answered(res *http.Response) error {
	if res.StatusCode == http.StatusSwitchingProtocols {
		return errSwitched
	}
	e := exchangeOf(res.Request)
	e.settle(res.StatusCode, "")
	if e.body != nil {
		select {
		case <-e.wrote:
		case <-time.After(e.finishing):
		}
	}
	res.Body = &answerBody{res.Body, e}
	return nil
}

// answerBody notices that the application breaks off.
type answerBody struct {
	io.ReadCloser
	e *exchange
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.e.fail(failureOf(err))
	}
	return n, err
}

// unanswered answers for an application that did not.
func (f *Forwarder) unanswered(w http.ResponseWriter, r *http.Request, err error) {
	e := exchangeOf(r)
	failure := failureOf(err)
	if e.body != nil {
		e.drain() // before the answer: the server gives the rest up then
		if e.body.broke() {
			failure = FailureSender
		}
	}
	e.settle(0, failure)
	f.opt.Logger.WarnContext(r.Context(), "observe: the application did not answer", "source", f.source.Name, "error", err)
	http.Error(w, http.StatusText(http.StatusBadGateway), http.StatusBadGateway)
}

func failureOf(err error) string {
	var op *net.OpError
	var timeout net.Error
	switch {
	case errors.As(err, &op) && op.Op == "dial":
		return FailureUnreachable
	case errors.Is(err, context.Canceled), errors.As(err, &timeout) && timeout.Timeout():
		return FailureTimeout
	}
	return FailureBroken
}

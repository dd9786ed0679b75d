// Package idempotency puts the handling of Idempotency-Key in front of an HTTP service in any language:
// requests are claimed, forwarded, and answered with what the service answered; copies get the same answer
// without reaching it.
//
// The guarantee is at least once with a stable key: a request is forwarded again when it is not known what
// came of it, because the gateway was killed or the service did not answer in time, and always with the
// key that the client sent.
package idempotency

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/loglimit"
	"github.com/hookonce/hookonce/internal/problem"
)

// sourcePrefix begins the sources of the claims. The service behind may keep claims of its own in the same
// tables, under the name that its source has here and the key that it is sent.
const sourcePrefix = "gateway:"

// ClaimSource returns the source of the claims of the service called name.
func ClaimSource(name string) string { return sourcePrefix + name }

// How long the socket may take: to send the body, and for the answer after the longest time in which one must
// be there; for the next piece of what is handed on as it is; and between two such pieces of an answer that has begun.
const (
	bodyTime = 15 * time.Second
	grace    = 5 * time.Second
	pause    = time.Minute
	rest     = 15 * time.Minute
)

// New returns the handler of the service. It expects paths without the part that names the source.
func New(s Service, o Options) http.Handler {
	o.Logger = loglimit.Bound(o.Logger)
	o.Metrics.begin(s.Name)
	scope := scopeNames(s.Scope)
	opts := []hookonce.IdempotentLeaseOption{
		hookonce.WithTimeout(s.Timeout),
		hookonce.WithWait(s.Wait),
		hookonce.WithLease(s.Lease),
		hookonce.WithMaxBody(s.MaxBody),
		hookonce.WithMaxResponse(s.MaxAnswer),
		hookonce.WithLogger(o.Logger),
		hookonce.WithClock(o.Now),
		hookonce.WithObserver(func(ctx context.Context, seen hookonce.Observation) { o.Metrics.observe(ctx, s.Name, seen) }),
		scopeOption(scope),
	}
	if s.Fingerprint != nil {
		opts = append(opts, hookonce.WithFingerprint(s.Fingerprint...))
	}
	if s.StrictKey {
		opts = append(opts, hookonce.WithStrictKey())
	}
	if s.OptionalKey {
		opts = append(opts, hookonce.WithOptionalKey())
	}
	if s.Documentation != "" {
		opts = append(opts, hookonce.WithDocumentation(s.Documentation))
	}
	headers := newDecisive(s)
	store := bounded{o.Store, newBudget(s.NewKeys, o.Now)}
	claimed := hookonce.IdempotentLease(store, ClaimSource(s.Name), newProxy(s, o.Logger), opts...)
	reject := func(w http.ResponseWriter, r *http.Request, reason string, p *problem.Details) {
		o.Metrics.reject(s.Name, reason)
		refuser{s, o.Logger}.refuse(w, r, p, slog.LevelWarn, "idempotent request rejected",
			slog.String("reason", reason), slog.Int("status", p.Status), slog.String("detail", p.Detail))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if climbs(r.URL.Path) {
			reject(w, r, "path", outside)
			return
		}
		if err := headers.check(r); err != nil {
			reject(w, r, "ambiguous_header", problem.AmbiguousHeader.New(err.Error()))
			return
		}
		r = newVisit(r, o.sender(r), scope)
		if !Keeps(r) {
			w, r, leave := passing(w, r)
			defer leave()
			claimed.ServeHTTP(w, r)
			return
		}
		r, leave := patient(w, r, s.Wait+s.Timeout+grace)
		defer leave()
		claimed.ServeHTTP(w, r)
	})
}

// Keeps reports whether the handler keeps the body of a request and its answer in memory. It hands on as they are those with
// safe methods and those without a key, or refuses them.
func Keeps(r *http.Request) bool {
	return !header.SafeMethod(r.Method) && len(r.Header[header.IdempotencyKey]) > 0
}

// patient moves the server's deadlines, which suit answers that are there at once: the client has a while to
// send its body, and then, for d, nothing cuts the connection while the service is at work: a client that took long to send
// would hear of none of its attempts what came of it. A writer without deadlines has none that must be moved. Leave ends that
// when the request is over.
func patient(w http.ResponseWriter, r *http.Request, d time.Duration) (own *http.Request, leave func()) {
	socket := http.NewResponseController(w)
	within := func(read, write time.Duration) {
		now := time.Now()
		_ = socket.SetReadDeadline(now.Add(read))
		_ = socket.SetWriteDeadline(now.Add(write))
	}
	if r.ContentLength == 0 {
		within(d, d)
		return r, func() {}
	}
	within(bodyTime, bodyTime+d)
	b := &body{ReadCloser: r.Body, before: func() {}, complete: func() { within(d, d) }}
	own = new(http.Request)
	*own = *r
	own.Body = b
	return own, b.leave
}

// passing moves the server's deadlines along with a request that is handed on as it is, and its answer: downloads,
// uploads and streams take as long as they take. The client has a while for each piece of them, and nothing cuts the
// connection while the service is at work. An answer that has begun and rests is ended: streams that both ends have
// forgotten would hold their connections for ever.
func passing(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, func()) {
	ctx, end := context.WithCancelCause(r.Context())
	a := &answer{ResponseWriter: w, socket: http.NewResponseController(w), resting: time.AfterFunc(rest, func() { end(errRests) })}
	a.resting.Stop() // until it begins
	_ = a.socket.SetWriteDeadline(time.Time{})
	leave := func() {
		a.resting.Stop()
		end(nil)
		a.move()
	}
	if r.ContentLength == 0 {
		_ = a.socket.SetReadDeadline(time.Time{})
		return a, r.WithContext(ctx), leave
	}
	before := func() {
		_ = a.socket.SetReadDeadline(time.Now().Add(pause))
		a.stir()
	}
	before() // also for a body that nobody reads
	b := &body{ReadCloser: r.Body, before: before, complete: func() { _ = a.socket.SetReadDeadline(time.Time{}) }}
	own := r.WithContext(context.WithValue(ctx, bodyKey{}, b))
	own.Body = b
	return a, own, func() { b.leave(); leave() }
}

// errRests is why an answer was ended that had begun.
var errRests = fmt.Errorf("nothing was sent for %v", rest)

// answer moves the deadline to write whenever something is written, and the end of its rest.
type answer struct {
	http.ResponseWriter
	socket  *http.ResponseController
	begun   atomic.Bool
	resting *time.Timer
}

func (a *answer) move() { _ = a.socket.SetWriteDeadline(time.Now().Add(pause)) }

// stir has the rest begin anew.
func (a *answer) stir() {
	if a.begun.Load() {
		a.resting.Reset(rest)
	}
}

// WriteHeader begins the answer, unless it is an informational one.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK {
		a.begun.Store(true)
		a.stir()
	}
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the proxy switch protocols. How long such a connection may rest is for them to say.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) Write(p []byte) (int, error) {
	a.move()
	a.stir()
	return a.ResponseWriter.Write(p)
}

// FlushError sends what may have been written long ago.
func (a *answer) FlushError() error {
	a.move()
	return a.socket.Flush()
}

// body calls before before each read, and complete when it has been read to its end, unless the request is over: then the
// socket is the server's, and whoever still reads is the transport of the proxy.
type body struct {
	io.ReadCloser
	before, complete func()

	mu   sync.Mutex
	left bool
	err  error // why the client did not send all of it
}

// bodyKey is that of the body of a request that is handed on as it is.
type bodyKey struct{}

func (b *body) Read(p []byte) (int, error) {
	b.move(b.before)
	n, err := b.ReadCloser.Read(p)
	switch err {
	case nil:
	case io.EOF:
		b.move(b.complete)
	default:
		b.mu.Lock()
		defer b.mu.Unlock()
		b.err = err
	}
	return n, err
}

func (b *body) move(deadline func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.left {
		deadline()
	}
}

// failure returns why the client did not send all of it, nil if it did.
func (b *body) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// leave says that the request is over.
func (b *body) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = true
}

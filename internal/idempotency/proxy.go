package idempotency

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/lease"
	"github.com/hookonce/hookonce/internal/loglimit"
	"github.com/hookonce/hookonce/internal/problem"
)

// newProxy forwards requests to the service. Answers are handed on as they come; copies of them are made
// elsewhere.
func newProxy(s Service, log *slog.Logger) http.Handler {
	own := refuser{s, log}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(s.URL)
			if r.In.URL.Path == "" { // nothing is added, not even a slash, which is another path to many services
				r.Out.URL.Path, r.Out.URL.RawPath = s.URL.Path, s.URL.RawPath
			}
			r.Out.URL.RawQuery = r.In.URL.RawQuery // as the client wrote it
			r.Out.Host = s.URL.Host
			r.Out.Trailer = nil
			strip(r.Out.Header)
			upgrade(r.Out)
			forwarded(r, s.TrustedProxies)
			sentOnce(r.Out.Header, r.In.Header)
		},
		Transport: s.Transport,
		ModifyResponse: func(res *http.Response) error {
			switch {
			case res.StatusCode != http.StatusSwitchingProtocols:
				res.Body = &answerBody{ReadCloser: res.Body, broken: func(n int64, err error) { brokeOff(s, log, res, n, err) }}
			case !switched(res):
				return errSwitched
			}
			visitOf(res.Request.Context()).answered = res.StatusCode
			return nil
		},
		ErrorLog: loglimit.Std(log, slog.LevelDebug, "an answer was not handed on", "source", s.Name),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if p := unsent(r.Context()); p != nil {
				own.refuse(w, r, p, slog.LevelDebug, "the client did not send all of its request, or left before the answer", slog.Any("error", err))
				return
			}
			what := cmp.Or(lostClaim(r.Context()), "the service did not answer")
			own.refuse(w, r, unanswered(r.Context(), err), slog.LevelWarn, what, slog.Any("error", err))
		},
	}
}

// unsent returns the problem that the client of a request that is handed on as it is broke it off, nil if it did not. The
// service is not to blame for that. What is claimed outlives its client.
func unsent(ctx context.Context) *problem.Details {
	if _, claimed := hookonce.RefFrom(ctx); claimed {
		return nil
	}
	if b, ok := ctx.Value(bodyKey{}).(*body); ok {
		switch err := b.failure(); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return tooSlow
		case err != nil:
			return truncated
		}
	}
	if ctx.Err() != nil {
		return unreachable // which nobody reads
	}
	return nil
}

// answerBody is the body of the service's answer. It says how much came where that is not all of it.
type answerBody struct {
	io.ReadCloser
	n      int64
	broken func(n int64, err error)
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	if err != nil && err != io.EOF {
		b.broken(b.n, err)
	}
	return n, err
}

// brokeOff logs that res ended after n bytes of its body because of err. A client that hung up is no fault of the service.
func brokeOff(s Service, log *slog.Logger, res *http.Response, n int64, err error) {
	ctx := res.Request.Context()
	rests := context.Cause(ctx) == errRests
	if errors.Is(err, context.Canceled) && !rests {
		return
	}
	seen := "the answer up to there, and its connection was cut"
	if _, claimed := hookonce.RefFrom(ctx); claimed {
		seen = "nothing, and its connection was cut; a copy of the request has the service asked again"
	}
	what := "the service broke off in the middle of its answer; its own log may say why"
	switch lost := lostClaim(ctx); {
	case lost != "":
		what = lost
	case rests:
		err, what = errRests, "an answer was ended because it had rested for too long; a service whose streams may rest sends something now and then, such as a comment"
	case unanswered(ctx, err) == timedOut:
		what = "the service did not end its answer in time; if it needs longer, raise the deadline of the source"
	}
	log.WarnContext(ctx, what, "source", s.Name, "status", res.StatusCode, "bytes", n, "error", err, "client_got", seen)
}

// forwarded says who sent the request, on the word of the proxy that it came through if that is trusted.
func forwarded(r *httputil.ProxyRequest, trusted []netip.Prefix) {
	peer, err := netip.ParseAddrPort(r.In.RemoteAddr)
	from := peer.Addr().Unmap().WithZone("")
	if err != nil || !slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(from) }) {
		r.SetXForwarded()
		return
	}
	r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	r.SetXForwarded()
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
		if said, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = said
		}
	}
}

// sentOnce hands on the client's key, with its name in small letters, which mean the same to the service. A
// request with a key that net/http knows is one that it sends again by itself when a kept connection breaks:
// the service might carry it out twice although the client has asked once.
func sentOnce(out, in http.Header) {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if key, ok := in[name]; ok {
			delete(out, name)
			out[strings.ToLower(name)] = key
		}
	}
}

// climbs reports whether a path has segments that some servers take for a way up, past the path that the
// service was given.
func climbs(path string) bool {
	for segment := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		segment, _, _ = strings.Cut(segment, ";") // parameters, which some take off first
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// unanswered returns the problem that there is no answer of the service because of err. None of this is
// kept: whether the service did anything is not known, and a copy asks it again.
func unanswered(ctx context.Context, err error) *problem.Details {
	var timeout net.Error
	if lostClaim(ctx) == "" && (errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()) {
		return timedOut
	}
	return unreachable
}

// lostClaim says in words that the work under ctx was ended because its claim could not be extended, for which the service is not
// to blame. It is empty where that is not so. The error of the store may be a timeout of its own.
func lostClaim(ctx context.Context) string {
	var lost *lease.LostError
	switch cause := context.Cause(ctx); {
	case !errors.As(cause, &lost):
		return ""
	case errors.Is(cause, hookonce.ErrStale), errors.Is(cause, hookonce.ErrNotFound):
		return "the claim of the request was taken while the service was at work: somebody gave it back, or this process stood still for too long"
	}
	return "the claim of the request was lost while the service was at work: see whether the store answers"
}

// errSwitched says that the service speaks another protocol than it was asked to.
var errSwitched = errors.New("the service switched to another protocol than it was asked to")

// switched reports whether an answer switches to the protocol that was asked for. The proxy would refuse another one as well, and leave
// its connection open.
func switched(res *http.Response) bool {
	asked := res.Request.Header.Get("Upgrade")
	return asked != "" && strings.EqualFold(asked, res.Header.Get("Upgrade"))
}

// upgrade lets a request that is handed on ask for a WebSocket, and for no other protocol.
func upgrade(out *http.Request) {
	if out.Method != http.MethodGet || !strings.EqualFold(out.Header.Get("Upgrade"), "websocket") {
		header.DropUpgrade(out.Header)
	}
}

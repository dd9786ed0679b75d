package idempotency

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/problem"
)

// How the gateway answers where the library has no part in it.
var (
	outside     = problem.Path.New("the path leads out of the service")
	tooSlow     = problem.BodyTooSlow.New("the body did not arrive in time")
	truncated   = problem.BodyTruncated.New("the body ended before it was complete")
	timedOut    = unknown(problem.ServiceTimeout, "the service did not answer in time; send the request again with the same key")
	unreachable = unknown(problem.ServiceUnreachable, "the service could not be reached, or broke off; send the request again with the same key")
)

// unknown returns a problem of a request that the service may have carried out.
func unknown(typ *problem.Type, detail string) *problem.Details {
	p := typ.New(detail)
	p.Unknown = true
	return p
}

// retryAfter is how long a client is asked to wait for a service that failed.
const retryAfter = 5 * time.Second

// refuser answers in place of a service.
type refuser struct {
	Service
	log *slog.Logger
}

// refuse answers r with p, as the library would, and logs what it is and why, under the name that the client is told.
func (s refuser) refuse(w http.ResponseWriter, r *http.Request, p *problem.Details, level slog.Level, what string, why ...slog.Attr) {
	keys := keysOf(r.Header)
	own := p.Of(header.SafeMethod(r.Method) || len(keys) > 0)
	if len(keys) == 1 && len(keys[0]) <= 2*hookonce.DefaultMaxKey+2 {
		own.Key = keys[0]
	}
	own.Documentation = p.Type.Page(cmp.Or(s.Documentation, hookonce.DefaultDocumentation))
	if *own.Retryable {
		own.RetryAfter = retryAfter
	}
	s.log.LogAttrs(r.Context(), level, what, append([]slog.Attr{slog.String("source", s.Name), slog.String("instance", own.Instance)}, why...)...)
	own.Write(w)
}

// keysOf returns the keys as the client sent them, in the header of its request or in that of the one that is forwarded:
// see sentOnce.
func keysOf(h http.Header) []string {
	if keys, ok := h[header.IdempotencyKey]; ok {
		return keys
	}
	return h[strings.ToLower(header.IdempotencyKey)]
}

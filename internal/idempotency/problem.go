package idempotency

import (
	"cmp"
	"net/http"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/problem"
)

// How the gateway answers where the library has no part in it.
var (
	outside     = problem.Path.New("the path leads out of the service")
	timedOut    = problem.ServiceTimeout.New("the service did not answer in time; send the request again with the same key")
	unreachable = problem.ServiceUnreachable.New("the service could not be reached, or broke off; send the request again with the same key")
)

// retryAfter is how long a client is asked to wait for a service that failed.
const retryAfter = 5 * time.Second

// refuse answers r with p, as the library would.
func refuse(w http.ResponseWriter, r *http.Request, s Service, p *problem.Details) {
	own, retryable := *p, p.Type.Retryable()
	own.Instance, own.Retryable, own.Key = problem.Occurrence(), &retryable, keyOf(r.Header)
	own.Documentation = p.Type.Page(cmp.Or(s.Documentation, hookonce.DefaultDocumentation))
	if retryable {
		own.RetryAfter = retryAfter
	}
	own.Write(w)
}

// keyOf returns the key as the client sent it, in the header of its request or in that of the one that is forwarded:
// see sentOnce.
func keyOf(h http.Header) string {
	for _, name := range []string{"Idempotency-Key", "idempotency-key"} {
		if lines := h[name]; len(lines) == 1 && len(lines[0]) <= 2*hookonce.DefaultMaxKey+2 {
			return lines[0]
		}
	}
	return ""
}

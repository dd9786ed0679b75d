package idempotency

import (
	"cmp"
	"net/http"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/problem"
)

// fault is a type of problem that the gateway answers with where the library has no part in it.
type fault struct {
	status    int
	retryable bool // the same request may be sent again under the same key
	detail    string
}

// faults has all of them. The page of [hookonce.DefaultDocumentation] has a section of that name for each.
var faults = map[string]fault{
	"ambiguous-header":    {http.StatusBadRequest, false, "it is doubtful whether the service would see the headers by which requests are told apart"},
	"path":                {http.StatusNotFound, false, "the path leads out of the service"},
	"service-timeout":     {http.StatusGatewayTimeout, true, "the service did not answer in time; send the request again with the same key"},
	"service-unreachable": {http.StatusBadGateway, true, "the service could not be reached, or broke off; send the request again with the same key"},
}

// refuse answers r with the problem of a fault, in the form of those of the library. The detail is that of the fault, if it
// is empty.
func refuse(w http.ResponseWriter, r *http.Request, s Service, name, detail string) {
	f := faults[name]
	d := problem.Details{
		Status: f.status, Type: name, Detail: cmp.Or(detail, f.detail), Instance: problem.Occurrence(), Retryable: &f.retryable, Key: keyOf(r.Header),
		Documentation: problem.Page(cmp.Or(s.Documentation, hookonce.DefaultDocumentation), name),
	}
	if f.retryable {
		d.RetryAfter = retryAfter
	}
	d.Write(w)
}

// retryAfter is how long a client is asked to wait for a service that failed.
const retryAfter = 5 * time.Second

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

package idempotency

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/hookonce/hookonce"
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

// problem answers r with a problem document of RFC 9457, in the form of those of the library. The detail is that of the
// fault, if it is empty.
func problem(w http.ResponseWriter, r *http.Request, s Service, name, detail string) {
	f := faults[name]
	page := cmp.Or(s.Documentation, hookonce.DefaultDocumentation)
	if !strings.Contains(page, "#") {
		page += "#" + name
	}
	body, err := json.Marshal(struct {
		Type          string `json:"type"`
		Title         string `json:"title"`
		Status        int    `json:"status"`
		Detail        string `json:"detail"`
		Instance      string `json:"instance"`
		Retryable     bool   `json:"retryable"`
		Key           string `json:"key,omitempty"`
		Documentation string `json:"documentation"`
	}{"urn:hookonce:problem:" + name, http.StatusText(f.status), f.status, cmp.Or(detail, f.detail), "urn:hookonce:occurrence:" + rand.Text(), f.retryable, keyOf(r.Header), page})
	if err != nil {
		panic(err) // strings, a number and a truth value always encode
	}
	w.Header().Add("Link", "<"+page+`>; rel="describedby"; type="text/html"`)
	if f.retryable {
		w.Header().Set("Retry-After", "5")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(f.status)
	_, _ = w.Write(body) // the client may be gone
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

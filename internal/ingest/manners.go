package ingest

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/hookonce/hookonce"
)

// manners is how a provider wants to be talked to, where it differs from others.
type manners struct {
	greets               func(method string) bool
	allow                string // the methods that are answered, for the header Allow
	unverified, notReady int    // statuses; zero: the usual ones
}

// mannersOf returns the manners of p; nil has none of its own.
func mannersOf(p hookonce.Provider) manners {
	m := manners{greets: func(string) bool { return false }}
	if g, ok := p.(hookonce.Greeter); ok {
		m.greets = g.Greets
	}
	if r, ok := p.(hookonce.Refuser); ok {
		m.unverified, m.notReady = r.Refusals()
	}
	methods := []string{http.MethodPost}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut} {
		if m.greets(method) {
			methods = append(methods, method)
		}
	}
	m.allow = strings.Join(methods, ", ")
	return m
}

// status is that of the problem in the way that the provider understands. A rejection may have one of
// its own. A provider that is to see no 4xx sees none for a body that could not be taken either.
func (m manners) status(p *problem, err error) int {
	var reject *hookonce.RejectError
	switch {
	case p.retryAfter != "":
		return cmp.Or(m.notReady, p.status)
	case errors.As(err, &reject):
		return cmp.Or(reject.Status, m.unverified, p.status)
	case m.unverified >= 500 && p != errMethod:
		return m.unverified
	}
	return p.status
}

package hookonce

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/hookonce/hookonce/internal/problem"
)

// manners is how a provider wants to be talked to, where it differs from others.
type manners struct {
	greets             func(method string) bool
	allow              string // the methods that are answered, for the header Allow
	rejected, notReady int    // statuses
}

func mannersOf(p Provider) manners {
	m := manners{greets: func(string) bool { return false }}
	if g, ok := p.(Greeter); ok {
		m.greets = g.Greets
	}
	if r, ok := p.(Refuser); ok {
		m.rejected, m.notReady = r.Refusals()
	}
	m.rejected = cmp.Or(m.rejected, http.StatusUnauthorized)
	m.notReady = cmp.Or(m.notReady, http.StatusServiceUnavailable)
	methods := []string{http.MethodPost}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut} {
		if m.greets(method) {
			methods = append(methods, method)
		}
	}
	m.allow = strings.Join(methods, ", ")
	return m
}

// refuse answers with p, in the way that the provider understands.
func (m manners) refuse(w http.ResponseWriter, p *problem.Details) {
	switch p.Status {
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", m.allow)
	case http.StatusServiceUnavailable:
		p.Status = m.notReady
	case http.StatusRequestEntityTooLarge, http.StatusBadRequest, http.StatusRequestTimeout:
		if m.rejected >= 500 { // this sender is to see no 4xx
			p.Status, p.RetryAfter = m.rejected, defaultRetry
		}
	}
	p.Write(w)
}

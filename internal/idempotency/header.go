package idempotency

import (
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
)

// decisive are the headers by which requests are told apart: those of the scope and of the fingerprint, and the key.
// Each has its folded name, and the one under which net/http has it.
type decisive map[string]string

func newDecisive(s Service) decisive {
	names := append([]string{"Idempotency-Key"}, scopeNames(s.Scope)...)
	if s.Fingerprint == nil {
		names = append(names, "Content-Type")
	}
	d := decisive{}
	for _, name := range append(names, s.Fingerprint...) {
		d[header.Fold(name)] = textproto.CanonicalMIMEHeaderKey(name)
	}
	return d
}

// check returns an error that names a header of which it is doubtful that the service sees what is looked at here:
// because the request asks for it to be taken off on the way (RFC 9110, section 7.6.1), has it again in a spelling
// that is the same to some applications, or announces it for behind the body.
func (d decisive) check(r *http.Request) error {
	for name := range r.Header {
		if own, ok := d.find(name); ok && name != own {
			return fmt.Errorf("the header %s is the same as %s to some applications; send only the latter", name, own)
		}
	}
	for option := range header.OfConnection(r.Header) {
		if own, ok := d.find(option); ok {
			return fmt.Errorf("the header Connection names %s, which would be removed on the way, and the service has to see it; leave it out there", own)
		}
	}
	for name := range r.Trailer {
		if own, ok := d.find(name); ok {
			return fmt.Errorf("the header %s is announced as a trailer, which follows the body; send it in front of the body alone", own)
		}
	}
	return nil
}

// find returns the name of the decisive header that name is, or is a twin of.
func (d decisive) find(name string) (string, bool) {
	own, ok := d[header.Fold(name)]
	return own, ok
}

// scopeNames returns the names of the headers that parts of a scope name. They are a set: neither their order nor their
// spelling in the configuration is in the keys that are stored.
func scopeNames(parts []string) []string {
	names := make([]string, 0, len(parts))
	for _, part := range parts {
		names = append(names, textproto.CanonicalMIMEHeaderKey(strings.TrimPrefix(part, "header:")))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// scopeOption says whose request one is, by the names of headers.
func scopeOption(names []string) hookonce.KeyOption {
	if len(names) == 0 {
		return hookonce.WithoutScope()
	}
	return hookonce.WithScope(func(r *http.Request) (string, error) { return scopeOf(r.Header, names) })
}

// scopeOf returns the values of the headers, so joined that no two lists of values look alike. A field that
// is there twice is as unknown as one that is not: the service might take the other one.
func scopeOf(h http.Header, names []string) (string, error) {
	values := make([]string, 0, len(names)+1)
	for _, name := range names {
		lines := h.Values(name)
		if len(lines) != 1 || lines[0] == "" {
			return "", fmt.Errorf("the header %s is there %d times", name, len(lines))
		}
		values = append(values, lines[0])
	}
	return hookonce.JoinKey(append(values, "end")...), nil
}

// strip takes off what a client has no right to say: anything in the name of hookonce, and, in a spelling that the
// proxy does not know, who sent the request.
func strip(h http.Header) {
	for name := range h {
		if header.Own(name) || header.Forwarded(name) && name != textproto.CanonicalMIMEHeaderKey(header.Fold(name)) {
			delete(h, name)
		}
	}
}

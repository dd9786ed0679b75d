package ingest

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// allowlist knows which addresses requests may come from, and whose word about them is taken.
type allowlist struct {
	allow   []netip.Prefix // none: all
	trusted []netip.Prefix // proxies
}

// check returns an error unless the request comes from an address that is allowed.
func (l allowlist) check(r *http.Request) error {
	if len(l.allow) == 0 {
		return nil
	}
	from, ok := l.sender(r)
	switch {
	case !ok:
		return fmt.Errorf("%w: no address can be read from %q and X-Forwarded-For", errNotAllowed, r.RemoteAddr)
	case !within(l.allow, from):
		return fmt.Errorf("%w: %s", errNotAllowed, from)
	}
	return nil
}

// sender returns the address that a request comes from: that of the connection or, if a trusted proxy
// is at its other end, the last one in X-Forwarded-For that is no trusted proxy as well. What stands
// before that one was written by somebody who is not trusted. There is none if the header is damaged.
func (l allowlist) sender(r *http.Request) (netip.Addr, bool) {
	at, ok := parseHop(r.RemoteAddr)
	if !ok {
		return at, false
	}
	for _, line := range slices.Backward(r.Header["X-Forwarded-For"]) {
		hops := strings.Split(line, ",")
		for _, hop := range slices.Backward(hops) {
			if !within(l.trusted, at) {
				return at, true
			}
			if at, ok = parseHop(strings.TrimSpace(hop)); !ok {
				return at, false
			}
		}
	}
	return at, true
}

// address returns the address that a request comes from, that of the connection if X-Forwarded-For is damaged, and none if
// that cannot be told either.
func (l allowlist) address(r *http.Request) netip.Addr {
	if a, ok := l.sender(r); ok {
		return a
	}
	a, _ := parseHop(r.RemoteAddr)
	return a
}

// SenderOf returns a function that tells the address that a request comes from, on the word of proxies in the trusted
// networks; that of the connection if what they say is damaged, and none if that cannot be told either.
func SenderOf(trusted []netip.Prefix) func(*http.Request) netip.Addr {
	return allowlist{trusted: trusted}.address
}

// from returns the address that a request comes from for people, that of the connection if X-Forwarded-For
// is damaged.
func (l allowlist) from(r *http.Request) string {
	if a, ok := l.sender(r); ok {
		return a.String()
	}
	return r.RemoteAddr
}

// parseHop reads an address, which some proxies and every connection write with a port.
func parseHop(text string) (netip.Addr, bool) {
	if strings.HasPrefix(text, "[") || strings.Count(text, ":") == 1 {
		ap, err := netip.ParseAddrPort(text)
		return ap.Addr().Unmap().WithZone(""), err == nil
	}
	a, err := netip.ParseAddr(text)
	return a.Unmap().WithZone(""), err == nil
}

func within(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) })
}

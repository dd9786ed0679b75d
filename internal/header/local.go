package header

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// LoopbackHost reports whether a Host field names this machine in a way that no name server decides: localhost, or an address of
// the loopback network, with a port or without.
func LoopbackHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// proxies are the fields that proxies add to what they pass on, beside those that begin with X-Forwarded.
var proxies = []string{"Cf-Connecting-Ip", "Forwarded", "True-Client-Ip", "Via", "X-Real-Ip"}

// Proxied reports whether a proxy passed a request on, as far as that shows: the address of its connection is then the proxy's.
// It shows by fields, whatever they say of the sender, and by HTTP/1.0, in which nginx before 1.29.7 asks unless it is told
// otherwise, with no such field, and no browser and no client of ours. A proxy that adds nothing to HTTP/1.1 shows by nothing.
func Proxied(r *http.Request) bool {
	if !r.ProtoAtLeast(1, 1) {
		return true
	}
	for name := range r.Header {
		if slices.Contains(proxies, name) || strings.HasPrefix(name, "X-Forwarded") {
			return true
		}
	}
	return false
}

package deliver

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/retry"
)

// dialer connects to an address.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// newTransport returns a transport of a destination that can keep one connection open for every attempt
// that may be under way. It knows no proxy and no cookies, and leaves the encoding of answers alone,
// of which little is read. If dial is nil it connects over TCP, to what the policy allows.
func newTransport(p AddressPolicy, settings *tls.Config, concurrency int, dial dialer) *http.Transport {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second, Control: p.control}).DialContext
	}
	return &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        settings.Clone(),
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    concurrency,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		HTTP2:                  outgoing.Pings(),
	}
}

// serviceConns is how many idle connections are kept to a service whose answers are passed on.
const serviceConns = 64

// NewTransport returns a transport for requests that are no deliveries, to the addresses that the policy
// allows. It speaks HTTP/1: over HTTP/2 net/http sends a request again whose stream the other side reset, for as long as
// its time lasts, whatever its method and although somebody may have read it. What else is to be otherwise, fit sets.
func NewTransport(p AddressPolicy, fit ...func(*http.Transport)) *outgoing.Transport {
	return outgoing.NewTransport(func() *http.Transport {
		t := newTransport(p, nil, serviceConns, nil)
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(true)
		for _, f := range fit {
			f(t)
		}
		return t
	})
}

// AddressPolicy says which addresses may be connected to. It is asked about every address that a
// connection is attempted to, after the name was resolved, so that no name leads around it.
type AddressPolicy struct {
	// DenyPrivate refuses every address that is not on the public internet: loopback, private,
	// link-local (where clouds have their metadata), shared, multicast and reserved ones.
	DenyPrivate bool
	// Ports are those that may be connected to. None: all.
	Ports []uint16
}

// control is called by the dialer with the address that it is about to connect to.
func (p AddressPolicy) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if reason := p.refuses(to); reason != "" {
		return &retry.Fault{Kind: retry.Address, Text: fmt.Sprintf("%v is not allowed: %s", to, reason)}
	}
	return nil
}

// refuses returns why the address may not be connected to, or nothing.
func (p AddressPolicy) refuses(to netip.AddrPort) string {
	switch {
	case p.DenyPrivate && !public(to.Addr()):
		return "not a public address"
	case len(p.Ports) > 0 && !slices.Contains(p.Ports, to.Port()):
		return "not one of the ports"
	}
	return ""
}

// notPublic are the ranges of IANA's registries of special-purpose addresses that net/netip has no
// question for.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // shared by a carrier's customers
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, and broadcast
	netip.MustParsePrefix("64:ff9b:1::/48"),  // local translation to IPv4
	netip.MustParsePrefix("100::/64"),        // discarded
	netip.MustParsePrefix("2001::/23"),       // protocol assignments, Teredo
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("3fff::/20"),       // documentation
	netip.MustParsePrefix("5f00::/16"),       // segment routing
	netip.MustParsePrefix("fec0::/10"),       // site-local of old
}

// public reports whether an address is one of the internet's.
func public(a netip.Addr) bool {
	a = carried(a.Unmap().WithZone(""))
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	return !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(a) })
}

var (
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
	sixToIV = netip.MustParsePrefix("2002::/16")
	compat  = netip.MustParsePrefix("::/96")
)

// carried returns the IPv4 address that an IPv6 address stands for, or a itself.
func carried(a netip.Addr) netip.Addr {
	b := a.As16()
	switch {
	case !a.Is6():
		return a
	case nat64.Contains(a), compat.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:]))
	case sixToIV.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:]))
	}
	return a
}

// closeIdle leaves the connections of a transport behind.
func closeIdle(t http.RoundTripper) {
	if c, ok := t.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

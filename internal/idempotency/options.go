package idempotency

import (
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/hookonce/hookonce"
)

// Service is one HTTP service, and how its clients are treated.
type Service struct {
	// Name is the name of its source.
	Name string
	// URL is where the service is. The path of a request, below that of the source, is added to its path.
	URL *url.URL
	// Transport makes the connections to it.
	Transport http.RoundTripper
	// TrustedProxies are the networks whose X-Forwarded headers are passed on.
	TrustedProxies []netip.Prefix
	// Scope names what tells one caller from another, each in the form header:NAME, in any order. A request without
	// one of them is refused. None: all callers share their keys.
	Scope []string
	// Fingerprint names the header fields in which copies must agree. Nil: Content-Type.
	Fingerprint []string
	// StrictKey takes keys only in quotes, and OptionalKey takes requests without one, which are forwarded
	// as they are.
	StrictKey, OptionalKey bool
	// MaxBody and MaxAnswer are the largest request and answer, in bytes.
	MaxBody   int64
	MaxAnswer int
	// Timeout is how long the service may take, Wait how long a copy waits for the first request's answer,
	// and Lease after how long another process takes over from one that died.
	Timeout, Wait, Lease time.Duration
	// NewKeys is how many new keys one caller, and the callers of one address, may leave behind in an hour
	// without a success.
	NewKeys int
	// Documentation is where clients read about their faults. Empty: the page of this project.
	Documentation string
}

// Options are what all services have in common.
type Options struct {
	// Store keeps the claims and the answers.
	Store hookonce.ResponseStore
	// Sender tells the address that a request comes from. Nil: that of its connection.
	Sender func(*http.Request) netip.Addr
	// Metrics counts what became of the requests.
	Metrics *Metrics
	// Logger receives rejected requests and failures, never a body, a credential or a scope.
	Logger *slog.Logger
	// Now is the clock.
	Now func() time.Time
}

// sender returns the address that a request comes from, the zero value if it is not known.
func (o Options) sender(r *http.Request) netip.Addr {
	if o.Sender != nil {
		return o.Sender(r)
	}
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	return from.Addr().Unmap().WithZone("")
}

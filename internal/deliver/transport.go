package deliver

import (
	"net"
	"net/http"
	"time"
)

// newTransport returns a transport of a destination that can keep one connection open for every attempt
// that may be under way. It knows no proxy and no cookies, and leaves the encoding of answers alone,
// of which little is read.
func newTransport(s Destination, concurrency int) *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second, Control: s.Policy.control}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        s.TLS.Clone(),
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    concurrency,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		// All attempts share one connection in HTTP/2. One that went silent must not take them all along.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
	}
}

// serviceConns is how many idle connections are kept to a service whose answers are passed on.
const serviceConns = 64

// NewTransport returns a transport for requests that are no deliveries, to the addresses that the policy
// allows.
func NewTransport(p AddressPolicy) *http.Transport {
	return newTransport(Destination{Policy: p}, serviceConns)
}

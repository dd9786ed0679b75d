package outgoing

import (
	"net/http"
	"time"
)

// Pings are for the connections of HTTP/2, one of which carries all requests to an address. One
// that went silent, because a balancer forgot it, say, must not take them all along until the
// system gives it up.
func Pings() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second}
}

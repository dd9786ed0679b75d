package outgoing

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"
)

// Pings are for the connections of HTTP/2, one of which carries all requests to an address. One
// that went silent, because a balancer forgot it, say, must not take them all along until the
// system gives it up.
func Pings() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second}
}

// MaxRepeats is how often one request is sent again: see [LimitRepeats].
const MaxRepeats = 2

// LimitRepeats bounds how often net/http sends a request again by itself, which it does each time
// that a kept connection is closed before the answer begins. Whether the other side closed it
// before the request came or died of that, does not show: a request that ends a process would end
// all of them at once, one for each kept connection. The last time it is over a new connection,
// because where the other side went away all that are kept are as good as closed; closeIdle closes
// those, but for one that another request gives back in that moment. What would be sent more often
// ends with [io.ErrUnexpectedEOF]; without a body that cannot be, and the new connection is the
// bound. Over HTTP/2 all requests share a connection, and one is sent again that
// was refused before anybody read it: that is left to net/http.
func LimitRepeats(r *http.Request, closeIdle func()) *http.Request {
	body, shared, sent, repeats := r.GetBody, false, 0, 0
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		secure, is := c.Conn.(*tls.Conn)
		if shared = is && secure.ConnectionState().NegotiatedProtocol == "h2"; shared {
			return
		}
		if sent++; sent >= MaxRepeats {
			closeIdle()
		}
	}}))
	if body != nil {
		r.GetBody = func() (io.ReadCloser, error) {
			if repeats++; repeats > MaxRepeats && !shared {
				return nil, io.ErrUnexpectedEOF
			}
			return body()
		}
	}
	return r
}

package outgoing

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// Pings are for the connections of HTTP/2, one of which carries all requests to an address. One
// that went silent, because a balancer forgot it, say, must not take them all along until the
// system gives it up.
func Pings() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second}
}

// MaxRepeats is how often one request is sent again: see [Send].
const MaxRepeats = 2

// Send sends a request with a client or a transport of package net/http, whose idle connections closeIdle closes.
//
// It bounds how often net/http sends the request again by itself, which that does each time
// that a kept connection is closed before the answer begins. Whether the other side closed it
// before the request came or died of that, does not show: a request that ends a process would end
// all of them at once, one for each kept connection. The last time it is over a new connection,
// because where the other side went away all that are kept are as good as closed; closeIdle closes
// those, but for one that another request gives back in that moment. What would be sent more often
// ends with [io.ErrUnexpectedEOF]; without a body that cannot be, and the new connection is the
// bound. Over HTTP/2 all requests share a connection, and one is sent again that
// was refused before anybody read it: that is left to net/http.
//
// Where the time of the request ends before there was any connection, the error is that of dialling, as it is where
// the time for that ends first. From net/http alone it does not show: it is the one of an answer that does not come.
func Send(r *http.Request, send func(*http.Request) (*http.Response, error), closeIdle func()) (*http.Response, error) {
	body, shared, sent, repeats := r.GetBody, false, 0, 0
	var dialling, connected atomic.Bool // a connection is made in a goroutine of its own
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GetConn:           func(string) { dialling.Store(true) },
		TLSHandshakeStart: func() { dialling.Store(false) },
		GotConn: func(c httptrace.GotConnInfo) {
			connected.Store(true)
			secure, is := c.Conn.(*tls.Conn)
			if shared = is && secure.ConnectionState().NegotiatedProtocol == "h2"; shared {
				return
			}
			if sent++; sent >= MaxRepeats {
				closeIdle()
			}
		},
	}))
	if body != nil {
		r.GetBody = func() (io.ReadCloser, error) {
			if repeats++; repeats > MaxRepeats && !shared {
				return nil, io.ErrUnexpectedEOF
			}
			return body()
		}
	}
	answer, err := send(r)
	if dialling.Load() && !connected.Load() && errors.Is(err, context.DeadlineExceeded) {
		err = &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	return answer, err
}

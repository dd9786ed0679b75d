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
// that a kept connection is closed before the answer begins, and each time that a stream of HTTP/2 is
// refused or reset. Whether the other side did that before the request came or died of it, does not show: a request that ends
// a process would end all of them at once, one for each connection. Over HTTP/1 the last time is over a new connection,
// because where the other side went away all that are kept are as good as closed; closeIdle closes
// those, but for one that another request gives back meanwhile. What would be sent more often ends with
// [io.ErrUnexpectedEOF].
//
// The context of the request must end when its answer was read: what bounds it lasts until then.
//
// Where the time of the request ends before there was any connection, the error is that of dialling, as it is where
// the time for that ends first. From net/http alone it does not show: it is the one of an answer that does not come.
func Send(r *http.Request, send func(*http.Request) (*http.Response, error), closeIdle func()) (*http.Response, error) {
	body, shared, sent, repeats := r.GetBody, false, 0, 0
	var dialling, connected atomic.Bool // a connection is made in a goroutine of its own
	ctx, enough := context.WithCancelCause(r.Context())
	r = r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:           func(string) { dialling.Store(true) },
		TLSHandshakeStart: func() { dialling.Store(false) },
		GotConn: func(c httptrace.GotConnInfo) {
			connected.Store(true)
			sent++
			secure, is := c.Conn.(*tls.Conn)
			shared = is && secure.ConnectionState().NegotiatedProtocol == "h2"
			switch {
			case sent > 1+MaxRepeats:
				enough(io.ErrUnexpectedEOF)
				if !shared { // HTTP/1 writes before it looks at the context
					_ = c.Conn.Close()
				}
			case !shared && sent >= MaxRepeats:
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
	if err != nil && errors.Is(context.Cause(ctx), io.ErrUnexpectedEOF) {
		err = io.ErrUnexpectedEOF
	}
	if dialling.Load() && !connected.Load() && errors.Is(err, context.DeadlineExceeded) {
		err = &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	return answer, err
}

package outgoing_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/outgoing"
)

// Where the time of a request ends, its error says whether there was a connection: nobody there is another trouble than
// nobody who answers.
func TestSend_deadline(t *testing.T) {
	silent := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	for name, c := range map[string]struct {
		scheme string
		hosts  []func(net.Conn) // who is there, one connection after the other; then a dial gets no answer
		dial   bool             // the error is that of dialling
	}{
		"nobody is there":                     {scheme: "http", dial: true},
		"nobody is there, over TLS":           {scheme: "https", dial: true},
		"no answer to a handshake":            {scheme: "https", hosts: []func(net.Conn){silent}},
		"no answer":                           {scheme: "http", hosts: []func(net.Conn){silent}},
		"a kept connection ends, and no more": {scheme: "http", hosts: []func(net.Conn){answersOnce(t)}}, // it had the request
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hosts := c.hosts
				transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					if len(hosts) == 0 {
						<-time.After(time.Minute)
						return nil, errors.New("nobody is there")
					}
					near, far := net.Pipe()
					t.Cleanup(func() { _ = far.Close() })
					go hosts[0](far)
					hosts = hosts[1:]
					return near, nil
				}}
				defer transport.CloseIdleConnections()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := error(nil)
				for err == nil {
					var r *http.Request
					if r, err = http.NewRequestWithContext(ctx, http.MethodPost, c.scheme+"://app.invalid/", strings.NewReader("{}")); err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Idempotency-Key", "evt_1")
					var answer *http.Response
					if answer, err = outgoing.Send(r, transport.RoundTrip, transport.CloseIdleConnections); err == nil {
						_ = answer.Body.Close()
					}
				}
				op, is := errors.AsType[*net.OpError](err)
				if !errors.Is(err, context.DeadlineExceeded) || (is && op.Op == "dial") != c.dial {
					t.Errorf("%v, want that of dialling: %t", err, c.dial)
				}
				<-time.After(time.Minute) // the dial goes on without its request
			})
		})
	}
}

// answersOnce answers the first request over a connection and ends that with the second.
func answersOnce(t *testing.T) func(net.Conn) {
	return func(c net.Conn) {
		requests := bufio.NewReader(c)
		for i := range 2 {
			r, err := http.ReadRequest(requests)
			if err != nil {
				t.Error(err)
				break
			}
			_, _ = io.Copy(io.Discard, r.Body)
			if i == 0 {
				_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
			}
		}
		_ = c.Close()
	}
}

package outgoing_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/hookonce/hookonce/internal/outgoing"
)

// An application that dies of a request may say so with a reset of the stream, after which net/http would send it again for
// as long as its time lasts.
func TestSend_resetStreams(t *testing.T) {
	for name, code := range map[string]http2.ErrCode{"refused": http2.ErrCodeRefusedStream, "broken": http2.ErrCodeProtocol} {
		for _, body := range []string{"{}", ""} {
			t.Run(name+body, func(t *testing.T) {
				var came atomic.Int64
				server := httptest.NewUnstartedServer(nil)
				server.TLS = &tls.Config{NextProtos: []string{"h2"}}
				server.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
					"h2": func(_ *http.Server, c *tls.Conn, _ http.Handler) { resets(c, code, &came) },
				}
				server.StartTLS()
				defer server.Close()
				transport := server.Client().Transport.(*http.Transport)
				transport.ForceAttemptHTTP2 = true
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				answer, err := outgoing.Send(r, transport.RoundTrip, transport.CloseIdleConnections)
				if err == nil {
					_ = answer.Body.Close()
				}
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("it ends with %v", err)
				}
				if n := came.Load(); n != 1+outgoing.MaxRepeats {
					t.Errorf("it came %d times", n)
				}
			})
		}
	}
}

// So it is with HTTP/1, where each kept connection may be closed because of the request: also while others give theirs back,
// so that no new one is made.
func TestSend_keptConnections(t *testing.T) {
	for _, body := range []string{"{}", ""} {
		t.Run("body"+body, func(t *testing.T) {
			const kept = 8
			var warm sync.WaitGroup
			warm.Add(kept)
			var came atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					warm.Done()
					warm.Wait() // so that each has a connection of its own
					return
				}
				came.Add(1)
				panic(http.ErrAbortHandler)
			}))
			defer server.Close()
			transport := &http.Transport{MaxIdleConnsPerHost: kept}
			defer transport.CloseIdleConnections()
			var warmed sync.WaitGroup
			for range kept {
				warmed.Go(func() {
					answer, err := (&http.Client{Transport: transport}).Get(server.URL)
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, answer.Body)
					_ = answer.Body.Close()
				})
			}
			warmed.Wait()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Idempotency-Key", "evt_1")
			answer, err := outgoing.Send(r, transport.RoundTrip, func() {}) // nobody closes what is kept
			if err == nil {
				_ = answer.Body.Close()
			}
			if n := came.Load(); !errors.Is(err, io.ErrUnexpectedEOF) || n != 1+outgoing.MaxRepeats {
				t.Errorf("it came %d times, and ends with %v", n, err)
			}
		})
	}
}

// A request without a body says so: not every application takes one whose length is told at its end.
func TestSend_nothing(t *testing.T) {
	came := make(chan *http.Request, 1)
	for proto, shared := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { came <- r }))
		server.EnableHTTP2 = shared
		server.StartTLS()
		defer server.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		transport := server.Client().Transport.(*http.Transport)
		answer, err := outgoing.Send(r, transport.RoundTrip, transport.CloseIdleConnections)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if r := <-came; r.Proto != proto || r.ContentLength != 0 || r.TransferEncoding != nil || r.Header.Get("Content-Length") != "0" {
			t.Errorf("over %s: %d bytes, %v, %v", r.Proto, r.ContentLength, r.TransferEncoding, r.Header)
		}
	}
}

// resets reads requests of HTTP/2 to their ends, counts them, and resets their streams.
func resets(c net.Conn, code http2.ErrCode, came *atomic.Int64) {
	if _, err := io.CopyN(io.Discard, c, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	err := f.WriteSettings()
	for err == nil {
		var frame http2.Frame
		if frame, err = f.ReadFrame(); err != nil {
			return
		}
		if settings, is := frame.(*http2.SettingsFrame); is && !settings.IsAck() {
			err = f.WriteSettingsAck()
		}
		h := frame.Header()
		if h.StreamID != 0 && h.Flags.Has(http2.FlagDataEndStream) { // the same flag as that of headers
			came.Add(1)
			err = f.WriteRSTStream(h.StreamID, code)
		}
	}
}

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

// What leaves connections behind meanwhile takes no answer away: net/http counts a connection as idle before it hands on an
// answer without a body.
func TestTransport_answers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials, closed atomic.Int64
		transport := outgoing.NewTransport(func() *http.Transport {
			return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
				dials.Add(1)
				near, far := net.Pipe()
				go func() {
					answersAll(far)
					closed.Add(1)
				}()
				return near, nil
			}}
		})
		send := func(idle func(error)) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{PutIdleConn: idle}),
				http.MethodPost, "http://app.invalid/", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := outgoing.Send(r, transport.RoundTrip, transport.CloseIdleConnections)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
		}
		send(nil)
		send(func(error) { // the answer was read and is not handed on yet
			transport.CloseIdleConnections()
			synctest.Wait()
		})
		synctest.Wait()
		if dials.Load() != 1 || closed.Load() != 1 {
			t.Errorf("of %d connections %d were closed", dials.Load(), closed.Load())
		}
		send(nil)
		send(nil)
		transport.CloseIdleConnections()
		synctest.Wait()
		if dials.Load() != 2 || closed.Load() != 2 {
			t.Errorf("of %d connections %d were closed", dials.Load(), closed.Load())
		}
	})
}

// answersAll answers every request over a connection until that is closed.
func answersAll(c net.Conn) {
	requests := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(requests)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
	}
}

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/connlimit"
)

// A connection that is slow or idle is cut, and one that sends too much of a header is told so.
func TestConnectionsAreLimited(t *testing.T) {
	const soon = 20 * time.Millisecond
	const never = time.Hour
	const request = "GET / HTTP/1.1\r\nHost: gw.test\r\n\r\n"
	for _, c := range []struct {
		name   string
		limits limits
		send   string
		want   string // how the last answer begins before the end of the connection; empty: there is none
	}{
		{"no header", limits{header: soon, read: never, idle: never}, "", ""},
		{"part of a header", limits{header: soon, read: never, idle: never}, "GET / HTTP/1.1\r\nHost:", ""},
		{"part of the next header", limits{header: soon, read: never, idle: never}, request + "GET / HTTP", "HTTP/1.1 200"},
		{"idle after a request", limits{header: never, read: never, idle: soon}, request, "HTTP/1.1 200"},
		{"part of a body", limits{header: never, read: soon, idle: never}, "POST / HTTP/1.1\r\nHost: gw.test\r\nContent-Length: 5\r\n\r\nab", "HTTP/1.1 408"},
		{"a large header", limits{header: never, read: never, idle: never, headerBytes: 1 << 10},
			"GET / HTTP/1.1\r\nHost: gw.test\r\nX-Pad: " + strings.Repeat("x", 16<<10) + "\r\n\r\n", "HTTP/1.1 431"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := dialLimited(t, c.limits)
				go io.WriteString(conn, c.send) // which fails if not all of it is read
				answer, err := io.ReadAll(conn)
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("the connection is still open; %q was read", answer)
				}
				if !strings.HasPrefix(string(answer), c.want) || c.want == "" && len(answer) > 0 {
					t.Errorf("answered %q, want %q", answer, c.want)
				}
			})
		})
	}
}

// dialLimited connects to a listener with those limits, whose handler reads the body. The connection is in memory, so
// that a limit of time is one of the bubble's clock.
func dialLimited(t *testing.T, lim limits) net.Conn {
	t.Helper()
	o := Options{}.withDefaults()
	lim.connections.Limits = connlimit.Limits{Max: 100, PerAddress: 100}
	lim.connections.Watcher = &connectionWatcher{name: "listen", metrics: newConnectionMetrics(o.Registry), log: o.strange}
	conn, server := net.Pipe()
	l := &listener{Listener: connlimit.New(newPipes(server), lim.connections), name: "listen", log: o.strange, limits: lim}
	l.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
			return
		}
		fmt.Fprintln(w, "fine")
	}), func(err error) { t.Error(err) })
	t.Cleanup(func() { l.server.Close(); <-l.served })
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// pipes is a listener that accepts connections in memory.
type pipes struct {
	conns  chan net.Conn
	closed context.Context
	close  context.CancelFunc
}

func newPipes(conns ...net.Conn) *pipes {
	p := &pipes{conns: make(chan net.Conn, len(conns))}
	p.closed, p.close = context.WithCancel(context.Background())
	for _, c := range conns {
		p.conns <- c
	}
	return p
}

// Accept implements [net.Listener].
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed.Done():
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *pipes) Close() error { p.close(); return nil }

// Addr implements [net.Listener].
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Both listeners of a gateway have every limit.
func TestListenersHaveLimits(t *testing.T) {
	t.Parallel()
	g := start(t, configured(sqliteStore(t), "http://127.0.0.1:1/"))
	for _, l := range []*listener{g.ingest, g.admin} {
		s := l.server
		if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
			t.Errorf("%s: a limit is missing in %+v", l.name, l.limits)
		}
		if c := l.limits.connections; c.Max <= 0 || c.PerAddress <= 0 || c.LargeHeaders <= 0 || c.HeaderLines <= 0 || c.Spares <= 0 || s.ConnState == nil {
			t.Errorf("%s: a limit on connections is missing in %+v", l.name, c)
		}
	}
}

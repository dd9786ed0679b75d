package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
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
			t.Parallel()
			conn := dialLimited(t, c.limits)
			if _, err := io.WriteString(conn, c.send); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(bufio.NewReader(conn))
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("the connection is still open; %q was read", answer)
			}
			if !strings.HasPrefix(string(answer), c.want) || c.want == "" && len(answer) > 0 {
				t.Errorf("answered %q, want %q", answer, c.want)
			}
		})
	}
}

// dialLimited connects to a listener with those limits, whose handler reads the body.
func dialLimited(t *testing.T, lim limits) net.Conn {
	t.Helper()
	lim.connections.Limits = connlimit.Limits{Max: 100, PerAddress: 100}
	l := listenLimited(t, lim)
	l.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
			return
		}
		fmt.Fprintln(w, "fine")
	}), func(err error) { t.Error(err) })
	t.Cleanup(func() { l.server.Close() })
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func listenLimited(t *testing.T, lim limits) *listener {
	t.Helper()
	o := Options{}.withDefaults()
	l, err := listen("listen", "127.0.0.1:0", lim, newConnectionMetrics(o.Registry), o.strange)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Both listeners of a gateway have every limit.
func TestListenersHaveLimits(t *testing.T) {
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

package ingest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/ingest"
)

// exchange writes a request byte for byte, says that nothing more comes, and reads the answer.
func exchange(t *testing.T, g *gate, request string) (*http.Response, []byte) {
	t.Helper()
	server := httptest.NewServer(g)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	return answer(t, conn)
}

func answer(t *testing.T, conn io.Reader) (*http.Response, []byte) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

// raw spells a POST with the signature of body, the given header lines, and the body as framed.
func raw(body, lines, framed string) string {
	return fmt.Sprintf("POST /in/billing HTTP/1.1\r\nHost: gw.test\r\nConnection: close\r\n%s: %s\r\n%s\r\n%s",
		signatureHeader, sign(body), lines, framed)
}

func length(body string) string { return fmt.Sprintf("Content-Length: %d\r\n", len(body)) }

// TestBadInput: a clear answer, and nothing stored.
func TestBadInput(t *testing.T) {
	const event, limit = `{"id":"a"}`, 100
	huge := strings.Repeat("x", limit+1)
	orders := strings.NewReplacer("/in/billing", "/in/orders") // which has the default limit
	for _, c := range []struct {
		name, request string
		status        int
		reason        string
	}{
		{"truncated", raw(event, "Content-Length: 50\r\n", event), 400, "truncated"},
		{"truncated, and large", orders.Replace(raw(event, "Content-Length: 200000\r\n", event)), 400, "truncated"},
		{"nothing of the body came", raw(event, "Content-Length: 50\r\n", ""), 400, "truncated"},
		{"chunk cut off", raw(event, "Transfer-Encoding: chunked\r\n", "a\r\n{\"id\""), 400, "truncated"},
		{"chunk of no number", raw(event, "Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n"), 400, "truncated"},
		{"last chunk missing", raw(event, "Transfer-Encoding: chunked\r\n", "a\r\n"+event+"\r\n"), 400, "truncated"},
		{"too large", raw(huge, length(huge), huge), 413, "too_large"},
		{"too large and asking first", raw(huge, "Expect: 100-continue\r\n"+length(huge), ""), 413, "too_large"},
		{"absurd length", raw(event, "Content-Length: 9223372036854775807\r\n", event), 413, "too_large"},
		{"too large in chunks", raw(huge, "Transfer-Encoding: chunked\r\n", "65\r\n"+huge+"\r\n0\r\n\r\n"), 413, "too_large"},
		{"another body than signed", raw("{}", length(event), event), 401, "signature_mismatch"},
		{"signature twice", raw(event, signatureHeader+": "+sign(event)+"\r\n"+length(event), event), 401, "signature_malformed"},
		{"empty body, not signed", raw(event, "Content-Length: 0\r\n", ""), 401, "signature_mismatch"},
		{"timestamp of another age", raw(event, "X-Test-Time: 0001-01-01T00:00:00Z\r\n"+length(event), event), 401, "timestamp_old"},
		{"timestamp of the far future", raw(event, "X-Test-Time: 9999-12-31T23:59:59Z\r\n"+length(event), event), 401, "timestamp_future"},
		{"GET", "GET /in/billing HTTP/1.1\r\nHost: gw.test\r\nConnection: close\r\n\r\n", 405, "method"},
		{"PUT", strings.Replace(raw(event, length(event), event), "POST", "PUT", 1), 405, "method"},
		{"method in lower case", strings.Replace(raw(event, length(event), event), "POST", "post", 1), 405, "method"},
		{"unknown source", strings.Replace(raw(event, length(event), event), "/in/billing", "/in/nowhere", 1), 404, "unknown_source"},
		{"no source", strings.Replace(raw(event, length(event), event), "/in/billing", "/in/", 1), 404, "unknown_source"},
		{"doubled slash", strings.Replace(raw(event, length(event), event), "/in/billing", "//in/billing", 1), 404, "unknown_source"},
		{"dots", strings.Replace(raw(event, length(event), event), "/in/billing", "/in/../in/billing", 1), 404, "unknown_source"},
		{"escaped slash", strings.Replace(raw(event, length(event), event), "/in/billing", "/in/x%2Fbilling", 1), 404, "unknown_source"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t, func(o *ingest.Options) { o.Sources[0].MaxBody = limit })
			resp, body := exchange(t, g, c.request)
			wantProblem(t, resp.StatusCode, resp.Header, body, c.status, c.reason)
			if n := g.model.Events(); n != 0 {
				t.Errorf("%d events stored", n)
			}
			if c.status == http.StatusMethodNotAllowed && resp.Header.Get("Allow") != "POST" {
				t.Errorf("Allow = %q", resp.Header.Get("Allow"))
			}
		})
	}
}

// TestOddInput is unusual but right, and accepted.
func TestOddInput(t *testing.T) {
	const event = `{"id":"a"}`
	large := `{"id":"a","pad":"` + strings.Repeat("x", 200<<10) + `"}`
	for _, c := range []struct{ name, request string }{
		{"chunked", raw(event, "Transfer-Encoding: chunked\r\n", "4\r\n{\"id\r\n6\r\n\":\"a\"}\r\n0\r\n\r\n")},
		{"chunked with a trailer", raw(event, "Trailer: X-T\r\nTransfer-Encoding: chunked\r\n", "a\r\n"+event+"\r\n0\r\nX-T: 1\r\n\r\n")},
		{"slash at the end", strings.Replace(raw(event, length(event), event), "/in/billing", "/in/billing/", 1)},
		{"letter escaped", strings.Replace(raw(event, length(event), event), "/in/billing", "/in/b%69lling", 1)},
		{"query", strings.Replace(raw(event, length(event), event), "/in/billing", "/in/billing?a=b", 1)},
		{"length twice, the same", raw(event, length(event)+length(event), event)},
		{"large", raw(large, length(large), large)},
		{"large in chunks", raw(large, "Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(large), large))},
		{"another content type", raw(event, "Content-Type: text/plain\r\n"+length(event), event)},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t, nil)
			resp, body := exchange(t, g, c.request)
			if resp.StatusCode != 200 || string(body) != `{"status":"accepted","key":"a"}`+"\n" {
				t.Errorf("answered %d %s", resp.StatusCode, body)
			}
		})
	}
}

func TestExpectContinueIsInvitedOnlyWhenTheBodyIsWanted(t *testing.T) {
	g := newGate(t, nil)
	const event = `{"id":"a"}`
	server := httptest.NewServer(g)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, raw(event, "Expect: 100-continue\r\n"+length(event), "")); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("answered %q, %v", line, err)
	}
	if _, err := in.Discard(len("\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, event); err != nil {
		t.Fatal(err)
	}
	if resp, body := answer(t, in); resp.StatusCode != 200 {
		t.Errorf("answered %d %s", resp.StatusCode, body)
	}
}

// TestSlowBody: the deadline is ours, and the connection is given up with the request.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, nil)
		client, listener := pipe()
		server := &http.Server{Handler: g}
		go func() { _ = server.Serve(listener) }()
		defer server.Close()
		defer client.Close()
		start := time.Now()
		if _, err := io.WriteString(client, strings.Replace(raw("{}", "Content-Length: 2\r\n", "{"), "Connection: close\r\n", "", 1)); err != nil {
			t.Fatal(err)
		}
		resp, body := answer(t, client)
		wantProblem(t, resp.StatusCode, resp.Header, body, 408, "slow")
		if took := time.Since(start); took != bodyTimeout {
			t.Errorf("answered after %v, want %v", took, bodyTimeout)
		}
		if !resp.Close {
			t.Error("the connection is kept open")
		}
		if n := g.model.Events(); n != 0 {
			t.Errorf("%d events stored", n)
		}
	})
}

// pipe returns a connection in memory and a listener that accepts its other end, and nothing else.
func pipe() (net.Conn, net.Listener) {
	client, server := net.Pipe()
	l := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conns <- server
	return client, l
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error { close(l.closed); return nil }

func (l *pipeListener) Addr() net.Addr { return &net.IPAddr{} }

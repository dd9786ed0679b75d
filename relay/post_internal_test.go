package relay

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/outgoing"
)

// forgetful stands before a server as a balancer does that forgets connections: what they carry
// leads nowhere from then on, and nobody is told.
type forgetful struct {
	net.Listener
	server string
	times  atomic.Int64
	wg     sync.WaitGroup
}

func startForgetful(t *testing.T, server string) *forgetful {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &forgetful{Listener: l, server: server}
	f.wg.Go(f.serve)
	t.Cleanup(func() {
		l.Close()
		f.wg.Wait()
	})
	return f
}

func (f *forgetful) serve() {
	for {
		client, err := f.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", f.server)
		if err != nil {
			client.Close()
			continue
		}
		known := f.times.Load()
		f.wg.Go(func() { f.forward(server, client, known) })
		f.wg.Go(func() { f.forward(client, server, known) })
	}
}

func (f *forgetful) forward(to, from net.Conn, known int64) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if f.times.Load() != known {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// In HTTP/2 all posts share a connection. One that went silent is given up after a ping, and the
// next post goes over another one.
func TestAConnectionThatWentSilentIsLeft(t *testing.T) {
	came := make(chan string, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { came <- r.Proto + " from " + r.RemoteAddr }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	between := startForgetful(t, server.Listener.Addr().String())
	p, err := newPost(nil, "https://"+between.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, own := p.client.Transport.(*outgoing.Transport); !own {
		t.Fatalf("posts are carried by a %T", p.client.Transport)
	}
	transport := forPosts(http.DefaultTransport.(*http.Transport))
	if transport.HTTP2 == nil || transport.HTTP2.SendPingTimeout <= 0 || transport.HTTP2.SendPingTimeout+transport.HTTP2.PingTimeout > time.Minute {
		t.Fatalf("a connection is asked whether it lives: %+v", transport.HTTP2)
	}
	transport.HTTP2.SendPingTimeout, transport.HTTP2.PingTimeout = 50*time.Millisecond, 3*time.Second
	transport.TLSClientConfig = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	p.client.Transport = outgoing.NewTransport(transport.Clone)
	defer p.client.CloseIdleConnections()
	post := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		return p.carryOut(ctx, hookonce.QueuedEffect{Effect: hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Name: "mail"}, ID: 1, Token: 1})
	}
	if err := post(); err != nil {
		t.Fatal(err)
	}
	first := <-came
	if !strings.HasPrefix(first, "HTTP/2.0 ") {
		t.Fatalf("it came over %s", first)
	}
	between.times.Add(1)
	for range 3 {
		if err = post(); err == nil {
			if second := <-came; second == first {
				t.Errorf("it came over the connection that leads nowhere: %s", second)
			}
			return
		}
	}
	t.Errorf("no post arrives any more: %v", err)
}

// shared is a transport of the program's, over which net/http would send the request again and again.
type shared struct{ left int }

func (s *shared) CloseIdleConnections() { s.left++ }

func (s *shared) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		if err := context.Cause(r.Context()); err != nil {
			return nil, err
		}
		near, far := net.Pipe()
		_ = far.Close()
		httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Conn: near, Reused: true})
	}
}

// The connections of a client that is the program's are left alone: others may wait for answers over them.
func TestConnectionsOfTheProgramAreLeftAlone(t *testing.T) {
	s := new(shared)
	p, err := newPost(&http.Client{Transport: s}, "http://127.0.0.1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.carryOut(t.Context(), hookonce.QueuedEffect{Effect: hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Name: "mail"}, ID: 1, Token: 1}); err == nil || s.left != 0 {
		t.Errorf("%v, and its connections were closed %d times", err, s.left)
	}
}

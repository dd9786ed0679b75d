// Package cutproxy stands between clients and a server, and cuts a connection at the worst moment: before the server
// hears of a message, or after it carried the message out and before the client hears of that.
package cutproxy

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Reader returns the next message that a client sends, and whether it may be cut. It understands just enough of the
// protocol to see where messages end.
type Reader func() (message []byte, request bool, err error)

// Proxy forwards connections to a server until a fault strikes.
type Proxy struct {
	t        testing.TB
	listener net.Listener
	server   string
	reader   func(client io.Reader) Reader
	next     atomic.Pointer[cut]
	answer   atomic.Pointer[int] // of the next one the client gets so much
	wg       sync.WaitGroup
}

type cut struct {
	match     func(message []byte) bool
	persisted bool
}

// Within returns a proxy that takes no connections: it stands in those that are given to [Proxy.Wrap]. Reader is called
// for each.
func Within(reader func(client io.Reader) Reader) *Proxy { return &Proxy{reader: reader} }

// Wrap returns what a client uses in place of its connection to the server, inside its TLS. The pipe's both ends are closed
// when either side closes.
func (p *Proxy) Wrap(server net.Conn) net.Conn {
	client, inside := net.Pipe()
	p.forward(inside, server)
	return client
}

// New starts a proxy before the server at that address, until the test ends. Reader is called for each connection.
func New(t testing.TB, server string, reader func(client io.Reader) Reader) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{t: t, listener: l, server: server, reader: reader}
	p.wg.Go(p.serve)
	t.Cleanup(func() { l.Close(); p.wg.Wait() })
	return p
}

// Addr returns the address to use in place of the server's.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Fail has the connection cut that sends the next request that matches: after the server answered it, or else before
// the server hears of it.
func (p *Proxy) Fail(match func(message []byte) bool, persisted bool) {
	p.next.Store(&cut{match, persisted})
}

// FailAnswer has the connection cut that is answered next, after the client got so many bytes of it.
func (p *Proxy) FailAnswer(after int) { p.answer.Store(&after) }

// Close takes no further connections.
func (p *Proxy) Close() { p.listener.Close() }

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			p.t.Error(err)
			client.Close()
			return
		}
		p.forward(client, server)
	}
}

func (p *Proxy) forward(client, server net.Conn) {
	var deaf atomic.Bool // the client is not told what the server answers
	p.wg.Go(func() { p.requests(client, server, &deaf) })
	p.wg.Go(func() { p.answers(client, server, &deaf) })
}

// requests forwards what the client says, message by message, until the fault strikes.
func (p *Proxy) requests(client, server net.Conn, deaf *atomic.Bool) {
	defer client.Close()
	defer server.Close()
	read := p.reader(client)
	for {
		message, request, err := read()
		if err != nil {
			return
		}
		if c := p.next.Load(); request && c != nil && c.match(message) && p.next.CompareAndSwap(c, nil) {
			if !c.persisted {
				return
			}
			deaf.Store(true)
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// answers forwards what the server says. The server answers when it has carried out what it was asked for: if the
// client is not to know, the connection ends there.
func (p *Proxy) answers(client, server net.Conn, deaf *atomic.Bool) {
	defer client.Close()
	defer server.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := server.Read(buf)
		if err != nil || deaf.Load() {
			return
		}
		if after := p.answer.Swap(nil); after != nil {
			_, _ = client.Write(buf[:min(n, *after)])
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

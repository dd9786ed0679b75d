package pgstore_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between a pool and the server, understands just enough of the protocol to see what a
// client asks for, and cuts the connection at the worst moment.
type proxy struct {
	t        testing.TB
	listener net.Listener
	server   string
	next     atomic.Pointer[cut]
	wg       sync.WaitGroup
}

// cut is a fault: the connection that asks for match next is cut, before the server hears of it, or
// else after the server carried it out and before the client hears of that.
type cut struct {
	match     func(message []byte) bool
	persisted bool
}

// isCommit recognises COMMIT, sent with its text.
func isCommit(message []byte) bool {
	return message[0] == 'P' && bytes.Contains(message, []byte("\x00commit\x00"))
}

// isWrite recognises a statement over the table of claims that writes, sent with its text.
func isWrite(message []byte) bool {
	return message[0] == 'P' && (bytes.Contains(message, []byte("INSERT INTO")) || bytes.Contains(message, []byte("UPDATE")) ||
		bytes.Contains(message, []byte("DELETE FROM")))
}

// newProxy starts a proxy and returns it with the connection string that leads through it.
func newProxy(t testing.TB, dsn string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listener: l, server: u.Host}
	p.wg.Go(p.serve)
	t.Cleanup(func() { l.Close(); p.wg.Wait() })
	u.Host = l.Addr().String()
	return p, u.String()
}

// fail arms the fault for the next message that matches.
func (p *proxy) fail(match func([]byte) bool, persisted bool) { p.next.Store(&cut{match, persisted}) }

func (p *proxy) serve() {
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
		var deaf atomic.Bool // the client is not told what the server answers
		p.wg.Go(func() { p.requests(client, server, &deaf) })
		p.wg.Go(func() { answers(client, server, &deaf) })
	}
}

// requests forwards what the client says, message by message, until the fault strikes.
func (p *proxy) requests(client, server net.Conn, deaf *atomic.Bool) {
	defer client.Close()
	defer server.Close()
	for header := 4; ; header = 5 { // only the first message has no type
		message, err := read(client, header)
		if err != nil {
			return
		}
		if c := p.next.Load(); header == 5 && c != nil && c.match(message) && p.next.CompareAndSwap(c, nil) {
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

// read returns one message. Its length, which counts itself, ends the header.
func read(r io.Reader, header int) ([]byte, error) {
	message := make([]byte, header)
	if _, err := io.ReadFull(r, message); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(message[header-4:])-4)
	_, err := io.ReadFull(r, body)
	return append(message, body...), err
}

// answers forwards what the server says. The server answers when it is ready for the next query: if
// the client is not to know, the connection ends there.
func answers(client, server net.Conn, deaf *atomic.Bool) {
	defer client.Close()
	defer server.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := server.Read(buf)
		if err != nil || deaf.Load() {
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

package cutproxy

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Link forwards connections to a server as they are, until it is cut: then nothing passes any more, and nobody is told.
// It is what a network that falls apart looks like to both sides.
type Link struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	server string
	up     chan struct{} // closed while the link is up
	conns  map[net.Conn]bool
}

// NewLink starts a link to the server at that address, until the test ends. The server need not be there yet.
func NewLink(t testing.TB, server string) *Link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &Link{listener: l, server: server, up: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(k.up)
	k.wg.Go(k.serve)
	t.Cleanup(k.close)
	return k
}

// Addr returns the address to use in place of the server's.
func (k *Link) Addr() string { return k.listener.Addr().String() }

// Cut lets nothing pass any more. New connections are taken, and lead nowhere.
func (k *Link) Cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.up = make(chan struct{})
}

// Mend ends the connections that were cut, and forwards new ones.
func (k *Link) Mend() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop()
	close(k.up)
}

// Lead forwards new connections to another server.
func (k *Link) Lead(server string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.server = server
}

// drop closes all connections. The caller holds the lock.
func (k *Link) drop() {
	for c := range k.conns {
		c.Close()
	}
	clear(k.conns)
}

func (k *Link) close() {
	k.listener.Close()
	k.mu.Lock()
	k.drop()
	select {
	case <-k.up:
	default:
		close(k.up)
	}
	k.mu.Unlock()
	k.wg.Wait()
}

func (k *Link) serve() {
	for {
		client, err := k.listener.Accept()
		if err != nil {
			return
		}
		k.wg.Go(func() { k.forward(client) })
	}
}

// forward connects a client with the server, as soon as the link is up.
func (k *Link) forward(client net.Conn) {
	defer client.Close()
	k.hold(client)
	<-k.state()
	k.mu.Lock()
	address := k.server
	k.mu.Unlock()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	k.hold(server)
	var both sync.WaitGroup
	both.Go(func() { k.copy(server, client) })
	both.Go(func() { k.copy(client, server) })
	both.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.conns, client)
	delete(k.conns, server)
}

func (k *Link) hold(c net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.conns[c] = true
}

// state returns what is closed while the link is up.
func (k *Link) state() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.up
}

// copy forwards one direction until either side ends. What comes while the link is cut stays where it is.
func (k *Link) copy(to io.WriteCloser, from io.ReadCloser) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		<-k.state()
		if _, failed := to.Write(buf[:n]); err != nil || failed != nil {
			return
		}
	}
}

package chaos

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// network is what is between an application and its server. It loses connections: at any moment, or when the
// server has carried out what it was asked and the client is about to hear of that.
type network struct {
	listener net.Listener
	server   string
	links    sync.WaitGroup

	mu     sync.Mutex
	open   []*link
	closed bool
}

// link is a connection through the network.
type link struct {
	client, server net.Conn
	asked          atomic.Bool // the client waits for an answer
	deaf           atomic.Bool // the client is not told what the server answers next
}

// newNetwork starts a network in front of the server at addr. It ends with the test.
func newNetwork(t testing.TB, addr string) *network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	n := &network{listener: l, server: addr}
	n.links.Go(n.serve)
	t.Cleanup(func() {
		l.Close()
		n.close()
		n.links.Wait()
	})
	return n
}

// addr is where clients connect to.
func (n *network) addr() string { return n.listener.Addr().String() }

func (n *network) serve() {
	for {
		client, err := n.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", n.server)
		if err != nil {
			client.Close()
			continue
		}
		n.join(&link{client: client, server: server})
	}
}

// join forwards what both sides say.
func (n *network) join(l *link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		l.cut()
		return
	}
	n.open = append(n.open, l)
	n.links.Go(func() {
		defer l.cut()
		forward(l.server, l.client, func() bool { l.asked.Store(true); return true })
	})
	n.links.Go(func() {
		defer n.forget(l)
		defer l.cut()
		forward(l.client, l.server, func() bool { l.asked.Store(false); return !l.deaf.Load() })
	})
}

// forward passes on what from says, as long as may, which is asked each time, says so.
func forward(to io.Writer, from io.Reader, may func() bool) {
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if err != nil || !may() {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// cut ends the connection for both.
func (l *link) cut() { _ = errors.Join(l.client.Close(), l.server.Close()) }

func (n *network) forget(l *link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = slices.DeleteFunc(n.open, func(o *link) bool { return o == l })
}

func (n *network) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for _, l := range n.open {
		l.cut()
	}
}

// harm loses a connection. Most times it is one whose client waits for an answer.
func (n *network) harm(d *dice) harm {
	return func(context.Context) (bool, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		found := slices.Clone(n.open)
		if !d.oneIn(4) {
			found = slices.DeleteFunc(found, func(l *link) bool { return !l.asked.Load() })
		}
		if len(found) == 0 {
			return false, nil
		}
		l := found[d.n(len(found))]
		if d.oneIn(3) {
			l.cut()
		} else {
			l.deaf.Store(true)
		}
		return true, nil
	}
}

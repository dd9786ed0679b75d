package year

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// network carries bytes between machines. Whoever is on it has a name.
type network struct {
	*ledger
	mu        sync.Mutex
	listeners map[string]*listener // by address
	conns     map[*conn]bool
	apart     map[link]time.Time   // who cannot speak to whom, and until when
	still     map[string]time.Time // who stands still, and until when
	armed     []*wireFault
	port      int
	owners    map[string]string // the processes that connections are from, by their addresses
}

// link is a direction in which connections are made.
type link struct{ from, to string }

// wireFault waits for the next bytes of a kind on a link.
type wireFault struct {
	link
	kind string
	last time.Duration
}

// What becomes of bytes.
const (
	wireRequest = "cut-request" // what is asked never arrives
	wireHalf    = "cut-half"    // half of it does
	wireAnswer  = "cut-answer"  // what is answered never arrives, and whoever was asked has done it
	wireSlow    = "slow-answer" // the answer is late
	wireLate    = "slow-request"
)

// dialTimeout is how long a connection is waited for.
const dialTimeout = 5 * time.Second

func newNetwork(l *ledger) *network {
	return &network{ledger: l, listeners: map[string]*listener{}, conns: map[*conn]bool{}, apart: map[link]time.Time{}, still: map[string]time.Time{}, port: 20000, owners: map[string]string{}}
}

// arm has a fault wait for its bytes.
func (n *network) arm(f wireFault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.armed = append(n.armed, &f)
}

// part keeps two apart, in both directions, and cuts what is between them.
func (n *network) part(a, b string, last time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	until := time.Now().Add(last)
	n.apart[link{a, b}], n.apart[link{b, a}] = until, until
	n.breakLocked(func(c *conn) bool { return c.between(a, b) })
}

// stall has a machine stand still for a while: what it says and hears is late, and so is what it has of its store.
func (n *network) stall(machine string, last time.Duration) {
	n.fired("stall")
	n.mu.Lock()
	defer n.mu.Unlock()
	n.still[machine] = time.Now().Add(last)
}

// stallsFor is for how long any of the machines stands still from now on.
func (n *network) stallsFor(machines ...string) (most time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range machines {
		most = max(most, time.Until(n.still[m]))
	}
	if most > 0 {
		n.fired("stall")
	}
	return most
}

// heal ends everything that disturbs.
func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.still = map[string]time.Time{}
	n.armed, n.apart = nil, map[link]time.Time{}
}

// drop breaks all connections of a machine, and it listens nowhere any more.
func (n *network) drop(machine string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.breakLocked(func(c *conn) bool { return c.from == machine || c.to == machine })
	for address, l := range n.listeners {
		if l.machine == machine {
			l.shut()
			delete(n.listeners, address)
		}
	}
}

func (n *network) breakLocked(these func(*conn) bool) {
	for c := range n.conns {
		if these(c) {
			c.in.breaks()
			c.out.breaks()
			delete(n.conns, c)
		}
	}
}

// listen binds an address for a machine.
func (n *network) listen(machine, address string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[address] != nil {
		return nil, fmt.Errorf("listen %s: %w", address, syscall.EADDRINUSE)
	}
	l := &listener{network: n, machine: machine, at: parse(address), queue: make(chan *conn, 1024), closed: make(chan struct{})}
	n.listeners[address] = l
	return l, nil
}

// dial connects a machine to an address, for a process of it. It takes a millisecond.
func (n *network) dial(ctx context.Context, machine, process, address string) (net.Conn, error) {
	select {
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if n.isScarce(machine) {
		n.fired("network/descriptors")
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}
	}
	n.mu.Lock()
	l := n.listeners[address]
	if l == nil {
		n.mu.Unlock()
		return nil, fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)
	}
	if until := n.apart[link{machine, l.machine}]; time.Now().Before(until) {
		n.mu.Unlock()
		n.fired("network/part")
		select { // whoever is cut off hears nothing
		case <-ctx.Done():
		case <-time.After(dialTimeout):
		}
		return nil, fmt.Errorf("dial %s: %w", address, syscall.ETIMEDOUT)
	}
	n.port++
	there, back := newStream(), newStream()
	from := &net.TCPAddr{IP: net.IPv4(10, 1, byte(n.port>>16), 1), Port: n.port & 0xffff}
	a := &conn{network: n, link: link{machine, l.machine}, in: back, out: there, local: from, remote: l.at, asks: true}
	b := &conn{network: n, link: a.link, in: there, out: back, local: l.at, remote: from}
	n.conns[a], n.conns[b] = true, true
	n.owners[from.String()] = process
	n.mu.Unlock()
	select {
	case l.queue <- b:
		return a, nil
	case <-l.closed:
		return nil, fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)
	}
}

// whose is the process that connects from an address.
func (n *network) whose(address string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.owners[address]
}

// fault takes the next fault for what is written on a connection.
func (n *network) fault(c *conn) *wireFault {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, f := range n.armed {
		asks := f.kind == wireRequest || f.kind == wireHalf || f.kind == wireLate
		if f.link == c.link && asks == c.asks {
			n.armed = append(n.armed[:i:i], n.armed[i+1:]...)
			return f
		}
	}
	return nil
}

func parse(address string) *net.TCPAddr {
	host, port, _ := net.SplitHostPort(address)
	number, _ := strconv.Atoi(port)
	ip := net.ParseIP(host)
	if ip == nil {
		ip = net.IPv4(10, 2, 0, 1)
	}
	return &net.TCPAddr{IP: ip, Port: number}
}

// listener is an address that a machine listens on.
type listener struct {
	*network
	machine string
	at      *net.TCPAddr
	queue   chan *conn
	closed  chan struct{}
	once    sync.Once
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for address, own := range l.listeners {
		if own == l {
			delete(l.listeners, address)
		}
	}
	l.shut()
	return nil
}

func (l *listener) shut() { l.once.Do(func() { close(l.closed) }) }

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return l.at }

// conn is one end of a connection.
type conn struct {
	*network
	link
	in, out       *stream
	local, remote net.Addr
	asks          bool // it is the end of whoever connected
}

func (c *conn) between(a, b string) bool {
	return c.link == link{a, b} || c.link == link{b, a}
}

// Read implements [net.Conn].
func (c *conn) Read(b []byte) (int, error) { return c.in.read(b) }

// Write implements [net.Conn]. It never waits: what is under way has room.
func (c *conn) Write(b []byte) (int, error) {
	f := c.fault(c)
	if f == nil {
		return c.out.write(b, c.stallsFor(c.from, c.to))
	}
	c.fired("wire/" + f.kind)
	c.log(c.from+">"+c.to, "wire: "+f.kind)
	switch f.kind {
	case wireSlow, wireLate:
		return c.out.write(b, f.last)
	case wireHalf:
		_, _ = c.out.write(b[:len(b)/2], 0)
	}
	c.in.breaks()
	c.out.breaks()
	return len(b), nil // it left, and that is all that anybody knows
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.mu.Lock()
	delete(c.conns, c)
	c.mu.Unlock()
	c.out.end()
	c.in.breaks()
	return nil
}

// LocalAddr implements [net.Conn].
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements [net.Conn].
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements [net.Conn].
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline implements [net.Conn].
func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.change(func() { c.in.deadline = t })
	return nil
}

// SetWriteDeadline implements [net.Conn]: nothing that is written waits.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// stream is one direction of a connection.
type stream struct {
	mu       sync.Mutex
	data     []byte
	ready    time.Time // before which nobody reads
	ended    bool
	broken   bool
	deadline time.Time
	changed  chan struct{} // closed at the next change
}

func newStream() *stream { return &stream{changed: make(chan struct{})} }

func (s *stream) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stream) breaks() { s.change(func() { s.broken = true }) }
func (s *stream) end()    { s.change(func() { s.ended = true }) }

func (s *stream) write(b []byte, late time.Duration) (int, error) {
	err := error(nil)
	s.change(func() {
		if s.broken || s.ended {
			err = syscall.EPIPE
			return
		}
		s.data = append(s.data, b...)
		if late > 0 {
			s.ready = time.Now().Add(late)
		}
	})
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

func (s *stream) read(b []byte) (int, error) {
	for {
		s.mu.Lock()
		now, changed := time.Now(), s.changed
		var wake time.Time
		switch {
		case s.broken:
			s.mu.Unlock()
			return 0, syscall.ECONNRESET
		case !s.deadline.IsZero() && !now.Before(s.deadline):
			s.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case len(s.data) > 0 && !now.Before(s.ready):
			n := copy(b, s.data)
			s.data = s.data[n:]
			s.mu.Unlock()
			return n, nil
		case len(s.data) > 0:
			wake = s.ready
		case s.ended:
			s.mu.Unlock()
			return 0, io.EOF
		}
		if !s.deadline.IsZero() && (wake.IsZero() || s.deadline.Before(wake)) {
			wake = s.deadline
		}
		s.mu.Unlock()
		if wake.IsZero() {
			<-changed
			continue
		}
		timer := time.NewTimer(wake.Sub(now))
		select {
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Package connlimit bounds the connections of an HTTP server: how many there are, how many of one address, and what
// the headers that come over them cost.
//
// Whoever holds connections to keep others out loses them to the others. A new connection beyond a limit takes the place of one
// on which it is the peer's turn: to send a header, to go on with a body, or to read an answer; an unverified one's before one
// whose peer has shown who it is. One whose request is being worked on is never cut. Only where all are being worked on is
// the new one refused, with a 503 unless it is to speak TLS.
package connlimit

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Limits are those of a listener that may change while it serves.
type Limits struct {
	// Max is how many connections may be open at once.
	Max int
	// PerAddress is how many of them one address may have, by [Network].
	PerAddress int
	// PerGroup is how many requests of one group may be under way at once. Zero: no bound.
	PerGroup int
	// Exempt are the networks of proxies, to which PerAddress does not apply, and whose connections are the last to be cut.
	Exempt []netip.Prefix
}

// Options are the settings of a [Listener].
type Options struct {
	Limits
	// LargeHeaders is how many requests with a header of more than [LargeHeader] bytes may be under way at once. Zero: no bound.
	LargeHeaders int
	// HeaderLines is how many lines a header may have: each costs many times its bytes. Zero: no bound.
	HeaderLines int
	// Group returns the group of a request for which others are waited for, so that unverified peers can have it take long; empty:
	// none. Nil: of all of them.
	Group func(*http.Request) string
	// Spares is how many file descriptors are kept back, for connections that come when the process has no others.
	Spares int
	// Waits reports whether somebody waits to be accepted. The system says that there are no descriptors before it looks whether
	// one is needed. Nil: whenever it says so somebody does.
	Waits func() bool
	// Watcher is told what is done. Nil: nobody is.
	Watcher Watcher
}

// LargeHeader is the size in bytes up to which a header is part of what every connection costs: that of a server's buffer.
const LargeHeader = 4 << 10

// Cause is which limit was reached.
type Cause string

// The causes.
const (
	ByListener     Cause = "listener"      // Max
	ByAddress      Cause = "address"       // PerAddress
	ByGroup        Cause = "group"         // PerGroup
	ByLargeHeaders Cause = "large_headers" // LargeHeaders
	ByHeaderLines  Cause = "header_lines"  // HeaderLines, or a part of a header that was sent before the last answer
	ByDescriptors  Cause = "descriptors"   // of the process
)

// Causes returns all causes.
func Causes() []Cause {
	return []Cause{ByListener, ByAddress, ByGroup, ByLargeHeaders, ByHeaderLines, ByDescriptors}
}

// Watcher is told of connections that are lost to a limit. Its methods may be called by many goroutines at a time.
type Watcher interface {
	// Cut is called when a connection is closed on which it was the peer's turn.
	Cut(by Cause, from netip.Prefix)
	// Refused is called when a new connection, or a request, is turned away.
	Refused(by Cause, from netip.Prefix)
	// Exhausted is called when a connection could not be accepted, because the process or the system has no file
	// descriptors or no memory for it.
	Exhausted(err error)
}

// Network is what counts as one address: an address of IPv4, or the /64 of IPv6, of which a single machine has all.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	p, _ := a.Prefix(min(a.BitLen(), 64)) // of the zero address there is none
	return p
}

// Listener is a [net.Listener] with limits. It is safe for concurrent use.
type Listener struct {
	net.Listener
	opt Options

	mu        sync.Mutex
	limits    Limits
	open      int
	large     int // requests with a large header
	known     int // connections of known peers
	addresses map[netip.Prefix]*address
	groups    map[string]*group
	hogs      map[*address]struct{} // that have more than their share of what is pending
	spares    []*os.File

	// Those on which it is the peer's turn, in the order in which that began, by rank.
	pending [3]queue
	// The unverified peers' among them that have a large header.
	pendingLarge queue
}

// address is what is known of those who come from one.
type address struct {
	network netip.Prefix
	exempt  bool
	open    int
	pending [2]queue // of unverified and of known peers
	waiting int      // unverified peers in there
}

// The ranks of connections: those of a lower one are cut first.
const (
	unverified = iota
	known      // see Known
	proxy      // exempt
)

// group is what is known of the requests of one.
type group struct {
	name    string
	open    int // requests under way
	pending queue
}

// New returns a listener that accepts the connections of l within limits.
func New(l net.Listener, o Options) *Listener {
	if o.Watcher == nil {
		o.Watcher = blind{}
	}
	limited := &Listener{
		Listener: l, opt: o, limits: o.Limits,
		addresses: map[netip.Prefix]*address{}, groups: map[string]*group{}, hogs: map[*address]struct{}{},
		pending: [3]queue{{links: all}, {links: all}, {links: all}}, pendingLarge: queue{links: large},
	}
	limited.refill()
	return limited
}

type blind struct{}

func (blind) Cut(Cause, netip.Prefix)     {}
func (blind) Refused(Cause, netip.Prefix) {}
func (blind) Exhausted(error)             {}

// SetLimits changes the limits for the connections that come from now on.
func (l *Listener) SetLimits(limits Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits = limits
	for _, a := range l.addresses {
		a.exempt = l.exempts(a.network)
	}
}

// exempts reports whether all of a network is exempt.
func (l *Listener) exempts(n netip.Prefix) bool {
	return slices.ContainsFunc(l.limits.Exempt, func(p netip.Prefix) bool { return p.Bits() <= n.Bits() && p.Contains(n.Addr()) })
}

// network is what counts as the address of a connection. A proxy that is exempt has one of its own.
func (l *Listener) network(c net.Conn) netip.Prefix {
	at, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	a := at.AddrPort().Addr().Unmap().WithZone("")
	if own := netip.PrefixFrom(a, a.BitLen()); l.exempts(own) {
		return own
	}
	return Network(a)
}

// Open returns how many connections there are.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// Max returns how many there may be.
func (l *Listener) Max() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limits.Max
}

// Close stops listening and gives the spare descriptors back. Connections stay.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opt.Spares = 0
	for _, f := range l.spares {
		f.Close()
	}
	l.spares = nil
	return l.Listener.Close()
}

// exhaustedPause is how long nothing is accepted after there was no descriptor for it, and nobody needed one or there was no spare
// one either.
const exhaustedPause = 10 * time.Millisecond

// Accept returns the next connection that the limits have room for. It never fails for want of descriptors: it makes
// room, or waits.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		switch {
		case err == nil:
			if c := l.admit(raw); c != nil {
				return c, nil
			}
		case exhausted(err):
			if l.opt.Waits != nil && !l.opt.Waits() { // nobody needs room, and who is there keeps theirs
				time.Sleep(exhaustedPause)
				continue
			}
			l.opt.Watcher.Exhausted(err)
			if !l.relieve() {
				time.Sleep(exhaustedPause)
			}
		default:
			return nil, err
		}
	}
}

func exhausted(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}, func(e error) bool { return errors.Is(err, e) })
}

// relieve cuts a connection, and reports whether a descriptor is free at once: that of a spare one. The one that is cut
// takes its place when it is closed.
func (l *Listener) relieve() bool {
	l.mu.Lock()
	victim := l.victim()
	if victim != nil {
		l.remove(victim)
	}
	n := len(l.spares)
	if n > 0 {
		l.spares[n-1].Close()
		l.spares = l.spares[:n-1]
	}
	l.mu.Unlock()
	l.cut(victim, ByDescriptors)
	return n > 0
}

// refill opens the spare descriptors that are missing, as far as it can.
func (l *Listener) refill() {
	for len(l.spares) < l.opt.Spares {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		l.spares = append(l.spares, f)
	}
}

// admit takes a connection in, in the place of another one if it must be. It returns nil if there is no room.
func (l *Listener) admit(raw net.Conn) net.Conn {
	c := &conn{Conn: raw, l: l, peers: true, header: true}
	l.mu.Lock()
	l.refill()
	network := l.network(raw)
	victim, by := l.inTheWay(l.addresses[network])
	if by != "" && victim == nil {
		l.mu.Unlock()
		l.opt.Watcher.Refused(by, network)
		refuse(raw, busy)
		return nil
	}
	if victim != nil {
		l.remove(victim)
	}
	c.address = l.address(network) // after the victim, whose address may have gone with it
	c.address.open++
	l.open++
	c.enqueue()
	l.mu.Unlock()
	l.cut(victim, by)
	return c
}

// inTheWay returns which limit keeps a connection of an address out, and which connection would make room.
func (l *Listener) inTheWay(a *address) (*conn, Cause) {
	switch {
	case a != nil && !a.exempt && a.open >= l.limits.PerAddress:
		return cmp.Or(a.pending[unverified].first, a.pending[known].first), ByAddress
	case l.open >= l.limits.Max:
		return l.victim(), ByListener
	}
	return nil, ""
}

// victim returns which connection is cut next: the oldest pending one of the address with most of them, if that is more than its
// share, and otherwise the oldest of all. So a peer who has just come has the time to speak in which all the others would have
// to come anew. Those of known peers come after the unverified ones', unless they are more than half.
func (l *Listener) victim() *conn {
	var hog *address
	for a := range l.hogs {
		if !a.exempt && (hog == nil || a.waiting > hog.waiting) {
			hog = a
		}
	}
	switch {
	case hog != nil:
		return hog.pending[unverified].first
	case l.known > l.limits.Max/2 && l.pending[known].first != nil:
		return l.pending[known].first
	}
	return cmp.Or(l.pending[unverified].first, l.pending[known].first, l.pending[proxy].first)
}

// share is how many pending connections make an address a hog. There are few such addresses.
func (l *Listener) share() int { return max(1, l.limits.Max/8) }

func (l *Listener) address(network netip.Prefix) *address {
	a := l.addresses[network]
	if a == nil {
		a = &address{network: network, exempt: l.exempts(network), pending: [2]queue{{links: ofAddress}, {links: ofAddress}}}
		l.addresses[network] = a
	}
	return a
}

// cut closes a connection that was removed.
func (l *Listener) cut(c *conn, by Cause) {
	if c != nil {
		hangUp(c.Conn)
		l.opt.Watcher.Cut(by, c.address.network)
	}
}

// remove forgets a connection. The caller holds the lock.
func (l *Listener) remove(c *conn) {
	if c.gone {
		return
	}
	c.dequeue()
	c.gone = true
	c.leave()
	if c.large {
		c.large = false
		l.large--
	}
	if c.known {
		l.known--
	}
	l.open--
	if c.address.open--; c.address.open == 0 {
		delete(l.addresses, c.address.network)
	}
}

// What is answered where no request is read. A peer that does not listen yet, or speaks TLS, loses it, and sees the connection closed.
const (
	busy    = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
	tooMany = "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)

// refuse answers and closes, and waits for nobody, because nobody else is accepted meanwhile. Nothing was written before, so
// that the answer fits into the socket's buffer. TLS says nothing before it has heard from the peer, so that there is no answer.
func refuse(c net.Conn, answer string) {
	if _, secured := c.(secured); !secured {
		c.SetWriteDeadline(time.Now().Add(time.Second))
		io.WriteString(c, answer)
	}
	hangUp(c)
}

// secured is a connection that speaks TLS over another one.
type secured interface{ NetConn() net.Conn }

// hangUp closes a connection at once. TLS would say so first, and wait until the peer has room for that.
func hangUp(c net.Conn) {
	if s, ok := c.(secured); ok {
		c = s.NetConn()
	}
	c.Close()
}

type connKey struct{}

// Known says that the peer of a request's connection has shown who it is: connections of unverified peers are cut before it, so
// that whoever opens many does not cut off those that are kept between requests. It has no effect on the context of a
// request that came over no [Listener].
func Known(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.know(false)
	}
}

// Trust is [Known] for a peer that may keep others out: its connection is not cut after it was taken over for another protocol, as
// those of other peers are, also while it reads nothing of what is written to it: whoever took it over has to see to that.
func Trust(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.know(true)
	}
}

// Under returns the connection that the listener beneath a [Listener] accepted, over which a request came; nil if it came
// over none.
func Under(ctx context.Context) net.Conn {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		return c.Conn
	}
	return nil
}

// Attach has s tell whose turn it is on the connections that it gets from the listener. It is called before s serves, and when
// its Handler is set.
func (l *Listener) Attach(s *http.Server) {
	next := s.Handler
	s.ConnState = func(c net.Conn, state http.ConnState) { c.(*conn).is(state) }
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(connKey{}).(*conn)
		if r.Body != http.NoBody {
			c.body(c.request, true)
			r.Body = &body{ReadCloser: r.Body, c: c, request: c.request}
		}
		if l.opt.Group != nil {
			if name := l.opt.Group(r); name != "" {
				if !c.join(name) {
					w.Header().Set("Retry-After", "1")
					w.Header().Set("Connection", "close")
					http.Error(w, "too many requests like this one are under way; try again in a moment", http.StatusServiceUnavailable)
					return
				}
				defer c.part()
			}
		}
		next.ServeHTTP(w, r)
	})
}

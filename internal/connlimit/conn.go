package connlimit

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"time"
)

// conn is a connection that counts.
type conn struct {
	net.Conn
	l       *Listener
	address *address

	// Under the lock of the listener.
	gone    bool
	peers   bool // it is the peer's turn, except for what is being written
	writing bool
	request uint64 // number of the request on the connection
	large   bool   // its header is
	known   bool   // see Known
	trusted bool   // see Trust
	group   *group // of the request under way; nil: none
	queued  bool
	rank    int // under which it is queued
	links   [4]link

	// kept is set when the connection is taken over, before anybody else can write to it, and is read without the lock: it is never
	// the peer's turn any more.
	kept bool

	// Of the goroutine that reads: the server has one at a time.
	header    bool // what is read is a header
	scan      scanner
	refused   bool
	deadlines int // how often the server set the deadline since the last answer
}

// is follows what the server makes of the connection.
func (c *conn) is(state http.ConnState) {
	switch state {
	case http.StateActive: // the header is complete, or makes no sense
		c.header = false
		c.turn(false)
	case http.StateIdle:
		c.header, c.scan, c.deadlines = true, scanner{}, 0
		c.turn(true)
	case http.StateHijacked:
		c.tunnel()
	case http.StateClosed:
		c.end()
	}
}

// tunnel follows a connection that speaks another protocol from now on, of which the server says nothing any more: it is the
// peer's turn, so that nobody keeps others out with tunnels, unless it may.
func (c *conn) tunnel() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.request++ // what is still read of a body changes nothing
	c.light()
	c.kept, c.peers = c.trusted, !c.trusted
	c.requeue()
}

// end takes the connection, which is closed, out of the account.
func (c *conn) end() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.l.remove(c)
	c.l.refill()
}

// Close is called by the server, and by whoever took the connection over from it.
func (c *conn) Close() error {
	defer c.end()
	return c.Conn.Close()
}

// turn begins the next part of a request: the peer's, or ours.
func (c *conn) turn(peers bool) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.peers = peers
	if peers {
		c.request++
		c.light()
	}
	c.requeue()
}

// body says that the body of a request is awaited, or that all of it is there.
func (c *conn) body(request uint64, awaited bool) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.request == request && c.peers != awaited {
		c.peers = awaited
		c.requeue()
	}
}

// know takes the peer for known, and perhaps for one that may keep the connection.
func (c *conn) know(trusted bool) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.trusted = c.trusted || trusted
	if c.known || c.gone {
		return
	}
	c.dequeue()
	c.known = true
	c.l.known++
	c.enqueue()
}

// light takes the header of a request that is over out of the account. The caller holds the lock.
func (c *conn) light() {
	if c.large {
		c.dequeue()
		c.large = false
		c.l.large--
	}
}

// requeue puts the connection to the end of the queues if it is the peer's turn, and takes it out otherwise. The caller
// holds the lock.
func (c *conn) requeue() {
	c.dequeue()
	c.enqueue()
}

func (c *conn) enqueue() {
	if c.gone || !c.peers && !c.writing {
		return
	}
	a, l := c.address, c.l
	c.queued, c.rank = true, unverified
	switch {
	case a.exempt:
		c.rank = proxy
	case c.known:
		c.rank = known
	}
	l.pending[c.rank].push(c)
	c.peersOf().push(c)
	if c.rank != known {
		if a.waiting++; a.waiting > l.share() {
			l.hogs[a] = struct{}{}
		}
	}
	if c.large {
		l.pendingLarge.push(c)
	}
	if c.group != nil {
		c.group.pending.push(c)
	}
}

// peersOf returns the queue of its address that the connection is in.
func (c *conn) peersOf() *queue {
	if c.rank == known {
		return &c.address.pending[known]
	}
	return &c.address.pending[unverified]
}

func (c *conn) dequeue() {
	if !c.queued {
		return
	}
	a, l := c.address, c.l
	c.queued = false
	l.pending[c.rank].drop(c)
	c.peersOf().drop(c)
	if c.rank != known {
		if a.waiting--; a.waiting <= l.share() {
			delete(l.hogs, a)
		}
	}
	if c.large {
		l.pendingLarge.drop(c)
	}
	if c.group != nil {
		c.group.pending.drop(c)
	}
}

// join takes the request under way into a group, in the place of another one if it must be. It reports false if there is no room.
func (c *conn) join(name string) bool {
	l := c.l
	l.mu.Lock()
	if c.gone { // its handler goes on for a moment
		l.mu.Unlock()
		return false
	}
	var victim *conn
	if g := l.groups[name]; g != nil && l.limits.PerGroup > 0 && g.open >= l.limits.PerGroup {
		if victim = g.pending.first; victim == nil {
			l.mu.Unlock()
			l.opt.Watcher.Refused(ByGroup, c.address.network)
			return false
		}
		l.remove(victim)
	}
	g := l.groups[name] // which may have gone with the victim
	if g == nil {
		g = &group{name: name, pending: queue{links: ofGroup}}
		l.groups[name] = g
	}
	c.dequeue()
	g.open++
	c.group = g
	c.enqueue()
	l.mu.Unlock()
	l.cut(victim, ByGroup)
	return true
}

// part takes the request, which is over, out of its group.
func (c *conn) part() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.group != nil {
		c.dequeue()
		c.leave()
		c.enqueue()
	}
}

// leave takes a connection that is in no queue out of its group. The caller holds the lock.
func (c *conn) leave() {
	g := c.group
	if g == nil {
		return
	}
	c.group = nil
	if g.open--; g.open == 0 {
		delete(c.l.groups, g.name)
	}
}

// Write sends a part of an answer: until the peer has room for it, it is the peer's turn, unless it may keep the connection.
func (c *conn) Write(p []byte) (int, error) {
	c.setWriting(true)
	defer c.setWriting(false)
	return c.Conn.Write(p)
}

func (c *conn) setWriting(b bool) {
	if c.kept {
		return
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.writing = b
	if !c.peers {
		c.requeue()
	}
}

// CloseWrite is what the server calls when all is said and the peer may still be sending: it waits for a moment, so
// that the peer can read the answer.
func (c *conn) CloseWrite() error {
	c.turn(true)
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// SetReadDeadline counts how far the server is: it sets a deadline after an answer, waits for the first bytes of the next
// header, and sets another one.
func (c *conn) SetReadDeadline(t time.Time) error {
	if c.header {
		c.deadlines++
	}
	return c.Conn.SetReadDeadline(t)
}

// Read reads for the server. Of a header it counts the lines, before any of them is taken apart.
func (c *conn) Read(p []byte) (int, error) {
	if !c.header {
		return c.Conn.Read(p)
	}
	if c.refused { // the server looks twice
		return 0, io.EOF
	}
	if c.request > 0 && c.scan.bytes == 0 && c.deadlines > 1 { // a part of it came with the last request, and was not counted
		return 0, c.refuse(ByHeaderLines, tooMany)
	}
	n, err := c.Conn.Read(p)
	c.scan.read(p[:n])
	switch {
	case c.l.opt.HeaderLines > 0 && c.scan.lines > c.l.opt.HeaderLines:
		return 0, c.refuse(ByHeaderLines, tooMany)
	case c.scan.bytes > LargeHeader && !c.scan.ended && !c.heavy():
		return 0, c.refuse(ByLargeHeaders, busy)
	}
	return n, err
}

// How much, and for how long, is read of a peer that was turned away, so that it can read the answer: what is unread when a
// connection is closed makes the system forget the answer.
const (
	lingerBytes = 4 << 10
	lingerTime  = 50 * time.Millisecond
)

// refuse turns the request away whose header is being read.
func (c *conn) refuse(by Cause, answer string) error {
	c.refused = true
	c.l.opt.Watcher.Refused(by, c.address.network)
	c.Conn.SetDeadline(time.Now().Add(lingerTime))
	if _, err := io.WriteString(c, answer); err == nil && c.CloseWrite() == nil {
		io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
	return io.EOF
}

// heavy takes the header into account as a large one, in the place of another one if it must be. It reports false if
// there is no room.
func (c *conn) heavy() bool {
	l := c.l
	l.mu.Lock()
	if c.large || c.gone || l.opt.LargeHeaders == 0 {
		l.mu.Unlock()
		return true
	}
	var victim *conn
	if l.large >= l.opt.LargeHeaders {
		if victim = l.pendingLarge.first; victim == nil {
			l.mu.Unlock()
			return false
		}
		l.remove(victim)
	}
	c.dequeue()
	c.large = true
	l.large++
	c.enqueue()
	l.mu.Unlock()
	l.cut(victim, ByLargeHeaders)
	return true
}

// A connection is in up to four queues at a time: that of all, that of its address, that of its group, and that of large headers.
const (
	all = iota
	ofAddress
	ofGroup
	large
)

type link struct{ prev, next *conn }

// queue is a list of connections from which any can be taken out at once, by the links of one kind.
type queue struct {
	links       int
	first, last *conn
}

func (q *queue) push(c *conn) {
	c.links[q.links] = link{prev: q.last}
	if q.last == nil {
		q.first = c
	} else {
		q.last.links[q.links].next = c
	}
	q.last = c
}

func (q *queue) drop(c *conn) {
	at := c.links[q.links]
	if at.prev == nil {
		q.first = at.next
	} else {
		at.prev.links[q.links].next = at.next
	}
	if at.next == nil {
		q.last = at.prev
	} else {
		at.next.links[q.links].prev = at.prev
	}
	c.links[q.links] = link{}
}

// scanner counts the lines of a header as it comes in.
type scanner struct {
	bytes, lines int
	text         bool // the line that has begun has something in it
	begun        bool // a line before it had
	ended        bool // an empty line was there
}

func (s *scanner) read(p []byte) {
	s.bytes += len(p)
	for len(p) > 0 && !s.ended {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		s.text = s.text || len(line) > 0 && !bytes.Equal(line, []byte("\r"))
		p = rest
		if !whole {
			return
		}
		if s.ended = s.begun && !s.text; !s.ended {
			s.lines++
		}
		s.begun, s.text = s.begun || s.text, false
	}
}

// body is that of a request. Until it has been read it is the peer's turn.
type body struct {
	io.ReadCloser
	c       *conn
	request uint64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF { // the end comes with the last bytes; after another error there is nothing to work on
		b.c.body(b.request, false)
	}
	return n, err
}

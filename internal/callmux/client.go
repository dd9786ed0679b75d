package callmux

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/quota"
)

// The errors of a [Client], beside ErrBroken.
var (
	// ErrUnreached wraps why there is no connection. The call was not carried out.
	ErrUnreached = errors.New("callmux: there is no connection")
	// ErrCrowded says that the other side had no memory for the call, and did not carry it out.
	ErrCrowded = errors.New("callmux: the other side has no memory for the call")
	// ErrBusy says that more calls are under way than there may be. The call was not carried out.
	ErrBusy = errors.New("callmux: too many calls are under way")
)

// Bounds of a client.
const (
	maxCalls    = 256                    // that are under way on one connection
	maxUnderWay = 4 << 20                // bytes of calls that are under way on one connection
	maxLinks    = 16                     // connections that calls share
	maxAlone    = 128                    // connections with one call each
	minShared   = maxUnderWay / maxCalls // bytes of the places that a call takes at least
	dialTimeout = 5 * time.Second
	// renewal is after how long a connection takes no new calls, so that several servers behind one name get their share.
	renewal = 5 * time.Minute
)

// Client makes calls of one server. Its methods are safe for concurrent use.
//
// There are places for calls: so many bytes of those that share connections, and so many connections for the others. Whoever
// has calls under way gets more places only while as many as he then has are left free (quota), so that one whose calls take
// long leaves some to others.
type Client struct {
	dial      func(ctx context.Context) (io.ReadWriteCloser, error)
	maxAnswer int
	small     quota.Pool // bytes of calls that share connections
	alone     quota.Pool // connections of calls that are alone

	mu      sync.Mutex
	places  map[string]*places
	freed   chan struct{} // closed when a call that was alone is over
	links   []*link       // that are shared, and take calls
	idle    []*link       // of calls that are alone
	dialing *dialing
	closed  bool
	renewed int // how often there were to be new connections
	all     map[*link]bool
}

// dialing is an attempt to connect that several wait for.
type dialing struct {
	done chan struct{}
	err  error
}

// places are those of one who makes calls.
type places struct{ small, alone *quota.Share }

// NewClient returns a client that connects by dial when it is first called. An answer has at most maxAnswer bytes.
func NewClient(dial func(ctx context.Context) (io.ReadWriteCloser, error), maxAnswer int) *Client {
	c := &Client{dial: dial, maxAnswer: maxAnswer, all: map[*link]bool{}, places: map[string]*places{}, freed: make(chan struct{})}
	c.small.Resize(maxLinks*maxUnderWay, true)
	c.alone.Resize(maxAlone, true)
	return c
}

// placesOf returns those of one who makes calls. There are few: they come from a configuration.
func (c *Client) placesOf(who string) *places {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.places[who] == nil {
		c.places[who] = &places{c.small.Share(), c.alone.Share()}
	}
	return c.places[who]
}

// Call says something and returns what is answered. It is in the places of who, and in their memory at the other side, which is
// told the first 255 bytes of that name, and how much time ctx leaves. The payload is one text in parts; parts of more than
// [MaxShared] together must not be changed afterwards, even after an error.
func (c *Client) Call(ctx context.Context, who string, payload ...[]byte) ([]byte, error) {
	n := 0
	for _, p := range payload {
		n += len(p)
	}
	places := c.placesOf(who)
	who = who[:min(len(who), maxWho)]
	if n+2*binary.MaxVarintLen64+len(who) > MaxShared {
		return c.callAlone(ctx, who, places.alone, n, payload)
	}
	room := int64(max(n, minShared))
	if !places.small.Take(room) {
		return nil, ErrBusy
	}
	defer places.small.Give(room)
	for {
		l, err := c.shared(ctx, n)
		if err != nil {
			return nil, err
		}
		if answer, err, begun := l.call(ctx, who, n, payload); begun {
			return answer, err
		}
	}
}

// callAlone makes a call on a connection of its own, for which it waits.
func (c *Client) callAlone(ctx context.Context, who string, places *quota.Share, n int, payload [][]byte) ([]byte, error) {
	if err := c.awaitPlace(ctx, places); err != nil {
		return nil, err
	}
	defer c.leavePlace(places)
	for {
		l, err := c.free(ctx)
		if err != nil {
			return nil, err
		}
		if !l.tryJoin(n) {
			continue
		}
		answer, err, begun := l.call(ctx, who, n, payload)
		if begun {
			if err == nil {
				c.giveBack(l)
			} else {
				l.close(errors.New("a call on it was given up"))
			}
			return answer, err
		}
	}
}

// awaitPlace waits for a connection of its own.
func (c *Client) awaitPlace(ctx context.Context, places *quota.Share) error {
	for {
		c.mu.Lock()
		freed := c.freed
		c.mu.Unlock()
		if places.Take(1) {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrBusy, context.Cause(ctx))
		}
	}
}

func (c *Client) leavePlace(places *quota.Share) {
	places.Give(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.freed)
	c.freed = make(chan struct{})
}

// free returns a connection that nobody uses.
func (c *Client) free(ctx context.Context) (*link, error) {
	c.mu.Lock()
	for len(c.idle) > 0 {
		l := c.idle[len(c.idle)-1]
		c.idle = c.idle[:len(c.idle)-1]
		if l.usable() {
			c.mu.Unlock()
			return l, nil
		}
		l.retire()
	}
	c.mu.Unlock()
	return c.open(ctx)
}

func (c *Client) giveBack(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || !l.usable() {
		l.retire()
		return
	}
	c.idle = append(c.idle, l)
}

// shared returns a connection with room for a call, which it has joined.
func (c *Client) shared(ctx context.Context, n int) (*link, error) {
	for {
		c.mu.Lock()
		c.links = slices.DeleteFunc(c.links, func(l *link) bool {
			if l.usable() {
				return false
			}
			l.retire()
			return true
		})
		for _, l := range c.links {
			if l.tryJoin(n) {
				c.mu.Unlock()
				return l, nil
			}
		}
		if len(c.links) >= maxLinks {
			c.mu.Unlock()
			return nil, ErrBusy
		}
		d := c.dialing
		if d == nil {
			d = &dialing{done: make(chan struct{})}
			c.dialing = d
			go c.connect(d)
		}
		c.mu.Unlock()
		select {
		case <-d.done:
			if d.err != nil {
				return nil, d.err
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrUnreached, context.Cause(ctx))
		}
	}
}

// connect makes a connection for all that wait.
func (c *Client) connect(d *dialing) {
	l, err := c.open(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.err = err; err == nil {
		c.links = append(c.links, l)
	}
	c.dialing = nil
	close(d.done)
}

// open makes a connection. One that was dialled before connections were to be new ones is not used.
func (c *Client) open(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	for {
		c.mu.Lock()
		renewed := c.renewed
		c.mu.Unlock()
		conn, err := c.dial(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreached, err)
		}
		l := &link{wire: newWire(conn, bufio.NewReaderSize(conn, readSize)), calls: map[uint32]*call{}, maxAnswer: c.maxAnswer}
		l.over = l.fail
		c.mu.Lock()
		closed, old := c.closed, c.renewed != renewed
		if !closed && !old {
			c.all[l] = true
		}
		c.mu.Unlock()
		switch {
		case closed:
			l.close(errors.New("the client is closed"))
			return nil, fmt.Errorf("%w: the client is closed", ErrUnreached)
		case old:
			l.close(errors.New("there were to be new connections when it was made"))
		default:
			c.run(l)
			return l, nil
		}
	}
}

// run reads and writes a connection until it ends.
func (c *Client) run(l *link) {
	go l.write(false)
	go l.watch()
	go func() {
		l.read()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, l)
	}()
}

// Renew has new calls use new connections. Those under way end as they began.
func (c *Client) Renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renewed++
	for l := range c.all {
		l.retire()
	}
	c.links, c.idle = nil, nil
}

// Retire refuses new calls. Those under way end as they began.
func (c *Client) Retire() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.Renew()
}

// Close ends all connections, with the calls that are under way, and refuses new ones.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	all := c.all
	c.all, c.links, c.idle = map[*link]bool{}, nil, nil
	c.mu.Unlock()
	for l := range all {
		l.close(errors.New("the client is closed"))
	}
}

// link is a connection of a client.
type link struct {
	*wire
	maxAnswer int

	state   sync.Mutex
	calls   map[uint32]*call
	spare   []*call // that are over, and of which nothing more is said
	next    uint32
	joined  int // calls that are on it, or about to be
	bytes   int // of them
	retired bool
}

// call is one that is not answered yet.
type call struct {
	answer []byte
	done   chan error // has room for what comes of it, which is said once
}

// usable reports whether new calls can be made on it.
func (l *link) usable() bool {
	select {
	case <-l.gone:
		return false
	default:
	}
	age := time.Since(l.base)
	l.state.Lock()
	defer l.state.Unlock()
	return !l.retired && age < renewal && age-time.Duration(l.seen.Load()) < suspect
}

// retire ends the connection as soon as nothing is under way on it.
func (l *link) retire() {
	l.state.Lock()
	l.retired = true
	over := l.joined == 0
	l.state.Unlock()
	if over {
		go l.close(errors.New("it is not needed any more")) // which may take a moment, and whoever calls holds a lock
	}
}

// tryJoin reports whether a call may be made on it, which is counted then.
func (l *link) tryJoin(n int) bool {
	l.state.Lock()
	defer l.state.Unlock()
	if l.retired {
		return false
	}
	if l.joined > 0 && (l.joined >= maxCalls || l.bytes+n > maxUnderWay) {
		return false
	}
	l.joined, l.bytes = l.joined+1, l.bytes+n
	return true
}

// begin returns a call, and its number.
func (l *link) begin() (c *call, id uint32) {
	l.state.Lock()
	defer l.state.Unlock()
	if last := len(l.spare) - 1; last >= 0 {
		c, l.spare = l.spare[last], l.spare[:last]
	} else {
		c = &call{done: make(chan error, 1)}
	}
	l.next++
	l.calls[l.next] = c
	return c, l.next
}

// leave ends a call. One that was told what comes of it, and to whom nothing more is said, is used again.
func (l *link) leave(id uint32, n int, told *call) {
	l.state.Lock()
	if told != nil {
		told.answer = nil
		l.spare = append(l.spare, told)
	}
	delete(l.calls, id)
	l.joined, l.bytes = l.joined-1, l.bytes-n
	over := l.retired && l.joined == 0
	l.state.Unlock()
	if over {
		l.close(errors.New("it is not needed any more"))
	}
}

// call makes a call on the connection, which it has joined. It was not begun if the connection had ended before, so that it can
// be made on another one.
func (l *link) call(ctx context.Context, who string, n int, payload [][]byte) (answer []byte, err error, begun bool) {
	c, id := l.begin()
	var told *call
	defer func() { l.leave(id, n, told) }()
	select {
	case <-l.gone:
		return nil, nil, false
	default:
	}
	left := time.Duration(0)
	if at, bounded := ctx.Deadline(); bounded {
		left = max(time.Until(at), time.Millisecond)
	}
	var room [2*binary.MaxVarintLen64 + maxWho]byte
	head := binary.AppendUvarint(room[:0], uint64(left.Milliseconds()))
	head = append(binary.AppendUvarint(head, uint64(len(who))), who...)
	if err := l.send(ctx, kindCall, id, head, payload...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, err), true
	}
	select {
	case err = <-c.done:
		told = c
		return c.answer, err, true
	case <-ctx.Done(): // and what comes of it may be said all the same
		return nil, fmt.Errorf("%w: %w", ErrBroken, context.Cause(ctx)), true
	}
}

// fail ends all calls that are not answered, because the connection has ended. Of one that is made afterwards it is said in gone.
func (l *link) fail() {
	l.state.Lock()
	defer l.state.Unlock()
	for id, c := range l.calls {
		delete(l.calls, id)
		c.done <- l.err
	}
}

// read takes in what the server says until the connection ends.
func (l *link) read() {
	for {
		kind, id, n, err := l.head()
		var payload []byte
		switch {
		case err != nil:
		case n > maxPart:
			err = fmt.Errorf("a frame of %d bytes", n)
		default:
			payload, err = l.payload(n)
		}
		if err != nil {
			l.close(err)
			return
		}
		l.take(kind, id, payload)
	}
}

func (l *link) take(kind byte, id uint32, payload []byte) {
	if kind == kindClosing {
		l.retire()
		return
	}
	l.state.Lock()
	defer l.state.Unlock()
	c := l.calls[id]
	if c == nil { // whoever made it has gone, or it is a pong
		return
	}
	var end error
	switch {
	case kind == kindCrowded:
		end = ErrCrowded
	case len(c.answer)+len(payload) > l.maxAnswer:
		end = fmt.Errorf("%w: an answer has more than %d bytes", ErrBroken, l.maxAnswer)
	case kind == kindPart:
		c.answer = append(c.answer, payload...)
		return
	case kind != kindAnswer:
		return
	case c.answer == nil:
		c.answer = payload
	default:
		c.answer = append(c.answer, payload...)
	}
	delete(l.calls, id)
	c.done <- end
}

// watch asks whether a connection that says nothing is alive, and gives it up if not.
func (l *link) watch() {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-l.gone:
			return
		case <-tick.C:
		}
		switch quiet := l.quiet(); {
		case quiet >= silence:
			l.close(fmt.Errorf("it said nothing for %s", quiet.Round(time.Second)))
			return
		case quiet >= pingAfter:
			ctx, cancel := context.WithTimeout(context.Background(), pingAfter)
			_ = l.send(ctx, kindPing, 0, nil) // or it is full, and is given up if that stays so
			cancel()
		}
	}
}

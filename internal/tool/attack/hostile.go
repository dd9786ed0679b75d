//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/traffic"
)

// origin gives each hostile connection the address that it comes from.
type origin func(i int) net.IP

// here is the address of the genuine sender, as behind a proxy that is not known to be one.
func here(int) net.IP { return net.IPv4(127, 0, 0, 1) }

// one is another address.
func one(int) net.IP { return net.IPv4(127, 0, 0, 66) }

// many are so many addresses by turns.
func many(addresses int) origin {
	return func(i int) net.IP {
		i %= addresses
		return net.IPv4(127, 1, byte(i/250), byte(1+i%250))
	}
}

// dial opens a connection on this machine, and to no other.
func dial(ctx context.Context, address string, from net.IP) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("%s is not a loopback address: only this machine is attacked", address)
	}
	d := net.Dialer{Timeout: giveUp, LocalAddr: &net.TCPAddr{IP: from}}
	return d.DialContext(ctx, "tcp", address)
}

// holder describes hostile connections that are held open.
type holder struct {
	admin bool // they go to the admin listener
	conns int  // at full size
	least int  // in small as well; with fewer the attack is none
	from  origin
	// first is what a connection sends when it is open, and drip what it sends each second from then on. Both may be nil.
	first, drip func(i int) []byte
	// deaf connections never read what they are answered.
	deaf bool
}

// How fast hostile connections are opened, in all: at first, with so much more for each byte that they send, and again where the
// gateway has closed some. What is attacked are its bounds. That a machine has only so much processor is true of all
// programs on it, the attacker's too.
const (
	opening   = 400 * time.Microsecond
	sending   = 8 * time.Nanosecond // a byte
	reopening = 2 * time.Millisecond
)

// holds returns the attack of such connections.
func holds(h holder) func(context.Context, *runner) error {
	return func(ctx context.Context, rn *runner) error { rn.hold(ctx, h); return nil }
}

// hold opens the connections and keeps them until ctx ends. An attacker is stubborn: one that the gateway
// closes is opened again.
func (rn *runner) hold(ctx context.Context, h holder) {
	again := time.NewTicker(reopening)
	defer again.Stop()
	pace := opening
	if h.first != nil {
		pace += time.Duration(len(h.first(0))) * sending
	}
	var all sync.WaitGroup
	for i := range max(rn.n(h.conns), h.least) {
		all.Go(func() {
			pause(ctx, time.Duration(i)*pace)
			for ctx.Err() == nil {
				rn.count(h.once(ctx, rn, i))
				select {
				case <-ctx.Done():
				case <-again.C:
				}
			}
		})
	}
	all.Wait()
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// once holds a connection until the gateway closes it, and returns how that ended.
func (h holder) once(ctx context.Context, rn *runner, i int) string {
	c, err := dial(ctx, rn.gateway.address(h.admin), h.from(i))
	if err != nil {
		return "not connected"
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if h.first != nil {
		if _, err := c.Write(h.first(i)); err != nil {
			return outcome(0, err)
		}
	}
	if h.deaf {
		<-ctx.Done()
		return "held"
	}
	answer := make([]byte, 0, 4096)
	for ctx.Err() == nil {
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		n, err := c.Read(answer[len(answer):cap(answer)])
		answer = answer[:len(answer)+n]
		if len(answer) == cap(answer) {
			answer = answer[:0]
		}
		var timeout net.Error
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil: // the attack is over
		case asTimeout(err, &timeout) && h.drip != nil:
			if _, err := c.Write(h.drip(i)); err != nil {
				return ended(answer, err)
			}
			continue
		case asTimeout(err, &timeout):
			continue
		default:
			return ended(answer, err)
		}
	}
	if r, n, err := traffic.Parse(answer, false); err == nil && n > 0 {
		return fmt.Sprintf("%d, held", r.Status)
	}
	return "held"
}

// ended names how a connection ended on which an answer may have come.
func ended(answer []byte, err error) string {
	if r, n, bad := traffic.Parse(answer, true); bad == nil && n > 0 {
		return fmt.Sprint(r.Status)
	}
	return outcome(0, err)
}

// flooder describes hostile requests, one after the other on each connection.
type flooder struct {
	admin bool // they go to the admin listener
	conns int  // at full size
	least int  // in small as well
	from  origin
	next  func(i, n int) []byte // the n-th request of connection i
	// pace is how long a connection rests after each answer. A flood at full speed on a machine of two cores
	// is an attack on the generator.
	pace time.Duration
	// most is how many requests each connection sends, 0 for no bound.
	most int
}

// floods returns the attack of such requests.
func floods(f flooder) func(context.Context, *runner) error {
	return func(ctx context.Context, rn *runner) error { rn.flood(ctx, f); return nil }
}

// flood sends the requests until ctx ends, on connections that are opened as those of hold are.
func (rn *runner) flood(ctx context.Context, f flooder) {
	again := time.NewTicker(reopening)
	defer again.Stop()
	var all sync.WaitGroup
	for i := range max(rn.n(f.conns), f.least) {
		all.Go(func() {
			pause(ctx, time.Duration(i)*opening)
			for n := 0; ctx.Err() == nil && (f.most == 0 || n < f.most); {
				n = f.connection(ctx, rn, i, n)
				select {
				case <-ctx.Done():
				case <-again.C:
				}
			}
		})
	}
	all.Wait()
}

// connection sends requests from the n-th on until the connection ends, and returns the number of the next.
func (f flooder) connection(ctx context.Context, rn *runner, i, n int) int {
	c, err := dial(ctx, rn.gateway.address(f.admin), f.from(i))
	if err != nil {
		rn.count("not connected")
		return n
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	var in []byte
	for ctx.Err() == nil && (f.most == 0 || n < f.most) {
		_ = c.SetDeadline(time.Now().Add(2 * giveUp))
		_, wrote := c.Write(f.next(i, n))
		n++
		r, rest, err := receive(c, in)
		if err == nil {
			rn.count(fmt.Sprint(r.Status))
		} else if ctx.Err() == nil {
			rn.count(outcome(0, err))
		}
		if err != nil || wrote != nil || r.Close {
			break
		}
		in = rest
		pause(ctx, f.pace)
	}
	return n
}

// receive reads an answer of which in came already, and returns what came after it.
func receive(c net.Conn, in []byte) (r traffic.Response, rest []byte, err error) {
	chunk := make([]byte, 4096)
	for {
		n, err := c.Read(chunk)
		in = append(in, chunk[:n]...)
		r, took, bad := traffic.Parse(in, err != nil && len(in) > 0)
		switch {
		case took > 0:
			return r, in[took:], nil
		case err != nil:
			return r, nil, err
		case bad != nil:
			return r, nil, bad
		}
	}
}

// request returns a request with these lines of header and a body that it announces.
func request(line, host, header, body string) []byte {
	return fmt.Appendf(nil, "%s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n%s", line, host, header, len(body), body)
}

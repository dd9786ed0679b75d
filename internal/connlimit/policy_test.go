package connlimit_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/connlimit"
)

// faked is a listener without a network: what it accepts is put into it.
type faked struct {
	net.Listener
	next chan any // a net.Conn or an error
}

func (f *faked) Accept() (net.Conn, error) {
	switch v := (<-f.next).(type) {
	case net.Conn:
		return v, nil
	case error:
		return nil, v
	}
	return nil, net.ErrClosed
}

func (f *faked) Close() error { return nil }

// peer is a connection from somewhere.
type peer struct {
	net.Conn
	from   netip.Addr
	closed bool
}

func (p *peer) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(p.from, 50000))
}
func (p *peer) Close() error { p.closed = true; return nil }

// door is a listener and who came to it.
type door struct {
	*testing.T
	*connlimit.Listener
	*tally
	in *faked
}

func newDoor(t *testing.T, l connlimit.Limits, spares int) *door {
	d := &door{T: t, tally: newTally(), in: &faked{next: make(chan any, 10)}}
	d.Listener = connlimit.New(d.in, connlimit.Options{Limits: l, Watcher: d.tally, Spares: spares})
	t.Cleanup(func() { d.Close() })
	return d
}

// come lets somebody in.
func (d *door) come(from string) *peer {
	d.Helper()
	p := &peer{from: netip.MustParseAddr(from)}
	d.in.next <- p
	if _, err := d.Accept(); err != nil {
		d.Fatal(err)
	}
	return p
}

// secured is a connection that speaks TLS with a peer who has no room for a word more.
type secured struct {
	*peer
	*testing.T
}

func (s secured) NetConn() net.Conn { return s.peer }
func (s secured) Close() error      { s.Error("it is waited for room to say goodbye"); return nil }

// Who cuts a connection beneath TLS accepts nobody meanwhile, and so waits for nobody.
func TestCutBeneathTLS(t *testing.T) {
	none := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	for by, what := range map[connlimit.Cause]error{connlimit.ByAddress: nil, connlimit.ByDescriptors: none} {
		d := newDoor(t, connlimit.Limits{Max: 16, PerAddress: 1}, 1)
		p := &peer{from: netip.MustParseAddr("192.0.2.1")}
		d.in.next <- secured{p, t}
		if _, err := d.Accept(); err != nil {
			t.Fatal(err)
		}
		if what != nil {
			d.in.next <- what
		}
		d.come("192.0.2.1")
		if !p.closed || d.of(d.cut, by) != 1 {
			t.Errorf("%s: closed %v, cut %v", by, p.closed, d.cut)
		}
	}
}

// One machine has a whole /64, so that counts as one address. Somebody with many of them still has to come anew, all
// of them, before he gets at one who has just come.
func TestNetworks(t *testing.T) {
	d := newDoor(t, connlimit.Limits{Max: 16, PerAddress: 2}, 0)
	first, second := d.come("2001:db8::1"), d.come("2001:db8::ffff:2")
	d.come("2001:db8:0:1::1") // another one
	if first.closed || second.closed {
		t.Fatal("cut too early")
	}
	d.come("2001:db8::3")
	if !first.closed || second.closed || d.of(d.cut, connlimit.ByAddress) != 1 {
		t.Errorf("of one /64: closed %v and %v, %v", first.closed, second.closed, d.cut)
	}
	mapped := d.come("::ffff:192.0.2.1")
	d.come("192.0.2.1")
	d.come("192.0.2.1")
	if !mapped.closed {
		t.Error("IPv4 in the form of IPv6 is another address")
	}
}

func TestManyNetworks(t *testing.T) {
	const most = 32
	d := newDoor(t, connlimit.Limits{Max: most, PerAddress: 8}, 0)
	for i := range 3 * most {
		d.come(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 0, 0, byte(i)}).String())
	}
	var sender []*peer
	for range 4 {
		sender = append(sender, d.come("198.51.100.7"))
	}
	for i := range most - 4 {
		d.come(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 0, 1, byte(i)}).String())
	}
	for i, p := range sender {
		if p.closed {
			t.Errorf("connection %d of a sender with several was cut before those that were there before", i)
		}
	}
	if d.Open() != most {
		t.Errorf("%d are open", d.Open())
	}
}

// Proxies may have as many as there are, and are cut last; one of IPv6 is its own address and not its /64. SetLimits
// says who is one.
func TestExempt(t *testing.T) {
	limits := connlimit.Limits{Max: 8, PerAddress: 2, Exempt: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::1/128"),
	}}
	d := newDoor(t, limits, 0)
	var proxies []*peer
	for range 3 {
		proxies = append(proxies, d.come("10.1.2.3"), d.come("2001:db8::1"))
	}
	d.come("2001:db8::2")
	beside := d.come("2001:db8::2")
	for range 5 {
		d.come("2001:db8::3")
		d.come("192.0.2.1")
	}
	for i, p := range proxies {
		if p.closed {
			t.Errorf("connection %d of a proxy was cut", i)
		}
	}
	if !beside.closed {
		t.Error("an address beside a proxy has its rights")
	}
	limits.Exempt = nil
	d.SetLimits(limits)
	d.come("10.1.2.3")
	if !proxies[0].closed {
		t.Error("a proxy that is not trusted any more is still exempt")
	}
}

// Where there are no descriptors a pending connection makes room, the spare ones are used, and Accept does not fail.
func TestDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(t, connlimit.Limits{Max: 100, PerAddress: 100}, 1)
		held := d.come("192.0.2.1")
		none := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
		for range 3 {
			d.in.next <- none
		}
		began := time.Now()
		d.come("192.0.2.2")
		if took := time.Since(began); took != 20*time.Millisecond { // one spare descriptor helps once, at once
			t.Errorf("the next connection was accepted after %s", took)
		}
		if !held.closed || d.of(d.cut, connlimit.ByDescriptors) != 1 || d.exhausted != 3 {
			t.Errorf("closed %v, cut %v, told %d times", held.closed, d.cut, d.exhausted)
		}
		d.in.next <- errors.New("something else")
		if _, err := d.Accept(); err == nil {
			t.Error("another fault is hidden")
		}
	})
}

// That the system has no descriptors concerns nobody while nobody comes: nobody is cut for it, nor told.
func TestNoDescriptorsAndNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &door{T: t, tally: newTally(), in: &faked{next: make(chan any, 10)}}
		asked := 0
		d.Listener = connlimit.New(d.in, connlimit.Options{Limits: connlimit.Limits{Max: 100, PerAddress: 100}, Watcher: d.tally,
			Waits: func() bool { asked++; return asked > 2 }})
		held := d.come("192.0.2.1")
		none := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
		d.in.next <- none
		d.in.next <- none
		began := time.Now()
		d.come("192.0.2.2")
		if held.closed || d.exhausted > 0 || time.Since(began) != 20*time.Millisecond {
			t.Errorf("nobody waited: closed %v, told %d times, after %s", held.closed, d.exhausted, time.Since(began))
		}
		d.in.next <- none
		d.come("192.0.2.3")
		if !held.closed || d.exhausted != 1 {
			t.Errorf("somebody waited: closed %v, told %d times", held.closed, d.exhausted)
		}
	})
}

// A spare descriptor is given up as soon as there is no other, or nobody could be accepted with it.
func TestSpareIsGivenUp(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("the system does not show what is open")
	}
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(t, connlimit.Limits{Max: 100, PerAddress: 100}, 1)
		before := spares(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.Accept()
		}()
		d.in.next <- &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
		synctest.Wait()
		if n := spares(t); n != before-1 {
			t.Errorf("%d descriptors of spares, and %d once there was no other", before, n)
		}
		d.in.next <- &peer{from: netip.MustParseAddr("192.0.2.1")}
		<-done
		if n := spares(t); n != before {
			t.Errorf("%d descriptors of spares, and %d once there were others again", before, n)
		}
	})
}

// spares counts what this process has open that a spare descriptor may be.
func spares(t *testing.T) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && to == os.DevNull {
			n++
		}
	}
	return n
}

package redisstore_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/redisstore"
	"github.com/hookonce/hookonce/storetest"
)

// proxy stands between clients and the server, and cuts a connection at the worst moment.
type proxy struct {
	t        testing.TB
	listener net.Listener
	server   string
	next     atomic.Pointer[cut]
	wg       sync.WaitGroup
}

// cut is a fault: the connection that next asks for a script that writes is cut, before the server hears
// of it, or else after the server ran it and before the client hears of that.
type cut struct{ persisted bool }

func newProxy(t testing.TB, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{t: t, listener: l, server: server}
	p.wg.Go(p.serve)
	t.Cleanup(func() { l.Close(); p.wg.Wait() })
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// fail arms the fault.
func (p *proxy) fail(persisted bool) { p.next.Store(&cut{persisted}) }

// faulty is the configuration that checks histories while the proxy cuts connections.
func faulty(t testing.TB, server string) storetest.HistoryConfig {
	p := newProxy(t, server)
	cfg := suite(p.addr())
	return storetest.HistoryConfig{Open: func(t testing.TB) (func(storetest.Options) hookonce.Store, func(bool)) {
		return cfg.Open(t), p.fail
	}}
}

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

// requests forwards what the client says, command by command, until the fault strikes.
func (p *proxy) requests(client, server net.Conn, deaf *atomic.Bool) {
	defer client.Close()
	defer server.Close()
	in := bufio.NewReader(client)
	for {
		command, err := read(in)
		if err != nil {
			return
		}
		if c := p.next.Load(); c != nil && writes(command) && p.next.CompareAndSwap(c, nil) {
			if !c.persisted {
				return
			}
			deaf.Store(true)
		}
		if _, err := server.Write(command); err != nil {
			return
		}
	}
}

// read returns one command: an array of strings.
func read(in *bufio.Reader) ([]byte, error) {
	head, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	n, err := size(head, '*')
	for ; n > 0 && err == nil; n-- {
		head, err = appendString(in, head)
	}
	return head, err
}

func appendString(in *bufio.Reader, command []byte) ([]byte, error) {
	head, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	n, err := size(head, '$')
	if err != nil {
		return nil, err
	}
	text := make([]byte, n+len("\r\n"))
	_, err = io.ReadFull(in, text)
	return append(append(command, head...), text...), err
}

func size(head []byte, kind byte) (int, error) {
	if len(head) < 3 || head[0] != kind {
		return 0, fmt.Errorf("%q is not the head of a command", head)
	}
	return strconv.Atoi(string(bytes.TrimSpace(head[1:])))
}

// writes recognises a script that the server knows and that is not the one that only reads.
func writes(command []byte) bool {
	return bytes.Contains(command, []byte("evalsha")) && !bytes.Contains(command, []byte(redisstore.LookupHash))
}

// answers forwards what the server says, until the client is not to know.
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

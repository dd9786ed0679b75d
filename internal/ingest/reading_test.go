package ingest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/ingest"
)

// Beside a crowd that holds connections and sends bodies that never end, or that nobody signed, from the address of the genuine
// sender and from another one, and together far more than there is memory for, at least 99 % of what the genuine sender
// sends are acknowledged within a second. Who is given up for it is told so.
func TestAGenuineSenderGetsInBesideACrowd(t *testing.T) {
	const maxBody = 64 << 10
	announced := fmt.Sprintf("POST /in/billing HTTP/1.1\r\nHost: gw.test\r\n%s: %s\r\nContent-Length: %d\r\n\r\n", signatureHeader, sign("no"), maxBody)
	chunks := strings.Replace(announced, fmt.Sprintf("Content-Length: %d", maxBody), "Transfer-Encoding: chunked", 1) + fmt.Sprintf("%x\r\n", maxBody)
	junk := strings.Repeat("x", maxBody)
	for _, c := range []struct {
		name  string
		begin string // what each connection sends at once
		goOn  string // and then in every second; empty: nothing
		again bool   // send it all again after each answer
		conns int
		full  bool // there is no room for all of them
	}{
		{name: "announced, not sent", begin: announced, conns: 5000},
		{name: "one byte", begin: announced + "x", conns: 1000},
		{name: "a byte a second", begin: announced + "x", goOn: "x", conns: 1000},
		{name: "all but the last byte", begin: announced + junk[1:], conns: 1000, full: true},
		{name: "all but the last byte of a chunk", begin: chunks + junk[1:], conns: 1000, full: true},
		{name: "forged", begin: announced + junk, again: true, conns: 50},
	} {
		for _, from := range []string{"127.0.0.1", "127.0.0.2"} {
			t.Run(c.name+" from "+from, func(t *testing.T) {
				g := newGate(t, func(o *ingest.Options) {
					o.MaxReading, o.Journal = 16<<20, instant{}
					o.Sources[0].MaxBody = maxBody
				})
				srv := httptest.NewServer(g)
				crowd := assemble(t, srv, from, c.conns, c.begin, c.goOn, c.again)
				if share := genuine(t, srv); share < 0.99 {
					t.Errorf("%.1f %% of the genuine requests were acknowledged in time", 100*share)
				}
				crowd.disperse(t)
				srv.Close()
				refused := gather(t, g, "hookonce_rejected_total")["queue_full,billing"]
				if told := crowd.told(); c.full != (refused > 0) || told != int(refused) {
					t.Errorf("%v were refused for want of room, and %d were told to come again", refused, told)
				}
			})
		}
	}
}

// genuine posts events and returns which part of them was acknowledged within a second.
func genuine(t *testing.T, srv *httptest.Server) float64 {
	t.Helper()
	const posts = 100
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	good := 0
	for i := range posts {
		body := fmt.Sprintf(`{"id":"evt_%d","pad":"%s"}`, i, strings.Repeat("x", 1<<(i%16)))
		req, err := http.NewRequest("POST", srv.URL+"/in/billing", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(signatureHeader, sign(body))
		req.Close = i%2 == 0
		res, err := client.Do(req)
		if err != nil {
			t.Log(err)
			continue
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK {
			good++
		}
	}
	return float64(good) / posts
}

// crowd is many connections to one server.
type crowd struct {
	conns   []net.Conn
	members sync.WaitGroup
	stop    chan struct{}
	mu      sync.Mutex
	full    int // answered that there is no room, and to come again on another connection
}

// assemble has a crowd connect from an address and send the beginning, and returns when all have.
func assemble(t *testing.T, srv *httptest.Server, from string, conns int, begin, goOn string, again bool) *crowd {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c := &crowd{stop: make(chan struct{})}
	var begun sync.WaitGroup
	for range conns {
		conn, err := dialer.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.conns = append(c.conns, conn)
		begun.Add(1)
		c.members.Go(func() { c.listen(conn, begin, again) })
		go func() {
			_, _ = io.WriteString(conn, begin) // who is answered before that does not care
			begun.Done()
		}()
	}
	begun.Wait()
	if goOn != "" {
		c.members.Go(func() { c.dribble(goOn) })
	}
	return c
}

func (c *crowd) dribble(what string) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		for _, conn := range c.conns {
			_, _ = io.WriteString(conn, what)
		}
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
	}
}

// listen reads the answers.
func (c *crowd) listen(conn net.Conn, begin string, again bool) {
	in := bufio.NewReader(conn)
	for {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return
		}
		_, err = io.Copy(io.Discard, res.Body)
		if err == nil && res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != "" && res.Close {
			c.mu.Lock()
			c.full++
			c.mu.Unlock()
		}
		if res.Close || !again {
			return
		}
		if _, err := io.WriteString(conn, begin); err != nil {
			return
		}
	}
}

// disperse hangs up, after all answers that are under way.
func (c *crowd) disperse(t *testing.T) {
	t.Helper()
	close(c.stop)
	for _, conn := range c.conns {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Log(err)
		}
	}
	c.members.Wait()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

func (c *crowd) told() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.full
}

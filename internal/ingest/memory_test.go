package ingest_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/idempotency"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/memstore"
)

// Beside a crowd that holds connections and sends bodies that never end, or that nobody signed, from the address of the genuine
// sender and from another one, and together far more than there is memory for, at least 99 % of what the genuine sender
// sends are acknowledged the first time. Who is given up for it is told so, and nothing of that is counted as a fault of ours,
// which would page somebody. How long it takes depends on the machine as well, and is for make attack to tell.
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
		{name: "announced, not sent", begin: announced, conns: 500},
		{name: "one byte", begin: announced + "x", conns: 500},
		{name: "a byte a second", begin: announced + "x", goOn: "x", conns: 500},
		{name: "all but the last byte", begin: announced + junk[1:], again: true, conns: 120, full: true},
		{name: "all but the last byte of a chunk", begin: chunks + junk[1:], again: true, conns: 120, full: true},
		{name: "forged", begin: announced + junk, again: true, conns: 100},
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
					t.Errorf("%.1f %% of the genuine requests were acknowledged", 100*share)
				}
				crowd.disperse()
				srv.Close()
				refused := gather(t, g, "hookonce_rejected_total")["crowded,billing"]
				if told := float64(crowd.told()); c.full != (refused > 0) || told < 0.99*refused-1 || told > refused {
					t.Errorf("%v were refused for want of room, and %v were told to come again", refused, told)
				}
				wantNoFault(t, g)
			})
		}
	}
}

// wantNoFault wants what was refused to be what strangers can cause.
func wantNoFault(t *testing.T, g *gate) {
	t.Helper()
	for of, n := range gather(t, g, "hookonce_rejected_total") {
		reason, _, _ := strings.Cut(of, ",")
		if n > 0 && !slices.Contains([]string{"crowded", "slow", "truncated", "signature_mismatch"}, reason) {
			t.Errorf("%v requests were refused for %s", n, reason)
		}
	}
}

// sizes are those of genuine bodies, about. The largest ones need as much room as those of a crowd.
var sizes = []int{1, 2000, 65_400}

// genuine posts events and returns which part of them was acknowledged.
func genuine(t *testing.T, srv *httptest.Server) float64 {
	t.Helper()
	return answered(t, func(i int) *http.Request {
		body := fmt.Sprintf(`{"id":"evt_%d","pad":"%s"}`, i, strings.Repeat("x", sizes[i%len(sizes)]))
		req, err := http.NewRequest("POST", srv.URL+"/in/billing", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(signatureHeader, sign(body))
		return req
	})
}

// answered sends requests, every other one on a connection of its own, and returns which part of them succeeded.
func answered(t *testing.T, request func(i int) *http.Request) float64 {
	t.Helper()
	const requests = 100
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	good := 0
	for i := range requests {
		req := request(i)
		req.Close = i%2 == 0
		res, err := client.Do(req)
		if err != nil {
			t.Log(err)
			continue
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Log("answered", res.Status)
			continue
		}
		good++
	}
	return float64(good) / requests
}

// So it is with a service behind an Idempotency-Key, which is asked for nobody for whose answer there is no room.
func TestAGenuineCallerGetsInBesideACrowd(t *testing.T) {
	const maxBody, maxAnswer = 64 << 10, 64 << 10
	announced := fmt.Sprintf("POST /in/charges HTTP/1.1\r\nHost: gw.test\r\nIdempotency-Key: no\r\nContent-Length: %d\r\n\r\n", maxBody)
	junk := strings.Repeat("x", maxBody)
	for _, c := range []struct {
		name  string
		begin string
		goOn  string
		conns int
		again bool
		full  bool
	}{
		{name: "announced, not sent", begin: announced, conns: 500},
		{name: "a byte a second", begin: announced + "x", goOn: "x", conns: 500},
		{name: "all but the last byte", begin: announced + junk[1:], again: true, conns: 120, full: true},
		{name: "refused by the service", begin: announced + junk, conns: 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") == "" {
					w.WriteHeader(http.StatusUnauthorized)
				}
			}))
			defer behind.Close()
			g := guardedGate(t, behind.URL, maxBody, maxAnswer)
			srv := httptest.NewServer(g)
			crowd := assemble(t, srv, "127.0.0.1", c.conns, c.begin, c.goOn, c.again)
			share := answered(t, func(i int) *http.Request {
				req, err := http.NewRequest("POST", srv.URL+"/in/charges", strings.NewReader(strings.Repeat("x", sizes[i%len(sizes)])))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Idempotency-Key", fmt.Sprint("genuine-", i))
				req.Header.Set("Authorization", "not-a-real-token")
				return req
			})
			if share < 0.99 {
				t.Errorf("%.1f %% of the genuine requests were answered", 100*share)
			}
			crowd.disperse()
			srv.Close()
			refused := gather(t, g, "hookonce_rejected_total")["crowded,charges"]
			if told := float64(crowd.told()); c.full != (refused > 0) || told < 0.99*refused-1 || told > refused {
				t.Errorf("%v were refused for want of room, and %v were told to come again", refused, told)
			}
			wantNoFault(t, g)
		})
	}
}

// guardedGate serves the service "charges", which is asked once under each Idempotency-Key.
func guardedGate(t *testing.T, url string, maxBody, maxAnswer int64) *gate {
	t.Helper()
	to, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return newGate(t, func(o *ingest.Options) {
		o.MaxReading, o.Sources = 16<<20, nil
		o.Services = []ingest.Service{{Name: "charges", MaxBody: maxBody, MaxAnswer: maxAnswer, Keeps: idempotency.Keeps, Handler: idempotency.New(idempotency.Service{
			Name: "charges", URL: to, Transport: transport, MaxBody: maxBody, MaxAnswer: int(maxAnswer), Timeout: 20 * time.Second, Lease: 10 * time.Second,
		}, idempotency.Options{
			Store: memstore.New(), Metrics: idempotency.NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		})}}
	})
}

// A service that works on as many requests of one address as there is room for is not asked for another one, which is told to
// come again; and is for one of another address.
func TestNoRoomForTheAnswer(t *testing.T) {
	const maxBody, maxAnswer, fit = 64 << 10, 1 << 20, 8 // half of 16 MiB
	begun, finish := make(chan struct{}, 100), make(chan struct{})
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-finish
	}))
	defer behind.Close()
	g := guardedGate(t, behind.URL, maxBody, maxAnswer)
	srv := httptest.NewServer(g)
	defer srv.Close()
	var asked sync.WaitGroup
	ask := func(key, from string) (*http.Response, error) {
		req, err := http.NewRequest("POST", srv.URL+"/in/charges", http.NoBody)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Idempotency-Key", key)
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		return (&http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}).RoundTrip(req)
	}
	wantOK := func(key, from string) {
		asked.Go(func() {
			res, err := ask(key, from)
			if err != nil {
				t.Error(err)
			} else if res.Body.Close(); res.StatusCode != http.StatusOK {
				t.Errorf("%s from %s was answered %d", key, from, res.StatusCode)
			}
		})
		<-begun
	}
	for i := range fit {
		wantOK(fmt.Sprint("k", i), "127.0.0.1")
	}
	res, err := ask("more", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || !strings.Contains(string(text), "hookonce:problem:unavailable") {
		t.Errorf("one more was answered %d %v %s", res.StatusCode, res.Header, text)
	}
	wantOK("other", "127.0.0.2")
	if n := len(begun); n != 0 {
		t.Errorf("the service was asked for %d more", n)
	}
	close(finish)
	asked.Wait()
	wantOK("more", "127.0.0.1")
	asked.Wait()
}

// A sender that reads nothing before it has written everything receives the answer to a body that is not read to its end.
func TestARefusedSenderReceivesTheAnswer(t *testing.T) {
	const size = 8 << 20 // more than sockets hold
	junk := strings.Repeat("x", size)
	for _, c := range []struct {
		name, source, frame, body string
		status                    int
		reason                    string
	}{
		{"too large", "billing", fmt.Sprintf("Content-Length: %d", size), junk, 413, "too_large"},
		{"too large, in chunks", "billing", "Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", size, junk), 413, "too_large"},
		{"too large, in small chunks", "billing", "Transfer-Encoding: chunked", strings.Repeat("400\r\n"+junk[:1<<10]+"\r\n", size>>10) + "0\r\n\r\n", 413, "too_large"},
		{"from another address than allowed", "orders", fmt.Sprintf("Content-Length: %d", size), junk, 503, "address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t, func(o *ingest.Options) {
				o.Sources[0].MaxBody, o.Sources[1].Allow = 64<<10, networks("192.0.2.0/24")
			})
			srv := httptest.NewServer(g)
			defer srv.Close()
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := fmt.Fprintf(conn, "POST /in/%s HTTP/1.1\r\nHost: gw.test\r\n%s\r\n\r\n%s", c.source, c.frame, c.body); err != nil {
				t.Fatal(err)
			}
			res, body := answer(t, conn)
			wantProblem(t, res.StatusCode, res.Header, body, c.status, c.reason)
			if !res.Close {
				t.Error("the connection is kept open")
			}
		})
	}
}

// crowd is many connections to one server.
type crowd struct {
	members sync.WaitGroup
	stop    chan struct{}
	dial    func() (net.Conn, error)
	begin   string
	again   bool // those that are answered begin anew

	mu    sync.Mutex
	conns map[net.Conn]bool
	full  int // were answered that there is no room, and to come again on another connection
}

// assemble has a crowd connect from an address and send the beginning, and returns when all have.
func assemble(t *testing.T, srv *httptest.Server, from string, conns int, begin, goOn string, again bool) *crowd {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c := &crowd{stop: make(chan struct{}), conns: map[net.Conn]bool{}, begin: begin, again: again,
		dial: func() (net.Conn, error) { return dialer.Dial("tcp", srv.Listener.Addr().String()) }}
	var begun sync.WaitGroup
	for range conns {
		begun.Add(1)
		c.members.Go(func() { c.join(begun.Done) })
	}
	begun.Wait()
	if goOn != "" {
		c.members.Go(func() { c.dribble(goOn) })
	}
	return c
}

// join is what one of the crowd does until it is dispersed.
func (c *crowd) join(begun func()) {
	for {
		conn, err := c.dial()
		if err != nil || !c.enter(conn) {
			begun()
			return
		}
		in := bufio.NewReader(conn)
		for kept := true; kept; {
			go func(begun func()) {
				_, _ = io.WriteString(conn, c.begin) // who is answered before that does not care
				begun()
			}(begun)
			begun = func() {}
			kept = c.read(in) && c.pause()
		}
		c.leave(conn)
		if !c.pause() {
			return
		}
	}
}

// pause reports whether to begin anew, after a while: a crowd that never rests takes all of the machine, and on a busy one
// the genuine sender is the slowest of them.
func (c *crowd) pause() bool {
	if !c.again {
		return false
	}
	select {
	case <-c.stop:
		return false
	case <-time.After(time.Second):
		return true
	}
}

// read reads an answer and reports whether the connection is kept.
func (c *crowd) read(in *bufio.Reader) bool {
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return false
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return false
	}
	if res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != "" && res.Close {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.full++
	}
	return !res.Close
}

// enter reports whether the crowd is still there.
func (c *crowd) enter(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.stop:
		_ = conn.Close()
		return false
	default:
		c.conns[conn] = true
		return true
	}
}

func (c *crowd) leave(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
	_ = conn.Close()
}

func (c *crowd) dribble(what string) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		c.mu.Lock()
		for conn := range c.conns {
			_, _ = io.WriteString(conn, what)
		}
		c.mu.Unlock()
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
	}
}

// disperse hangs up, and returns when what was under way is answered.
func (c *crowd) disperse() {
	c.mu.Lock()
	close(c.stop)
	for conn := range c.conns {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	c.mu.Unlock()
	c.members.Wait()
}

func (c *crowd) told() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.full
}

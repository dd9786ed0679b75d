package connlimit_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/connlimit"
)

// patience bounds every wait for something that must happen.
const patience = time.Minute

// tally is a watcher that remembers.
type tally struct {
	mu        sync.Mutex
	cut       map[connlimit.Cause]int
	refused   map[connlimit.Cause]int
	exhausted int
	cutFrom   map[netip.Prefix]int
}

func newTally() *tally {
	return &tally{cut: map[connlimit.Cause]int{}, refused: map[connlimit.Cause]int{}, cutFrom: map[netip.Prefix]int{}}
}

func (w *tally) Cut(by connlimit.Cause, from netip.Prefix) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[by]++
	w.cutFrom[from]++
}

func (w *tally) Refused(by connlimit.Cause, _ netip.Prefix) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused[by]++
}

func (w *tally) Exhausted(error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.exhausted++
}

func (w *tally) of(counts map[connlimit.Cause]int, by connlimit.Cause) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return counts[by]
}

// rig is a server behind a listener with limits.
type rig struct {
	*testing.T
	*connlimit.Listener
	tally
}

// newRig starts a server whose handler reads the body and answers "fine", unless another one is given.
func newRig(t *testing.T, o connlimit.Options, handler http.HandlerFunc) *rig {
	t.Helper()
	return newRigOn(t, listen(t), o, handler)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// newRigOn is newRig on a listener.
func newRigOn(t *testing.T, inner net.Listener, o connlimit.Options, handler http.HandlerFunc) *rig {
	t.Helper()
	r := &rig{T: t, tally: *newTally()}
	o.Watcher = &r.tally
	r.Listener = connlimit.New(inner, o)
	if handler == nil {
		handler = func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				w.WriteHeader(http.StatusRequestTimeout)
				return
			}
			io.WriteString(w, "fine")
		}
	}
	s := &http.Server{Handler: handler, ReadHeaderTimeout: time.Hour, IdleTimeout: time.Hour, MaxHeaderBytes: 32 << 10}
	r.Attach(s)
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.Serve(r.Listener)
	}()
	t.Cleanup(func() {
		s.Close()
		<-served
	})
	return r
}

// dial connects from an address of this machine.
func (r *rig) dial(from string) net.Conn {
	r.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	c, err := d.DialContext(r.Context(), "tcp", r.Addr().String())
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		r.Fatal(err)
	}
	return c
}

// say sends text and waits until the connection counts.
func (r *rig) say(from, text string) net.Conn {
	r.Helper()
	c := r.dial(from)
	if _, err := io.WriteString(c, text); err != nil {
		r.Fatal(err)
	}
	return c
}

const (
	get  = "GET / HTTP/1.1\r\nHost: gw.test\r\n\r\n"
	post = "POST / HTTP/1.1\r\nHost: gw.test\r\nContent-Length: 2\r\n\r\nok"
)

// ask sends a request over a connection of its own and returns the status, zero if there is no answer.
func (r *rig) ask(from, request string) int {
	r.Helper()
	return answer(r.say(from, request))
}

func answer(c net.Conn) int {
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	return res.StatusCode
}

// await waits until ok. Each look is after something else had its turn.
func (r *rig) await(what string, ok func() bool) {
	r.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.Fatalf("%s: did not come true; %d are open, %v were cut and %v refused", what, r.Open(), r.cut, r.refused)
		}
	}
}

// receive waits until something came.
func (r *rig) receive(what string, from <-chan struct{}) {
	r.Helper()
	select {
	case <-from:
	case <-time.After(patience):
		r.Fatalf("%s: did not come true; %d are open, %v were cut and %v refused", what, r.Open(), r.cut, r.refused)
	}
}

// holds are ways to keep a connection without a request that is worked on.
var holds = map[string]string{
	"silent":         "",
	"half a header":  "POST / HTTP/1.1\r\nHost: gw.te",
	"a large header": "POST / HTTP/1.1\r\nHost: gw.test\r\nX-Pad: " + strings.Repeat("x", 9_000),
	"many lines":     "POST / HTTP/1.1\r\nHost: gw.test\r\n" + strings.Repeat("a: b\r\n", 90),
	"idle":           get,
	"body announced": "POST / HTTP/1.1\r\nHost: gw.test\r\nContent-Length: 1000000\r\n\r\n",
	"half a body":    "POST / HTTP/1.1\r\nHost: gw.test\r\nContent-Length: 10\r\n\r\nhalf",
	"chunks":         "POST / HTTP/1.1\r\nHost: gw.test\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
	"expecting":      "POST / HTTP/1.1\r\nHost: gw.test\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n",
	"too slow":       "POST /late HTTP/1.1\r\nHost: gw.test\r\nContent-Length: 10\r\n\r\nhalf",
}

// Whoever holds all connections that there are, from few addresses or from many, keeps nobody out, not even those who have his
// address; and there are never more than the limits say.
func TestHoldersKeepNobodyOut(t *testing.T) {
	const most, each = 24, 6
	for name, text := range holds {
		for spread, addresses := range map[string]int{"one address": 1, "some addresses": 8, "many addresses": 3 * most} {
			t.Run(name+"/"+spread, func(t *testing.T) {
				t.Parallel()
				began := make(chan struct{}, 1)
				r := newRig(t, connlimit.Options{Limits: connlimit.Limits{Max: most, PerAddress: each}, HeaderLines: 100, LargeHeaders: 4},
					func(w http.ResponseWriter, r *http.Request) {
						began <- struct{}{}
						if r.URL.Path == "/late" { // its time is over, and it is read on so that the peer can read the answer
							socket := http.NewResponseController(w)
							socket.SetReadDeadline(time.Unix(1, 0))
							io.Copy(io.Discard, r.Body)
							socket.SetReadDeadline(time.Time{})
						}
						io.Copy(io.Discard, r.Body)
					})
				// A request that has just come is worked on for a moment, and a new connection may be refused meanwhile.
				settled := func() { r.await("it is the peers' turn", func() bool { return r.Working() == 0 }) }
				hold := func(from string) {
					r.say(from, text)
					if strings.Contains(text, "\r\n\r\n") {
						r.receive("what a holder sent is worked on", began)
						settled()
					}
				}
				for i := range 3 * most { // three times what there is room for
					hold(fmt.Sprintf("127.0.1.%d", 1+i%addresses))
				}
				for i := range 10 {
					hold("127.0.1.1")
					for _, from := range []string{"127.0.0.9", "127.0.1.1"} {
						if got := r.ask(from, post); got != http.StatusOK {
							t.Errorf("request %d of %s was answered %d", i, from, got)
						}
						r.receive("a sender's request is worked on", began)
						settled()
					}
					if n := r.Open(); n > most {
						t.Errorf("%d connections, more than %d", n, most)
					}
				}
				r.await("connections were cut", func() bool {
					return r.of(r.cut, connlimit.ByAddress)+r.of(r.cut, connlimit.ByListener)+r.of(r.cut, connlimit.ByLargeHeaders) > 0
				})
				if n := r.of(r.refused, connlimit.ByListener) + r.of(r.refused, connlimit.ByAddress); n > 0 {
					t.Errorf("%d were refused", n)
				}
				if addresses == 1 && r.Open() > 2*each {
					t.Errorf("one address has %d connections, more than %d", r.Open(), each)
				}
			})
		}
	}
}

// Of more complete requests at once than there may be connections as many are worked on and answered as there may be, and the
// others turned away. When these are over, it is as if there had been no others.
func TestBurst(t *testing.T) {
	const most = 24
	release := make(chan struct{})
	r := newRig(t, connlimit.Options{Limits: connlimit.Limits{Max: most, PerAddress: most}}, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-release
	})
	var burst []net.Conn
	for i := range 3 * most {
		c := r.dial(fmt.Sprintf("127.0.1.%d", 1+i))
		io.WriteString(c, []string{post, get, get, get}[i%4]) // which fails where it was turned away
		burst = append(burst, c)
	}
	r.await("as many as there may be are worked on, and the others turned away", func() bool {
		if n := r.Open(); n > most {
			t.Fatalf("%d connections, more than %d", n, most)
		}
		return r.Working() == most && r.of(r.refused, connlimit.ByListener)+r.of(r.cut, connlimit.ByListener) == 2*most
	})
	close(release)
	fine := 0
	for _, c := range burst {
		if answer(c) == http.StatusOK {
			fine++
		}
	}
	if fine != most {
		t.Errorf("%d were answered 200, want %d", fine, most)
	}
	for i := range 2 * most {
		r.await("it is the peers' turn", func() bool { return r.Working() == 0 })
		if got := r.ask("127.0.0.9", post); got != http.StatusOK {
			t.Errorf("request %d after the burst was answered %d", i, got)
		}
		if n := r.Open(); n > most {
			t.Errorf("%d connections, more than %d", n, most)
		}
	}
}

// A sender's connection that waits for its next request outlives an attack from few addresses.
func TestHogsAreCutFirst(t *testing.T) {
	r := newRig(t, connlimit.Options{Limits: connlimit.Limits{Max: 32, PerAddress: 10}}, nil)
	kept := r.say("127.0.0.9", get)
	if got := answer(kept); got != 200 {
		t.Fatal(got)
	}
	for i := range 100 {
		r.say(fmt.Sprintf("127.0.1.%d", 1+i%4), "")
	}
	r.await("the listener was full", func() bool { return r.of(r.cut, connlimit.ByListener) > 0 })
	if _, err := io.WriteString(kept, post); err != nil {
		t.Fatal(err)
	}
	if got := answer(kept); got != 200 {
		t.Errorf("the connection of a sender was answered %d", got)
	}
}

// A sender that has shown who it is keeps its connections through an attack from as many addresses as there are
// connections, and from its own; but not more than half of all, so that others get in.
func TestKnownPeersAreCutLast(t *testing.T) {
	const most = 32
	for from, unverified := range map[string]func(i int) string{
		"many addresses":   func(i int) string { return fmt.Sprintf("127.0.1.%d", 1+i) },
		"the same address": func(int) string { return "127.0.0.9" },
	} {
		t.Run(from, func(t *testing.T) {
			r := newRig(t, connlimit.Options{Limits: connlimit.Limits{Max: most, PerAddress: most - 2}}, func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(io.Discard, r.Body); err == nil && r.Method == http.MethodPost {
					connlimit.Known(r.Context())
				}
			})
			var kept []net.Conn
			for range 10 {
				c := r.say("127.0.0.9", post)
				if got := answer(c); got != 200 {
					t.Fatal(got)
				}
				kept = append(kept, c)
			}
			for round := range 3 {
				for i := range 3 * most {
					if c := r.say(unverified(i), get); i%4 == 0 {
						answer(c) // whatever it is: the connection may have gone
					}
				}
				for i, c := range kept {
					if _, err := io.WriteString(c, post); err != nil {
						t.Fatalf("round %d: connection %d: %v", round, i, err)
					}
					if got := answer(c); got != 200 {
						t.Fatalf("round %d: connection %d was answered %d", round, i, got)
					}
				}
			}
			for range 3 * most {
				if got := answer(r.say("127.0.0.8", post)); got != 200 {
					t.Fatalf("a sender of many connections was answered %d", got)
				}
			}
			slow := r.say("127.0.3.1", get[:10])
			for i := range most / 3 {
				if got := r.ask(fmt.Sprintf("127.0.2.%d", 1+i), get); got != 200 {
					t.Fatalf("an unverified peer beside known ones was answered %d", got)
				}
			}
			io.WriteString(slow, get[10:])
			if got := answer(slow); got != 200 {
				t.Errorf("an unverified peer beside known ones, who are more than half, was answered %d", got)
			}
		})
	}
}

// A request that is worked on is never cut. When all are, the next connection is told to come again.
func TestWorkIsNotCut(t *testing.T) {
	const most = 4
	began, release := make(chan struct{}), make(chan struct{})
	r := newRig(t, connlimit.Options{Limits: connlimit.Limits{Max: most, PerAddress: most}}, func(w http.ResponseWriter, r *http.Request) {
		io.ReadFull(r.Body, make([]byte, r.ContentLength)) // and does not look whether there is more
		began <- struct{}{}
		<-release
		io.WriteString(w, "fine")
	})
	var working []net.Conn
	for i := range most {
		request := post
		if i%2 == 0 {
			request = get
		}
		working = append(working, r.say(fmt.Sprintf("127.0.0.%d", i+1), request))
		r.receive("a request is worked on", began)
	}
	for _, from := range []string{"127.0.0.9", "127.0.0.1"} {
		c := r.dial(from)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || !res.Close {
			t.Errorf("refused with %+v, %v, want 503, Retry-After and Connection: close", res, err)
		}
	}
	if n := r.of(r.refused, connlimit.ByListener); n != 2 {
		t.Errorf("%d refused", n)
	}
	close(release)
	for i, c := range working {
		if got := answer(c); got != 200 {
			t.Errorf("request %d was answered %d", i, got)
		}
	}
}

// TLS waits for what the peer says first. A peer that is turned away and says nothing keeps nobody out.
func TestSilentPeersOfTLS(t *testing.T) {
	own := httptest.NewUnstartedServer(nil) // for its certificate
	own.StartTLS()
	own.Close()
	began, release := make(chan struct{}), make(chan struct{})
	r := newRigOn(t, tls.NewListener(listen(t), &tls.Config{Certificates: own.TLS.Certificates}),
		connlimit.Options{Limits: connlimit.Limits{Max: 10, PerAddress: 1}}, func(http.ResponseWriter, *http.Request) {
			began <- struct{}{}
			<-release
		})
	finish := sync.OnceFunc(func() { close(release) })
	defer finish()
	ask := func(from string) net.Conn {
		c := tls.Client(r.dial(from), &tls.Config{InsecureSkipVerify: true})
		if _, err := io.WriteString(c, get); err != nil {
			t.Fatalf("%s does not get in: %v", from, err)
		}
		r.receive("a request is worked on", began)
		return c
	}
	held := ask("127.0.1.1")
	silent := r.dial("127.0.1.1")
	other := ask("127.0.0.9")
	var timeout net.Error
	if n, err := silent.Read(make([]byte, 1)); n > 0 || err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("who is turned away reads %d bytes, %v", n, err)
	}
	if n := r.of(r.refused, connlimit.ByAddress); n != 1 {
		t.Errorf("%d refused", n)
	}
	finish()
	for _, c := range []net.Conn{held, other} {
		if got := answer(c); got != 200 {
			t.Errorf("answered %d", got)
		}
	}
}

// A peer that does not read its answer is cut like one that does not send its request.
func TestSlowReaders(t *testing.T) {
	const most = 4
	large := strings.Repeat("x", 64<<20)
	began := make(chan struct{})
	r := newRig(t, connlimit.Options{Limits: connlimit.Limits{Max: most, PerAddress: most}}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			began <- struct{}{}
			io.WriteString(w, large)
		}
	})
	for range most {
		r.say("127.0.1.1", "GET /large HTTP/1.1\r\nHost: gw.test\r\n\r\n")
		r.receive("an answer begins", began)
	}
	r.await("a sender gets in", func() bool { return r.ask("127.0.0.9", get) == 200 })
}

// How many requests with large headers there are at a time has a bound of its own.
func TestLargeHeaders(t *testing.T) {
	r := newRig(t, connlimit.Options{Limits: connlimit.Limits{Max: 100, PerAddress: 100}, LargeHeaders: 3}, nil)
	for range 3 {
		r.say("127.0.1.1", holds["a large header"])
	}
	r.await("three are held", func() bool { return r.Large() == 3 })
	large := strings.Replace(post, "Host", "X-Pad: "+strings.Repeat("x", 20_000)+"\r\nHost", 1)
	for range 20 { // the first takes the place of a holder's, and what is over does not count any more
		if got := r.ask("127.0.0.9", large); got != 200 {
			t.Errorf("a complete one was answered %d", got)
		}
		r.await("it is over", func() bool { return r.Large() == 2 })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.cutFrom[netip.MustParsePrefix("127.0.1.1/32")]; n != 1 || r.cut[connlimit.ByLargeHeaders] != 1 {
		t.Errorf("%d of those who hold such headers were cut, and of all %v", n, r.cut)
	}
}

// Lines of a header are counted before they cost anything, however they arrive; those of a body are not.
func TestHeaderLines(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("a:\n", n) }
	pretty := strings.Repeat("\n", 5_000)
	withBody := func(extra string) string {
		return fmt.Sprintf("POST / HTTP/1.1\r\nHost: gw.test\r\n%sContent-Length: %d\r\n\r\n%s", extra, len(pretty), pretty)
	}
	for name, c := range map[string]struct {
		send string
		want []int
	}{
		"few lines":                {"GET / HTTP/1.1\nHost: gw.test\n" + lines(18) + "\n", []int{200}},
		"too many":                 {"GET / HTTP/1.1\nHost: gw.test\n" + lines(19) + "\n", []int{431}},
		"far too many, unfinished": {"GET / HTTP/1.1\nHost: gw.test\n" + lines(9_000), []int{431}},
		"empty lines":              {strings.Repeat("\r\n", 100), []int{431}},
		"lines of a body":          {withBody(""), []int{200}},
		"in the second request":    {get + "GET / HTTP/1.1\nHost: gw.test\n" + lines(5_000), []int{200, 431}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, connlimit.Options{Limits: connlimit.Limits{Max: 10, PerAddress: 10}, HeaderLines: 20}, nil)
			in := r.say("127.0.0.9", c.send)
			read := bufio.NewReader(in)
			for i, want := range c.want {
				res, err := http.ReadResponse(read, nil)
				if err != nil || res.StatusCode != want {
					t.Fatalf("answer %d: %+v %v, want %d", i, res, err, want)
				}
				io.Copy(io.Discard, res.Body)
			}
			if c.want[len(c.want)-1] != 200 {
				r.await("it counts", func() bool { return r.of(r.refused, connlimit.ByHeaderLines) == 1 })
			}
		})
	}
	t.Run("one request after the other", func(t *testing.T) {
		r := newRig(t, connlimit.Options{Limits: connlimit.Limits{Max: 10, PerAddress: 10}, HeaderLines: 20}, nil)
		in := r.dial("127.0.0.9")
		read := bufio.NewReader(in)
		for i := range 20 {
			request := withBody(lines(15))
			for _, part := range []string{request[:3], request[3:20], request[20:]} { // as slow senders do
				if _, err := io.WriteString(in, part); err != nil {
					t.Fatal(err)
				}
			}
			res, err := http.ReadResponse(read, nil)
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("request %d: %+v %v", i, res, err)
			}
			io.Copy(io.Discard, res.Body)
		}
	})
}

// A whole request that is sent before the answer to the last is answered.
func TestPipelined(t *testing.T) {
	r := newRig(t, connlimit.Options{Limits: connlimit.Limits{Max: 10, PerAddress: 10}, HeaderLines: 20}, nil)
	in := r.say("127.0.0.9", get+post+get)
	read := bufio.NewReader(in)
	for i := range 3 {
		res, err := http.ReadResponse(read, nil)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("answer %d: %+v %v", i, res, err)
		}
		io.Copy(io.Discard, res.Body)
	}
}

// Requests for which others are waited for leave room for all other requests, and those of which the rest is awaited for
// those that are complete.
func TestGroups(t *testing.T) {
	const most, each = 12, 4
	began, release := make(chan struct{}), make(chan struct{})
	joined := make(chan struct{}, 100) // one for each that is let into the group
	r := newRig(t, connlimit.Options{
		Limits: connlimit.Limits{Max: most, PerAddress: most, PerGroup: each},
		Group:  func(r *http.Request) string { return strings.Trim(r.URL.Path, "/") },
	}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			joined <- struct{}{}
		}
		if _, err := io.Copy(io.Discard, r.Body); err == nil && r.URL.Path == "/slow" {
			began <- struct{}{}
			<-release
		}
	})
	slow := strings.Replace(post, "POST /", "POST /slow", 1)
	for i := range each { // to make room for the complete ones
		r.say(fmt.Sprintf("127.0.1.%d", i), strings.Replace(holds["half a body"], "POST /", "POST /slow", 1))
		r.receive("half a request is in the group", joined) // one that came after the complete ones would find no room
	}
	var working []net.Conn
	for i := range each {
		working = append(working, r.say(fmt.Sprintf("127.0.2.%d", i), slow))
		r.receive("a complete request is worked on", began)
	}
	for range 2 * most {
		if got := r.ask("127.0.1.1", slow); got != 503 {
			t.Errorf("one too many was answered %d", got)
		}
		for _, path := range []string{"POST /", "POST /other"} {
			if got := r.ask("127.0.0.9", strings.Replace(post, "POST /", path, 1)); got != 200 {
				t.Errorf("%s was answered %d", path, got)
			}
		}
	}
	if cut, refused := r.of(r.cut, connlimit.ByGroup), r.of(r.refused, connlimit.ByGroup); cut != each || refused != 2*most {
		t.Errorf("cut %d and refused %d", cut, refused)
	}
	close(release)
	for _, c := range working {
		if got := answer(c); got != 200 {
			t.Errorf("answered %d", got)
		}
	}
	go func() {
		for range began {
		}
	}()
	defer close(began)
	if got := r.ask("127.0.0.9", slow); got != 200 {
		t.Errorf("when the others are over, one was answered %d", got)
	}
}

// A connection that was taken over, such as that of a WebSocket, counts until it is closed: also in its group. It gives way to
// others, also while a body is still being read, unless its peer may keep it.
func TestTunnels(t *testing.T) {
	none := func(context.Context) {}
	for name, c := range map[string]struct {
		mark  func(context.Context)
		body  bool
		deaf  bool // the peer reads nothing of what is being written
		stays bool
	}{
		"a stranger": {mark: none}, "a known peer": {mark: connlimit.Known}, "a trusted peer": {mark: connlimit.Trust, stays: true},
		"a trusted peer that reads nothing": {mark: connlimit.Trust, deaf: true, stays: true}, "after the end of a body": {mark: none, body: true},
	} {
		t.Run(name, func(t *testing.T) {
			const most, each = 6, 2
			r := newRig(t, connlimit.Options{
				Limits: connlimit.Limits{Max: most, PerAddress: each, PerGroup: each},
				Group:  func(r *http.Request) string { return strings.Trim(r.URL.Path, "/") },
			}, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/tunnel" {
					return
				}
				c.mark(r.Context())
				sent := r.Body
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				if c.body {
					io.Copy(io.Discard, sent) // as a proxy may that still sends it
				}
				io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
				if c.deaf {
					conn.Write(make([]byte, 64<<20)) // more than there is room for on the way
				}
				io.Copy(conn, conn)
			})
			tunnel := "GET /tunnel HTTP/1.1\r\nHost: gw.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
			if c.body {
				tunnel = strings.Replace(post, "POST /", "POST /tunnel", 1)
			}
			open := func(from string) (net.Conn, int) {
				conn := r.say(from, tunnel)
				answer := bufio.NewReader(conn)
				res, err := http.ReadResponse(answer, nil)
				if err != nil {
					return conn, 0
				}
				if c.deaf && res.StatusCode == http.StatusSwitchingProtocols {
					answer.ReadByte() // now it is being written
				}
				return conn, res.StatusCode
			}
			var tunnels []net.Conn
			for range each {
				c, status := open("127.0.1.1")
				if status != http.StatusSwitchingProtocols {
					t.Fatalf("answered %d", status)
				}
				tunnels = append(tunnels, c)
			}
			if n := r.Open(); n != each {
				t.Errorf("%d count, and there are %d", n, each)
			}
			_, full := open("127.0.1.2")  // the group is
			_, crowd := open("127.0.1.1") // as is the address
			want := http.StatusSwitchingProtocols
			if c.stays {
				want = http.StatusServiceUnavailable
			}
			if full != want || crowd != want {
				t.Errorf("beyond the limits of a group and of an address were answered %d and %d, want %d", full, crowd, want)
			}
			for _, tunnel := range tunnels {
				_, err := io.WriteString(tunnel, "x")
				if err == nil {
					_, err = tunnel.Read(make([]byte, 1))
				}
				if (err == nil) != c.stays {
					t.Errorf("a tunnel: %v", err)
				}
				tunnel.Close()
			}
			if c.stays {
				r.await("what is closed gives way", func() bool { return r.Open() == 0 })
				if _, status := open("127.0.1.1"); status != http.StatusSwitchingProtocols {
					t.Errorf("when the others are over, one was answered %d", status)
				}
			}
		})
	}
}

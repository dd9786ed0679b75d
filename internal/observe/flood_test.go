package observe

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/loglimit"
)

// Whoever sends what cannot be forwarded, or looked at, fills no log.
func TestLogIsBoundedUnderAFlood(t *testing.T) {
	var out bytes.Buffer
	metrics := NewMetrics(prometheus.NewRegistry())
	recorder := &Observer{bodies: newRoom(1 << 20), metrics: metrics, waiting: make(chan *request, 1000), lost: map[string]int64{}}
	f := New(Source{
		Name: "orders", To: &url.URL{Scheme: "http", Host: "app.internal"},
		Provider:  &sender{func(*hookonce.Request) (*hookonce.Verified, error) { panic("fake") }},
		Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }),
	}, Options{URL: func(r *http.Request) string { return r.URL.String() }, Observer: recorder, Metrics: metrics, Logger: slog.New(slog.NewTextHandler(&out, nil)), Now: func() time.Time { return noon }})
	defer f.Close()
	for range 500 {
		f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/in/orders", nil))
		if all := (<-recorder.waiting).observations(); all[0].Reason != ReasonPanic {
			t.Fatalf("on record: %+v", all)
		}
	}
	loglimit.Flush(f.opt.Logger)
	if n := strings.Count(out.String(), "\n"); n == 0 || n > 50 || !strings.Contains(out.String(), "suppressed=") {
		t.Errorf("%d lines for 500 requests:\n%.1000s", n, out.String())
	}
}

// idleRecorder returns one that writes nothing by itself.
func idleRecorder() *Observer {
	return &Observer{
		metrics: NewMetrics(prometheus.NewRegistry()), now: func() time.Time { return noon }, some: make(chan struct{}, 1),
		lost: map[string]int64{}, alike: map[likeness]*row{}, strange: map[string]int{},
	}
}

// Strangers make few rows, however much they send, and what they sent is counted all the same: the report has the
// numbers of the flood, and the events that came amid it.
func TestStrangersMakeFewRows(t *testing.T) {
	onEveryStore(t, func(t *testing.T, p place) {
		p.migrate(t)
		r, s := idleRecorder(), p.store(t)
		const each, rounds = 1000, 3
		q := &request{source: &Source{Name: "orders"}}
		saw := func(o Observation) { r.add(q, []Observation{o}) }
		written := 0
		for round := range rounds {
			for i := range each {
				o := Observation{Source: "orders", ReceivedAt: noon, Requests: 1, Kind: Refused, Reason: hookonce.ReasonSignatureMismatch, Status: 200 + 300*(i%2)}
				saw(o)
				o.Kind, o.Reason = Unread, ReasonTooLarge
				saw(o)
				o.Kind, o.Reason = Handshake, ""
				saw(o)
			}
			saw(came(fmt.Sprint("event-", round), 0, 1, 200))
			for rows := r.batch(); len(rows) > 0; rows = r.batch() {
				written += len(rows)
				if _, err := s.insert(t.Context(), rows); err != nil {
					t.Fatal(err)
				}
			}
		}
		if most := rounds * (maxEach + 6 + 1); written > most {
			t.Errorf("%d rows for %d requests, want at most %d", written, rounds*(3*each+1), most)
		}
		got, err := NewReport(t.Context(), s, "orders", noon.Add(-time.Hour), 5)
		if err != nil || got.Requests != rounds*(3*each+1) || got.Forged[hookonce.ReasonSignatureMismatch] != rounds*each || got.Accepted != rounds*each/2 ||
			got.Unread[ReasonTooLarge] != rounds*each || got.Handshakes != rounds*each || got.Events != rounds || got.Unrecorded != 0 {
			t.Errorf("report %+v, %v", got, err)
		}
	})
}

// What strangers sent is bounded apart, and pushes out no event.
func TestStrangersPushOutNoEvent(t *testing.T) {
	onEveryStore(t, func(t *testing.T, p place) {
		p.migrate(t)
		s := p.store(t)
		rows := []row{{1, came("first", 0, 0, 200)}}
		for i := range 30 {
			o := came("", float64(i+1), 0, 200)
			o.Kind, o.Digest = []Kind{Refused, Handshake, Unread}[i%3], nil
			rows = append(rows, row{int64(i + 2), o})
		}
		if _, err := s.insert(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
		if err := s.forgetStrange(t.Context(), "orders", 4); err != nil {
			t.Fatal(err)
		}
		r, err := NewReport(t.Context(), s, "orders", noon, 5)
		if err != nil || r.Requests != 5 || r.Events != 1 || !r.Until.Equal(noon.Add(30*time.Second)) {
			t.Errorf("report %+v, %v", r, err)
		}
	})
}

// While the store is away what is not on record is one number, however often the store is tried.
func TestGapsDoNotGrowWhileTheStoreIsAway(t *testing.T) {
	r := idleRecorder()
	for range maxPending {
		r.pending = append(r.pending, &row{r.nextID(), came("k", 0, 1, 200)})
	}
	const tries = 1000
	for range tries {
		r.mu.Lock()
		r.lose("orders", 1, ReasonStore)
		r.mu.Unlock()
		r.wrote(r.batch(), nil, errors.New("away"))
	}
	if n := len(r.pending); n > maxPending+1 {
		t.Errorf("%d observations wait for the store, want at most %d", n, maxPending+1)
	}
	lost := r.lost["orders"]
	for _, o := range r.pending {
		if o.Kind == Gap {
			lost += o.Requests
		}
	}
	if lost != tries {
		t.Errorf("%d requests are counted, want %d", lost, tries)
	}
}

// A sender that hung up holds nothing once its request is over.
func TestHungUpRequestsAreLetGo(t *testing.T) {
	p := sqlitePlace(t)
	p.migrate(t)
	begun, gone := make(chan struct{}), make(chan struct{})
	f := newFront(t, p, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(begun)
		<-gone
	}, nil)
	type mark [1 << 16]byte
	type markKey struct{}
	noticed := make(chan struct{})
	var free atomic.Bool
	inner := f.Config.Handler
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m := new(mark)
		runtime.AddCleanup(m, func(int) { free.Store(true) }, 0)
		context.AfterFunc(r.Context(), func() { close(noticed) })
		inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), markKey{}, m)))
	})
	conn, err := net.Dial("tcp", f.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
	<-begun
	conn.Close()
	<-noticed
	<-time.After(50 * time.Millisecond)
	close(gone)
	f.end()
	for deadline := time.Now().Add(patience); !free.Load(); runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("the request is held although it is over")
		}
		<-time.After(10 * time.Millisecond)
	}
}

// What comes after a body passes, both ways.
func TestTrailers(t *testing.T) {
	p := sqlitePlace(t)
	p.migrate(t)
	seen := make(chan http.Header, 1)
	f := newFront(t, p, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		seen <- r.Trailer
		w.Header().Set(http.TrailerPrefix+"X-Late", "l")
		io.WriteString(w, "x")
	}, nil)
	r, err := http.NewRequest("POST", f.URL, struct{ io.Reader }{strings.NewReader("abc")})
	if err != nil {
		t.Fatal(err)
	}
	r.Trailer = http.Header{"X-Sum": {"1"}}
	res, err := f.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if h := <-seen; h.Get("X-Sum") != "1" {
		t.Errorf("request trailer %v", h)
	}
	if res.Trailer.Get("X-Late") != "l" {
		t.Errorf("trailer %v", res.Trailer)
	}
}

// An application that answers before it has read the request gets all of it, and its sender hears the answer at once.
func TestApplicationMayAnswerFirst(t *testing.T) {
	p := sqlitePlace(t)
	p.migrate(t)
	app, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	const size = 200_000
	answer, got := make(chan string, 1), make(chan int64, 1)
	go func() {
		for {
			conn, err := app.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(conn)
			for {
				if line, err := in.ReadString('\n'); err != nil || line == "\r\n" {
					break
				}
			}
			fmt.Fprint(conn, <-answer)
			n, _ := io.CopyN(io.Discard, in, size)
			got <- n
			in.ReadByte() // until it is closed
			conn.Close()
		}
	}()
	f := newFront(t, p, ok, func(s *Source) {
		s.To, s.MaxBody = &url.URL{Scheme: "http", Host: app.Addr().String()}, 2*size
		s.Provider = &sender{func(*hookonce.Request) (*hookonce.Verified, error) {
			return &hookonce.Verified{Events: []hookonce.Event{{Key: "k"}}}, nil
		}}
	})
	f.forwarder.finishing = patience // on a busy machine as well
	for i := range 20 {
		answer <- []string{"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nok\r\n0\r\n\r\n"}[i%2]
		if status, text := f.post(t, strings.Repeat("x", size)); status != 200 || text != "ok" {
			t.Fatalf("answered %d %s", status, text)
		}
		if n := <-got; n != size {
			t.Fatalf("the application got %d of %d bytes", n, size)
		}
	}
	for _, o := range f.all(t) {
		if o.Kind != Event || o.Unheard || o.Failure != "" {
			t.Fatalf("on record: %+v", o)
		}
	}
}

// The server gives up the rest of a request when the answer is written; that the transport still looks for an end
// does not mean that the sender broke off.
func TestBodyThatOurServerGaveUp(t *testing.T) {
	b := &body{ReadCloser: io.NopCloser(io.MultiReader(strings.NewReader("whole"), failing{http.ErrBodyReadAfterClose})), room: newRoom(1 << 20), limit: 100, before: func() {}, ended: func() {}}
	if _, err := io.ReadAll(b); !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Fatal(err)
	}
	if data, unread, err := b.take(5); string(data) != "whole" || unread != "" || err != nil {
		t.Errorf("%q, %q, %v", data, unread, err)
	}
}

// Nobody moves the deadlines of a connection once its request is over: the server moves them to get its own read back,
// and would wait for that for ever.
func TestSocketIsLeftToTheServer(t *testing.T) {
	b := &body{ReadCloser: io.NopCloser(strings.NewReader("")), room: newRoom(1 << 20), limit: 100}
	ended := 0
	b.before = func() {}
	b.ended = func() {
		if ended++; b.reading.TryLock() { // as leave does
			t.Error("the request may be over while the deadline is being moved")
		}
	}
	if _, err := b.Read(make([]byte, 1)); err != io.EOF || ended != 1 {
		t.Errorf("%v, and the deadline was moved %d times", err, ended)
	}
	b.leave()
	if _, err := b.Read(make([]byte, 1)); err != http.ErrBodyReadAfterClose || ended != 1 {
		t.Errorf("%v once the request is over, and the deadline was moved %d times", err, ended)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// An application that answers without reading harms nothing but its own request: neither the program, whatever its
// sender does with the rest, nor the connection, unless there is much of it.
func TestRequestThatIsNotRead(t *testing.T) {
	p := sqlitePlace(t)
	p.migrate(t)
	app, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	go func() {
		for {
			conn, err := app.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(conn).ReadString('\n')
			fmt.Fprint(conn, "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
			conn.Close()
		}
	}()
	f := newFront(t, p, ok, func(s *Source) { s.To = &url.URL{Scheme: "http", Host: app.Addr().String()} })
	var faults bytes.Buffer
	watched := httptest.NewUnstartedServer(f.Config.Handler)
	watched.Config.ErrorLog = log.New(&faults, "", 0)
	watched.Start()
	defer watched.Close()
	for name, c := range map[string]struct {
		size  int
		again bool // the connection is good for more
	}{"small": {100, true}, "too large to be looked at": {20_000, true}, "large": {discarded + 200_000, false}, "larger": {4 * discarded, false}} {
		conn, err := net.Dial("tcp", watched.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		in := bufio.NewReader(conn)
		for i := range 3 {
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\nhalf", c.size)
			res, err := http.ReadResponse(in, nil) // before the rest is sent
			if err != nil {
				t.Fatalf("%s, request %d: %v", name, i, err)
			}
			io.Copy(io.Discard, res.Body)
			if res.StatusCode/100 != 4 && res.StatusCode != http.StatusBadGateway { // as the race between the two ends
				t.Fatalf("%s, request %d was answered %d", name, i, res.StatusCode)
			}
			_, err = io.WriteString(conn, strings.Repeat("x", c.size-len("half")))
			if !c.again {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		conn.Close()
	}
	watched.Close()
	if faults.Len() > 0 {
		t.Errorf("the server says %s", &faults)
	}
}

package observe

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

// place is a database that has no tables yet.
type place struct {
	dialect schema.Dialect
	db      *sql.DB // for whoever makes the tables
	open    func() (*Store, error)
}

func (p place) migrate(t *testing.T) {
	t.Helper()
	if _, err := schema.Migrate(t.Context(), p.db, p.dialect, ""); err != nil {
		t.Fatal(err)
	}
}

func (p place) store(t *testing.T) *Store {
	t.Helper()
	s, err := p.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func sqlitePlace(t *testing.T) place {
	file := filepath.Join(t.TempDir(), "hookonce.db")
	return newPlace(t, schema.SQLite, "sqlite", "file:"+file, func() (*Store, error) { return OpenSQLite(file, false) })
}

func postgresPlace(t *testing.T) place {
	dsn := pgtest.DSN(t)
	return newPlace(t, schema.Postgres, "pgx", dsn, func() (*Store, error) { return OpenPostgres(dsn, "") })
}

func newPlace(t *testing.T, d schema.Dialect, driver, dsn string, open func() (*Store, error)) place {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return place{d, db, open}
}

func onEveryStore(t *testing.T, test func(t *testing.T, p place)) {
	t.Run("sqlite", func(t *testing.T) { test(t, sqlitePlace(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, postgresPlace(t)) })
}

// front is a source in front of an application.
type front struct {
	*httptest.Server
	forwarder *Forwarder
	recorder  *Observer
	store     *Store
	registry  *prometheus.Registry
	end       func() // records what was seen
}

// sender is a provider whose body is the key of its event.
type sender struct {
	open func(*hookonce.Request) (*hookonce.Verified, error)
}

func (s *sender) Profile() hookonce.Profile { return hookonce.Profile{Name: "fake"} }

func (s *sender) Open(r *hookonce.Request) (*hookonce.Verified, error) {
	if s.open != nil {
		return s.open(r)
	}
	return &hookonce.Verified{Events: []hookonce.Event{{Key: string(r.Body), Type: "paid", Digest: []byte("same")}}}, nil
}

func newFront(t *testing.T, p place, app http.HandlerFunc, change func(*Source)) *front {
	t.Helper()
	behind := httptest.NewServer(app)
	t.Cleanup(behind.Close)
	to, err := url.Parse(behind.URL + "/hooks")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	f := &front{store: p.store(t), registry: prometheus.NewRegistry()}
	log, metrics := slog.New(slog.DiscardHandler), NewMetrics(f.registry)
	f.recorder = NewObserver(f.store, ObserverOptions{Metrics: metrics, Logger: log, Now: time.Now, Keep: func(string) time.Duration { return time.Hour }, WriteTimeout: time.Minute})
	s := Source{Name: "orders", To: to, Transport: transport, Provider: &sender{}, MaxBody: 1000}
	if change != nil {
		change(&s)
	}
	forwarder := New(s, Options{URL: func(r *http.Request) string { return r.URL.String() }, Observer: f.recorder, Metrics: metrics, Logger: log, Now: time.Now})
	f.forwarder = forwarder
	f.Server = httptest.NewServer(forwarder)
	ended := false
	f.end = func() {
		if ended {
			return
		}
		ended = true
		f.Server.Close()
		forwarder.Close()
		f.recorder.Close()
	}
	t.Cleanup(f.end)
	return f
}

func (f *front) post(t *testing.T, body string) (int, string) {
	t.Helper()
	res, err := f.Client().Post(f.URL, "text/plain", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(text)
}

// all returns what is on record, in the order of the store, after the end.
func (f *front) all(t *testing.T) (all []Observation) {
	t.Helper()
	f.end()
	err := f.store.Read(t.Context(), "orders", time.Time{}, func(o Observation) error {
		if o.Took < 0 || o.ReceivedAt.IsZero() && o.Kind != Gap {
			t.Errorf("times of %+v", o)
		}
		o.Took, o.ReceivedAt, o.Source = 0, time.Time{}, ""
		all = append(all, o)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (f *front) want(t *testing.T, want ...Observation) {
	t.Helper()
	if diff := cmp.Diff(want, f.all(t), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("on record (-want +got):\n%s", diff)
	}
}

func ok(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%d bytes at %s", len(body), r.URL.Path)
}

// Whatever fails of ours, the application is asked and its answer passed on.
func TestFaultsOfOursAreBypassed(t *testing.T) {
	onEveryStore(t, func(t *testing.T, p place) {
		p.migrate(t)
		for name, c := range map[string]struct {
			open func(*hookonce.Request) (*hookonce.Verified, error)
			body string
			want Observation
		}{
			"a panic":           {func(*hookonce.Request) (*hookonce.Verified, error) { panic("fake") }, "x", Observation{Kind: Unread, Reason: ReasonPanic}},
			"keys out of reach": {func(*hookonce.Request) (*hookonce.Verified, error) { return nil, errors.New("no keys") }, "x", Observation{Kind: Unread, Reason: ReasonUndecided}},
			"a large body":      {nil, strings.Repeat("x", 1001), Observation{Kind: Unread, Reason: ReasonTooLarge}},
			"a type for no database": {func(*hookonce.Request) (*hookonce.Verified, error) {
				return &hookonce.Verified{Events: []hookonce.Event{{Key: "k", Type: "a\x00b\xff" + strings.Repeat("é", 200)}}}, nil
			}, "x", Observation{Kind: Event, Key: "k", Type: "ab" + strings.Repeat("é", 98)}},
			"no event": {func(*hookonce.Request) (*hookonce.Verified, error) { return &hookonce.Verified{}, nil }, "x", Observation{Kind: Notice}},
		} {
			if _, err := p.db.ExecContext(t.Context(), "DELETE FROM "+p.store(t).table); err != nil {
				t.Fatal(err)
			}
			f := newFront(t, p, ok, func(s *Source) { s.Provider = &sender{c.open} })
			if status, text := f.post(t, c.body); status != 200 || text != fmt.Sprintf("%d bytes at /hooks", len(c.body)) {
				t.Errorf("%s: answered %d %s", name, status, text)
			}
			c.want.Requests, c.want.Status = 1, 200
			f.want(t, c.want)
		}
	})
}

// Nobody waits for a verification that hangs, and what waits for it is bounded.
func TestSlowVerificationDelaysNobody(t *testing.T) {
	p := sqlitePlace(t)
	p.migrate(t)
	hang := make(chan struct{})
	f := newFront(t, p, ok, func(s *Source) {
		s.Provider = &sender{func(r *hookonce.Request) (*hookonce.Verified, error) {
			<-hang
			return (&sender{}).Open(r)
		}}
	})
	const sent = lookers + maxWaiting + 100
	for range sent {
		if status, _ := f.post(t, "same"); status != 200 {
			t.Fatalf("answered %d", status)
		}
	}
	f.Close() // waits for what comes after the answers: each has its place, or none
	close(hang)
	f.end()
	r, err := NewReport(t.Context(), f.store, "orders", time.Now().Add(-time.Hour), 5)
	if err != nil || r.Requests != sent || r.Unrecorded < 100 || r.Unrecorded > 100+lookers || r.Events != 1 {
		t.Errorf("report %+v, %v", r, err)
	}
}

// Bodies that wait take up no more than their share, and all of it is given back.
func TestMemoryIsBoundedUnderAFlood(t *testing.T) {
	p := sqlitePlace(t)
	p.migrate(t)
	hang := make(chan struct{})
	f := newFront(t, p, ok, func(s *Source) {
		s.MaxBody = 2 << 20
		s.Provider = &sender{func(r *hookonce.Request) (*hookonce.Verified, error) {
			<-hang
			return &hookonce.Verified{Events: []hookonce.Event{{Key: "k"}}}, nil
		}}
	})
	body := strings.Repeat("x", 1<<20)
	const sent = 2 * maxBodies >> 20
	for range sent {
		if status, text := f.post(t, body); status != 200 || text != fmt.Sprintf("%d bytes at /hooks", len(body)) {
			t.Fatalf("answered %d %s", status, text)
		}
		if left := f.recorder.bodies.left.Load(); left < 0 {
			t.Fatalf("%d bytes are left", left)
		}
	}
	close(hang)
	f.end()
	if left := f.recorder.bodies.left.Load(); left != maxBodies {
		t.Errorf("%d bytes are left, want %d", left, maxBodies)
	}
	r, err := NewReport(t.Context(), f.store, "orders", time.Now().Add(-time.Hour), 5)
	if err != nil || r.Requests != sent || r.Unread[ReasonMemory] == 0 || r.Unread[ReasonMemory]+r.Doubled.Events[0].Times != sent {
		t.Errorf("report %+v, %v", r, err)
	}
}

// While the store is away observations wait for it, as many as there is room for; then all requests are accounted for.
func TestStoreThatComesBack(t *testing.T) {
	testskip.Long(t)
	onEveryStore(t, func(t *testing.T, p place) {
		f := newFront(t, p, ok, nil)
		for i := range 50 {
			if status, _ := f.post(t, fmt.Sprint("early-", i)); status != 200 {
				t.Fatalf("answered %d", status)
			}
		}
		const flood = maxPending + 1000
		q := &request{source: &Source{Name: "orders"}}
		for i := range flood {
			f.recorder.add(q, []Observation{{Source: "orders", ReceivedAt: time.Now(), Kind: Event, Key: fmt.Sprint(i), Requests: 1}})
		}
		f.recorder.mu.Lock()
		if n := len(f.recorder.pending) + f.recorder.writing; n > maxPending+1 {
			t.Errorf("%d observations wait for the store", n)
		}
		f.recorder.mu.Unlock()
		p.migrate(t)
		f.end()
		r, err := NewReport(t.Context(), f.store, "orders", time.Now().Add(-time.Hour), 5)
		if err != nil || r.Requests != 50+flood || r.Unrecorded < 1000 || r.Unrecorded > 1050 || r.Events+r.Unrecorded != r.Requests {
			t.Errorf("report %+v, %v", r, err)
		}
	})
}

// A row that the store refuses does not keep the others out, and writing a row again changes nothing.
func TestOneBadRowDoesNotHoldUpTheOthers(t *testing.T) {
	onEveryStore(t, func(t *testing.T, p place) {
		p.migrate(t)
		s := p.store(t)
		good := []row{{1, Observation{Source: "orders", Kind: Event, Key: "a"}}, {3, Observation{Source: "orders", Kind: Event, Key: "c"}}}
		bad := row{2, Observation{Source: "orders", Kind: Event, Key: "b", Type: "\xff\x00"}}
		rows := []row{good[0], bad, good[1]}
		for range 2 {
			refused, err := s.insert(t.Context(), rows)
			if err != nil || p.dialect == schema.Postgres && (len(refused) != 1 || refused[0].id != 2) {
				t.Fatalf("refused %+v, %v", refused, err)
			}
		}
		var keys []string
		if err := s.Read(t.Context(), "orders", time.Time{}, func(o Observation) error { keys = append(keys, o.Key); return nil }); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(keys, ""); got != "ac" && (got != "abc" || p.dialect == schema.Postgres) {
			t.Errorf("on record: %s", got)
		}
	})
}

// A sender that hangs up cancels nothing: what the application answers then is on record, and that nobody heard it.
func TestSenderThatHangsUp(t *testing.T) {
	p := sqlitePlace(t)
	p.migrate(t)
	begun, gone, finished := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f := newFront(t, p, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(begun)
		<-gone
		finished <- r.Context().Err()
	}, nil)
	noticed := make(chan struct{})
	watched := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		context.AfterFunc(r.Context(), func() { close(noticed) })
		f.Config.Handler.ServeHTTP(w, r)
	}))
	defer watched.Close()
	conn, err := net.Dial("tcp", watched.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
	<-begun
	conn.Close()
	<-noticed
	close(gone)
	if err := <-finished; err != nil {
		t.Errorf("the application was told %v", err)
	}
	watched.Close()
	f.want(t, Observation{Kind: Event, Requests: 1, Key: "x", Type: "paid", Digest: []byte("same"), Status: 200, Unheard: true})
}

// The transport looks for more after the last byte, when the server may have closed the body: the sender has not
// broken off then.
func TestBodyIsReadAfterItsEnd(t *testing.T) {
	for _, end := range []error{io.EOF, http.ErrBodyReadAfterClose} {
		b := &body{ReadCloser: io.NopCloser(strings.NewReader("evt_1")), room: newRoom(1 << 20), limit: 1000, before: func() {}, ended: func() {}}
		if _, err := io.ReadAll(b); err != nil {
			t.Fatal(err)
		}
		b.ReadCloser = io.NopCloser(iotest.ErrReader(end))
		if _, err := b.Read(make([]byte, 1)); err != end {
			t.Errorf("the transport was told %v, not %v", err, end)
		}
		if data, unread, err := b.take(5); string(data) != "evt_1" || unread != "" || err != nil {
			t.Errorf("after the end came %v: %q, %q, %v", end, data, unread, err)
		}
	}
}

// A sender that goes as soon as it has the answer has heard it.
func TestSenderThatGoesWithTheAnswer(t *testing.T) {
	p := sqlitePlace(t)
	p.migrate(t)
	f := newFront(t, p, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "ok")
	}, nil)
	const requests = 300
	for i := range requests {
		conn, err := net.Dial("tcp", f.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n")
		fmt.Fprintf(conn, "evt%03d", i)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		conn.Close()
	}
	unheard := 0
	for _, o := range f.all(t) {
		if o.Unheard {
			unheard++
		}
	}
	if unheard > 0 {
		t.Errorf("%d of %d answers are on record as unheard", unheard, requests)
	}
}

// A sender that breaks off within its own request is no failure of the application.
func TestSenderThatBreaksOff(t *testing.T) {
	p := sqlitePlace(t)
	p.migrate(t)
	seen := make(chan error, 1)
	f := newFront(t, p, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		seen <- err
	}, nil)
	conn, err := net.Dial("tcp", f.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx")
	conn.Close()
	if err := <-seen; err == nil {
		t.Error("the application got a whole request")
	}
	f.want(t, Observation{Kind: Unread, Requests: 1, Reason: ReasonPartial, Failure: FailureSender, Unheard: true})
}

// An application that breaks off does so for its sender, and one that cannot be reached is on record as that.
func TestApplicationThatFails(t *testing.T) {
	p := sqlitePlace(t)
	p.migrate(t)
	f := newFront(t, p, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if string(body) == "within" {
			w.Header().Set("Content-Length", "10")
			io.WriteString(w, "half")
			w.(http.Flusher).Flush()
		}
		panic(http.ErrAbortHandler)
	}, nil)
	res, err := f.Client().Post(f.URL, "", strings.NewReader("within"))
	if err == nil {
		_, err = io.ReadAll(res.Body)
		res.Body.Close()
	}
	if err == nil {
		t.Error("half an answer looks whole")
	}
	if status, _ := f.post(t, "before"); status != 502 {
		t.Errorf("answered %d", status)
	}
	event := Observation{Kind: Event, Requests: 1, Type: "paid", Digest: []byte("same"), Failure: FailureBroken}
	before, within := event, event
	before.Key, within.Key, within.Status = "before", "within", 200
	f.want(t, before, within)
	if r, err := NewReport(t.Context(), f.store, "orders", time.Now().Add(-time.Hour), 5); err != nil || r.Unanswered.Count != 2 {
		t.Errorf("report %+v, %v", r, err)
	}
	down := newFront(t, p, ok, func(s *Source) { s.To = &url.URL{Scheme: "http", Host: "127.0.0.1:1"} })
	if status, _ := down.post(t, "down"); status != 502 {
		t.Errorf("answered %d", status)
	}
	if all := down.all(t); all[1].Key != "down" || all[1].Failure != FailureUnreachable {
		t.Errorf("on record: %+v", all)
	}
}

// The application takes as long as it likes, in spite of the server's deadlines; a sender that is known to wait
// for less is on record as not having heard the answer. Sockets count in real time, so this does, too; on a machine that is too busy
// to send a request within the deadline it is tried with a longer one.
func TestApplicationMayTakeItsTime(t *testing.T) {
	for limit := 200 * time.Millisecond; ; limit *= 4 {
		err := takesItsTime(t, limit)
		if err == nil {
			return
		}
		if limit > patience {
			t.Fatalf("with %v to read and to write: %v", limit, err)
		}
	}
}

// takesItsTime posts to an application what takes it twice as long as the server has, and looks at the record.
func takesItsTime(t *testing.T, limit time.Duration) error {
	p := sqlitePlace(t)
	p.migrate(t)
	f := newFront(t, p, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-time.After(2 * limit)
		w.WriteHeader(http.StatusAccepted)
	}, func(s *Source) { s.Deadline = limit })
	slow := httptest.NewUnstartedServer(f.Config.Handler)
	slow.Config.ReadTimeout, slow.Config.WriteTimeout = limit, limit
	slow.Start()
	defer slow.Close()
	res, err := slow.Client().Post(slow.URL, "", strings.NewReader("k"))
	if err != nil {
		return err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		return fmt.Errorf("answered %d", res.StatusCode)
	}
	slow.Close()
	f.want(t, Observation{Kind: Event, Requests: 1, Key: "k", Type: "paid", Digest: []byte("same"), Status: 202, Unheard: true})
	return nil
}

// Who asks before it sends its body is answered by the application, not by us.
func TestExpectContinue(t *testing.T) {
	p := sqlitePlace(t)
	p.migrate(t)
	var refuse atomic.Bool
	f := newFront(t, p, func(w http.ResponseWriter, r *http.Request) {
		if refuse.Load() {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		ok(w, r)
	}, func(s *Source) { s.Transport.(*http.Transport).ExpectContinueTimeout = patience })
	ask := func() (status int, rest *bufio.Reader, conn net.Conn) {
		conn, err := net.Dial("tcp", f.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
		rest = bufio.NewReader(conn)
		line, err := rest.ReadString('\n')
		if _, scanned := fmt.Sscanf(line, "HTTP/1.1 %d", &status); err != nil || scanned != nil {
			t.Fatal(line, err)
		}
		return status, rest, conn
	}
	status, rest, conn := ask()
	defer conn.Close()
	if status != 100 {
		t.Fatalf("asked, and was told %d", status)
	}
	fmt.Fprint(conn, "body")
	if _, err := rest.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(rest, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); string(text) != "4 bytes at /hooks" {
		t.Errorf("answered %d %s", res.StatusCode, text)
	}
	refuse.Store(true)
	for late := time.Now().Add(patience); ; { // who waits for the body does so each time, and a busy machine takes long once in a while
		began := time.Now()
		status, _, second := ask()
		took := time.Since(began)
		second.Close()
		if status != 413 {
			t.Fatalf("asked, and was told %d", status)
		}
		if took < draining {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("heard of the refusal after %v: when the wait for a body that it need not send was over", took)
		}
	}
}

// A request for many events counts once, and only so many of them are on record.
func TestEventsOfOneRequest(t *testing.T) {
	p := sqlitePlace(t)
	p.migrate(t)
	events := make([]hookonce.Event, maxEvents+5)
	for i := range events {
		events[i].Key = fmt.Sprint(i)
	}
	events[1].Coalesce = true
	f := newFront(t, p, ok, func(s *Source) {
		s.Provider = &sender{func(*hookonce.Request) (*hookonce.Verified, error) { return &hookonce.Verified{Events: events}, nil }}
	})
	f.post(t, "x")
	f.end()
	r, err := NewReport(t.Context(), f.store, "orders", time.Now().Add(-time.Hour), 5)
	if err != nil || r.Requests != 1 || r.Events != maxEvents-1 || r.Notices != 1 || r.Copies.All != 0 {
		t.Errorf("report %+v, %v", r, err)
	}
	if n := testutil.ToFloat64(f.recorder.metrics.unrecorded.WithLabelValues("orders", ReasonEvents)); n != 5 {
		t.Errorf("%v events counted as not on record", n)
	}
}

// An authentic request whose time is out of tolerance has its event; a forged one of any time has none.
func TestLateIsNotForged(t *testing.T) {
	p := sqlitePlace(t)
	p.migrate(t)
	open := func(tolerant bool) *sender {
		return &sender{func(r *hookonce.Request) (*hookonce.Verified, error) {
			switch {
			case strings.HasPrefix(string(r.Body), "forged"):
				return nil, &hookonce.RejectError{Reason: hookonce.ReasonSignatureMismatch}
			case !tolerant, strings.HasPrefix(string(r.Body), "stale"):
				return nil, &hookonce.RejectError{Reason: hookonce.ReasonTimestampOld}
			case strings.HasPrefix(string(r.Body), "torn"): // which is seen when the time is right
				return nil, &hookonce.RejectError{Reason: hookonce.ReasonSignatureMismatch}
			}
			return (&sender{}).Open(r)
		}}
	}
	f := newFront(t, p, ok, func(s *Source) { s.Provider, s.Timeless = open(false), open(true) })
	for _, body := range []string{"late", "forged", "stale", "torn"} {
		f.post(t, body)
	}
	res, err := f.Client().Get(f.URL)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	f.end()
	r, err := NewReport(t.Context(), f.store, "orders", time.Now().Add(-time.Hour), 5)
	forged, other := Tally{hookonce.ReasonSignatureMismatch: 2}, Tally{ReasonMethod: 1, hookonce.ReasonTimestampOld: 1}
	if err != nil || r.Late.Count != 1 || r.Late.Events[0].Key != "late" || !cmp.Equal(r.Forged, forged) || r.Accepted != 2 || len(r.Proof) != 2 || !cmp.Equal(r.Other, other) {
		t.Errorf("report %+v, %v", r, err)
	}
}

// The time of some senders is checked by code, which no tolerance changes. What is genuine but for
// that is not forged either, and what was forged is, however old it is.
func TestLateByCodeIsNotForged(t *testing.T) {
	p := sqlitePlace(t)
	p.migrate(t)
	const at = "https://shop.example/in"
	contentful := provider.Contentful(at, strings.Repeat("fake", 16))
	f := newFront(t, p, ok, func(s *Source) { s.Provider = contentful })
	const genuine, forged = `{"sys":{"id":"a"}}`, `{"sys":{"id":"b"}}`
	for _, c := range []struct {
		age  time.Duration
		body string
	}{{0, genuine}, {time.Hour, genuine}, {-time.Hour, genuine}, {0, forged}, {time.Hour, forged}, {-time.Hour, forged}} {
		signed := &hookonce.Request{Method: http.MethodPost, URL: at, Header: http.Header{"X-Contentful-Topic": {"Entry.publish"}}, Body: []byte(genuine), Now: time.Now().Add(-c.age)}
		if err := contentful.Sign(signed); err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = signed.Header
		res, err := f.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	f.end()
	r, err := NewReport(t.Context(), f.store, "orders", time.Now().Add(-time.Hour), 5)
	late := Tally{hookonce.ReasonTimestampOld: 1, hookonce.ReasonTimestampFuture: 1}
	if err != nil || r.Events != 1 || !cmp.Equal(r.Forged, Tally{hookonce.ReasonSignatureMismatch: 3}) || r.Accepted != 3 || len(r.Proof) != 3 || !cmp.Equal(r.Other, late) {
		t.Errorf("report %+v, %v", r, err)
	}
	if untimely, strange := r.Untimely(); !cmp.Equal(untimely, late) || len(strange) > 0 {
		t.Errorf("untimely %v, strange %v", untimely, strange)
	}
}

// The Host is what the application would have seen, and what proxies said stays if they are believed.
func TestHostAndForwarded(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for name, c := range map[string]struct {
		to, host, local, peer string
		said                  string // X-Forwarded-For
		wantHost, want        string
	}{
		"a proxy on this machine":   {"http://127.0.0.1:3000/", "shop.example", "127.0.0.1:8080", "127.0.0.1:999", "192.0.2.1", "shop.example", "192.0.2.1"},
		"and it says nothing":       {"http://127.0.0.1:3000/", "shop.example", "127.0.0.1:8080", "[::1]:999", "", "shop.example", ""},
		"the gateway by its number": {"http://127.0.0.1:3000/", "127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1:999", "", "127.0.0.1:3000", ""},
		"the gateway as localhost":  {"http://app:3000/", "localhost:8080", "[::1]:8080", "127.0.0.1:999", "", "app:3000", ""},
		"another port":              {"http://app:3000/", "localhost:80", "127.0.0.1:8080", "127.0.0.1:999", "", "localhost:80", ""},
		"a name of the network":     {"http://app.default.svc.cluster.local/", "shop.example", "10.1.1.1:8080", "10.0.0.1:999", "192.0.2.1", "shop.example", "192.0.2.1"},
		"a public name":             {"https://shop.hosting.example/", "hooks.example", "192.0.2.9:443", "10.0.0.1:999", "192.0.2.1", "shop.hosting.example", "192.0.2.1"},
		"a stranger":                {"http://127.0.0.1:3000/", "hooks.example", "192.0.2.9:80", "198.51.100.7:999", "", "hooks.example", "198.51.100.7"},
		"a stranger that pretends":  {"http://127.0.0.1:3000/", "hooks.example", "192.0.2.9:80", "198.51.100.7:999", "192.0.2.1", "hooks.example", "192.0.2.1, 198.51.100.7"},
	} {
		to, err := url.Parse(c.to)
		if err != nil {
			t.Fatal(err)
		}
		var got *http.Request
		f := New(Source{To: to, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r
			return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r}, nil
		})}, Options{Metrics: NewMetrics(prometheus.NewRegistry()), TrustedProxies: trusted, Logger: slog.New(slog.DiscardHandler), Now: time.Now, URL: func(*http.Request) string { return "" },
			Observer: &Observer{bodies: newRoom(1 << 20), metrics: NewMetrics(prometheus.NewRegistry()), waiting: make(chan *request, 1)},
		})
		r := httptest.NewRequest("POST", "/in/orders", nil)
		at, err := net.ResolveTCPAddr("tcp", c.local)
		if err != nil {
			t.Fatal(err)
		}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(at)))
		r.Host, r.RemoteAddr = c.host, c.peer
		if c.said != "" {
			r.Header.Set("X-Forwarded-For", c.said)
		}
		f.ServeHTTP(httptest.NewRecorder(), r)
		f.Close()
		if host := got.Host; host != c.wantHost || got.Header.Get("X-Forwarded-For") != c.want {
			t.Errorf("%s: Host %q, X-Forwarded-For %q; want %q, %q", name, host, got.Header.Get("X-Forwarded-For"), c.wantHost, c.want)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The application may answer while the last of the body is on its way to it, or begin to answer before it has read
// all of it: what it reads and what its sender hears is whole all the same.
func TestAnswerBeforeTheBodyIsRead(t *testing.T) {
	p := sqlitePlace(t)
	p.migrate(t)
	f := newFront(t, p, func(w http.ResponseWriter, r *http.Request) {
		socket := http.NewResponseController(w)
		_ = socket.EnableFullDuplex()
		io.ReadFull(r.Body, make([]byte, min(r.ContentLength, 6000)))
		io.WriteString(w, strings.Repeat("answer ", 10_000))
		_ = socket.Flush()
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "and %d, %v", n, err)
	}, func(s *Source) { s.MaxBody = 1 << 20 })
	var senders sync.WaitGroup
	for i := range 8 {
		senders.Go(func() {
			for j := range 25 {
				size := 6000
				if j%5 == 0 {
					size += 20_000 * (i + 1)
				}
				status, text := f.post(t, strings.Repeat("x", size))
				if want := fmt.Sprintf("answer and %d, <nil>", size-6000); status != 200 || !strings.HasSuffix(text, want) {
					t.Errorf("answered %d, %d bytes that end in %q, want %q", status, len(text), text[max(0, len(text)-30):], want)
				}
			}
		})
	}
	senders.Wait()
	for _, o := range f.all(t) {
		if o.Status != 200 || o.Failure != "" || o.Unheard || o.Kind != Event {
			o.Key = ""
			t.Errorf("on record: %+v", o)
		}
	}
}

// No request for another protocol is handed on, and no connection on which the application speaks one all the same.
func TestNoProtocolIsHandedOn(t *testing.T) {
	closed := make(chan struct{})
	p := sqlitePlace(t)
	p.migrate(t)
	f := newFront(t, p, func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Upgrade", "Connection", "Http2-Settings"} {
			if said := r.Header.Get(name); said != "" {
				t.Errorf("the application was sent %s: %s", name, said)
			}
		}
		if r.URL.RawQuery != "switch" {
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
		close(closed)
	}, nil)
	for target, want := range map[string]int{"/": 200, "/?switch": 502} {
		conn, err := net.Dial("tcp", f.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: gw.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: 2\r\n\r\nk1", target)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != want {
			t.Errorf("%s was answered %d, want %d", target, res.StatusCode, want)
		}
	}
	select {
	case <-closed:
	case <-time.After(patience):
		t.Error("the connection to the application stays open")
	}
	broken := func(o Observation) bool { return o.Status == 0 && o.Failure == FailureBroken }
	if all := f.all(t); len(all) != 2 || broken(all[0]) == broken(all[1]) {
		t.Errorf("on record: %+v; want that one was not answered", all)
	}
}

package idempotency

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sync/errgroup"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/lease"
	"github.com/hookonce/hookonce/internal/problem"
	"github.com/hookonce/hookonce/memstore"
)

// front serves a service behind the path /, on a server with the given time to read and to write.
func front(t *testing.T, service http.HandlerFunc, limit time.Duration, change func(*Service)) *httptest.Server {
	t.Helper()
	behind := httptest.NewServer(service)
	t.Cleanup(behind.Close)
	to, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := Service{Name: "charges", URL: to, Transport: http.DefaultTransport, MaxBody: 1 << 20, MaxAnswer: 1 << 20, Timeout: 20 * time.Second, Lease: 10 * time.Second, NewKeys: 1000}
	if change != nil {
		change(&s)
	}
	srv := httptest.NewUnstartedServer(New(s, Options{
		Store: memstore.New(), Metrics: NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.DiscardHandler), Now: time.Now,
	}))
	srv.Config.ReadTimeout, srv.Config.WriteTimeout = limit, limit
	srv.Start()
	t.Cleanup(srv.Close)
	return srv
}

func ask(t *testing.T, srv *httptest.Server, method, path, key, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, srv.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Error(err)
		return &http.Response{}, ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res, string(text)
}

// A service may take longer than the listener's own deadlines, and nothing cuts its client off. Sockets count
// in real time, so this does, too; on a machine that is too busy to send a request within the deadline it is tried with a longer one.
func TestServiceMayTakeLongerThanTheListener(t *testing.T) {
	for limit := 500 * time.Millisecond; ; limit *= 4 {
		err := takesLonger(t, limit)
		if err == nil {
			return
		}
		if limit > 30*time.Second {
			t.Fatalf("with %v to read and to write: %v", limit, err)
		}
	}
}

// takesLonger asks a service for what takes it twice as long as its listener has.
func takesLonger(t *testing.T, limit time.Duration) error {
	srv := front(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(2 * limit):
			fmt.Fprint(w, "done")
		case <-r.Context().Done(): // which its client is told
		}
	}, limit, func(s *Service) { s.Timeout, s.Lease = 5*time.Minute, time.Minute })
	var clients errgroup.Group
	for _, c := range [][2]string{{"POST", "10"}, {"POST", ""}, {"GET", ""}} {
		clients.Go(func() error {
			req, err := http.NewRequest(c[0], srv.URL, strings.NewReader(c[1]))
			if err != nil {
				return err
			}
			req.Header.Set("Idempotency-Key", "k"+c[1])
			res, err := srv.Client().Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 || string(text) != "done" {
				return fmt.Errorf("%s %q: answered %d %s, %w", c[0], c[1], res.StatusCode, text, err)
			}
			return nil
		})
	}
	return clients.Wait()
}

// socket records the deadlines that are set.
type socket struct {
	http.ResponseWriter
	read, write time.Time
	wrote       func()
}

func (s *socket) Write(p []byte) (int, error) {
	if s.wrote != nil {
		s.wrote()
	}
	return s.ResponseWriter.Write(p)
}

func (s *socket) SetReadDeadline(t time.Time) error  { s.read = t; return nil }
func (s *socket) SetWriteDeadline(t time.Time) error { s.write = t; return nil }

// A client has a while to send its body, however long the service may take; then nothing cuts it off.
func TestPatient(t *testing.T) {
	const d = time.Hour
	for _, body := range []string{"", "10"} {
		s, start := &socket{}, time.Now()
		r, leave := patient(s, httptest.NewRequest("POST", "/", strings.NewReader(body)), d)
		defer leave()
		least := d
		if body != "" {
			least += bodyTime
		}
		if s.write.Before(start.Add(least)) {
			t.Errorf("body %q: an answer must be written until %v after the request", body, s.write.Sub(start))
		}
		s.write = s.read // when the body is there it begins anew
		if early := s.read.Before(start.Add(d)); early != (body != "") {
			t.Errorf("body %q: it must be there %v after the request", body, s.read.Sub(start))
		}
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Fatal(err)
		}
		if s.read.Before(start.Add(d)) || s.write.Before(start.Add(d)) {
			t.Errorf("body %q: the connection is cut %v after the request for reads, %v for writes", body, s.read.Sub(start), s.write.Sub(start))
		}
	}
}

// A copy may wait for the first request, and be forwarded then: it has time for both.
func TestCopiesHaveTimeToWait(t *testing.T) {
	const wait, timeout = 3 * time.Minute, 2 * time.Minute
	h := New(Service{Name: "charges", URL: &url.URL{}, MaxBody: 1 << 20, MaxAnswer: 1 << 20, Timeout: timeout, Wait: wait, Lease: 10 * time.Second}, Options{
		Store: memstore.New(), Metrics: NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	s, began := &socket{ResponseWriter: httptest.NewRecorder()}, time.Now()
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Idempotency-Key", "k1")
	h.ServeHTTP(s, r)
	if s.write.Before(began.Add(wait+timeout)) || s.read.Before(began.Add(wait+timeout)) {
		t.Errorf("its connection is cut after %v for reads, %v for writes", s.read.Sub(began), s.write.Sub(began))
	}
}

// What is handed on as it is takes as long as it takes, both ways, and in between: as long as something comes of it once in
// a while nothing cuts it off.
func TestPassedOnTakesItsTime(t *testing.T) {
	const slow = pause - time.Second
	for name, c := range map[string]struct {
		method string
		body   io.Reader
	}{
		"a download": {"GET", nil},
		"an upload":  {"PUT", io.MultiReader(pieces(slow), pieces(slow), pieces(slow))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				recorder := httptest.NewRecorder()
				var log bytes.Buffer
				s := &socket{ResponseWriter: recorder}
				open := func(what string, deadline time.Time) {
					if !deadline.IsZero() && !time.Now().Before(deadline) {
						t.Errorf("the connection was cut before %s", what)
					}
				}
				h := New(Service{
					Name: "charges", URL: &url.URL{Scheme: "http", Host: "service.test"}, MaxBody: 1 << 20, MaxAnswer: 1 << 20, Timeout: time.Second,
					Lease: 10 * time.Second, OptionalKey: true, NewKeys: 1,
					Transport: serviceFunc(func(r *http.Request) (*http.Response, error) {
						for p := make([]byte, 1); r.Body != nil; {
							_, err := r.Body.Read(p)
							if err == io.EOF {
								break
							}
							open("a piece of the request", s.read)
						}
						time.Sleep(time.Hour) // at work
						open("the answer", s.read)
						const long = rest - time.Second
						answer := io.MultiReader(pieces(slow), pieces(long), reader(func([]byte) (int, error) {
							time.Sleep(long)
							return 0, cmp.Or(r.Context().Err(), io.EOF)
						}))
						return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: -1, Body: io.NopCloser(answer), Request: r}, nil
					}),
				}, Options{Store: memstore.New(), Metrics: NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.NewTextHandler(&log, nil)), Now: time.Now})
				s.wrote = func() { open("a piece of the answer", s.write) }
				h.ServeHTTP(s, httptest.NewRequest(c.method, "/", c.body))
				open("the end of the answer", s.write)
				open("the end of the answer", s.read)
				if recorder.Code != http.StatusOK || recorder.Body.String() != "..."+"..." || log.Len() != 0 {
					t.Errorf("answered %d %q, logged %s", recorder.Code, recorder.Body, &log)
				}
			})
		})
	}
}

// A stream that both ends have forgotten is ended, and the log says why; what still comes of the request counts as much as what
// comes of the answer. A service that has not begun to answer is at work, also if it said that it is (103).
func TestRestingStreamIsEnded(t *testing.T) {
	for name, c := range map[string]struct {
		method   string
		body     io.Reader
		informed bool
		lasts    time.Duration
	}{
		"a stream":                    {method: "GET", lasts: time.Hour + rest},
		"after an early hint":         {method: "GET", informed: true, lasts: time.Hour + rest},
		"while it is still being fed": {method: "PUT", body: pieces(rest - time.Minute), lasts: 3*(rest-time.Minute) + rest},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				h := New(Service{
					Name: "charges", URL: &url.URL{Scheme: "http", Host: "service.test"}, MaxBody: 1 << 20, MaxAnswer: 1 << 20, Timeout: time.Second,
					Lease: 10 * time.Second, OptionalKey: true, NewKeys: 1,
					Transport: serviceFunc(func(r *http.Request) (*http.Response, error) {
						if c.informed {
							_ = httptrace.ContextClientTrace(r.Context()).Got1xxResponse(http.StatusEarlyHints, nil)
						}
						if c.body == nil {
							time.Sleep(time.Hour) // at work
						}
						answer := reader(func([]byte) (int, error) {
							if c.body != nil {
								_, _ = io.Copy(io.Discard, r.Body)
							}
							<-r.Context().Done()
							return 0, context.Canceled
						})
						return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: -1, Body: io.NopCloser(answer), Request: r}, nil
					}),
				}, Options{Store: memstore.New(), Metrics: NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.NewTextHandler(&log, nil)), Now: time.Now})
				began := time.Now()
				h.ServeHTTP(&socket{ResponseWriter: httptest.NewRecorder()}, httptest.NewRequest(c.method, "/", c.body))
				if lasted := time.Since(began); lasted != c.lasts {
					t.Errorf("ended after %v, want %v", lasted, c.lasts)
				}
				if line := log.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, "nothing was sent for 15m0s") {
					t.Errorf("logged %s", line)
				}
			})
		})
	}
}

// pieces are three bytes, each of which takes d.
func pieces(d time.Duration) io.Reader {
	n := 0
	return reader(func(p []byte) (int, error) {
		if n++; n > 3 {
			return 0, io.EOF
		}
		time.Sleep(d)
		return copy(p, "."), nil
	})
}

// serviceFunc is a transport to a service that is a function.
type serviceFunc func(*http.Request) (*http.Response, error)

func (f serviceFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A client that does not send all of a request that is handed on, or does not wait for its answer, is told so, and the
// log does not blame the service.
func TestClientBreaksOff(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		body   error // that the client's body ends with
		leaves bool
		status int
		kind   string
		level  string
	}{
		"too slow":              {"PUT", os.ErrDeadlineExceeded, false, 408, "body-too-slow", "DEBUG"},
		"broke off":             {"PUT", io.ErrUnexpectedEOF, false, 400, "body-truncated", "DEBUG"},
		"left":                  {"GET", nil, true, 502, "service-unreachable", "DEBUG"},
		"the service broke off": {"PUT", nil, false, 502, "service-unreachable", "WARN"},
	} {
		var log bytes.Buffer
		ctx, leave := context.WithCancel(t.Context())
		h := New(Service{
			Name: "charges", URL: &url.URL{Scheme: "http", Host: "service.test"}, MaxBody: 1 << 20, MaxAnswer: 1 << 20, Timeout: time.Minute,
			Lease: 10 * time.Second, OptionalKey: true, NewKeys: 1,
			Transport: serviceFunc(func(r *http.Request) (*http.Response, error) {
				if _, err := io.ReadAll(r.Body); err != nil {
					return nil, err
				}
				if c.leaves {
					leave()
					return nil, context.Canceled
				}
				return nil, io.ErrUnexpectedEOF
			}),
		}, Options{Store: memstore.New(), Metrics: NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), Now: time.Now})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, "/", io.MultiReader(strings.NewReader("10"), iotest.ErrReader(cmp.Or(c.body, io.EOF)))).WithContext(ctx))
		leave()
		if w.Code != c.status || !strings.Contains(w.Body.String(), `"urn:hookonce:problem:`+c.kind+`"`) {
			t.Errorf("%s: answered %d %s", name, w.Code, w.Body)
		}
		if line := log.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, "level="+c.level+" ") {
			t.Errorf("%s: logged %s", name, &log)
		}
	}
}

// A service may answer before it has been sent all of a request without a key. Nobody moves the deadlines of the
// connection once that request is over: the server moves them to get its own read back, and would wait for that.
func TestSocketIsLeftToTheServer(t *testing.T) {
	reading, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h := New(Service{
		Name: "charges", URL: &url.URL{Scheme: "http", Host: "service.test"}, MaxBody: 1 << 20, MaxAnswer: 1 << 20, Timeout: time.Minute,
		Lease: 10 * time.Second, OptionalKey: true, NewKeys: 1,
		Transport: early(func(r *http.Request) {
			go func() {
				defer close(ended)
				_, _ = io.Copy(io.Discard, r.Body)
			}()
			<-reading
		}),
	}, Options{Store: memstore.New(), Metrics: NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	answer := httptest.NewRecorder()
	s := &socket{ResponseWriter: answer}
	h.ServeHTTP(s, httptest.NewRequest("POST", "/", late{reading, end}))
	if answer.Code != http.StatusOK {
		t.Fatalf("answered %d", answer.Code)
	}
	before := s.read
	close(end)
	if <-ended; s.read != before {
		t.Error("a deadline was moved when the request was over")
	}
}

// early is a transport that has the answer when it has begun to send the request.
type early func(*http.Request)

func (send early) RoundTrip(r *http.Request) (*http.Response, error) {
	send(r)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// late is a body that says when it is read, and is at its end when it is told.
type late struct{ reading, end chan struct{} }

func (l late) Read([]byte) (int, error) {
	close(l.reading)
	<-l.end
	return 0, io.EOF
}

func TestServiceSeesTheRequest(t *testing.T) {
	srv := front(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, r.Method, " ", r.URL.RequestURI(), " ", r.Header.Get("Idempotency-Key"), " ", string(body), " ", r.Header.Get("X-Forwarded-For"))
	}, 0, func(s *Service) { s.URL.Path = "/v1" })
	if _, text := ask(t, srv, "PATCH", "/a%2Fb//c?x=1;y&z=%zz", "k1", "10"); text != "PATCH /v1/a%2Fb//c?x=1;y&z=%zz k1 10 127.0.0.1" {
		t.Errorf("the service saw %s", text)
	}
	if _, text := ask(t, srv, "POST", "/", "k2", "10"); text != "POST /v1/ k2 10 127.0.0.1" {
		t.Errorf("the service saw %s", text)
	}
}

// Who sent a request, and how, is said by the socket, or by a proxy that is trusted.
func TestServiceIsToldWhoForwarded(t *testing.T) {
	for name, c := range map[string]struct {
		trusted string
		want    string
	}{
		"nobody trusted": {"10.0.0.0/8", "127.0.0.1 http front.internal"},
		"trusted":        {"127.0.0.0/8", "192.0.2.7, 127.0.0.1 https shop.example.com"},
	} {
		srv := front(t, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Header.Get("X-Forwarded-For"), " ", r.Header.Get("X-Forwarded-Proto"), " ", r.Header.Get("X-Forwarded-Host"))
		}, 0, func(s *Service) { s.TrustedProxies = []netip.Prefix{netip.MustParsePrefix(c.trusted)} })
		req, err := http.NewRequest("POST", srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "front.internal"
		req.Header = http.Header{"Idempotency-Key": {"k1"}, "X-Forwarded-For": {"192.0.2.7"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"shop.example.com"}}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if text, err := io.ReadAll(res.Body); string(text) != c.want || err != nil {
			t.Errorf("%s: the service was told %s, %v; want %s", name, text, err, c.want)
		}
	}
}

// An optional key: requests without one are handed through, each anew.
func TestServiceKeys(t *testing.T) {
	n := 0
	service := func(w http.ResponseWriter, r *http.Request) { n++; fmt.Fprint(w, n) }
	srv := front(t, service, 0, func(s *Service) {
		s.OptionalKey, s.StrictKey, s.Fingerprint, s.Documentation = true, true, []string{"Api-Version"}, "https://developer.example.com/keys"
	})
	for i := range 2 {
		if _, text := ask(t, srv, "POST", "/", "", "10"); text != fmt.Sprint(i+1) {
			t.Errorf("answered %s", text)
		}
	}
	if res, text := ask(t, srv, "POST", "/", "k1", "10"); res.StatusCode != 400 || !strings.Contains(text, "https://developer.example.com/keys") {
		t.Errorf("answered %d %s", res.StatusCode, text)
	}
}

// What a client says behind the body of its request does not reach the service, which might take it for the gateway's word.
func TestTrailersAreLeftOut(t *testing.T) {
	srv := front(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprint(w, string(body), " ", len(r.Trailer), " ", err)
	}, 0, func(s *Service) { s.OptionalKey = true })
	req, err := http.NewRequest(http.MethodPost, srv.URL, io.MultiReader(strings.NewReader("10"))) // whose length is not known
	if err != nil {
		t.Fatal(err)
	}
	req.Trailer = http.Header{"Hookonce-Forced": {"true"}}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil || string(text) != "10 0 <nil>" {
		t.Errorf("the service saw %q, %v", text, err)
	}
}

// What strangers bring about at any time, that the service turns them away, counts by itself: alerts go by failures. One is an
// answer that cannot be kept.
func TestTurnedAwayIsNoFailure(t *testing.T) {
	for c, want := range map[struct{ status, size int }]string{
		{401, 0}: "refused", {429, 0}: "refused", {500, 0}: "failed", {404, 0}: "accepted", {201, 500}: "accepted", {201, 2000}: "failed", {404, 2000}: "failed",
	} {
		m := NewMetrics(prometheus.NewRegistry())
		h := New(Service{
			Name: "charges", URL: &url.URL{Scheme: "http", Host: "service.test"}, MaxBody: 1 << 20, MaxAnswer: 1000, Timeout: 20 * time.Second, Lease: 10 * time.Second, NewKeys: 1,
			Transport: serviceFunc(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: c.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(strings.Repeat("x", c.size))), Request: r}, nil
			}),
		}, Options{Store: memstore.New(), Metrics: m, Logger: slog.New(slog.DiscardHandler), Now: time.Now})
		h.ServeHTTP(httptest.NewRecorder(), keyed(t, "http://gw.test/"))
		for _, s := range []string{"accepted", "refused", "failed"} {
			if n := testutil.ToFloat64(m.requests.WithLabelValues("charges", s)); (n == 1) != (s == want) {
				t.Errorf("%v: %v count as %s, want one %s", c, n, s, want)
			}
		}
	}
}

// What alerts go by is there before the first request: they see only what grows.
func TestFailuresAreCountedFromTheBeginning(t *testing.T) {
	m := NewMetrics(prometheus.NewRegistry())
	New(Service{Name: "charges", URL: &url.URL{}, MaxBody: 1 << 20, MaxAnswer: 1 << 20, Timeout: 20 * time.Second, Lease: 10 * time.Second}, Options{Store: memstore.New(), Metrics: m, Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	if n, is := testutil.CollectAndCount(m.requests), testutil.ToFloat64(m.requests.WithLabelValues("charges", "failed")); n != 1 || is != 0 {
		t.Errorf("there are %d counters, and that of failures is %v", n, is)
	}
}

func TestScope(t *testing.T) {
	parts := scopeNames([]string{"header:x-tenant", "header:Authorization"})
	seen := map[string]bool{}
	for _, h := range []http.Header{
		{"Authorization": {"a"}, "X-Tenant": {"b"}}, {"Authorization": {"ab"}, "X-Tenant": {"c"}}, {"Authorization": {"a"}, "X-Tenant": {"bc"}},
	} {
		scope, err := scopeOf(h, parts)
		if err != nil || scope == "" || seen[scope] {
			t.Errorf("%v: scope %q, %v", h, scope, err)
		}
		seen[scope] = true
	}
	for _, h := range []http.Header{
		{}, {"Authorization": {"a"}}, {"Authorization": {"a"}, "X-Tenant": {""}}, {"Authorization": {"a", "b"}, "X-Tenant": {"c"}},
	} {
		if scope, err := scopeOf(h, parts); err == nil {
			t.Errorf("%v: scope %q", h, scope)
		}
	}
	one, err := scopeOf(http.Header{"Authorization": {"4:a"}}, parts[:1])
	two, err2 := scopeOf(http.Header{"Authorization": {"4:a"}, "X-Tenant": {"b"}}, parts)
	if err != nil || err2 != nil || one == two {
		t.Errorf("scopes %q and %q", one, two)
	}
}

// The headers of a scope are a set. Whoever puts the list in order changes no key, and has nothing done twice.
func TestScopeIsASet(t *testing.T) {
	h := http.Header{"Authorization": {"a"}, "Api-Version": {"2"}, "X-Tenant": {"b"}}
	for name, parts := range map[string][]string{
		"in order":     {"header:Api-Version", "header:Authorization", "header:X-Tenant"},
		"out of order": {"header:X-Tenant", "header:Authorization", "header:Api-Version"},
		"spelt anew":   {"header:AUTHORIZATION", "header:api-version", "header:x-tenant"},
		"one twice":    {"header:Api-Version", "header:X-Tenant", "header:Authorization", "header:x-tenant"},
	} {
		// What is stored: a program of another version has to find it.
		if scope, err := scopeOf(h, scopeNames(parts)); scope != hookonce.JoinKey("2", "a", "b", "end") || err != nil {
			t.Errorf("%s: scope %q, %v", name, scope, err)
		}
	}
}

func TestClimbs(t *testing.T) {
	for path, want := range map[string]bool{
		"": false, "/": false, "/a/b": false, "/a..b": false, "/...": false, "/.well-known/x": false,
		"/..": true, "/a/../b": true, "..": true, "/a/.": true, `/a\..\b`: true, "//..//": true, "/..;/a": true, "/a/..;v=1": true, "/a;..": false,
	} {
		if got := climbs(path); got != want {
			t.Errorf("climbs(%q) = %v", path, got)
		}
	}
}

func TestUnanswered(t *testing.T) {
	for err, want := range map[error]*problem.Details{
		context.DeadlineExceeded:           timedOut,
		fmt.Errorf("dial: %w", errTimeout): timedOut,
		errors.New("connection refused"):   unreachable,
		io.ErrUnexpectedEOF:                unreachable,
	} {
		if got := unanswered(t.Context(), err); got != want {
			t.Errorf("%v: %s, want %s", err, got.Type, want.Type)
		}
		lost, cancel := context.WithCancelCause(t.Context())
		cancel(&lease.LostError{Of: "a claim", Err: err})
		if got := unanswered(lost, context.Cause(lost)); got != unreachable || !strings.Contains(lostClaim(lost), "the store answers") {
			t.Errorf("when the claim is lost by %v: %s, want %s", err, got.Type, unreachable.Type)
		}
	}
	for _, err := range []error{hookonce.ErrStale, hookonce.ErrNotFound} {
		taken, cancel := context.WithCancelCause(t.Context())
		cancel(&lease.LostError{Of: "a claim", Err: err})
		if said := lostClaim(taken); !strings.Contains(said, "was taken") {
			t.Errorf("%v: %s", err, said)
		}
	}
}

// A WebSocket is handed on, and no other protocol is: its connection would take requests that nobody has looked at. A service that
// speaks another one without being asked does not keep its connection.
func TestProtocolsThatAreHandedOn(t *testing.T) {
	closed := make(chan error, 1)
	srv := front(t, func(w http.ResponseWriter, r *http.Request) {
		asked := strings.Join([]string{r.Header.Get("Connection"), r.Header.Get("Upgrade"), r.Header.Get("Http2-Settings")}, "|")
		other := r.URL.Path == "/other"
		if asked == "||" && !other {
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nX-Asked: %s\r\n\r\n", map[bool]string{true: "echo", false: r.Header.Get("Upgrade")}[other], asked)
		_, err = io.Copy(conn, conn)
		if other {
			closed <- err
		}
	}, 0, func(s *Service) { s.OptionalKey = true })
	for name, c := range map[string]struct {
		request string
		status  int
		asked   string
	}{
		"a WebSocket":         {"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n", 101, "Upgrade|WebSocket|"},
		"HTTP/2":              {"GET / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", 200, ""},
		"HTTP/2, half named":  {"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", 200, ""},
		"one of two":          {"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c, websocket\r\n", 200, ""},
		"with a key":          {"POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nIdempotency-Key: k1\r\nContent-Length: 0\r\n", 200, ""},
		"without being asked": {"GET /other HTTP/1.1\r\n", 502, ""},
		"another than asked":  {"GET /other HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n", 502, ""},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprint(conn, c.request+"Host: gw.test\r\n\r\n")
			in := bufio.NewReader(conn)
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != c.status || res.Header.Get("X-Asked") != c.asked {
				t.Errorf("answered %d, and the service was asked for %q; want %d and %q", res.StatusCode, res.Header.Get("X-Asked"), c.status, c.asked)
			}
			if c.status == http.StatusSwitchingProtocols {
				fmt.Fprint(conn, "hello")
				if p, err := in.Peek(5); string(p) != "hello" {
					t.Errorf("over the WebSocket came %q, %v", p, err)
				}
			}
			if c.status != http.StatusBadGateway {
				return
			}
			select {
			case <-closed:
			case <-time.After(time.Minute):
				t.Error("the connection to the service stays open")
			}
		})
	}
}

// Every problem says what happened, whether to send the request again, under which key, and where to read on.
func TestProblems(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	seen := map[string]bool{}
	for _, p := range []*problem.Details{outside, timedOut, unreachable, problem.AmbiguousHeader.New("send it once")} {
		name, retryable := p.Type.String(), p.Type.Retryable()
		for _, header := range []string{"Idempotency-Key", "idempotency-key"} {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Header[header] = []string{`"k1"`}
			w := httptest.NewRecorder()
			refuser{Service{}, quiet}.refuse(w, r, p, slog.LevelWarn, "rejected")
			var doc struct {
				Type, Title, Detail, Instance, Key, Documentation string
				Status                                            int
				Retryable                                         *bool
			}
			if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
				t.Fatal(err)
			}
			if doc.Type != "urn:hookonce:problem:"+name || doc.Title == "" || doc.Detail == "" || doc.Key != `"k1"` ||
				doc.Documentation != hookonce.DefaultDocumentation+"#"+name || !strings.Contains(w.Header().Get("Link"), doc.Documentation) {
				t.Errorf("%s: %s", name, w.Body)
			}
			if w.Code != p.Status || doc.Status != p.Status || doc.Retryable == nil || *doc.Retryable != retryable || (w.Header().Get("Retry-After") != "") != retryable {
				t.Errorf("%s: answered %d %v %s", name, w.Code, w.Header(), w.Body)
			}
			if seen[doc.Instance] || !strings.HasPrefix(doc.Instance, "urn:hookonce:") {
				t.Errorf("%s: the instance %q", name, doc.Instance)
			}
			seen[doc.Instance] = true
		}
	}
	for n, shown := range map[int]bool{2*hookonce.DefaultMaxKey + 2: true, 2*hookonce.DefaultMaxKey + 3: false} {
		key := strings.Repeat("k", n)
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		refuser{Service{}, quiet}.refuse(w, r, timedOut, slog.LevelWarn, "the service did not answer")
		if strings.Contains(w.Body.String(), key) != shown || !strings.Contains(w.Body.String(), `"retryable":true`) {
			t.Errorf("with a key of %d bytes: %s", n, w.Body)
		}
	}
	w := httptest.NewRecorder()
	refuser{Service{Documentation: "https://developer.example.com/keys"}, quiet}.refuse(w, httptest.NewRequest(http.MethodPost, "/", nil), outside, slog.LevelWarn, "rejected")
	if !strings.Contains(w.Body.String(), `"https://developer.example.com/keys#path"`) {
		t.Errorf("answered %s", w.Body)
	}
}

// The name that a client is told of its problem is in the log, once, with what happened.
func TestProblemsAreLogged(t *testing.T) {
	for name, c := range map[string]struct {
		path, key, connection string
		body                  error // that the client's body ends with
		answer                int   // bytes; negative: the service breaks off
		kind                  string
		line                  string
	}{
		"a path that leads out":      {path: "/a/../b", key: "k1", kind: "path", line: `level=WARN msg="idempotent request rejected" source=charges`},
		"a header taken off":         {key: "k1", connection: "Idempotency-Key", kind: "ambiguous-header", line: `level=WARN msg="idempotent request rejected" source=charges`},
		"a key that is malformed":    {key: `"`, kind: "idempotency-key-malformed", line: `level=WARN msg="idempotent request rejected" source=gateway:charges`},
		"a service that breaks off":  {key: "k1", answer: -1, kind: "service-unreachable", line: `level=WARN msg="the service did not answer" source=charges`},
		"an answer that is too long": {key: "k1", answer: 2000, kind: "answer-too-large", line: `level=ERROR msg="idempotent request failed" source=gateway:charges`},
		"a client that breaks off":   {body: io.ErrUnexpectedEOF, kind: "body-truncated", line: `level=DEBUG msg="the client did not send all of its request`},
	} {
		var log bytes.Buffer
		h := New(Service{
			Name: "charges", URL: &url.URL{Scheme: "http", Host: "service.test"}, MaxBody: 1 << 20, MaxAnswer: 1000, Timeout: time.Minute,
			Lease: 10 * time.Second, OptionalKey: true, NewKeys: 1,
			Transport: serviceFunc(func(r *http.Request) (*http.Response, error) {
				if _, err := io.ReadAll(r.Body); err != nil || c.answer < 0 {
					return nil, cmp.Or(err, io.ErrUnexpectedEOF)
				}
				return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(strings.Repeat("x", c.answer))), Request: r}, nil
			}),
		}, Options{Store: memstore.New(), Metrics: NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), Now: time.Now})
		r := httptest.NewRequest(http.MethodPost, "http://gw.test/", io.MultiReader(strings.NewReader("10"), iotest.ErrReader(cmp.Or(c.body, io.EOF))))
		r.URL.Path = cmp.Or(c.path, "/")
		for name, value := range map[string]string{"Idempotency-Key": c.key, "Connection": c.connection} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var doc struct{ Type, Instance string }
		if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || doc.Type != "urn:hookonce:problem:"+c.kind {
			t.Errorf("%s: answered %d %s", name, w.Code, w.Body)
		}
		before, after, _ := strings.Cut(log.String(), "instance="+doc.Instance)
		if line := before[strings.LastIndex(before, "\n")+1:]; !strings.Contains(line, c.line) || strings.Contains(after, doc.Instance) {
			t.Errorf("%s: the instance %s is not in the log once: %s", name, doc.Instance, &log)
		}
	}
}

// Where the service may have carried a request out, only one of which a copy is known as a copy, or has no effect, may be
// sent again.
func TestUnknownOutcomeWithoutAKey(t *testing.T) {
	for name, c := range map[string]struct {
		method, key string
		again       bool
	}{
		"with a key":       {"POST", "k1", true},
		"a safe method":    {"GET", "", true},
		"without a key":    {"POST", "", false},
		"without, another": {"DELETE", "", false},
	} {
		for status, err := range map[int]error{502: io.ErrUnexpectedEOF, 504: errTimeout} {
			s := Service{Name: "charges", URL: &url.URL{Scheme: "http", Host: "127.0.0.1"}, MaxBody: 1 << 20, MaxAnswer: 1 << 20,
				Timeout: 20 * time.Second, Lease: 10 * time.Second, NewKeys: 1000, OptionalKey: true, Transport: breaks{err}}
			h := New(s, Options{Store: memstore.New(), Metrics: NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.DiscardHandler), Now: time.Now})
			r := httptest.NewRequest(c.method, "/", nil)
			if c.key != "" {
				r.Header.Set("Idempotency-Key", c.key)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			var doc struct {
				Detail    string
				Retryable *bool
			}
			if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
				t.Fatal(err)
			}
			if w.Code != status || doc.Retryable == nil || *doc.Retryable != c.again || (w.Header().Get("Retry-After") != "") != c.again ||
				strings.Contains(doc.Detail, "look before you send it again") == c.again {
				t.Errorf("%s: answered %d %v %s", name, w.Code, w.Header(), w.Body)
			}
		}
	}
}

// breaks is a transport on which nothing is answered.
type breaks struct{ err error }

func (b breaks) RoundTrip(*http.Request) (*http.Response, error) { return nil, b.err }

var errTimeout = &url.Error{Op: "Post", URL: "/", Err: context.DeadlineExceeded}

// A service that breaks off on a connection that was kept may have carried the request out. It is the client
// who asks again then, not the library underneath.
func TestServiceThatBreaksOffIsNotAskedAgain(t *testing.T) {
	var asked atomic.Int64
	srv := front(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/keep" || asked.Add(1) > 1 {
			return
		}
		panic(http.ErrAbortHandler)
	}, 0, nil)
	for key, body := range map[string]string{"k1": "10", "k2": ""} {
		asked.Store(0)
		ask(t, srv, "POST", "/keep", "keep-"+key, "")
		if res, text := ask(t, srv, "POST", "/charge", key, body); res.StatusCode != 502 || asked.Load() != 1 {
			t.Errorf("%s: answered %d %s after asking %d times", key, res.StatusCode, text, asked.Load())
		}
		if res, text := ask(t, srv, "POST", "/charge", key, body); res.StatusCode != 200 {
			t.Errorf("%s: the copy was answered %d %s", key, res.StatusCode, text)
		}
	}
}

// cutOff is a service that begins its answer with 10 bytes, and breaks off, or says nothing more until nobody waits.
type cutOff struct {
	hangs bool
	store hookonce.ResponseStore // of the claims; nil: one that answers
}

// stuck is a store that does not answer those who extend a claim.
type stuck struct{ *memstore.Store }

func (stuck) Extend(ctx context.Context, _ hookonce.Claim, _ time.Duration) (hookonce.Claim, error) {
	<-ctx.Done()
	return hookonce.Claim{}, ctx.Err()
}

func (c cutOff) RoundTrip(r *http.Request) (*http.Response, error) {
	rest := func([]byte) (int, error) {
		if !c.hangs {
			return 0, io.ErrUnexpectedEOF
		}
		<-r.Context().Done()
		return 0, context.Cause(r.Context()) // as that of net/http does
	}
	body := io.NopCloser(io.MultiReader(strings.NewReader("half of it"), reader(rest)))
	return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, ContentLength: -1, Body: body, Request: r}, nil
}

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// A service that breaks off in the middle of its answer is told of in words: which one, after how much, and what its client
// saw of it. It is no panic of the gateway.
func TestServiceThatBreaksOffIsLogged(t *testing.T) {
	const cut, late, lost = "the service broke off in the middle of its answer", "the service did not end its answer in time", "the claim of the request was lost while the service was at work"
	const nothing, part = "nothing, and its connection was cut", "the answer up to there, and its connection was cut"
	for name, c := range map[string]struct {
		key                    string
		service                cutOff
		message, error, client string
		failed                 string // what is on record of the request
		read                   string
	}{
		"claimed": {"k1", cutOff{}, cut, "unexpected EOF", nothing, "the handler broke off its answer", ""},
		"late": {"k1", cutOff{hangs: true}, late, "context deadline exceeded", nothing,
			"the handler broke off its answer after its context had ended: context deadline exceeded", ""},
		"stuck": {"k1", cutOff{hangs: true, store: stuck{memstore.New()}}, lost, "the lease of gateway:charges/3:any2:k1 was lost: context deadline exceeded", nothing,
			"the handler broke off its answer after its context had ended: the lease of gateway:charges/", ""},
		"passed on": {"", cutOff{}, cut, "unexpected EOF", part, "", "half of it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				h := New(Service{Name: "charges", URL: &url.URL{Scheme: "http", Host: "127.0.0.1"}, Transport: c.service, MaxBody: 1 << 20,
					MaxAnswer: 1 << 20, Timeout: 20 * time.Second, Lease: 10 * time.Second, NewKeys: 1000, OptionalKey: true,
				}, Options{Store: cmp.Or[hookonce.ResponseStore](c.service.store, memstore.New()), Metrics: NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.NewJSONHandler(&log, nil)), Now: time.Now})
				r := keyed(t, "http://127.0.0.1/")
				if r.Header.Set("Idempotency-Key", c.key); c.key == "" {
					r.Header.Del("Idempotency-Key")
				}
				w := httptest.NewRecorder()
				func() {
					defer func() {
						if p := recover(); p != http.ErrAbortHandler {
							t.Errorf("recovered %v, want a connection that is cut", p)
						}
					}()
					h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, &http.Server{})))
				}()
				if w.Body.String() != c.read {
					t.Errorf("the client read %q, want %q", w.Body, c.read)
				}
				type line struct {
					Level, Msg, Source, Error string
					Status, Bytes             int
					Client                    string `json:"client_got"`
				}
				var told, failed line
				lines := json.NewDecoder(strings.NewReader(log.String()))
				if err := lines.Decode(&told); err != nil {
					t.Fatalf("logged %s: %v", &log, err)
				}
				_ = lines.Decode(&failed) // there is none of what is passed on
				if !strings.HasPrefix(told.Msg, c.message) || !strings.HasPrefix(told.Client, c.client) || !strings.HasPrefix(failed.Error, c.failed) {
					t.Errorf("logged %s", &log)
				}
				told.Msg, told.Client = "", ""
				if want := (line{Level: "WARN", Source: "charges", Error: c.error, Status: 201, Bytes: 10}); told != want {
					t.Errorf("logged %s", &log)
				}
				if strings.Contains(log.String(), "panic") || strings.Contains(log.String(), "stack") {
					t.Errorf("logged %s", &log)
				}
			})
		})
	}
}

// A service that heeds keys says 409 while it works on a request that was forwarded to it before, by a gateway
// that was killed or lost patience. That is not what comes of the request.
func TestServiceThatIsStillAtWork(t *testing.T) {
	var asked atomic.Int64
	srv := front(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch asked.Add(1) {
		case 1:
			<-r.Context().Done()
		case 2:
			http.Error(w, "request in progress", http.StatusConflict)
		default:
			w.WriteHeader(http.StatusCreated)
		}
	}, 0, func(s *Service) { s.Timeout = 100 * time.Millisecond })
	for _, want := range []int{504, 409, 201, 201} {
		if res, text := ask(t, srv, "POST", "/", "k1", "10"); res.StatusCode != want {
			t.Errorf("answered %d %s, want %d", res.StatusCode, text, want)
		}
	}
	if asked.Load() != 3 {
		t.Errorf("asked %d times", asked.Load())
	}
}

// Which answers of a service are kept is what the library keeps.
func TestServiceAnswersThatAreKept(t *testing.T) {
	for status, kept := range map[int]bool{
		201: true, 303: true, 400: true, 402: true, 404: true, 409: true, 422: true,
		401: false, 403: false, 407: false, 408: false, 425: false, 429: false, 500: false, 503: false,
	} {
		var asked atomic.Int64
		srv := front(t, func(w http.ResponseWriter, r *http.Request) { asked.Add(1); w.WriteHeader(status) }, 0, nil)
		for range 2 {
			res, err := http.DefaultTransport.RoundTrip(keyed(t, srv.URL))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != status {
				t.Errorf("answered %d, want %d", res.StatusCode, status)
			}
		}
		if got := asked.Load() == 1; got != kept {
			t.Errorf("%d: the service was asked %d times", status, asked.Load())
		}
	}
}

// keyed is a request with a key.
func keyed(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader("10"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "k1")
	return req
}

// Who purges claims of his own in the same tables does not purge a service's.
func TestClaimsAreNobodyElsesToPurge(t *testing.T) {
	for _, kind := range []hookonce.PurgeKind{"", hookonce.PurgeEvents, hookonce.PurgeFailed, hookonce.PurgeOnce} {
		if (hookonce.PurgeRequest{Kind: kind}).Covers(ClaimSource("charges")) {
			t.Errorf("a purge of %q takes them", kind)
		}
	}
	if !(hookonce.PurgeRequest{Source: ClaimSource("charges")}).Covers(ClaimSource("charges")) {
		t.Error("a purge that names the source does not take them")
	}
}

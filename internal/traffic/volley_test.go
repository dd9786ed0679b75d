package traffic

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func target(t *testing.T, url string) *Target {
	t.Helper()
	tg, err := ParseTarget(url)
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// Every handler waits for all the others: a volley that were not simultaneous would never end.
func TestVolleyIsAnsweredTogether(t *testing.T) {
	const copies = 25
	var all sync.WaitGroup
	all.Add(copies)
	var first atomic.Bool
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "{}" {
			t.Errorf("body %q, %v", body, err)
		}
		all.Done()
		all.Wait()
		if first.CompareAndSwap(false, true) {
			w.Header().Set("Hookonce-Status", "accepted")
		} else {
			w.Header().Set("Hookonce-Status", "duplicate")
		}
		w.WriteHeader(http.StatusAccepted)
	})
	tg := target(t, s.URL)
	answers, err := Volley(t.Context(), tg, tg.Request(nil, []byte("{}")), copies)
	if err != nil {
		t.Fatal(err)
	}
	statuses := map[string]int{}
	for _, a := range answers {
		if a.Err != nil || a.Status != http.StatusAccepted || a.Latency <= 0 {
			t.Errorf("got %+v", a)
		}
		statuses[a.EventStatus]++
	}
	if statuses["accepted"] != 1 || statuses["duplicate"] != copies-1 {
		t.Errorf("statuses %v", statuses)
	}
}

// The server leaves one copy unread, too large for the sockets' buffers. As long as that one is not
// sent, no other copy may be complete.
func TestVolleyHoldsBackTheLastByte(t *testing.T) {
	const copies = 4
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tg := target(t, "http://"+l.Addr().String())
	request := tg.Request(nil, make([]byte, 16<<20))

	var heads, rest sync.WaitGroup
	var lastStarted atomic.Bool
	receive := func(c net.Conn) {
		defer c.Close()
		head := make([]byte, len(request)-1)
		if _, err := io.ReadFull(c, head); err != nil {
			t.Error(err)
		}
		heads.Done()
		if _, err := io.ReadFull(c, head[:1]); err != nil {
			t.Error(err)
		}
		if !lastStarted.Load() {
			t.Error("a copy was complete while another was not sent")
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
	heads.Add(copies)
	rest.Go(func() {
		var last net.Conn
		for i := range copies {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			if last = c; i < copies-1 {
				rest.Go(func() { receive(c) })
			}
		}
		heads.Add(-1) // of the last copy, which is not read yet
		heads.Wait()
		heads.Add(1)
		lastStarted.Store(true)
		receive(last)
	})
	answers, err := Volley(t.Context(), tg, request, copies)
	rest.Wait()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range answers {
		if a.Status != http.StatusOK {
			t.Errorf("got %+v", a)
		}
	}
}

func TestVolleyOverTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // one handshake is meant to fail
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	tg := target(t, s.URL).WithTLS(&tls.Config{RootCAs: roots, ServerName: "example.com"})
	answers, err := Volley(t.Context(), tg, tg.Request(nil, []byte("hello")), 5)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range answers {
		if a.Status != http.StatusOK {
			t.Errorf("got %+v", a)
		}
	}
	if _, err := Volley(t.Context(), target(t, s.URL), []byte("x"), 1); err == nil {
		t.Error("an unknown certificate was accepted")
	}
}

func TestVolleyRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tg := target(t, "http://"+l.Addr().String())
	l.Close()
	_, err = Volley(t.Context(), tg, []byte("x"), 3)
	var at *ShotError
	if !errors.As(err, &at) || at.Of != 3 || !strings.Contains(err.Error(), "of 3: connecting to") {
		t.Errorf("got %v", err)
	}
}

// A target that takes connections and says nothing, so that its TLS never begins, holds up nobody: the one that refuses
// is told at once. Left alone with it, a volley ends with its time, and says which shot it was.
func TestVolleyAtASilentTarget(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	mute := Shot{target(t, "https://"+silent.Addr().String()), []byte("x")}
	_, err = VolleyAt(t.Context(), []Shot{mute, mute, {target(t, "http://"+closed.Addr().String()), []byte("x")}})
	var at *ShotError
	if !errors.As(err, &at) || at.Shot != 2 || !strings.Contains(err.Error(), closed.Addr().String()) {
		t.Errorf("got %v", err)
	}
	open := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was complete") })
	late := errors.New("too late")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, late)
	defer cancel()
	to := target(t, open.URL)
	_, err = VolleyAt(ctx, []Shot{{to, to.Request(nil, nil)}, mute})
	if !errors.As(err, &at) || at.Shot != 1 {
		t.Errorf("got %v", err)
	}
}

// A server that never answers must not hold up the caller beyond its deadline, and one that answers
// garbage or nothing is reported copy by copy.
func TestVolleyWithoutAnswers(t *testing.T) {
	tests := map[string]struct {
		answer string
		hang   bool
		want   error
	}{
		"no answer": {hang: true, want: context.DeadlineExceeded},
		"hang-up":   {want: io.EOF},
		"garbage":   {answer: "220 mail.example.com ESMTP\r\n\r\n", want: ErrMalformed},
		"cut off":   {answer: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", want: ErrMalformed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
				if tt.hang {
					<-release
				}
				c, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(c, tt.answer)
				_ = c.Close()
			})
			defer close(release)
			ctx := t.Context()
			if tt.hang {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
			}
			tg := target(t, s.URL)
			answers, err := Volley(ctx, tg, tg.Request(nil, []byte("x")), 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range answers {
				if a.Status != 0 || !errors.Is(a.Err, tt.want) {
					t.Errorf("got %+v, want %v", a, tt.want)
				}
			}
		})
	}
}

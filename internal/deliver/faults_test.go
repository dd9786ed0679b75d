package deliver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
)

// hijacked reads the request, writes an answer byte for byte and ends the connection, with a reset if
// asked.
func hijacked(t *testing.T, answer string, reset bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, out, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = out.WriteString(answer)
		_ = out.Flush()
		if reset {
			_ = conn.(*net.TCPConn).SetLinger(0)
		}
		_ = conn.Close()
	}
}

// dripping sends one byte of an answer after the other, more slowly than anybody waits for.
func dripping(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for i := range len(answer) {
			<-tick.C
			if _, err := conn.Write([]byte{answer[i]}); err != nil {
				return // the client gave up
			}
		}
	}
}

// flooding sends the same again and again, for as long as anybody listens.
func flooding(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		for err == nil {
			_, err = io.WriteString(conn, answer)
		}
	}
}

func respond(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if len(header) == 2 {
			w.Header().Set(header[0], header[1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte("secret body"))
	}
}

// TestDestinationMisbehaves: only a 2xx is done; all else is tried again, with a cause for people.
func TestDestinationMisbehaves(t *testing.T) {
	const endless = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		state   journal.State
		status  int
		cause   string
	}{
		{"200", respond(200), journal.Done, 200, ""},
		{"204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, journal.Done, 204, ""},
		{"299", respond(299), journal.Done, 299, ""},
		{"400", respond(400), journal.Failed, 400, "status 400"},
		{"404", respond(404), journal.Failed, 404, "status 404"},
		{"500", respond(500), journal.Failed, 500, "status 500"},
		{"redirect", respond(302, "Location", "/elsewhere"), journal.Failed, 302, "status 302: redirects are not followed"},
		{"redirect that keeps the method", respond(308, "Location", "/elsewhere"), journal.Failed, 308, "status 308: redirects are not followed"},
		{"not modified", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, journal.Failed, 304, "status 304: not modified, which answers a condition; the request made none, so answer 2xx"},
		{"redirect to nowhere", respond(302), journal.Failed, 302, "status 302: a redirect that does not say where to"},
		{"closed", hijacked(t, "", false), journal.Failed, 0, "connection closed before the answer"},
		{"reset", hijacked(t, "", true), journal.Failed, 0, "connection reset"},
		{"half a status line", hijacked(t, "HTTP/1.1 20", false), journal.Failed, 0, "no valid HTTP answer"},
		{"half of the headers", hijacked(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", false), journal.Failed, 0, "connection closed before the answer"},
		{"not HTTP", hijacked(t, "SSH-2.0-secret body\r\n\r\n", false), journal.Failed, 0, "no valid HTTP answer"},
		{"half of a body after a 200", hijacked(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", false), journal.Done, 200, ""},
		{"half of a body after a 500", hijacked(t, "HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nhalf", false), journal.Failed, 500, "status 500"},
		{"informational first", hijacked(t, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false), journal.Done, 200, ""},
		{"switching protocols", hijacked(t, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", false), journal.Failed, 101, "status 101"},
		{"switching protocols, then silence", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, out, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = out.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
			_ = out.Flush()
			_, _ = conn.Read(make([]byte, 1)) // until the client gives up
			_ = conn.Close()
		}, journal.Failed, 101, "status 101"},
		{"endless body", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 4<<10))
			}
		}, journal.Done, 200, ""},
		{"a body that never begins", func(w http.ResponseWriter, r *http.Request) {
			conn, out, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = out.WriteString(endless)
			_ = out.Flush()
			_, _ = conn.Read(make([]byte, 1)) // until the client gives up
			_ = conn.Close()
		}, journal.Done, 200, ""},
		{"headers without end", hijacked(t, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<20), false), journal.Failed, 0, "no valid HTTP answer"},
		{"hang", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the server notices a hang-up only after the body
			<-r.Context().Done()
		}, journal.Failed, 0, "timeout after 300ms"},
		{"an answer that drips", dripping("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), journal.Failed, 0, "timeout after 300ms"},
		{"interim answers without end", flooding("HTTP/1.1 102 Processing\r\n\r\n"), journal.Failed, 0, "no valid HTTP answer"},
		{"panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, journal.Failed, 0, "connection closed before the answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			app := httptest.NewServer(c.handler)
			defer app.Close()
			timeout := 5 * time.Second // what is answered has the time that a busy machine takes
			if strings.HasPrefix(c.cause, "timeout after") {
				timeout = 300 * time.Millisecond
			}
			r := newRig(t, deliver.Destination{URL: app.URL, Timeout: timeout, Schedule: hourly}, nil)
			r.accept(t, entry("a"))
			o := r.attempts(t, 1)[0]
			if o.State != c.state || o.Status != c.status || o.Error != c.cause {
				t.Errorf("outcome %s, status %d, %q; want %s, %d, %q", o.State, o.Status, o.Error, c.state, c.status, c.cause)
			}
			if strings.Contains(fmt.Sprintf("%+v", o), "secret") {
				t.Errorf("the outcome repeats the answer: %+v", o)
			}
			r.shutDown(t)
		})
	}
}

func TestDestinationIsNotThere(t *testing.T) {
	app := httptest.NewServer(nil)
	address := app.URL
	app.Close()
	for _, c := range []struct{ name, url, cause string }{
		{"nobody listens", address, "connection refused"},
		{"no such host", "http://nowhere.invalid/", "host name could not be resolved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, deliver.Destination{URL: c.url, Schedule: hourly}, nil)
			r.accept(t, entry("a"))
			if o := r.attempts(t, 1)[0]; o.State != journal.Failed || o.Error != c.cause {
				t.Errorf("outcome %s, %q; want %q", o.State, o.Error, c.cause)
			}
		})
	}
}

// A destination that takes connections and says nothing costs what an attempt may take: before the TLS
// handshake as after it. A backlog that nobody accepts is the same.
func TestSilentListener(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, scheme := range []string{"http://", "https://"} {
		t.Run(scheme, func(t *testing.T) {
			r := newRig(t, deliver.Destination{URL: scheme + silent.Addr().String(), Timeout: 300 * time.Millisecond, Schedule: hourly}, nil)
			r.accept(t, entry("a"))
			if o := r.attempts(t, 1)[0]; o.State != journal.Failed || o.Error != "timeout after 300ms" {
				t.Errorf("outcome %s, %q", o.State, o.Error)
			}
		})
	}
}

func TestTLSFaults(t *testing.T) {
	secure, plain := httptest.NewUnstartedServer(respond(200)), httptest.NewServer(respond(200))
	secure.Config.ErrorLog = quiet
	secure.StartTLS()
	defer secure.Close()
	defer plain.Close()
	for _, c := range []struct{ name, url, cause string }{
		{"certificate of nobody we trust", secure.URL, "certificate not trusted"},
		{"no TLS on the other side", strings.Replace(plain.URL, "http:", "https:", 1), "TLS handshake failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, deliver.Destination{URL: c.url, Schedule: hourly}, nil)
			r.accept(t, entry("a"))
			if o := r.attempts(t, 1)[0]; o.State != journal.Failed || o.Error != c.cause {
				t.Errorf("outcome %s, %q; want %q", o.State, o.Error, c.cause)
			}
		})
	}
}

// A server that refuses a handshake says so with an alert: what is wrong is the certificate or the version, and not what it
// answered.
func TestTLSAlerts(t *testing.T) {
	template := httptest.NewUnstartedServer(nil)
	template.StartTLS()
	defer template.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(template.Certificate())
	for _, c := range []struct {
		name string
		ask  func(*tls.Config)
	}{
		{"a certificate is wanted, TLS 1.3", func(s *tls.Config) { s.ClientAuth, s.MinVersion = tls.RequireAndVerifyClientCert, tls.VersionTLS13 }},
		{"a certificate is wanted, TLS 1.2", func(s *tls.Config) { s.ClientAuth, s.MaxVersion = tls.RequireAndVerifyClientCert, tls.VersionTLS12 }},
		{"only a version that is too old", func(s *tls.Config) { s.MinVersion, s.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			asks := &tls.Config{Certificates: template.TLS.Certificates}
			c.ask(asks)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					if err := tls.Server(conn, asks).Handshake(); err == nil {
						t.Error("the handshake succeeds")
					}
					_, _ = io.Copy(io.Discard, conn) // what is not read would have the connection reset, and the alert with it
					_ = conn.Close()
				}
			}()
			r := newRig(t, deliver.Destination{URL: "https://" + l.Addr().String(), TLS: &tls.Config{RootCAs: trusted}, Schedule: hourly}, nil)
			r.accept(t, entry("a"))
			o := r.attempts(t, 1)[0]
			// With TLS 1.3 the alert comes while the request is being sent, and net/http may close the connection under that.
			hidden := asks.MinVersion == tls.VersionTLS13 && o.Error == "connection closed before the answer"
			if o.State != journal.Failed || o.Error != "TLS handshake failed" && !hidden {
				t.Errorf("outcome %s, %q", o.State, o.Error)
			}
		})
	}
}

// warmed is an application to which a number of connections is kept, all of them opened before it changed.
func warmed(t *testing.T, kept int, changed func(w http.ResponseWriter, r *http.Request, old bool)) *rig {
	t.Helper()
	type old struct{}
	var (
		arrived sync.WaitGroup
		late    atomic.Bool
	)
	arrived.Add(kept)
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if late.Load() {
			changed(w, r, r.Context().Value(old{}) == true)
			return
		}
		arrived.Done()
		arrived.Wait() // so that each needs a connection of its own
	}))
	app.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, old{}, !late.Load())
	}
	app.Start()
	t.Cleanup(app.Close)
	r := newRig(t, deliver.Destination{URL: app.URL, Schedule: hourly}, nil)
	for i := range kept {
		r.accept(t, entry(fmt.Sprint("warm-", i)))
	}
	r.attempts(t, kept)
	late.Store(true)
	return r
}

// An event that ends the process which works on it must not end one for each kept connection in a single attempt.
func TestOneAttemptEndsFewProcesses(t *testing.T) {
	for name, body := range map[string]string{"with a body": "fatal", "without one": ""} {
		t.Run(name, func(t *testing.T) {
			const kept = 8
			var sent atomic.Int32
			r := warmed(t, kept, func(w http.ResponseWriter, r *http.Request, _ bool) {
				sent.Add(1)
				hijacked(t, "", false)(w, r)
			})
			fatal := entry("fatal")
			fatal.Body = []byte(body)
			r.accept(t, fatal)
			if o := r.attempts(t, kept+1)[kept]; o.State != journal.Failed || o.Error != "connection closed before the answer" {
				t.Errorf("outcome %s, %q", o.State, o.Error)
			}
			if n := sent.Load(); n < 2 || n > 3 {
				t.Errorf("one attempt was sent %d times", n)
			}
		})
	}
}

// Connections that others give back meanwhile do not make it more.
func TestOneAttemptIsSentAgainTwice(t *testing.T) {
	sent := 0
	r := newRig(t, deliver.Destination{URL: nowhere.URL, Schedule: hourly}, func(o *options) {
		o.transport = transport(func(r *http.Request) (*http.Response, error) {
			for ; ; sent++ { // as net/http does where the connection was used before
				body, err := r.GetBody()
				if err != nil {
					return nil, err
				}
				if text, err := io.ReadAll(body); err != nil || len(text) == 0 || sent > 10 {
					return nil, fmt.Errorf("sent again with %q, %v", text, err)
				}
			}
		})
	})
	r.accept(t, entry("a"))
	if o := r.attempts(t, 1)[0]; sent != 2 || o.State != journal.Failed || o.Error != "connection closed before the answer" {
		t.Errorf("sent again %d times, outcome %s, %q", sent, o.State, o.Error)
	}
}

// Where all kept connections are dead, because the machine behind them is gone, an attempt still finds the new one.
func TestDeadConnectionsCostNoAttempt(t *testing.T) {
	const kept = 8
	r := warmed(t, kept, func(w http.ResponseWriter, r *http.Request, old bool) {
		if old {
			hijacked(t, "", true)(w, r)
		}
	})
	r.accept(t, entry("late"))
	if o := r.attempts(t, kept+1)[kept]; o.State != journal.Done {
		t.Errorf("outcome %s, %q", o.State, o.Error)
	}
}

// A kept connection leads to the copy of an application that it was opened to, whether that is taken out meanwhile or the name leads
// elsewhere. So a destination that is ill is tried over a new one.
func TestProbesConnectAnew(t *testing.T) {
	ill, well := httptest.NewServer(respond(503)), httptest.NewServer(respond(200))
	defer ill.Close()
	defer well.Close()
	var healed atomic.Bool
	var dialer net.Dialer
	app := deliver.Destination{URL: ill.URL, Schedule: hourly, Breaker: deliver.Breaker{Failures: 3, Pause: time.Millisecond, PauseMax: time.Millisecond}}
	r := newRig(t, app, func(o *options) {
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if healed.Load() {
				address = well.Listener.Addr().String()
			}
			return dialer.DialContext(ctx, network, address)
		}
	})
	for i := range 4 {
		r.accept(t, entry(fmt.Sprint(i)))
	}
	made := r.attempts(t, 5) // and so at least one probe
	if s := r.Destinations()[0].State; s != deliver.Ill {
		t.Fatalf("the destination is %v", s)
	}
	healed.Store(true)
	for len(made) < 50 {
		made = r.attempts(t, len(made)+1)
		if made[len(made)-1].State == journal.Done {
			return
		}
	}
	t.Error("probes go on meeting who is ill")
}

package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/internal/testskip"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/loglimit"
)

// book is a log: how many lines there are of each message, and how long the longest is.
type book struct {
	mu      sync.Mutex
	count   map[string]int
	longest string
}

func (b *book) Write(line []byte) (int, error) {
	var l struct{ Msg string }
	if err := json.Unmarshal(line, &l); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count[l.Msg]++
	if len(line) > len(b.longest) {
		b.longest = string(line)
	}
	return len(line), nil
}

// take returns what was written since the last time.
func (b *book) take() (count map[string]int, longest string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	count, longest = b.count, b.longest
	b.count, b.longest = map[string]int{}, ""
	return count, longest
}

// besieged starts a gateway with a source of each sort, whose log is the book.
func besieged(t *testing.T, level slog.Leveler) (*Gateway, config.Source, *book) {
	b := &book{count: map[string]int{}}
	nobody := httptest.NewServer(http.NotFoundHandler())
	nobody.Close() // no application is there
	cfg := configured(sqliteStore(t), newSink(t).URL)
	for _, name := range []string{"billing", "charges", "free", "watched", "boxes"} {
		s := source(name, nobody.URL)
		switch name {
		case "charges":
			s.Mode, s.Provider, s.Secrets = config.Idempotent, "", nil
			s.Idempotency.Scope = []string{"header:Authorization"}
		case "free":
			s.Mode, s.Provider, s.Secrets = config.Idempotent, "", nil
		case "watched":
			s.Mode = config.Observe
		case "boxes":
			s.Provider = "dropbox"
		}
		cfg.Sources = append(cfg.Sources, s)
	}
	cfg.AdminTokens = []config.AdminToken{{Name: "op", Token: settings.Literal("fake-token-of-the-operator"), Role: "operator"}}
	g, err := Start(t.Context(), cfg, Options{Logger: slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: level}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, g) })
	return g, cfg.Sources[0], b
}

// stranger sends what a stranger may, the n-th time, to the listener for senders or the one for operators.
type stranger func(n int) (r *http.Request, admin bool)

func strange(method, target string, header ...string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader("{}"))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// perSecond is how many lines of strangers' a log takes in a second, their counts included.
const perSecond = loglimit.PerLog + loglimit.MaxCounts + 1

// TestStrangersWriteFewLines: each request is sent 500 times, at the level debug, and random ones 2 000 times. However many
// are sent, the log takes some lines of each kind, of a length that is bounded.
func TestStrangersWriteFewLines(t *testing.T) {
	testskip.Race(t)
	g, orders, b := besieged(t, slog.LevelDebug)
	long := strings.Repeat("x", 60<<10)
	mismatch := "sha256=" + strings.Repeat("0", 64)
	all := map[string]stranger{
		"unknown source":     func(n int) (*http.Request, bool) { return strange("POST", fmt.Sprint("/in/nobody-", n)), false },
		"long path":          func(int) (*http.Request, bool) { return strange("POST", "/in/"+long), false },
		"no signature":       func(int) (*http.Request, bool) { return strange("POST", "/in/orders"), false },
		"forged":             func(int) (*http.Request, bool) { return strange("POST", "/in/orders", "X-Signature", mismatch), false },
		"long signature":     func(int) (*http.Request, bool) { return strange("POST", "/in/orders", "X-Signature", long), false },
		"another method":     func(int) (*http.Request, bool) { return strange("DELETE", "/in/orders"), false },
		"answered handshake": func(int) (*http.Request, bool) { return strange("GET", "/in/boxes?challenge=a"), false },
		"refused handshake":  func(int) (*http.Request, bool) { return strange("GET", "/in/boxes"), false },
		"no address": func(n int) (*http.Request, bool) {
			r := strange("POST", "/in/orders")
			r.RemoteAddr = long
			return r, false
		},
		"no key":   func(int) (*http.Request, bool) { return strange("POST", "/in/free"), false },
		"long key": func(int) (*http.Request, bool) { return strange("POST", "/in/free", "Idempotency-Key", long), false },
		"no scope": func(int) (*http.Request, bool) { return strange("POST", "/in/charges", "Idempotency-Key", "k"), false },
		"path upwards": func(int) (*http.Request, bool) {
			return strange("POST", "/in/free/a/../b", "Idempotency-Key", "k"), false
		},
		"service away":     func(int) (*http.Request, bool) { return strange("GET", "/in/free/a"), false },
		"application away": func(int) (*http.Request, bool) { return strange("POST", "/in/watched"), false },
		"no token":         func(int) (*http.Request, bool) { return strange("GET", "/api/v1/events"), true },
		"wrong token": func(n int) (*http.Request, bool) {
			return strange("GET", "/metrics", "Authorization", fmt.Sprint("Bearer t", n)), true
		},
		"no such page": func(n int) (*http.Request, bool) { return strange("GET", fmt.Sprint("/", n)), true },
		"readiness":    func(int) (*http.Request, bool) { return strange("GET", "/readyz"), true },
		"key and no service": func(n int) (*http.Request, bool) {
			return strange("POST", "/in/free", "Idempotency-Key", fmt.Sprint("k", n)), false
		},
		"names of made-up hosts": func(n int) (*http.Request, bool) {
			return strange("GET", "/api/v1/events", "Host", fmt.Sprint("h", n)), true
		},
	}
	kinds := make([]stranger, 0, len(all))
	for _, s := range all {
		kinds = append(kinds, s)
	}
	random := rand.New(rand.NewPCG(8, 13))
	all["random"] = func(n int) (*http.Request, bool) { return kinds[random.IntN(len(kinds))](n) }
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			b.take()
			start := time.Now()
			most := 3 * (loglimit.PerKind + 1) // kinds of lines of one sort of requests
			times := 500
			if name == "random" {
				most, times = perSecond+len(kinds), 2000 // of each kind one that was silent
			}
			for n := range times {
				r, admin := s(n)
				to := g.ingest
				if admin {
					to = g.admin
				}
				(*to.handler.Load()).ServeHTTP(httptest.NewRecorder(), r)
			}
			loglimit.Flush(g.opt.strange)
			count, longest := b.take()
			total := 0
			for _, n := range count {
				total += n
			}
			if seconds := int(time.Since(start).Seconds()) + 2; total > seconds*most {
				t.Errorf("%d lines in %d s, want at most %d a second: %v", total, seconds, most, count)
			}
			if len(longest) > 4*loglimit.MaxValue+loglimit.MaxStack {
				t.Errorf("a line of %d bytes: %.500s", len(longest), longest)
			}
		})
	}
	// Amid all of this a genuine request gets in, and has its line.
	b.take()
	if r := insist(t, client(t), g, orders, event("genuine")); r.status != http.StatusOK {
		t.Errorf("a genuine request was answered %d", r.status)
	}
	if count, _ := b.take(); count["event accepted"] != 1 {
		t.Errorf("of a genuine request the log has %v", count)
	}
}

// TestACapturedRequestWritesFewLines: whoever has seen a genuine request can send it again, and again.
func TestACapturedRequestWritesFewLines(t *testing.T) {
	g, orders, b := besieged(t, slog.LevelInfo)
	p, err := orders.NewProvider()
	if err != nil {
		t.Fatal(err)
	}
	signed := &hookonce.Request{Method: http.MethodPost, Header: http.Header{}, Body: event("captured"), Now: time.Now()}
	if err := p.Sign(signed); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for range 2000 {
		r := httptest.NewRequest(http.MethodPost, "/in/orders", bytes.NewReader(signed.Body))
		r.Header = signed.Header.Clone()
		(*g.ingest.handler.Load()).ServeHTTP(httptest.NewRecorder(), r)
	}
	loglimit.Flush(g.opt.strange)
	count, _ := b.take()
	if n, most := count["event is a duplicate"], 101*(int(time.Since(start).Seconds())+2); n == 0 || n > most {
		t.Errorf("%d lines, want some and at most %d: %v", n, most, count)
	}
}

// What was held back is told before the process ends, also when the gateway did not stop cleanly.
func TestLinesAreCountedAtTheEnd(t *testing.T) {
	t.Parallel()
	log := new(logged)
	g, err := Start(t.Context(), configured(sqliteStore(t), ""), Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	g.ingest.storing = func() int { return 1 } // and is cut off
	conn, err := net.Dial("tcp", g.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /in/orders HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") { // it waits for the body
		t.Fatal(line, err)
	}
	for range 10 * loglimit.PerKind {
		(*g.ingest.handler.Load()).ServeHTTP(httptest.NewRecorder(), strange("POST", "/in/orders"))
	}
	end()
	if err := g.Close(ended); err == nil {
		t.Error("it stopped cleanly")
	}
	if text := log.String(); !strings.Contains(text, "suppressed=") {
		t.Errorf("the log says nothing of what was held back:\n%s", text)
	}
}

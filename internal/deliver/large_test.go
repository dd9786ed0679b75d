package deliver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
)

// ownRoom is how large our own headers are at most, without signatures: docs/destinations.md says so.
const ownRoom = 7 << 10

var acme = header.NewRule(header.Spec{Once: []string{"X-Acme-Event"}, Listed: []string{"X-Acme-*"}})

// largest is an event about which as much is known as can be, each text as long when it is escaped as it can be.
func largest() *journal.Work {
	text := strings.Repeat("é", hookonce.MaxKeyLen/2)
	facts := header.Facts{}
	facts.Add(header.HookonceProvider, "acme")
	facts.Add(header.HookonceKeySigned, "false")
	facts.Add(header.HookonceRank, "version:9223372036854775807")
	facts.AddTime(header.HookonceTime, time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC))
	for _, name := range []string{header.HookonceResource, header.HookonceTenant, header.HookonceSenderAttemptID, header.HookonceLogical} {
		facts.Add(name, text)
	}
	facts.Add(header.HookonceDigest, strings.Repeat("f", 32))
	w := work("billing", text, 1<<62)
	w.Type, w.Resource, w.LogicalDuplicateKey, w.Forced, w.Stale, w.Unprotected = text, text, text, true, true, true
	w.Token, w.Body = 1<<62, []byte("{}")
	w.Header = facts
	return w
}

// withJunk puts 20 KB of headers beside what an application needs, as a version before this stored them.
func withJunk(w *journal.Work, name string, n int) *journal.Work {
	lines := "Content-Type: application/json\r\nX-Acme-Event: paid\r\n"
	for i := 0; len(lines) < 20_000; i++ {
		lines += fmt.Sprintf("%s%d: %s\r\n", name, i, strings.Repeat("j", n))
	}
	w.Header = append([]byte(lines), w.Header...)
	return w
}

// What we say of an event is bounded as well: the texts come from whoever posts first.
func TestOwnHeadersAreBounded(t *testing.T) {
	var b bytes.Buffer
	if err := headerOf(&destination{name: "app", Destination: Destination{Stale: StaleFlag}}, largest(), time.Now()).Write(&b); err != nil {
		t.Fatal(err)
	}
	if b.Len() > ownRoom || strings.Count(b.String(), "\r\n") > 100-header.MaxLines-8 {
		t.Errorf("%d bytes in %d lines", b.Len(), strings.Count(b.String(), "\r\n"))
	}
}

// No server refuses an event for what somebody put beside it, whenever it was stored: not those that take 16 KiB, as Node
// does, and not 100 lines, as others do.
func TestJunkIsNotDelivered(t *testing.T) {
	for server, c := range map[string]struct {
		address string
		event   func() *journal.Work
	}{
		"net/http with 12 KiB": {goServer(t), func() *journal.Work { return work("billing", "evt_1", 7) }},
		"node":                 {nodeServer(t), largest},
	} {
		for junk, w := range map[string]*journal.Work{
			"one": withJunk(c.event(), "X-Acme-J", 20_000), "some": withJunk(c.event(), "X-Acme-J", 1000), "small": withJunk(c.event(), "X-Acme-J", 1),
			"on no list": withJunk(c.event(), "X-J", 1000), "small, on no list": withJunk(c.event(), "X-J", 1),
			"what is named": withJunk(c.event(), "X-Acme-Event: ", 10_000),
		} {
			for _, rule := range []*header.Rule{acme, nil} {
				address := c.address
				d := &destination{name: "app", Destination: Destination{Rules: map[string]*header.Rule{"billing": rule}}, secrets: [][]byte{[]byte("fake")}, address: address, url: parsed(t, address)}
				req, err := newRequest(t.Context(), d, w, d.passed(w, time.Now()))
				if err != nil {
					t.Fatal(err)
				}
				response, err := http.DefaultTransport.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				lines := 0
				for _, values := range req.Header {
					lines += len(values)
				}
				if response.StatusCode != http.StatusOK || lines > 96 {
					t.Errorf("%s, %s: %s with %d lines", server, junk, response.Status, lines)
				}
				if rule == acme && junk != "what is named" && req.Header.Get("X-Acme-Event") != "paid" || req.Header.Get("Content-Type") == "" {
					t.Errorf("%s, %s: what the application needs is lost", server, junk)
				}
			}
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func parsed(t *testing.T, address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// goServer takes 8 KiB of headers and the 4 KiB that net/http adds to that.
func goServer(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{MaxHeaderBytes: 8 << 10, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), ignoreClosed(<-done)); err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String() + "/hooks"
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// nodeServer takes what Node takes if nobody tells it otherwise.
func nodeServer(t *testing.T) string {
	const program = `const s = require("http").createServer((q, r) => { q.resume(); r.end() }); s.listen(0, "127.0.0.1", () => console.log(s.address().port))`
	ctx, cancel := context.WithCancel(context.Background())
	node := exec.CommandContext(ctx, "node", "-e", program)
	out, err := node.StdoutPipe()
	if err == nil {
		err = node.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = node.Wait() })
	var port int
	if _, err := fmt.Fscan(out, &port); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d/hooks", port)
}

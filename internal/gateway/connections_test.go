package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/connlimit"
)

// The limits follow from the settings, the descriptors of the process, and how many sources wait for others.
func TestConnectionLimits(t *testing.T) {
	for name, c := range map[string]struct {
		max, perAddress, descriptors int
		waiting                      int
		ingest, admin                connlimit.Limits
	}{
		"defaults":          {4096, 0, 1 << 20, 0, connlimit.Limits{Max: 4096, PerAddress: 1024, PerGroup: 2048}, connlimit.Limits{Max: 1024, PerAddress: 512}},
		"unknown":           {4096, 0, 0, 1, connlimit.Limits{Max: 4096, PerAddress: 1024, PerGroup: 2048}, connlimit.Limits{Max: 1024, PerAddress: 512}},
		"few descriptors":   {4096, 3000, 1024, 4, connlimit.Limits{Max: 512, PerAddress: 512, PerGroup: 64}, connlimit.Limits{Max: 128, PerAddress: 64}},
		"hardly any":        {4096, 0, 1, 9, connlimit.Limits{Max: 1, PerAddress: 1, PerGroup: 1}, connlimit.Limits{Max: 1, PerAddress: 1}},
		"what somebody set": {100, 10, 1024, 2, connlimit.Limits{Max: 100, PerAddress: 10, PerGroup: 25}, connlimit.Limits{Max: 128, PerAddress: 64}},
	} {
		cfg := &config.Config{MaxConnections: c.max, MaxConnectionsPerAddress: c.perAddress, Sources: []config.Source{source("events", "")}}
		for i := range c.waiting {
			cfg.Sources = append(cfg.Sources, source(fmt.Sprint(i), "http://127.0.0.1:1/"))
			cfg.Sources[i+1].Mode = []string{config.Observe, config.Idempotent}[i%2]
		}
		w, err := wire(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		ingest, admin := connectionLimits(&w.plan, c.descriptors)
		if fmt.Sprint(ingest) != fmt.Sprint(c.ingest) || fmt.Sprint(admin) != fmt.Sprint(c.admin) {
			t.Errorf("%s: %+v and %+v, want %+v and %+v", name, ingest, admin, c.ingest, c.admin)
		}
	}
}

// A reload changes the limits, and who is a proxy, without losing anybody.
func TestReloadConnections(t *testing.T) {
	t.Parallel()
	sink := newSink(t)
	cfg := configured(sqliteStore(t), sink.URL)
	cfg.MaxConnections, cfg.MaxConnectionsPerAddress = 40, 2
	e := startEdited(t, cfg)
	hold := func(n int) {
		t.Helper()
		for range n {
			c, err := net.Dial("tcp", e.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
		}
	}
	c := client(t)
	reach := func(n int) {
		t.Helper()
		hold(2 * n)
		looks := 0
		for deadline := time.Now().Add(patience); e.ingest.Open() != n; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d connections, want %d", e.ingest.Open(), n)
			}
			if looks++; looks%1000 == 0 {
				hold(n) // on a busy machine the first may be given up before the last has come
			}
		}
		insist(t, c, e.Gateway, cfg.Sources[0], event(fmt.Sprint(n)))
	}
	reach(2)
	e.edit(func(cfg *config.Config) { cfg.MaxConnectionsPerAddress = 5 })
	reach(5)
	e.edit(func(cfg *config.Config) { cfg.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} })
	reach(40)
}

// Neither listener speaks HTTP/2, or anything but HTTP: a connection has one request at a time.
func TestOneProtocol(t *testing.T) {
	t.Parallel()
	g := start(t, configured(sqliteStore(t), ""))
	for _, l := range []*listener{g.ingest, g.admin} {
		for _, text := range []string{
			"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
			"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
		} {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(patience))
			io.WriteString(c, text)
			line, err := bufio.NewReader(c).ReadString('\n')
			if !strings.HasPrefix(line, "HTTP/1.1 ") || strings.HasPrefix(line, "HTTP/1.1 101") {
				t.Errorf("%s answers %.10q... with %q, %v", l.name, text, line, err)
			}
		}
	}
}

// An observed application that hangs takes half of the connections at most: senders to other sources notice nothing.
func TestHungApplicationLeavesRoom(t *testing.T) {
	sink := newSink(t)
	release := make(chan struct{})
	hung := newSink(t)
	hung.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })
	cfg := observed(sqliteStore(t), hung.URL)
	cfg.Sources = append(cfg.Sources, source("mail", sink.URL))
	cfg.MaxConnections, cfg.MaxConnectionsPerAddress = 40, 40
	g, c := start(t, cfg), client(t)
	t.Cleanup(func() { close(release) }) // before the gateway stops
	refused := func() bool {
		const name = `hookonce_connections_refused_total{listener="listen",reason="group"} `
		_, text := get(t, c, g, "/metrics")
		return strings.Contains(text, name) && !strings.Contains(text, name+"0\n")
	}
	// A hundred at once, and more until one is refused: of those that come at once some are closed before they are read.
	late := time.Now().Add(patience)
	for i := 0; i < 100 || !refused(); i++ {
		if time.Now().After(late) {
			t.Fatalf("of %d requests to an application that hangs none was refused, where 20 may be under way", i)
		}
		conn, err := net.Dial("tcp", g.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "POST /in/%s HTTP/1.1\r\nHost: gw.test\r\nContent-Length: 2\r\n\r\n{}", cfg.Sources[0].Name)
	}
	for i := range 50 {
		if r, err := post(t, c, g, cfg.Sources[1], event(fmt.Sprint(i))); err != nil || r.status != 200 {
			t.Errorf("a sender to another source was answered %+v, %v", r, err)
		}
	}
}

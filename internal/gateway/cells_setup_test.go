package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

// cellFiles are a CA, a certificate of it for this machine, and the key.
func cellFiles(t testing.TB) map[string][]byte {
	t.Helper()
	make := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if signer == nil {
			signer = key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		return der, key
	}
	until := time.Now().Add(time.Hour)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cells of a test"}, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caDER, caKey := make(ca, ca, nil)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	leafDER, leafKey := make(leaf, ca, caKey)
	keyDER, err := x509.MarshalECPrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return map[string][]byte{"ca.pem": text("CERTIFICATE", caDER), "cert.pem": text("CERTIFICATE", leafDER), "key.pem": text("EC PRIVATE KEY", keyDER)}
}

// gate stands between cells: it forwards connections until it is shut, and may take its time.
type gate struct {
	net.Listener
	to    atomic.Pointer[string]
	shut  atomic.Bool
	delay atomic.Int64
	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newGate(t testing.TB) *gate {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{Listener: l, conns: map[net.Conn]bool{}}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() { g.carry(c) })
		}
	})
	t.Cleanup(func() { l.Close(); g.set(true); group.Wait() })
	return g
}

// set shuts the gate, and cuts what is open, or opens it.
func (g *gate) set(shut bool) {
	g.shut.Store(shut)
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		if shut {
			c.Close()
		}
	}
}

func (g *gate) carry(c net.Conn) {
	defer c.Close()
	to := g.to.Load()
	if to == nil || g.shut.Load() {
		return
	}
	s, err := net.Dial("tcp", *to)
	if err != nil {
		return
	}
	defer s.Close()
	g.mu.Lock()
	g.conns[c], g.conns[s] = true, true
	g.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, s}, {s, c}} {
		both.Go(func() {
			defer way[0].Close()
			defer way[1].Close()
			buf := make([]byte, 32<<10)
			for {
				n, err := way[0].Read(buf)
				if n > 0 {
					time.Sleep(time.Duration(g.delay.Load()))
					if _, err := way[1].Write(buf[:n]); err != nil {
						return
					}
				}
				if err != nil {
					return
				}
			}
		})
	}
	both.Wait()
	g.mu.Lock()
	delete(g.conns, c)
	delete(g.conns, s)
	g.mu.Unlock()
}

// cellWorld are cells that deliver to one sink.
type cellWorld struct {
	t       testing.TB
	files   map[string][]byte
	cells   []*testCell
	sink    string
	sources string // of the file, with the sink's URL for %s
	number  int
	folder  string // of the certificates, with a slash; empty: they are no files
	log     *slog.Logger
	change  func(*config.Config) // what the files do not say; nil: they say all
}

// testCell is one of them.
type testCell struct {
	world   *cellWorld
	name    string
	dsn     string
	gate    *gate  // in front of the listener for cells
	listen  string // the address of that; empty: any, behind the gate
	weight  int
	removed bool         // from the map
	ahead   atomic.Int64 // of its clock
	gateway *Gateway
	file    atomic.Pointer[string]
}

const cellSources = `
- {name: orders, provider: hmac, secrets: ["secret-of-orders"], to: "%s"}
- name: crm
  to: "%s"
  provider: custom
  secrets: ["secret-of-crm"]
  spec:
    name: our-crm
    verify: [{signature: {in: "header:X-Signature"}, sign: [body]}]
    split: {items: ["json:$.events[*]"]}
    event: {key: [["item:$.id"]]}
`

func newCellWorld(t testing.TB, sink string, weights ...int) *cellWorld {
	w := newCellWorldWithout(t, sink)
	for i, weight := range weights {
		w.cells = append(w.cells, &testCell{world: w, name: string(rune('a' + i)), dsn: pgtest.DSN(t), gate: newGate(t), weight: weight})
	}
	return w
}

// newCellWorldWithout returns a world without cells.
func newCellWorldWithout(t testing.TB, sink string) *cellWorld {
	return &cellWorld{t: t, files: cellFiles(t), sink: sink, sources: cellSources, number: 1, log: slog.New(slog.DiscardHandler)}
}

// text is what the file of a cell says now.
func (c *testCell) text() string {
	w := c.world
	var b strings.Builder
	fmt.Fprintf(&b, `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
store: %s
delivery: {backoff: 20ms, backoff_max: 100ms, attempts: 50}
cell: %s
cells_map: %d
cell_listen: %s
cell_tls: {cert: %[5]scert.pem, key: %[5]skey.pem, ca: %[5]sca.pem}
cells:
`, c.dsn, c.name, w.number, cmp.Or(c.listen, "127.0.0.1:0"), w.folder)
	for _, other := range w.cells {
		if !other.removed {
			fmt.Fprintf(&b, "- {name: %s, url: \"https://%s\", weight: %d}\n", other.name, cmp.Or(other.listen, other.gate.Addr().String()), other.weight)
		}
	}
	b.WriteString("sources:" + strings.ReplaceAll(w.sources, "%s", w.sink))
	return b.String()
}

func (c *testCell) load() (*config.Config, error) {
	cfg, err := config.Load(config.Input{Path: "hookonce.yaml", Data: []byte(*c.file.Load()), ReadFile: func(name string) ([]byte, error) { return c.world.files[name], nil }})
	if err == nil && c.world.change != nil {
		c.world.change(cfg)
	}
	return cfg, err
}

// start starts the gateway of a cell, with the file of this moment.
func (c *testCell) start() error {
	text := c.text()
	c.file.Store(&text)
	cfg, err := c.load()
	if err != nil {
		return err
	}
	g, err := Start(context.Background(), cfg, Options{
		Load: c.load, Logger: c.world.log.With("cell", c.name),
		Now: func() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) },
	})
	if err != nil {
		return err
	}
	c.gateway = g
	to := g.CellAddr().String()
	c.gate.to.Store(&to)
	return nil
}

// startAll starts the gateways of all cells, which end with the test. If several are to own keys, the second one owns all at
// first, and another map gives the others theirs.
func (w *cellWorld) startAll() {
	w.t.Helper()
	var weights []int
	owners := 0
	for _, c := range w.cells {
		weights = append(weights, c.weight)
		owners += min(1, c.weight)
	}
	if owners > 1 {
		for i, c := range w.cells {
			c.weight = 0
			if i == 1 {
				c.weight = 1
			}
		}
		defer func() {
			w.awaitMap(1, w.cells...)
			for i, c := range w.cells {
				c.weight = weights[i]
			}
			w.introduce(w.cells...)
		}()
	}
	for _, c := range w.cells {
		if err := c.start(); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { c.close() })
	}
}

func (c *testCell) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.gateway.Close(ctx); err != nil {
		c.world.t.Error(err)
	}
}

// introduce has all cells that are given read their files again, under the next number.
func (w *cellWorld) introduce(cells ...*testCell) {
	w.t.Helper()
	w.number++
	for _, c := range cells {
		text := c.text()
		c.file.Store(&text)
		if _, err := c.gateway.Reload(context.Background(), "a test"); err != nil {
			w.t.Fatal(err)
		}
	}
}

// awaitMap waits until a cell goes by a map, and knows that the others do.
func (w *cellWorld) awaitMap(number int64, cells ...*testCell) {
	w.t.Helper()
	deadline := time.Now().Add(2 * patience)
	for _, c := range cells {
		for {
			s := c.gateway.cells.Status()
			settled := s.Map.Number == number
			for _, p := range s.Peers {
				settled = settled && p.Fenced
			}
			if settled {
				break
			}
			if time.Now().After(deadline) {
				w.t.Fatalf("cell %s: %+v; want map %d", c.name, s, number)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// owner is the cell that a key of a source belongs to by what the file says now.
func (w *cellWorld) owner(source, key string) *testCell {
	var all []hookonce.Cell
	for _, c := range w.cells {
		all = append(all, hookonce.Cell{Name: c.name, Weight: uint32(c.weight)})
	}
	name := hookonce.Route(all, source, key).Name
	for _, c := range w.cells {
		if c.name == name {
			return c
		}
	}
	w.t.Fatal("nobody owns it")
	return nil
}

// postTo signs a body for a source and posts it to a cell.
func (w *cellWorld) postTo(client *http.Client, c *testCell, source string, body []byte) (reply, error) {
	res, err := w.exchange(client, c, source, nil, body)
	if err != nil {
		return reply{}, err
	}
	return reply{status: res.StatusCode, verdict: res.Header.Get("Hookonce-Status"), retry: res.Header.Get("Retry-After")}, nil
}

// exchange signs a body for a source, posts it to a cell with header fields, and returns the answer, whose body was read.
func (w *cellWorld) exchange(client *http.Client, c *testCell, source string, fields http.Header, body []byte) (*http.Response, error) {
	s := config.DefaultSource()
	cfg, err := c.load()
	if err != nil {
		return nil, err
	}
	for _, of := range cfg.Sources {
		if of.Name == source {
			s = of
		}
	}
	p, err := s.NewProvider()
	if err != nil {
		return nil, err
	}
	r := &hookonce.Request{Method: http.MethodPost, Header: http.Header{}, Body: body, Now: time.Now()}
	if err := p.Sign(r); err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+c.gateway.Addr().String()+"/in/"+source, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = r.Header
	maps.Copy(req.Header, fields)
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res, err
}

// insistTo posts to a cell, again after a retryable 503 and when the connection breaks, as senders do, if that took a while: on a
// busy machine a cell may take too long for another one, and a sender for a cell. What goes wrong sooner than anybody loses
// patience is no fault of the machine, and is returned.
func (w *cellWorld) insistTo(client *http.Client, c *testCell, source string, body []byte) (r reply, err error) {
	deadline := time.Now().Add(patience)
	busy := false
	for try := 0; ; try++ {
		pause(try)
		began := time.Now()
		r, err = w.postTo(client, c, source, body)
		r.again = try
		busy = busy || time.Since(began) >= cellPatience // after which the next may share a connection that somebody else gives up soon
		if err == nil && (r.status != http.StatusServiceUnavailable || r.retry == "") || !busy || time.Now().After(deadline) {
			return r, err
		}
	}
}

// cellPatience is the shortest time after which a cell gives up another one: to connect to it, or to ask what takes it one read.
const cellPatience = 3 * time.Second

// says reports whether a sender was told a verdict. What was accepted is a duplicate of itself when it is sent again.
func (r reply) says(verdict string) bool {
	return r.verdict == verdict || r.again > 0 && verdict == "accepted" && r.verdict == "duplicate"
}

// forget has all cells take it that the newest map was confirmed before what is remembered, so that nobody is asked any more.
func (w *cellWorld) forget() {
	w.t.Helper()
	for _, c := range w.cells {
		db, err := pgx.Connect(context.Background(), c.dsn)
		if err != nil {
			w.t.Fatal(err)
		}
		defer db.Close(context.Background())
		if _, err := db.Exec(context.Background(), "UPDATE hookonce.cell_confirmations SET at = at - interval '1 year'"); err != nil {
			w.t.Fatal(err)
		}
		for deadline := time.Now().Add(patience); len(c.gateway.cells.Status().Asked) > 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				w.t.Fatalf("cell %s: %+v", c.name, c.gateway.cells.Status())
			}
		}
	}
}

// direct has the cells speak to each other without the gates.
func (w *cellWorld) direct() {
	w.t.Helper()
	for _, c := range w.cells {
		port, err := throwaway.FreePort() // which nobody is given before the cell listens
		if err != nil {
			w.t.Fatal(err)
		}
		c.listen = fmt.Sprint("127.0.0.1:", port)
	}
}

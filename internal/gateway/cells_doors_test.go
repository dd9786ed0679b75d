package gateway

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/connlimit"
	"github.com/hookonce/hookonce/internal/testskip"
)

// A request whose parts have to be placed anew stores an event without a key once, also if it has a resource by which others
// are placed.
func TestCellsStoreEventsWithAResourceAloneOnce(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	app := newSink(t)
	w := newCellWorld(t, app.URL, 1, 1, 1)
	w.sources = scoped
	w.startAll()
	w.awaitMap(int64(w.number), w.cells...)
	a, b, c := w.cells[0], w.cells[1], w.cells[2]
	rb, rc := resourceOf(t, a, b), resourceOf(t, a, c)
	for _, x := range w.cells {
		x.gateway.cells.stop()
	}
	w.introduce(c)
	body := fmt.Appendf(nil, `{"events":[{"note":"no id","r":%q},{"id":"keyed","r":%q}]}`, rb, rc)
	r, err := w.postTo(client(t), a, "crm", body)
	if err != nil || r.status != http.StatusOK {
		t.Errorf("%+v, %v", r, err)
	}
	for x, want := range map[*testCell]int{a: 1, b: 0, c: 1} {
		some, err := x.gateway.store.Arrivals(t.Context(), 0, 10)
		if err != nil || len(some) != want {
			t.Errorf("%s has %d events, %v; want %d: that without a key is stored once, where it came", x.name, len(some), err, want)
		}
	}
}

const scoped = `
- name: crm
  to: {url: "%s", order: by_resource}
  provider: custom
  secrets: ["secret-of-crm"]
  spec:
    name: our-crm
    verify: [{signature: {in: "header:X-Signature"}, sign: [body]}]
    split: {items: ["json:$.events[*]"]}
    event: {key: [["item:$.id"]], resource: ["item:$.r"]}
`

func resourceOf(t *testing.T, from, want *testCell) string {
	for _, r := range ids("r", 200) {
		p, err := from.gateway.cells.Place(t.Context(), "crm", &hookonce.Verified{Events: []hookonce.Event{{Key: "k" + r, Scope: r}}}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if o := p.Elsewhere(); len(o) == 1 && o[0].Cell == want.name {
			return r
		}
	}
	t.Fatal("none")
	return ""
}

// linker returns what connects to a cell as another one does, under any name, with the certificates of this moment.
func (w *cellWorld) linker(t *testing.T, c *testCell) func(from string) (net.Conn, *bufio.Reader, error) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.files["ca.pem"])
	pair, err := tls.X509KeyPair(w.files["cert.pem"], w.files["key.pem"])
	if err != nil {
		t.Fatal(err)
	}
	return func(from string) (net.Conn, *bufio.Reader, error) {
		conn, err := tls.Dial("tcp", c.gateway.CellAddr().String(), &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}})
		if err != nil {
			return nil, nil, err
		}
		fmt.Fprintf(conn, "GET /cells/link HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: hookonce-cells/2\r\nHookonce-Cell-From: %s\r\n\r\n", from)
		in := bufio.NewReader(conn)
		r, err := http.ReadResponse(in, nil)
		if err == nil && r.StatusCode != 101 {
			err = fmt.Errorf("%s", r.Status)
		}
		return conn, in, err
	}
}

// After a reload with another CA, whoever came with a certificate of the former one is answered nothing any more, on the
// connections that he has.
func TestCellsEndWhatAFormerCASigned(t *testing.T) {
	t.Parallel()
	w := newCellWorld(t, newSink(t).URL, 1, 0)
	w.startAll()
	a := w.cells[0]
	link := w.linker(t, a)
	conn, in, err := link("b")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w.files = cellFiles(t)
	if _, err := a.gateway.Reload(t.Context(), "another CA"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := link("b"); err == nil {
		t.Error("a new connection is taken")
	}
	conn.SetReadDeadline(time.Now().Add(7 * time.Second)) // before it is given up because it says nothing
	if said, err := io.ReadAll(in); err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("with a certificate of the former CA the connection is served on, and hears %q", said)
	}
}

// Whoever connects without a certificate takes no connection away from cells.
func TestCellsKeepTheirConnections(t *testing.T) {
	t.Parallel()
	w := newCellWorld(t, newSink(t).URL, 1, 0)
	w.startAll()
	a := w.cells[0]
	conn, in, err := w.linker(t, a)("b")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	a.gateway.cells.listener.SetLimits(connlimit.Limits{Max: 1, PerAddress: 1})
	for range 5 { // each takes the place of the oldest that may go
		stranger, err := net.Dial("tcp", a.gateway.CellAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer stranger.Close()
	}
	conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond)) // if it was cut that is known by now
	if said, err := in.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection of a cell: %q, %v; want that it is there", said, err)
	}
}

// What a request says in its query is in no log, whatever its Host is, and another cell takes it.
func TestCellsLogNoQueries(t *testing.T) {
	t.Parallel()
	w := newCellWorld(t, newSink(t).URL, 1, 1)
	var mu sync.Mutex
	var log bytes.Buffer
	w.log = slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) { mu.Lock(); defer mu.Unlock(); return log.Write(p) }), nil))
	w.startAll()
	w.awaitMap(int64(w.number), w.cells...)
	a, b := w.cells[0], w.cells[1]
	id := ""
	for _, id = range ids("evt", 100) {
		if w.owner("orders", id) == b {
			break
		}
	}
	cfg, err := a.load()
	if err != nil {
		t.Fatal(err)
	}
	p, err := cfg.Sources[0].NewProvider()
	if err != nil {
		t.Fatal(err)
	}
	body := event(id)
	r := &hookonce.Request{Method: http.MethodPost, Header: http.Header{}, Body: []byte(body), Now: time.Now()}
	if err := p.Sign(r); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+a.gateway.Addr().String()+"/in/orders?token=token-of-nobody", bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header, req.Host = r.Header, "h.example:abc"
	res, err := client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != http.StatusOK {
		t.Errorf("it is answered %s", res.Status)
	}
	mu.Lock()
	defer mu.Unlock()
	if i := strings.Index(log.String(), "token-of-nobody"); i >= 0 {
		t.Errorf("the log says …%s…", log.String()[max(0, i-250):min(i+60, log.Len())])
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/reconcile"
	"github.com/hookonce/hookonce/internal/testskip"
)

// Whoever takes the store of a cell for another one, or for none, would accept past the fence: it is told what to write.
func TestCellsRefuseAnotherName(t *testing.T) {
	t.Parallel()
	app := newSink(t)
	w := newCellWorld(t, app.URL, 1, 0)
	w.startAll()
	a := w.cells[0]
	other := &testCell{world: w, name: "b", dsn: a.dsn, gate: newGate(t)}
	err := other.start()
	if !errors.Is(err, cells.ErrNotThisCell) || !strings.Contains(err.Error(), `the cell "a"`) {
		t.Errorf("as another cell: %v", err)
	}
	if err == nil {
		other.close()
	}
	otherFile, err := other.load()
	if err != nil {
		t.Fatal(err)
	}
	plain := configured(config.Store{Driver: config.Postgres, DSN: a.dsn}, app.URL)
	if g, err := Start(context.Background(), plain, Options{Logger: w.log}); err == nil || !errors.Is(err, cells.ErrNotThisCell) || !strings.Contains(err.Error(), "cell: a") {
		t.Errorf("as no cell: %v", err)
		if err == nil {
			closeNow(t, g)
		}
	}
	for name, cfg := range map[string]*config.Config{"as another cell": otherFile, "as no cell": plain} {
		if b, err := OpenBeside(t.Context(), cfg, Options{Logger: w.log}); !errors.Is(err, cells.ErrNotThisCell) {
			t.Errorf("beside, %s: %v", name, err)
			if err == nil {
				b.Close()
			}
		}
	}
	if b, err := OpenCells(t.Context(), otherFile, Options{Logger: w.log}); !errors.Is(err, cells.ErrNotThisCell) {
		t.Errorf("the command, as another cell: %v", err)
		if err == nil {
			b.Close()
		}
	}
}

// A gateway that ran without cells before its store had a map stores nothing from then on, and says why; started with the settings
// of the cell it goes on.
func TestCellsFenceGatewaysWithoutCells(t *testing.T) {
	t.Parallel()
	app := newSink(t)
	w := newCellWorld(t, app.URL, 1, 0)
	a, c := w.cells[0], client(t)
	plain := configured(config.Store{Driver: config.Postgres, DSN: a.dsn}, app.URL)
	g := start(t, plain)
	source := plain.Sources[0]
	insist(t, c, g, source, event("before"))
	awaitReady(t, c, g)
	w.startAll()
	for deadline := time.Now().Add(patience); !strings.Contains(scraped(t, g), `hookonce_rejected_total{reason="cell_map",source="orders"} 1`); {
		r, err := post(t, c, g, source, event("after"))
		if err != nil || r.status != http.StatusServiceUnavailable || r.retry == "" || time.Now().After(deadline) {
			t.Fatalf("under a map that it does not know: %+v, %v; want 503 for the map", r, err)
		}
	}
	unready(t, c, g)
	insist(t, c, a.gateway, source, event("after"))
	insist(t, c, a.gateway, source, event("before"))
	app.awaitIDs(t, []string{"before", "after"})
	app.eachOnce(t, []string{"before", "after"})
}

// Once it was told so it delivers nothing past its store either: another cell may own it, and deliver it too.
func TestCellsHaveGatewaysWithoutCellsNotOpen(t *testing.T) {
	testskip.Long(t)
	cluster, app, cfg, g := outage(t)
	c, source := client(t), cfg.Sources[0]
	insist(t, c, g, source, typed("before", "cart.updated", true))
	raiser, err := pg.Open(t.Context(), cfg.Store.DSN, pg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer raiser.Close()
	if err := raiser.RaiseCellMap(t.Context(), journal.CellRaise{Cell: "eu", Maps: []journal.CellMap{{Number: 1, Content: "map", Since: time.Now()}}}); err != nil {
		t.Fatal(err)
	}
	if r, err := post(t, c, g, source, typed("under a map", "cart.updated", true)); err != nil || r.status != http.StatusServiceUnavailable {
		t.Fatalf("under a map: %+v, %v", r, err)
	}
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	if r, err := postOnce(t, c, g, source, typed("away", "cart.updated", true)); err != nil || r.status != http.StatusServiceUnavailable || r.retry == "" || app.times("away") != 0 {
		t.Errorf("and then without a store: %+v, %v, and it was delivered %d times", r, err, app.times("away"))
	}
}

// An event of another cell that a list has is neither stored here nor said to be on record: what compares counts it as open.
func TestCellsLeaveWhatIsListedToItsOwner(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	app := newSink(t)
	w := newCellWorld(t, app.URL, 1, 1)
	w.startAll()
	w.awaitMap(int64(w.number), w.cells...)
	a := w.cells[0]
	cfg, err := a.load()
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenBeside(t.Context(), cfg, Options{Logger: w.log})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i, id := range ids("listed", 20) {
		ev := hookonce.Event{Source: "orders", Key: id, Body: event(id)}
		store := []ingester{b.ingest, a.gateway.ingestListed}[i%2]
		stored, err := store(t.Context(), ev)
		switch owner := w.owner("orders", id); {
		case owner == a && (err != nil || !stored):
			t.Errorf("%s, which is its own: %t, %v", id, stored, err)
		case owner != a && (stored || !errors.Is(err, reconcile.ErrElsewhere) || !strings.Contains(err.Error(), owner.name)):
			t.Errorf("%s, which is the other cell's: %t, %v", id, stored, err)
		}
	}
}

// A request whose parts have to be placed anew stores its events without a key once.
func TestCellsStoreEventsWithoutAKeyOnce(t *testing.T) {
	t.Parallel()
	app := newSink(t)
	w := newCellWorld(t, app.URL, 1, 1)
	w.startAll()
	w.awaitMap(int64(w.number), w.cells...)
	a, b := w.cells[0], w.cells[1]
	a.gateway.cells.stop() // it looks into the store no more by itself, and nobody tells it:
	a.gate.set(true)
	w.introduce(b)
	id := ""
	for _, id = range ids("evt", 100) {
		if w.owner("crm", id) == b {
			break
		}
	}
	body := fmt.Appendf(nil, `{"events":[{"note":"no id"},{"id":%q}]}`, id)
	if r, err := w.postTo(client(t), a, "crm", body); err != nil || r.status != http.StatusOK {
		t.Errorf("%+v, %v", r, err)
	}
	if n := a.gateway.cells.Status().Map.Number; n != int64(w.number) {
		t.Errorf("it placed by map %d alone", n)
	}
	app.awaitIDs(t, []string{"", id})
	some, err := a.gateway.store.Arrivals(t.Context(), 0, 10)
	if err != nil || len(some) != 1 {
		t.Errorf("%d events are stored where the request came, %v; want that without a key, once", len(some), err)
	}
}

// Whoever has no certificate of the cells' CA is told nothing.
func TestCellsSpeakToCellsAlone(t *testing.T) {
	t.Parallel()
	w := newCellWorld(t, newSink(t).URL, 1, 0)
	w.startAll()
	a := w.cells[0]
	speak := func(files map[string][]byte) (int, error) {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(w.files["ca.pem"])
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
		defer transport.CloseIdleConnections()
		if files != nil {
			pair, err := tls.X509KeyPair(files["cert.pem"], files["key.pem"])
			if err != nil {
				t.Fatal(err)
			}
			transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+a.gateway.CellAddr().String()+"/cells/map", strings.NewReader(`{"cell":"b"}`))
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			return 0, err
		}
		return res.StatusCode, res.Body.Close()
	}
	if status, err := speak(w.files); status != http.StatusOK || err != nil {
		t.Fatalf("a cell is answered %d, %v", status, err)
	}
	for who, files := range map[string]map[string][]byte{"without a certificate": nil, "with one of another CA": cellFiles(t)} {
		if status, err := speak(files); err == nil {
			t.Errorf("whoever comes %s is answered %d", who, status)
		}
	}
}

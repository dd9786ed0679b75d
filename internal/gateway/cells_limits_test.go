package gateway

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// keysOf returns a key of a source for each of the cells, which owns it.
func (w *cellWorld) keysOf(source string, cells ...*testCell) (keys []string) {
	w.t.Helper()
	for _, c := range cells {
		for _, id := range ids("evt-of-"+c.name, 200) {
			if w.owner(source, id) == c {
				keys = append(keys, id)
				break
			}
		}
	}
	return keys
}

// What is taken at the door of its owner is taken at another door: as many header fields as a listener reads, and as many in the
// answer of an application as are read of one.
func TestCellsTakeWhatADoorTakes(t *testing.T) {
	t.Parallel()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 2000 {
			w.Header().Set(fmt.Sprint("X-", i), "y")
		}
	}))
	t.Cleanup(app.Close)
	w := newCellWorld(t, app.URL, 1, 1)
	w.sources = "\n- {name: orders, provider: hmac, secrets: [\"secret-of-orders\"], to: \"%s\", mode: sync}\n"
	w.startAll()
	w.awaitMap(int64(w.number), w.cells...)
	fields := http.Header{}
	for i := range maxHeaderLines - 10 { // the others are the client's
		fields.Set(fmt.Sprint("X-Field-", i), "x")
	}
	c := client(t)
	for _, id := range w.keysOf("orders", w.cells...) {
		for _, door := range w.cells {
			for deadline := time.Now().Add(patience); ; {
				res, err := w.exchange(c, door, "orders", fields, event(id))
				if err == nil && res.StatusCode == http.StatusOK && len(res.Header) > 2000 {
					break
				}
				if err != nil || time.Now().After(deadline) {
					t.Fatalf("%s at %s: %+v, %v", id, door.name, res, err)
				}
				pause(5)
			}
		}
	}
}

// A reload with a larger max_body makes room for what other cells hand on.
func TestCellsMakeRoomAtAReload(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	app := newSink(t)
	w := newCellWorld(t, app.URL, 1, 1)
	largest := int64(300 << 10)
	w.change = func(cfg *config.Config) {
		for i := range cfg.Sources {
			cfg.Sources[i].MaxBody = largest
		}
	}
	w.startAll()
	w.awaitMap(int64(w.number), w.cells...)
	id := w.keysOf("orders", w.cells[1])[0]
	body := fmt.Appendf(nil, `{"id":%q,"pad":%q}`, id, strings.Repeat("x", 3<<20))
	c := client(t)
	if r, err := w.postTo(c, w.cells[0], "orders", body); err != nil || r.status != http.StatusRequestEntityTooLarge {
		t.Fatalf("beyond max_body: %+v, %v", r, err)
	}
	largest = 4 << 20
	for _, cell := range w.cells {
		if _, err := cell.gateway.Reload(t.Context(), "a test"); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := w.insistTo(c, w.cells[0], "orders", body); err != nil || !r.says("accepted") {
		t.Errorf("within the new one: %+v, %v", r, err)
	}
}

// Memory is that of a certificate, whatever name a cell gives itself.
func TestCellsShareMemoryByCertificate(t *testing.T) {
	t.Parallel()
	w := newCellWorld(t, newSink(t).URL, 1, 0)
	w.change = func(cfg *config.Config) { cfg.Sources[0].MaxBody = 47 << 20 } // so that there are 192 MiB
	w.startAll()
	link := w.linker(t, w.cells[0])
	call := func(who byte, n int) []byte { // its beginning, and who makes it
		b := binary.BigEndian.AppendUint32(nil, uint32(n+5))
		return append(b, 1, 0, 0, 0, 1, 0, 1, who)
	}
	for _, name := range []string{"x", "y"} { // which hold 94 together, that do not come
		conn, _, err := link(name)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write(call(name[0], 47<<20)); err != nil {
			t.Fatal(err)
		}
	}
	conn, in, err := link("z")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const crowded = 4
	for deadline := time.Now().Add(8 * time.Second); ; { // they may not have been read yet
		said := call('z', 10<<20)
		if _, err := conn.Write(append(said, make([]byte, 10<<20-3)...)); err != nil {
			t.Fatal(err)
		}
		var head [9]byte
		for read := 0; read < len(head); {
			n, err := in.Read(head[read:])
			if read += n; err != nil {
				t.Fatal(err)
			}
		}
		if head[4] == crowded {
			return
		}
		if _, err := in.Discard(int(binary.BigEndian.Uint32(head[:])) - 5); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("one certificate has the memory of three cells")
		}
	}
}

// A standby that lags (store_read) shows old pages, and nothing is decided by it: what it does not have is known to whoever asks
// for keys that moved, and is a duplicate at every door.
func TestCellsDecideNothingByAStandby(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	app := newSink(t)
	primary := pgtest.Start(t, pgtest.Options{})
	dsn := primary.DSN(t)
	w := newCellWorld(t, app.URL, 1, 1)
	a, b := w.cells[0], w.cells[1]
	a.dsn, a.weight, b.weight = dsn, 0, 1 // b owns all; then a does, and then b again
	w.startAll()
	w.awaitMap(1, a, b)
	a.weight, b.weight = 1, 0
	w.introduce(a, b)
	w.awaitMap(int64(w.number), a, b)
	a.close()
	standby := primary.Standby(t)
	w.change = func(cfg *config.Config) {
		if cfg.Cell == a.name {
			cfg.StoreRead = config.Store{Driver: config.Postgres, DSN: standby.Alone(dsn)}
		}
	}
	if err := a.start(); err != nil {
		t.Fatal(err)
	}
	defer a.close() // before the standby ends, for which its commits wait
	w.awaitMap(int64(w.number), a, b)
	if err := standby.HoldReplay(true); err != nil {
		t.Fatal(err)
	}
	c, all := client(t), ids("evt", 10)
	for _, id := range all {
		if r, err := w.insistTo(c, b, "orders", event(id)); err != nil || !r.says("accepted") {
			t.Fatalf("%s: %+v, %v", id, r, err)
		}
	}
	a.weight, b.weight = 0, 1
	w.introduce(b)
	for _, id := range all {
		for _, door := range w.cells {
			if r, err := w.insistTo(c, door, "orders", event(id)); err != nil || r.verdict != "duplicate" {
				t.Errorf("%s at %s: %+v, %v", id, door.name, r, err)
			}
		}
	}
	if err := standby.HoldReplay(false); err != nil {
		t.Fatal(err)
	}
	app.awaitIDs(t, all)
	app.eachOnce(t, all)
}

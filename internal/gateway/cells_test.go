package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/overview"
	"github.com/hookonce/hookonce/internal/testskip"
)

// Copies to random doors: one claim, in the cell that owns the key, and one delivery.
func TestCellsHaveOneClaim(t *testing.T) {
	t.Parallel()
	app := newSink(t)
	w := newCellWorld(t, app.URL, 1, 1, 2)
	w.startAll()
	w.awaitMap(int64(w.number), w.cells...)
	c := client(t)
	all := ids("evt", 20)
	var accepted, duplicate, refused sync.Map
	var group sync.WaitGroup
	for _, id := range all {
		for i := range 6 {
			group.Go(func() {
				r, err := w.insistTo(c, w.cells[i%3], "orders", event(id))
				if r.again > 0 {
					refused.Store(id, true)
				}
				if err != nil || r.status != http.StatusOK {
					t.Errorf("%s at %s: %+v, %v", id, w.cells[i%3].name, r, err)
					return
				}
				n, _ := map[string]*sync.Map{"accepted": &accepted, "duplicate": &duplicate}[r.verdict].LoadOrStore(id, new(sync.Map))
				n.(*sync.Map).Store(i, true)
			})
		}
	}
	group.Wait()
	count := func(m *sync.Map, id string) (n int) {
		if v, ok := m.Load(id); ok {
			v.(*sync.Map).Range(func(any, any) bool { n++; return true })
		}
		return n
	}
	app.awaitIDs(t, all)
	for _, id := range all {
		_, doubtful := refused.Load(id) // it may have been stored all the same
		if a, d := count(&accepted, id), count(&duplicate, id); a+d != 6 || a > 1 || a == 0 && !doubtful {
			t.Errorf("%s was accepted %d times and a duplicate %d times", id, a, d)
		}
		for _, cell := range w.cells {
			known, err := cell.gateway.journal.Known(t.Context(), "orders", []string{id})
			if _, here := known[id]; err != nil || here != (cell == w.owner("orders", id)) {
				t.Errorf("%s on record in %s: %v, %v", id, cell.name, here, err)
			}
		}
	}
	app.eachOnce(t, all)
	large := fmt.Appendf(nil, `{"id":"evt-large","pad":%q}`, strings.Repeat("x", 300<<10)) // which shares no connection
	for i, want := range []string{"accepted", "duplicate", "duplicate"} {
		if r, err := w.insistTo(c, w.cells[i], "orders", large); err != nil || !r.says(want) {
			t.Errorf("a large one at %s: %+v, %v; want %s", w.cells[i].name, r, err, want)
		}
	}
	tampered, err := postSigned(c, w.cells[0].gateway, "orders", http.Header{"X-Signature": {"00"}}, event("evt-0"))
	if err != nil || tampered.status != http.StatusUnauthorized {
		t.Errorf("tampered: %+v, %v", tampered, err)
	}
	if r, err := w.postTo(c, w.cells[1], "orders", event("")); err != nil || r.verdict != "unkeyed" {
		t.Errorf("without a key: %+v, %v", r, err)
	}
}

// A batch is divided among the owners, and answered when all of it is durable. While one of them is away nothing is
// acknowledged, and each event is delivered once in the end.
func TestCellsDivideBatches(t *testing.T) {
	t.Parallel()
	app := newSink(t)
	w := newCellWorld(t, app.URL, 1, 1, 1)
	w.startAll()
	w.awaitMap(int64(w.number), w.cells...)
	c := client(t)
	all := ids("item", 30)
	owners := map[string]bool{}
	for _, id := range all {
		owners[w.owner("crm", id).name] = true
	}
	if len(owners) != 3 {
		t.Fatalf("the batch has events of %v only", owners)
	}
	w.cells[2].gate.set(true)
	if r, err := w.postTo(c, w.cells[0], "crm", batch(all...)); err != nil || r.status != http.StatusServiceUnavailable || r.retry == "" {
		t.Errorf("with an owner away: %+v, %v", r, err)
	}
	for deadline := time.Now().Add(patience); ; pause(5) { // a word that c had sent before may come late
		w.cells[0].gateway.cells.Reach(t.Context())
		s, err := w.cells[0].gateway.overview.Snapshot(t.Context())
		if err == nil && len(s.Cells) == 2 && s.Cells[0].Error == "" && s.Cells[1].Error != "" && !s.Cells[1].Idle {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("with c away the cells stand so: %+v, %v", s, err)
		}
	}
	w.cells[2].gate.set(false)
	for _, want := range []string{"accepted", "duplicate"} {
		if r, err := w.insistTo(c, w.cells[1], "crm", batch(all...)); err != nil || r.status != http.StatusOK || !r.says(want) {
			t.Errorf("%+v, %v; want %s", r, err, want)
		}
	}
	app.awaitIDs(t, all)
	app.eachOnce(t, all)
}

// While keys move, a copy of what its former owner has on record is handled there, also a redelivery of what failed; what is new
// is accepted by the new owner, once the former one has said that it does not know it. If it cannot be asked, nothing is
// acknowledged.
func TestCellsAskTheFormerOwner(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	app := newSink(t)
	app.answer = func(id string, times int) int {
		if strings.HasPrefix(id, "gone") && times == 1 {
			return http.StatusGone
		}
		return http.StatusOK
	}
	w := newCellWorld(t, app.URL, 1, 0)
	w.sources = strings.Replace(w.sources, `to: "%s"}`, `to: {url: "%s", permanent: [410]}}`, 1)
	w.startAll()
	a, b := w.cells[0], w.cells[1]
	w.awaitMap(1, a, b)
	c := client(t)
	old, failed, fresh := ids("old", 20), ids("gone", 20), ids("new", 20)
	for _, id := range slices.Concat(old, failed) {
		if r, err := w.insistTo(c, b, "orders", event(id)); err != nil || !r.says("accepted") {
			t.Fatalf("%s: %+v, %v", id, r, err)
		}
	}
	app.awaitIDs(t, slices.Concat(old, failed))
	b.weight = 3
	a.gate.set(true) // nobody can ask a
	w.introduce(b)
	away := 0
	for _, id := range slices.Concat(old, fresh) {
		r, err := w.postTo(c, b, "orders", event(id))
		if err != nil || r.status != http.StatusServiceUnavailable || r.retry == "" {
			t.Errorf("%s, whose owner before cannot be asked, or that is still its owner: %+v, %v", id, r, err)
		}
		if w.owner("orders", id) == b {
			away++
		}
	}
	if away < 10 {
		t.Fatalf("only %d keys moved", away)
	}
	a.gate.set(false) // and learns of the map as it is asked
	for _, id := range old {
		for _, door := range w.cells {
			if r, err := w.insistTo(c, door, "orders", event(id)); err != nil || r.verdict != "duplicate" {
				t.Errorf("%s at %s: %+v, %v", id, door.name, r, err)
			}
		}
	}
	for _, id := range failed {
		if r, err := w.insistTo(c, b, "orders", event(id)); err != nil || r.verdict != "duplicate" {
			t.Errorf("%s: %+v, %v", id, r, err)
		}
	}
	for _, id := range fresh {
		for i, want := range []string{"accepted", "duplicate"} {
			if r, err := w.insistTo(c, w.cells[i], "orders", event(id)); err != nil || !r.says(want) {
				t.Errorf("%s: %+v, %v; want %s", id, r, err, want)
			}
		}
	}
	app.await(t, "the second delivery of what failed", func() bool {
		for _, id := range failed {
			if app.seen[id] < 2 {
				return false
			}
		}
		return true
	})
	app.awaitIDs(t, fresh)
	app.mu.Lock()
	defer app.mu.Unlock()
	for _, id := range slices.Concat(old, fresh, failed) {
		if want := 1 + strings.Count(id, "gone"); app.seen[id] != want {
			t.Errorf("%s was delivered %d times, want %d", id, app.seen[id], want)
		}
	}
	for _, id := range fresh {
		known, err := w.owner("orders", id).gateway.journal.Known(t.Context(), "orders", []string{id})
		if err != nil || len(known) != 1 {
			t.Errorf("%s is not on record with its owner, %v", id, err)
		}
	}
}

// A gateway that does not know of a newer map in its own store is refused by the fence, and goes on by the newer one.
func TestCellsFenceTheirOwnGateways(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	app := newSink(t)
	w := newCellWorld(t, app.URL, 1, 0)
	w.startAll()
	a, b := w.cells[0], w.cells[1]
	w.awaitMap(1, a, b)
	second := &testCell{world: w, name: "a", dsn: a.dsn, gate: newGate(t), weight: 1}
	if err := second.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.close)
	second.gateway.cells.stop() // it looks into the store no more by itself
	a.weight, b.weight = 0, 1
	w.introduce(a, b)
	c := client(t)
	all := ids("evt", 10)
	for _, id := range all {
		for i, door := range []*testCell{second, a, b} {
			r, err := w.insistTo(c, door, "orders", event(id))
			if want := []string{"accepted", "duplicate", "duplicate"}[i]; err != nil || !r.says(want) {
				t.Errorf("%s at door %d: %+v, %v; want %s", id, i, r, err, want)
			}
		}
	}
	app.awaitIDs(t, all)
	app.eachOnce(t, all)
	for _, id := range all {
		if known, err := a.gateway.journal.Known(t.Context(), "orders", []string{id}); err != nil || len(known) != 0 {
			t.Errorf("%s was accepted in a, %v", id, err)
		}
	}
}

// What cannot be a map is refused at the start and at a reload, with the number to write.
func TestCellsRefuseWhatIsNoMap(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	app := newSink(t)
	w := newCellWorld(t, app.URL, 1, 0)
	w.startAll()
	a := w.cells[0]
	if r, err := w.insistTo(client(t), a, "orders", event("evt")); err != nil || !r.says("accepted") {
		t.Fatal(r, err)
	}
	w.number = 0
	w.cells[1].weight = 5
	w.number = 1
	text := a.text()
	a.file.Store(&text)
	if _, err := a.gateway.Reload(t.Context(), "a test"); err == nil || !strings.Contains(err.Error(), "raise cells_map to 2") {
		t.Errorf("other cells under the same number: %v", err)
	}
	text = strings.Replace(a.text(), `to: "`+app.URL+`"}`, fmt.Sprintf(`to: {url: %q, order: by_resource}}`, app.URL), 1)
	text = strings.Replace(text, "weight: 5", "weight: 0", 1)
	a.file.Store(&text)
	if _, err := a.gateway.Reload(t.Context(), "a test"); err == nil || !strings.Contains(err.Error(), "scope") {
		t.Errorf("an order under the same number: %v", err)
	}
	w.cells[1].weight = 0
	other := &testCell{world: w, name: "a", dsn: postgresStore(t).DSN, gate: newGate(t)}
	w.cells[1].weight = 1
	if err := other.start(); !errors.Is(err, cells.ErrFirstMap) || !strings.Contains(err.Error(), "weight: 0 for every cell but one") {
		t.Errorf("a first map with several owners: %v", err)
	}
	a.weight = 0
	single := configured(postgresStore(t), app.URL)
	g := start(t, single)
	if r, err := post(t, client(t), g, single.Sources[0], event("evt")); err != nil || r.status != 200 {
		t.Fatal(r, err)
	}
	closeNow(t, g)
	other.dsn = single.Store.DSN
	if err := other.start(); err == nil || !strings.Contains(err.Error(), "weight: 0 for every other cell") {
		t.Errorf("a first map that gives away what is on record: %v", err)
	}
}

// A cell is idle if it owns no keys and nobody has to ask it for those that it owned.
func TestCellsThatAreIdle(t *testing.T) {
	gone := errors.New("gone")
	peer := func(name string, share float64) cells.Peer {
		return cells.Peer{Cell: cells.Cell{Name: name}, Share: share, Reached: gone}
	}
	for number, idle := range map[int64]bool{1: true, 0: false} { // without a map any of them may own keys
		got := standing(cells.Status{
			Map:   cells.Map{Number: number},
			Peers: []cells.Peer{peer("ap", 0), peer("eu", 0.5), peer("us", 0)},
			Asked: []cells.Asked{{Cell: "us", Map: 1}},
		})
		want := []overview.CellState{{Name: "ap", Error: "gone", Idle: idle}, {Name: "eu", Error: "gone"}, {Name: "us", Error: "gone"}}
		if !slices.Equal(got, want) {
			t.Errorf("with map %d they stand so: %+v, want %+v", number, got, want)
		}
	}
}

// A cell that knows no map takes nothing, so it is not ready, and says which cell it waits for: the map is learned from that.
func TestCellsThatKnowNoMap(t *testing.T) {
	t.Parallel()
	w := newCellWorld(t, newSink(t).URL, 1, 0)
	a, b, c := w.cells[0], w.cells[1], client(t)
	w.number = 2
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	unready(t, c, b.gateway)
	if r, err := w.postTo(c, b, "orders", event("evt_1")); err != nil || r.status != http.StatusServiceUnavailable || r.retry == "" {
		t.Errorf("without a map: %+v, %v", r, err)
	}
	for deadline := time.Now().Add(patience); ; pause(5) {
		all := b.gateway.cells.stand()
		if len(all) == 1 && all[0].Name == "a" && all[0].Error != "" && !all[0].Idle && strings.Contains(scraped(t, b.gateway), "hookonce_cell_map_differs 1") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the cells stand so: %+v; want that a is away, and that the map differs", all)
		}
	}
	w.number = 1
	if err := a.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	awaitReady(t, c, b.gateway)
}

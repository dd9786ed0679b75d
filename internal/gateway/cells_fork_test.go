package gateway

import (
	"context"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/testskip"
)

// takeBack is what the page of cells says about two maps of one number, for this number.
func takeBack(t *testing.T, number int) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/cells.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sql\n(.*?)```").FindSubmatch(page)
	if block == nil || strings.Count(string(block[1]), "3") != 3 {
		t.Fatal("the page does not say how to take back map 3")
	}
	return strings.ReplaceAll(string(block[1]), "3", strconv.Itoa(number))
}

// Two maps of one number, introduced in cells that do not reach each other, have nothing accepted twice: what needs both cells is
// answered 503. When the one that a single cell has is taken back, as the page says, all is accepted, and once.
func TestCellsWithTwoMapsOfOneNumber(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	app := newSink(t)
	w := newCellWorld(t, app.URL, 1, 1, 1)
	w.startAll()
	w.awaitMap(int64(w.number), w.cells...)
	client := client(t)
	a, b, c := w.cells[0], w.cells[1], w.cells[2]
	all := ids("evt", 60)
	for _, id := range all[:20] {
		if r, err := w.insistTo(client, a, "orders", event(id)); err != nil || !r.says("accepted") {
			t.Fatal(id, r, err)
		}
	}
	weigh := func(weights ...int) {
		for i, c := range w.cells {
			c.weight = weights[i]
		}
	}
	for _, c := range w.cells {
		c.gate.set(true)
	}
	weigh(8, 1, 1)
	w.introduce(a)
	w.number--
	weigh(1, 8, 1)
	w.introduce(b)
	for _, c := range w.cells {
		c.gate.set(false)
	}
	for deadline := time.Now().Add(patience); c.gateway.cells.Status().Map.Number < int64(w.number); pause(5) {
		if time.Now().After(deadline) {
			t.Fatal("the third cell learns of neither map")
		}
	}
	refused := 0
	for _, id := range all {
		for _, door := range w.cells {
			r, err := w.postTo(client, door, "orders", event(id))
			switch {
			case err == nil && r.status == http.StatusServiceUnavailable && r.retry != "":
				refused++
			case err != nil || r.status != http.StatusOK:
				t.Errorf("%s at %s: %+v, %v", id, door.name, r, err)
			}
		}
	}
	if refused < 10 {
		t.Errorf("with two maps %d requests are refused", refused)
	}
	w.onceEach(all)
	alone := b
	weigh(8, 1, 1)
	if c.gateway.cells.Status().Map.Cells[1].Weight == 8 {
		alone = a
		weigh(1, 8, 1)
	}
	alone.close()
	db, err := pgx.Connect(t.Context(), alone.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	if _, err := db.Exec(t.Context(), takeBack(t, w.number)); err != nil {
		t.Fatal(err)
	}
	if err := alone.start(); err != nil {
		t.Fatal(err)
	}
	w.awaitMap(int64(w.number), w.cells...)
	for _, id := range all {
		for _, door := range w.cells {
			if r, err := w.insistTo(client, door, "orders", event(id)); err != nil || r.status != http.StatusOK {
				t.Errorf("%s at %s with one map: %+v, %v", id, door.name, r, err)
			}
		}
	}
	w.onceEach(all)
	app.awaitIDs(t, all)
	app.eachOnce(t, all)
}

// onceEach reports keys of orders that are on record in several cells.
func (w *cellWorld) onceEach(keys []string) {
	w.t.Helper()
	in := map[string]string{}
	for _, c := range w.cells {
		known, err := c.gateway.store.Known(context.Background(), "orders", keys)
		if err != nil {
			w.t.Fatal(err)
		}
		for k := range known {
			if in[k] += c.name; len(in[k]) > 1 {
				w.t.Errorf("%s is on record in the cells %s", k, in[k])
			}
		}
	}
}

package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/hookonce/hookonce"
)

// A request whose parts have to be placed anew stores an event without a key once, also if it has a resource by which others
// are placed.
func TestCellsStoreEventsWithAResourceAloneOnce(t *testing.T) {
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
		p, err := from.gateway.cells.Place(t.Context(), "crm", slices.Values([]*hookonce.Event{{Key: "k" + r, Scope: r}}), nil)
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

package ingest_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/callmux"
	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/quota"
)

// maps is the side of a store that keeps maps of cells.
type maps struct {
	journal.CellKeeper
	name   string                   // of the cell; empty: a
	known  map[string]journal.Known // on record in the cell
	mu     sync.Mutex
	record journal.CellRecord
}

func (m *maps) CellRecord(context.Context) (journal.CellRecord, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.record, nil
}

func (m *maps) CellName(context.Context) (string, error) { return cmp.Or(m.name, "a"), nil }

func (m *maps) RaiseCellMap(_ context.Context, r journal.CellRaise) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.record.Maps = append(m.record.Maps, r.Maps...)
	return nil
}

// moving is a journal whose map changes after so many commits. It takes what was placed by its own map, and keeps it.
type moving struct {
	keeping
	*maps
	after int
	t     *testing.T
	calls int
}

// open opens the cell of the store, which has the map of that number at least.
func (m *moving) open(number int64) *cells.Cells {
	c, err := cells.Open(context.Background(), cells.Options{
		Self: "a", Store: m.maps, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Known:      func(context.Context, string, []string) (map[string]journal.Known, error) { return nil, nil },
		Remembered: func(string) time.Duration { return time.Hour },
		Configured: cells.Configured{Number: number, Cells: []cells.Cell{{Name: "a", URL: "https://a", Weight: uint32(number)}}, Sources: []string{"billing"}},
	})
	if err != nil {
		m.t.Error(err)
	}
	return c
}

func (m *moving) Accept(ctx context.Context, events []*journal.Event) ([]journal.Result, error) {
	if m.calls++; m.calls == m.after+1 {
		m.open(2) // by another gateway
	}
	results := make([]journal.Result, len(events))
	for i, ev := range events {
		if r, _ := m.CellRecord(ctx); ev.CellMap != int64(len(r.Maps)) {
			results[i].Err = journal.ErrCellMap
			continue
		}
		m.events = append(m.events, ev)
		results[i] = journal.Result{ID: int64(len(m.events)), Status: journal.Accepted}
		if ev.Key == "" {
			results[i].Status = journal.Unkeyed
		}
	}
	return results, nil
}

// A request whose events take several commits, and between two of which the map changes, is placed anew with what is not on record:
// each event is stored once, also without a key, and the answer counts all of them.
func TestWhatIsStoredIsNotPlacedAgain(t *testing.T) {
	t.Parallel()
	for after := range 4 { // with the last, no map changes
		j := &moving{maps: new(maps), after: after, t: t}
		g := newGate(t, func(o *ingest.Options) { o.Cells, o.Journal = j.open(1), j })
		var all []string
		for i := range 600 { // of which 256 are a part
			if i%2 == 0 {
				all = append(all, fmt.Sprintf(`{"type":"t%d"}`, i))
			} else {
				all = append(all, fmt.Sprintf(`{"id":"evt_%d","type":"t%d"}`, i, i))
			}
		}
		body := "[" + strings.Join(all, ",") + "]"
		w := g.send("billing", body)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"accepted":300`) || !strings.Contains(w.Body.String(), `"unkeyed":300`) {
			t.Errorf("a map after %d commits: %d %s", after, w.Code, w.Body)
		}
		times := map[string]int{}
		for _, ev := range j.events {
			times[ev.Type]++
		}
		if len(times) != 600 || len(j.events) != 600 {
			t.Errorf("a map after %d commits: of 600 events %d are stored, %d times", after, len(times), len(j.events))
		}
	}
}

// owner is another cell, which answers whatever it is handed in one way.
type owner struct {
	server *callmux.Server
	before func()        // it answers; nil: nothing is
	say    func() []byte // nil: what it was made with
	known  string        // what it answers when it is asked for keys; "": that it has none
}

func newOwner(t *testing.T, answer []byte) *owner {
	o := new(owner)
	o.server = callmux.NewServer(func(_ context.Context, _ time.Duration, said []byte) []byte {
		if said[0] == 'k' {
			return []byte(cmp.Or(o.known, "a{}"))
		}
		if o.before != nil {
			o.before()
		}
		if o.say != nil {
			return o.say()
		}
		return answer
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := o.server.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return o
}

// cell opens the cell a, whose store keeps the maps, beside others, with the map of that number.
func (m *maps) cell(t *testing.T, number int64, peers http.RoundTripper, all ...cells.Cell) *cells.Cells {
	t.Helper()
	c, err := cells.Open(context.Background(), cells.Options{
		Self: "a", Store: m, Now: time.Now, Logger: slog.New(slog.DiscardHandler), Peers: peers,
		Known:      func(context.Context, string, []string) (map[string]journal.Known, error) { return m.known, nil },
		Remembered: func(string) time.Duration { return time.Hour },
		Configured: cells.Configured{Number: number, Cells: all, Sources: []string{"billing"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// RoundTrip connects to it.
func (o *owner) RoundTrip(r *http.Request) (*http.Response, error) {
	near, far := net.Pipe()
	var room quota.Pool
	room.Resize(1<<20, true)
	go o.server.Serve(context.Background(), far, bufio.NewReader(far), func(string) callmux.Memory { return room.Share() }, nil)
	return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: near, Request: r}, nil
}

// An answer of the owner that does not say of each event what became of it is no acknowledgement, of a request that is handed on and
// of one that is divided; and nothing is stored of the latter, whose events without a key could not be recognised.
func TestAnswersThatCountOtherEventsAreRefused(t *testing.T) {
	t.Parallel()
	one, two := `{"id":"evt_1"}`, `[{"id":"evt_1"},{"type":"without a key"}]`
	for counts, want := range map[string]int{"1,0,0,0,0": 200, "0,1,0,0,0": 200, "0,0,0,0,0": 503, "2,0,0,0,0": 503, "0": 503} {
		for i, body := range []string{one, two, one, two} {
			m, brief := new(maps), i > 1
			answer := append(append([]byte{'a', 200 | 0x80, 1, byte(len(counts))}, counts...), 0) // 200 is two bytes
			if brief {
				answer = append([]byte{'a', 0}, counts...)
			}
			c := m.cell(t, 1, newOwner(t, answer), cells.Cell{Name: "a", URL: "https://a"}, cells.Cell{Name: "b", URL: "https://b", Weight: 1})
			j := &moving{maps: m, after: 1 << 30, t: t}
			g := newGate(t, func(o *ingest.Options) { o.Cells, o.Journal = c, j })
			w := g.send("billing", body)
			stored := 0
			if body == two && want == 200 {
				stored = 1
			}
			if w.Code != want || len(j.events) != stored {
				t.Errorf("the owner counts %s of %s: %d %s, and %d events are stored here; want %d, and %d", counts, body, w.Code, w.Body, len(j.events), want, stored)
			}
		}
	}
}

// by is a transport to several cells.
type by map[string]*owner

func (b by) RoundTrip(r *http.Request) (*http.Response, error) { return b[r.URL.Host].RoundTrip(r) }

// While one cell refuses its part of a request or is away, the others store theirs, which are duplicates when the sender comes
// again. What has no key is not stored then, nor is anything acknowledged.
func TestACellHoldsUpItsOwnEventsAlone(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{"refuses": "rrow_refused", "is away": "ethe store does not answer"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := new(maps)
			failed, counted := make(chan struct{}), ""
			b, other := newOwner(t, []byte(answer)), newOwner(t, nil)
			b.before = sync.OnceFunc(func() { close(failed) })
			other.before = func() { <-failed }
			other.say = func() []byte {
				return append(append([]byte{'a', 200 | 0x80, 1, byte(len(counted))}, counted...), 0)
			}
			a := cells.Cell{Name: "a", URL: "https://a", Weight: 1}
			m.cell(t, 1, nil, a, cells.Cell{Name: "b", URL: "https://b"}, cells.Cell{Name: "c", URL: "https://c"})
			c := m.cell(t, 2, by{"b": b, "c": other}, a, cells.Cell{Name: "b", URL: "https://b", Weight: 1}, cells.Cell{Name: "c", URL: "https://c", Weight: 1})
			own, others, first := map[string]bool{}, 0, c.Status().Map
			batch := []string{`{"type":"without a key"}`}
			for i := range 60 {
				key := fmt.Sprintf("evt_%d", i)
				batch = append(batch, fmt.Sprintf(`{"id":%q,"note":%q}`, key, strings.Repeat("x", 4<<10))) // together on a connection of their own
				switch first.Owner("billing", key, "") {
				case "a":
					own[key] = true
				case "c":
					others++
				}
			}
			counted = cells.Counts(others, 0, 0, 0, 0)
			j := &moving{maps: m, after: 1 << 30, t: t}
			g := newGate(t, func(o *ingest.Options) { o.Cells, o.Journal = c, j })
			if err := c.Register(g.metrics); err != nil {
				t.Fatal(err)
			}
			w := g.send("billing", "["+strings.Join(batch, ",")+"]")
			if w.Code != http.StatusServiceUnavailable || len(j.events) != len(own) {
				t.Errorf("%d %s; %d events are stored here of %d", w.Code, w.Body, len(j.events), len(own))
			}
			for _, ev := range j.events {
				if !own[ev.Key] {
					t.Errorf("%q is stored here", ev.Key)
				}
			}
			if n := gather(t, g, "hookonce_cell_forwarded_events_total")["c,answered"]; int(n) != others || others == 0 {
				t.Errorf("of %d events another cell was let answer %v", others, n)
			}
		})
	}
}

// Nothing is acknowledged of a request with an event of which a former owner cannot be asked. The others are stored, and known when
// the sender comes again.
func TestWhatCannotBeAskedForIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	m := &maps{known: map[string]journal.Known{"evt_1": {}, "evt_3": {}}} // and the other ones may be on record in b
	former := newOwner(t, nil)
	former.known = "ethe store does not answer"
	m.cell(t, 1, nil, cells.Cell{Name: "a", URL: "https://a"}, cells.Cell{Name: "b", URL: "https://b", Weight: 1})
	c := m.cell(t, 2, former, cells.Cell{Name: "a", URL: "https://a", Weight: 1}, cells.Cell{Name: "b", URL: "https://b"})
	for body, want := range map[string]int{
		`[{"id":"evt_1"},{"id":"evt_2"},{"id":"evt_3"},{"type":"without a key"}]`: 2,
		`[{"id":"evt_1"},{"id":"evt_2"}]`:                                         1, `[{"id":"evt_2"},{"id":"evt_4"}]`: 0, `{"id":"evt_2"}`: 0,
	} {
		j := &moving{maps: m, after: 1 << 30, t: t}
		g := newGate(t, func(o *ingest.Options) { o.Cells, o.Journal = c, j })
		w := g.send("billing", body)
		last, _ := g.Refusals().Of("billing")
		if w.Code != http.StatusServiceUnavailable || len(j.events) != want || len(last) != 1 || last[0].Reason != "cell_away" {
			t.Errorf("%s: %d %s; %d events are stored, want %d; %+v", body, w.Code, w.Body, len(j.events), want, last)
		}
	}
}

// The reason for which another cell cannot take a request is the one here: only what two cells see differently is their own matter.
func TestReasonsOfAnotherCellAreKept(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"signature_mismatch": "cell_refused", "unknown_source": "cell_refused", "panic": "cell_refused", "too_large": "cell_refused", "something new": "cell_refused",
	} {
		refusedElsewhere(t, said, want)
	}
	for _, reason := range []string{"queue_full", "closing", "store", "timeout", "row_refused", "loop", "unanswered", "cell_away", "cell_map"} {
		refusedElsewhere(t, reason, reason)
	}
}

func refusedElsewhere(t *testing.T, said, want string) {
	t.Helper()
	m := new(maps)
	c := m.cell(t, 1, newOwner(t, []byte("r"+said)), cells.Cell{Name: "a", URL: "https://a"}, cells.Cell{Name: "b", URL: "https://b", Weight: 1})
	g := newGate(t, func(o *ingest.Options) { o.Cells, o.Journal = c, &moving{maps: m, after: 1 << 30, t: t} })
	if err := c.Register(g.metrics); err != nil {
		t.Fatal(err)
	}
	w := g.send("billing", `{"id":"evt_1"}`)
	last, _ := g.Refusals().Of("billing")
	if w.Code != http.StatusServiceUnavailable || len(last) != 1 || last[0].Reason != want {
		t.Errorf("the owner says %q: %d, %+v; want the reason %s", said, w.Code, last, want)
	}
	outcome := "b,busy"
	if want == "cell_refused" {
		outcome = "b,refused"
	}
	if all := gather(t, g, "hookonce_cell_forwarded_events_total"); len(all) != 1 || all[outcome] != 1 {
		t.Errorf("the owner says %q, which is counted as %v", said, all)
	}
}

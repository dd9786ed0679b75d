package cells

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/callmux"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/quota"
)

// An event without a key is stored where it came, also where the others are placed by what they are about.
func TestEventsWithoutAKeyBelongNowhere(t *testing.T) {
	c := new(Chain)
	m, err := c.Next(Configured{Cells: []Cell{{"a", "https://a", 0}, {"b", "https://b", 1}}, Sources: []string{"s"}, ByScope: []string{"s"}})
	if err != nil {
		t.Fatal(err)
	}
	if o := m.Owner("s", "", "order 1"); o != "" {
		t.Errorf("an event without a key belongs to %q", o)
	}
}

// Where another cell answers at the address of the former owner, it says nothing of what that one has on record, and takes
// nothing for it.
func TestNobodyAnswersForAnotherCell(t *testing.T) {
	maps := chain(t, [3]uint32{1, 0, 0}, [3]uint32{0, 1, 0})
	k := new(keeper)
	for _, m := range maps.maps {
		k.record.Maps = append(k.record.Maps, journal.CellMap{Number: m.Number, Content: m.content})
	}
	nothing := func(context.Context, string, []string) (map[string]journal.Known, error) { return nil, nil }
	at := func(self string) *Cells {
		c, _ := newCell(self, k)
		c.opt.Known, c.opt.Remembered = nothing, func(string) time.Duration { return 0 }
		c.links, c.shares = map[string]*callmux.Client{}, map[string]*share{}
		c.server = callmux.NewServer(c.serveCall)
		s, err := newState(k.record)
		if err != nil {
			t.Fatal(err)
		}
		c.state.Store(s)
		return c
	}
	b, wrong := at("b"), at("c")
	var room quota.Pool
	room.Resize(1<<20, true)
	b.links["https://a"] = callmux.NewClient(func(context.Context) (io.ReadWriteCloser, error) {
		near, far := net.Pipe()
		go wrong.server.Serve(context.Background(), far, bufio.NewReader(far), func(string) callmux.Memory { return room.Share() }, nil)
		return near, nil
	}, 1<<20)
	defer b.links["https://a"].Close()
	wrong.take = func(context.Context, *Hop, *Request) Outcome { return Outcome{Answer: &Answer{Status: 200}} }
	if p, err := b.Place(t.Context(), "s", &hookonce.Verified{Events: []hookonce.Event{{Key: "which a has on record"}}}, nil, nil); !errors.Is(err, ErrAway) {
		t.Errorf("c is asked for what a has on record: %+v, %v", p, err)
	}
	_, err := b.Forward(t.Context(), &Placement{chain: b.state.Load().chain.ID()}, &Part{Cell: "a", keys: []string{"k"}}, Request{Source: "s", Method: "POST", Host: "h", Target: "/"})
	if !errors.Is(err, ErrAway) {
		t.Errorf("c is handed what belongs to a: %v", err)
	}
}

// A cell without memory for what it is handed is there, and busy: nobody has to bring it back, or to compare configurations. One that
// takes no request of that length is not busy.
func TestACellWithoutRoomIsBusy(t *testing.T) {
	t.Parallel()
	maps := chain(t, [3]uint32{1, 0, 0})
	all := joined(t, maps, map[string]*ledger{"a": {}, "b": {}})
	for _, c := range []struct {
		fit             func(*Cells)
		reason, outcome string
	}{
		{func(a *Cells) { a.room.Resize(1<<10, true); a.memory("c")("s").Take(1) }, "queue_full", "busy"},
		{func(a *Cells) { a.Fit(1 << 10) }, "too_large", "refused"}, // for ever: somebody has to compare
	} {
		c.fit(all["a"])
		_, err := all["b"].Forward(t.Context(), &Placement{chain: maps.ID()}, &Part{Cell: "a", keys: []string{"k"}},
			Request{Source: "s", Method: "POST", Host: "h", Target: "/", Body: make([]byte, 3<<19)})
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Reason != c.reason || outcome(err) != c.outcome || errors.Is(err, ErrAway) {
			t.Errorf("%v, counted as %s; want %s, %s", err, outcome(err), c.reason, c.outcome)
		}
	}
}

// A header has so many fields as a listener takes: each takes more memory than its bytes, which are what is counted.
func TestFieldsAreBounded(t *testing.T) {
	t.Parallel()
	head := func(n int) []byte {
		h := http.Header{}
		for i := range n {
			h.Add("X-Many", strconv.Itoa(i))
		}
		return handed(nil, &Hop{From: "a", To: "b", Map: "m", Part: "p"}, &Request{Method: "POST", Target: "/", Header: h})[1:]
	}
	for n, want := range map[int]error{MaxFields: nil, MaxFields + 1: ErrRefused, 1 << 20: ErrRefused} {
		if _, _, err := readHanded(head(n)); !errors.Is(err, want) {
			t.Errorf("%d fields: %v, want %v", n, err, want)
		}
	}
	for n, want := range map[int]error{maxAnswerFields: nil, maxAnswerFields + 1: ErrAway} {
		o := &Outcome{Answer: &Answer{Status: 200, Header: http.Header{"X-Many": make([]string, n)}}}
		if _, err := readAnswer(o.text()[1:]); !errors.Is(err, want) {
			t.Errorf("an answer of %d fields: %v, want %v", n, err, want)
		}
	}
}

// What panics is an answer that says so, and ends no process.
func TestPanicsAreAnswered(t *testing.T) {
	t.Parallel()
	c, log := newCell("b", new(keeper))
	c.take = func(context.Context, *Hop, *Request) Outcome { panic("at the disco") }
	answer := c.serveCall(t.Context(), 0, handed(nil, &Hop{From: "a", To: "b", Map: "m", Part: "p"}, &Request{Method: "POST", Target: "/"}))
	if len(answer) == 0 || answer[0] != answerAway || !strings.Contains(log.String(), "disco") {
		t.Errorf("%q, and the log says %q", answer, log)
	}
}

// There is room for the largest request beside as much of its cell and of another one, and for no larger one.
func TestTheLargestRequestHasRoom(t *testing.T) {
	t.Parallel()
	for _, largest := range []int64{1 << 20, 100 << 20} {
		c, _ := newCell("b", new(keeper))
		c.server, c.shares = callmux.NewServer(c.serveCall), map[string]*share{}
		c.Fit(largest)
		if !c.memory("other")("s").Take(1<<20) || !c.memory("a")("s").Take(1<<20) || !c.memory("a")("s").Take(largest+1<<10) {
			t.Errorf("a request of %d bytes has no room beside small ones of its source and of another cell", largest)
		}
	}
}

// A source that holds all that it can get of its cell's share leaves room to other sources of the cell, and all of them to another
// cell; what is given back is there again.
func TestSourcesLeaveRoomToOthers(t *testing.T) {
	t.Parallel()
	c, _ := newCell("b", new(keeper))
	c.server, c.shares = callmux.NewServer(c.serveCall), map[string]*share{}
	c.Fit(1 << 20)
	fill := func(cell, source string) (n int64) {
		for c.memory(cell)(source).Take(1 << 20) {
			n++
		}
		return n
	}
	for i, want := range []int64{42, 10, 3} { // of 128: each leaves what it holds, and what its cell does
		if n := fill("a", strconv.Itoa(i)); n < want {
			t.Errorf("source %d of a cell gets %d MiB of 128, want %d", i, n, want)
		}
	}
	if n := fill("other", "0"); n < 10 {
		t.Errorf("and one of another cell %d MiB", n)
	}
	for i := range maxParts + 10 {
		c.memory("a")(strconv.Itoa(i))
		c.memory(strconv.Itoa(i))("")
	}
	if n, m := len(c.shares["a"].parts), len(c.shares); n > maxParts+1 || m > maxShares+1 {
		t.Errorf("%d sources of one cell and %d cells are told apart", n, m)
	}
}

// What a connection may still be writing is not used again for another request.
func TestWhatIsOnItsWayIsNotUsedAgain(t *testing.T) {
	maps := chain(t, [3]uint32{1, 0, 0})
	b := joined(t, maps, map[string]*ledger{"a": {}, "b": {}})["b"]
	for range 20 {
		_, err := b.Forward(t.Context(), &Placement{chain: maps.ID()}, &Part{Cell: "a", keys: []string{"k"}},
			Request{Source: "large", Method: "POST", Target: "/", Body: make([]byte, callmux.MaxShared)})
		if err == nil {
			t.Fatal("a cell that takes nothing has taken it")
		}
		for range 10 {
			if used := *heads.Get().(*[]byte); bytes.Contains(used[:cap(used)], []byte("large")) {
				t.Fatal("it is used again")
			}
		}
	}
}

// Whoever asks for no protocol that there is here is refused.
func TestOtherProtocolsAreRefused(t *testing.T) {
	t.Parallel()
	c, _ := newCell("b", new(keeper))
	const noConnection = http.StatusServiceUnavailable // to switch
	for want, all := range map[int][][]string{
		http.StatusBadRequest: {nil, {"hookonce-cells/1"}, {"websocket", "hookonce-cells/4"}},
		noConnection:          {{linkProtocol}, {briefProtocol}, {linkProtocol, briefProtocol, "hookonce-cells/4"}},
	} {
		for _, protocols := range all {
			w := httptest.NewRecorder()
			c.serveLink(w, &http.Request{Header: http.Header{"Upgrade": protocols}})
			if w.Code != want {
				t.Errorf("%q is answered %d, want %d", protocols, w.Code, want)
			}
		}
	}
}

// carrier answers requests of another cell.
type carrier func(r *http.Request) *http.Response

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r), nil }

// A cell that tells of its maps, and does not answer on the way that requests go, is not up.
func TestACellIsUpIfItTakesCalls(t *testing.T) {
	t.Parallel()
	maps := chain(t, [3]uint32{1, 0, 0})
	k := &keeper{record: journal.CellRecord{Maps: []journal.CellMap{{Number: 1, Content: maps.Newest().content}}}}
	b, _ := newCell("b", k)
	b.links, b.shares = map[string]*callmux.Client{}, map[string]*share{}
	s, err := newState(k.record)
	if err != nil {
		t.Fatal(err)
	}
	b.state.Store(s)
	b.client = &http.Client{Transport: carrier(func(r *http.Request) *http.Response {
		if r.URL.Path != mapPath {
			return &http.Response{StatusCode: http.StatusBadGateway, Body: http.NoBody, Request: r}
		}
		told, _ := json.Marshal(tidings{"a", maps.contents()})
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(told)), Request: r}
	})}
	b.visit(t.Context(), maps.Newest().Cells[0])
	if err := b.reached["a"]; !errors.Is(err, ErrAway) {
		t.Errorf("it is taken for up: %v", err)
	}
}

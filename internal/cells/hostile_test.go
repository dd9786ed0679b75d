package cells

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"slices"
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
		c, _ := newCell(self, k, false)
		c.opt.Known, c.opt.Remembered = nothing, func(string) time.Duration { return 0 }
		c.links, c.shares = map[string]*callmux.Client{}, map[string]*quota.Share{}
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
		go wrong.server.Serve(far, bufio.NewReader(far), room.Share())
		return near, nil
	}, 1<<20)
	defer b.links["https://a"].Close()
	wrong.take = func(context.Context, *Hop, *Request) Outcome { return Outcome{Answer: &Answer{Status: 200}} }
	if p, err := b.Place(t.Context(), "s", slices.Values([]*hookonce.Event{{Key: "which a has on record"}}), nil); !errors.Is(err, ErrAway) {
		t.Errorf("c is asked for what a has on record: %+v, %v", p, err)
	}
	_, err := b.Forward(t.Context(), &Placement{chain: b.state.Load().chain.ID()}, &Part{Cell: "a", keys: []string{"k"}}, Request{Source: "s", Method: "POST", URL: "http://h/"})
	if !errors.Is(err, ErrAway) {
		t.Errorf("c is handed what belongs to a: %v", err)
	}
}

package cells

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// chain returns maps that follow each other, with these weights of the cells a, b and c.
func chain(t *testing.T, weights ...[3]uint32) *Chain {
	t.Helper()
	c := new(Chain)
	for _, w := range weights {
		m, err := c.Next(Configured{Cells: []Cell{{"a", "https://a", w[0]}, {"b", "https://b", w[1]}, {"c", "https://c", w[2]}}, Sources: []string{"s"}})
		if err != nil {
			t.Fatal(err)
		}
		c = &Chain{maps: append(slices.Clone(c.maps), m)}
	}
	return c
}

// Whoever owned keys by an earlier map is asked until what it accepted is forgotten, counted from when it confirmed that it accepts
// nothing by that map; for ever if it never did; and not at all if it was given up.
func TestWhoIsAsked(t *testing.T) {
	at := func(hours int) time.Time { return time.Unix(0, 0).Add(time.Duration(hours) * time.Hour) }
	s := &state{chain: chain(t, [3]uint32{1, 0, 0}, [3]uint32{1, 1, 0}, [3]uint32{0, 1, 1}), confirmed: map[string][]journal.CellConfirmation{
		"a": {{Cell: "a", Number: 2, At: at(10)}, {Cell: "a", Number: 3, At: at(20)}},
	}}
	asked := func(self string, hours int) (all []string) {
		for _, a := range s.asked(self, 5*time.Hour, at(hours)) {
			all = append(all, a.Cell+string(rune('0'+a.Map)))
		}
		return all
	}
	for hours, want := range map[int][]string{12: {"a2", "b2", "a1"}, 16: {"a2", "b2"}, 24: {"a2", "b2"}, 26: {"b2"}, 99999: {"b2"}} {
		if got := asked("c", hours); !slices.Equal(got, want) {
			t.Errorf("after %d hours c asks %v, want %v", hours, got, want)
		}
	}
	if got := asked("b", 26); got != nil {
		t.Errorf("b asks %v", got)
	}
	if got := s.asked("c", 0, at(99999)); len(got) != 3 || !got[0].Until.IsZero() {
		t.Errorf("of what is remembered for ever c asks %v", got)
	}
	m, err := s.chain.Forget("b", at(30))
	if err != nil {
		t.Fatal(err)
	}
	s.chain = &Chain{maps: append(s.chain.maps, m)}
	if got := asked("c", 26); got != nil {
		t.Errorf("after b was given up c asks %v", got)
	}
	if _, err := s.chain.Forget("c", at(30)); err == nil {
		t.Error("nobody owns anything")
	}
}

// Chains that differ in one map are told, whichever is longer.
func TestChainsThatDiffer(t *testing.T) {
	x, y, z := [3]uint32{1, 0, 0}, [3]uint32{1, 1, 0}, [3]uint32{1, 2, 0}
	long := chain(t, x, y, z)
	for name, c := range map[string]struct {
		ours, theirs *Chain
		newer        int
		conflict     bool
	}{
		"the same": {long, long, 0, false}, "theirs is longer": {chain(t, x), long, 2, false}, "ours is longer": {long, chain(t, x), 0, false},
		"we have none": {new(Chain), long, 3, false}, "they have none": {long, new(Chain), 0, false},
		"another map 2": {chain(t, x, z), long, 0, true}, "another map 2 of theirs": {long, chain(t, x, z), 0, true}, "the same number": {chain(t, x, y), chain(t, x, z), 0, true},
	} {
		newer, err := c.ours.follow(c.theirs, time.Now())
		if len(newer) != c.newer || errors.Is(err, ErrConflict) != c.conflict {
			t.Errorf("%s: %d newer, %v", name, len(newer), err)
		}
	}
	if _, err := chainOf([]string{long.maps[0].content, long.maps[2].content}); !errors.Is(err, ErrConflict) {
		t.Errorf("a chain with a gap: %v", err)
	}
}

// A request arrives at another cell as it came: header lines that transports drop, bytes that are no UTF-8, a body that looks like a
// header, and none at all.
func TestRequestsAreHandedOnAsTheyCame(t *testing.T) {
	c := &Cells{opt: Options{Self: "a"}}
	p := &Placement{chain: "1 x"}
	for _, r := range []Request{
		{Source: "s", Method: "POST", URL: "https://hooks.example/in/s?x=%2F&y", Address: "192.0.2.1", Body: []byte("{}\r\n\r\nX-A: b"),
			Header: http.Header{"Connection": {"close"}, "Content-Length": {"2"}, "X-Many": {"1", "2"}, "X-Bytes": {"caf\xe9"}, "X-Empty": {""}, "Te": {"trailers"}}},
		{Source: "s", Method: "GET", URL: "http://hooks.example/in/s", Header: http.Header{}, Body: []byte("a\r\n\r\nb")},
		{Source: "s", Method: "POST", URL: "http://hooks.example/in/s", Header: http.Header{"A": {"b"}}},
	} {
		out := c.handed(context.Background(), Cell{"b", "https://b", 1}, p, &Part{Cell: "b", keys: []string{"k"}}, &r)
		whole, err := io.ReadAll(out.Body)
		if err != nil || int64(len(whole)) != out.ContentLength {
			t.Fatalf("%d bytes, %d are announced, %v", len(whole), out.ContentLength, err)
		}
		hop, err := HopOf(out)
		if err != nil || hop.Method != r.Method || hop.URL != r.URL || hop.Address != r.Address || hop.From != "a" || hop.Known {
			t.Errorf("%+v, %v", hop, err)
		}
		header, body, err := Split(whole)
		if err != nil || string(body) != string(r.Body) || len(header) != len(r.Header) {
			t.Errorf("%q with %q, %v", body, header, err)
		}
		for name, values := range r.Header {
			if !slices.Equal(header[name], values) {
				t.Errorf("%s: %q, want %q", name, header[name], values)
			}
		}
	}
	for _, damaged := range []string{"", "A: b", "no name\r\n\r\n"} {
		if _, _, err := Split([]byte(damaged)); !errors.Is(err, ErrRefused) {
			t.Errorf("%q: %v", damaged, err)
		}
	}
	if _, err := HopOf(&http.Request{Header: http.Header{}}); !errors.Is(err, ErrRefused) {
		t.Errorf("a request of nobody: %v", err)
	}
}

package cells

import (
	"errors"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
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
	s.former = s.formerOwners()
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
	s.former = s.formerOwners()
	if got := asked("c", 26); got != nil {
		t.Errorf("after b was given up c asks %v", got)
	}
	if m, err := chain(t, [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}).without(t, "c").Forget("c", at(30)); err != nil || !m.lost("c") {
		t.Errorf("one that was only taken out of the file: %+v, %v", m, err)
	}
	if _, err := s.chain.Forget("nobody", at(30)); err == nil {
		t.Error("a cell that there never was is given up")
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
// header, and none at all. What is cut short is refused.
func TestRequestsAreHandedOnAsTheyCame(t *testing.T) {
	t.Parallel()
	for _, r := range []Request{
		{Source: "s", Method: "POST", TLS: true, Host: "hooks.example:abc", Target: "/in/s?x=%2F&y", Address: "192.0.2.1", Body: []byte("{}\r\n\r\nX-A: b"),
			Header: http.Header{"Connection": {"close"}, "Content-Length": {"2"}, "X-Many": {"1", "2"}, "X-Bytes": {"caf\xe9"}, "X-Empty": {""}, "Te": {"trailers"}}},
		{Source: "s", Method: "GET", Target: "/in/s", Header: http.Header{}, Body: []byte{}},
		{Source: "s", Method: "POST", Host: "hooks.example", Target: "/in/s", Header: http.Header{"A": {"b"}}, Body: []byte("\x00\xff")},
	} {
		hop := Hop{From: "a", To: "b", Known: r.Method == "GET", Map: "1 x", Part: "1 y"}
		head := handed(nil, &hop, &r)
		read, got, err := readHanded(slices.Concat(head[1:], r.Body))
		if err != nil || *read != hop || !reflect.DeepEqual(*got, r) {
			t.Errorf("%+v %+v, %v; want %+v", read, got, err, r)
		}
		for n := 1; n < len(head); n++ {
			if _, _, err := readHanded(head[1:n]); !errors.Is(err, ErrRefused) {
				t.Fatalf("the first %d bytes of %d: %v", n, len(head), err)
			}
		}
	}
}

// An answer comes back as it was given, and nothing that another cell says makes a reader fall.
func TestAnswersComeBackAsTheyWereGiven(t *testing.T) {
	t.Parallel()
	a := Answer{Status: 202, Header: http.Header{"Content-Type": {"text/plain"}, "X-Many": {"1", ""}}, Body: []byte("{\"a\":1}\xff"), Counts: "1,0,0,0,0"}
	text := (&Outcome{Answer: &a}).text()
	got, err := readAnswer(text[1:])
	if err != nil || text[0] != answerDone || !reflect.DeepEqual(*got, a) {
		t.Errorf("%+v, %v; want %+v", got, err, a)
	}
	for n := range len(text) - len(a.Body) - 1 {
		if _, err := readAnswer(text[1:][:n]); !errors.Is(err, ErrAway) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
	if got, err := readAnswer((&Outcome{Answer: &Answer{Counts: a.Counts}}).text()[1:]); err != nil || !reflect.DeepEqual(*got, Answer{Counts: a.Counts}) {
		t.Errorf("counts alone: %+v, %v", got, err)
	}
	if refused := (&Outcome{Refused: "why"}).text(); string(refused) != "rwhy" {
		t.Errorf("refused: %q", refused)
	}
}

func FuzzReadHanded(f *testing.F) {
	f.Add(handed(nil, &Hop{From: "a", To: "b", Map: "1 x", Part: "1 y"}, &Request{Source: "s", Method: "POST", Host: "x", Target: "/", Header: http.Header{"A": {"b"}}})[1:])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, said []byte) {
		if hop, r, err := readHanded(said); err == nil && len(hop.From)+len(r.Target)+len(r.Body) > len(said) {
			t.Errorf("%+v %+v out of %d bytes", hop, r, len(said))
		}
		_, _ = readAnswer(said)
	})
}

// without returns the chain with a map that has no such cell any more.
func (c *Chain) without(t *testing.T, cell string) *Chain {
	t.Helper()
	next := Configured{Cells: slices.DeleteFunc(slices.Clone(c.Newest().Cells), func(o Cell) bool { return o.Name == cell })}
	m, err := c.Next(next)
	if err != nil {
		t.Fatal(err)
	}
	return &Chain{maps: append(slices.Clone(c.maps), m)}
}

// A clock that is ahead ends no asking early, and one that is late prolongs it.
func TestClocksThatAreAheadEndNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		database := time.Now()
		s, err := newState(journal.CellRecord{Now: database})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		for own, want := range map[time.Duration]time.Duration{1000 * time.Hour: time.Hour, time.Hour: time.Hour, -time.Hour: -time.Hour} {
			if got := s.clock(database.Add(own)); !got.Equal(database.Add(want)) {
				t.Errorf("a clock at %s, an hour after the database was asked, counts as %s", own, got.Sub(database))
			}
		}
	})
}

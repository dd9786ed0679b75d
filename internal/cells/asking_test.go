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
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/callmux"
	"github.com/hookonce/hookonce/internal/journal"
)

// ledger is what is on record in a cell. It remembers what it was asked for, and may not answer.
type ledger struct {
	keys, asked []string
	away        error
}

func (l *ledger) known(_ context.Context, _ string, keys []string) (map[string]journal.Known, error) {
	l.asked = append(l.asked, keys...)
	if l.away != nil {
		return nil, l.away
	}
	found := map[string]journal.Known{}
	for _, k := range keys {
		if slices.Contains(l.keys, k) {
			found[k] = journal.Known{}
		}
	}
	return found, nil
}

// joined returns cells that have the maps, over pipes. One that has no ledger takes what it is told, and says nothing.
func joined(t *testing.T, maps *Chain, ledgers map[string]*ledger) map[string]*Cells {
	k := new(keeper)
	for _, m := range maps.maps {
		k.record.Maps = append(k.record.Maps, journal.CellMap{Number: m.Number, Content: m.content})
	}
	all := map[string]*Cells{}
	for name, l := range ledgers {
		c, _ := newCell(name, k)
		c.opt.Known, c.opt.Remembered = l.known, func(string) time.Duration { return 0 }
		c.links, c.shares = map[string]*callmux.Client{}, map[string]*share{}
		c.server = callmux.NewServer(c.serveCall)
		c.Fit(1 << 20)
		s, err := newState(k.record)
		if err != nil {
			t.Fatal(err)
		}
		c.state.Store(s)
		all[name] = c
		t.Cleanup(c.Close)
	}
	for _, c := range all {
		for _, p := range maps.cells() {
			c.links[p.URL] = callmux.NewClient(func(context.Context) (io.ReadWriteCloser, error) {
				near, far := net.Pipe()
				if to := all[p.Name]; to != nil {
					go to.server.Serve(context.Background(), far, bufio.NewReader(far), to.memory(c.opt.Self), nil)
				} else {
					go io.Copy(io.Discard, far)
				}
				return near, nil
			}, maxHanded)
		}
	}
	return all
}

// Before a cell accepts what another one owned it knows whether that has it on record. A store there that does not answer says
// nothing of that, and least of all that nothing is.
func TestFormerOwnersSayWhatTheyHave(t *testing.T) {
	t.Parallel()
	maps := chain(t, [3]uint32{1, 0, 0}, [3]uint32{0, 1, 0})
	for name, c := range map[string]struct {
		former *ledger
		want   error
		here   int
	}{
		"it has it":          {&ledger{keys: []string{"k"}}, nil, 0},
		"it has another":     {&ledger{keys: []string{"other"}}, nil, 1},
		"it does not answer": {&ledger{away: errors.New("the store is away")}, ErrAway, 0},
	} {
		b := joined(t, maps, map[string]*ledger{"a": c.former, "b": {}})["b"]
		p, err := b.Place(t.Context(), "s", &hookonce.Verified{Events: []hookonce.Event{{Key: "k"}}}, nil, nil)
		switch {
		case !errors.Is(err, c.want):
			t.Errorf("%s: %v, want %v", name, err, c.want)
		case err == nil && (p.Here() != c.here || len(p.Elsewhere()) != 1-c.here || c.here == 0 && !p.Elsewhere()[0].Known):
			t.Errorf("%s: %d are accepted here, and %+v elsewhere", name, p.Here(), p.Elsewhere())
		}
		if !slices.Equal(c.former.asked, []string{"k"}) {
			t.Errorf("%s: it was asked for %q", name, c.former.asked)
		}
	}
}

// An event of which a former owner cannot be asked holds up no other event of its request: neither those that never moved, nor those
// of other cells.
func TestWhatCannotBeAskedForIsLeftOut(t *testing.T) {
	t.Parallel()
	maps := chain(t, [3]uint32{1, 1, 1}, [3]uint32{0, 1, 1})
	all := joined(t, maps, map[string]*ledger{"a": {away: errors.New("the store is away")}, "b": {}, "c": {}})
	var events []hookonce.Event
	own, others, moved := 0, 0, 0
	for i := range 60 {
		k := strconv.Itoa(i)
		events = append(events, hookonce.Event{Key: k})
		switch before, now := maps.maps[0].Owner("s", k, ""), maps.maps[1].Owner("s", k, ""); {
		case now == "c":
			others++
		case before == "a":
			moved++
		default:
			own++
		}
	}
	p, err := all["b"].Place(t.Context(), "s", &hookonce.Verified{Events: events}, nil, nil)
	if err != nil || !errors.Is(p.Away(), ErrAway) || p.Here() != own || len(p.Elsewhere()) != 1 || p.Elsewhere()[0].Events() != others || own*others*moved == 0 {
		t.Errorf("of %d own events, %d of another cell and %d that moved: %+v, %v", own, others, moved, p, err)
	}
	part := &Part{Cell: "b"}
	for _, ev := range events {
		if maps.maps[1].Owner("s", ev.Key, "") == "b" {
			part.keys = append(part.keys, ev.Key)
		}
	}
	p, err = all["b"].Place(t.Context(), "s", &hookonce.Verified{Events: events}, &Hop{From: "c", To: "b", Map: maps.ID(), Part: part.id()}, nil)
	if err != nil || !errors.Is(p.Away(), ErrAway) || p.Here() != own || len(p.Elsewhere()) != 0 {
		t.Errorf("handed on by another cell: %+v, %v", p, err)
	}
}

// Where the map changes between two commits of a request, what the first has stored may be another cell's by now. That one takes it
// for meant, as all that it owns of the request, and finds it where it was stored.
func TestWhatIsOnRecordIsInThePartOfItsOwner(t *testing.T) {
	t.Parallel()
	maps := chain(t, [3]uint32{1, 0, 0}, [3]uint32{1, 1, 0})
	var events []hookonce.Event
	var done []bool
	a := &ledger{}
	theirs, own := 0, 0
	for i := range 60 {
		key := strconv.Itoa(i)
		if i%3 == 0 {
			key = ""
		}
		events, done = append(events, hookonce.Event{Key: key}), append(done, i < 30)
		if owner := maps.Newest().Owner("s", key, ""); key != "" && owner == "b" {
			if theirs++; done[i] {
				a.keys = append(a.keys, key)
			}
		} else if !done[i] {
			own++
		}
	}
	d := &hookonce.Verified{Events: events}
	all := joined(t, maps, map[string]*ledger{"a": a, "b": {}})
	p, err := all["a"].Place(t.Context(), "s", d, nil, done)
	if err != nil || p.Here() != own || len(p.Elsewhere()) != 1 || len(a.keys) == 0 {
		t.Fatalf("of %d own events that are not on record yet: %+v, %v", own, p, err)
	}
	part := p.Elsewhere()[0]
	if part.Events() != theirs || part.Settled() != len(a.keys) {
		t.Errorf("the part has %d events, %d of them on record; want %d and %d", part.Events(), part.Settled(), theirs, len(a.keys))
	}
	p, err = all["b"].Place(t.Context(), "s", d, &Hop{From: "a", To: "b", Map: maps.ID(), Part: part.id()}, nil)
	if err != nil || p.Here() != theirs-len(a.keys) || len(p.Elsewhere()) != 1 || !p.Elsewhere()[0].Known || p.Elsewhere()[0].Events() != len(a.keys) {
		t.Errorf("b, which is handed its part: %+v, %v", p, err)
	}
	for i := range done { // of b nothing is left
		done[i] = done[i] || events[i].Key != "" && maps.Newest().Owner("s", events[i].Key, "") == "b"
	}
	if p, err := all["a"].Place(t.Context(), "s", d, nil, done); err != nil || p.Here() != own || len(p.Elsewhere()) != 0 {
		t.Errorf("where all that another cell owns is on record: %+v, %v", p, err)
	}
}

// What is coalesced is on record under another key than its own: it is asked for under that one, and two cells name it by that one.
func TestWhatIsCoalescedIsFound(t *testing.T) {
	t.Parallel()
	maps := chain(t, [3]uint32{1, 0, 0}, [3]uint32{0, 1, 0})
	former := &ledger{keys: []string{journal.CoalesceKey("k")}}
	all := joined(t, maps, map[string]*ledger{"a": former, "b": {}})
	events := &hookonce.Verified{Events: []hookonce.Event{{Key: "k", Coalesce: true}}}
	p, err := all["b"].Place(t.Context(), "s", events, nil, nil)
	if err != nil || p.Here() != 0 || len(p.Elsewhere()) != 1 {
		t.Fatalf("%+v, %v; a was asked for %q", p, err, former.asked)
	}
	part := p.Elsewhere()[0]
	p, err = all["a"].Place(t.Context(), "s", events, &Hop{From: "b", To: "a", Known: part.Known, Map: maps.ID(), Part: part.id()}, nil)
	if err != nil || p.Here() != 1 {
		t.Errorf("a, which has it on record, is handed it: %+v, %v", p, err)
	}
	former.keys = nil // the copy has ended it, or it was purged since a was asked
	if p, err = all["a"].Place(t.Context(), "s", events, &Hop{From: "b", To: "a", Known: part.Known, Map: maps.ID(), Part: part.id()}, nil); !errors.Is(err, ErrMaps) {
		t.Errorf("a, which has it on record no more, is handed it: %+v, %v", p, err)
	}
	two := &hookonce.Verified{Events: []hookonce.Event{{Key: "k", Coalesce: true}, {Key: "l"}}}
	if p, err = all["a"].Place(t.Context(), "s", two, &Hop{From: "b", To: "a", Known: true, Map: maps.ID(), Part: part.id()}, nil); !errors.Is(err, ErrMaps) {
		t.Errorf("beside another event: %+v, %v", p, err)
	}
	if _, err = all["a"].Place(t.Context(), "s", events, &Hop{From: "b", To: "a", Known: true, Map: maps.ID(), Part: (&Part{keys: []string{"other"}}).id()}, nil); !errors.Is(err, ErrDisagree) {
		t.Errorf("what a never sees in the request: %v", err)
	}
	if p, err := all["b"].Place(t.Context(), "s", events, nil, nil); err != nil || p.Here() != 1 {
		t.Errorf("what a has no more is placed again: %+v, %v", p, err)
	}
}

// A cell takes of another one what both see in the request, by the same maps, and nothing else.
func TestCellsAgree(t *testing.T) {
	t.Parallel()
	maps := chain(t, [3]uint32{1, 0, 0}, [3]uint32{0, 1, 0})
	b := joined(t, maps, map[string]*ledger{"a": {}, "b": {}})["b"]
	part := func(keys ...string) string { return (&Part{keys: keys}).id() }
	for name, c := range map[string]struct {
		chain, part string
		want        error
	}{
		"the same":          {maps.ID(), part("k", "l"), nil},
		"one of them":       {maps.ID(), part("k"), ErrDisagree},
		"one more":          {maps.ID(), part("k", "l", "m"), ErrDisagree},
		"others":            {maps.ID(), part("k", "m"), ErrDisagree},
		"in another order":  {maps.ID(), part("l", "k"), ErrDisagree},
		"cut in other ways": {maps.ID(), part("kl"), ErrDisagree},
		"none":              {maps.ID(), part(), ErrDisagree},
		"by an older map":   {chain(t, [3]uint32{1, 0, 0}).ID(), part("k", "l"), ErrMaps},
	} {
		hop := &Hop{From: "a", To: "b", Map: c.chain, Part: c.part}
		p, err := b.Place(t.Context(), "s", &hookonce.Verified{Events: []hookonce.Event{{Key: "k"}, {Key: "l"}}}, hop, nil)
		if !errors.Is(err, c.want) || err == nil && p.Here() != 2 {
			t.Errorf("%s: %+v, %v; want %v", name, p, err, c.want)
		}
	}
}

// What is on record in any cell is known where all of them answer, or those that have all of it. Of what a silent one has nobody
// says that it is missing.
func TestKnownAnywhere(t *testing.T) {
	t.Parallel()
	maps := chain(t, [3]uint32{1, 0, 0}, [3]uint32{1, 1, 1})
	here, other, silent := &ledger{keys: []string{"here"}}, &ledger{keys: []string{"there"}}, &ledger{away: errors.New("the store is away")}
	b := joined(t, maps, map[string]*ledger{"a": other, "b": here, "c": silent})["b"]
	if found, err := b.KnownAnywhere(t.Context(), "s", []string{"here", "there"}); err != nil || len(found) != 2 {
		t.Errorf("of what two cells have: %v, %v", found, err)
	}
	if len(silent.asked) > 0 || !slices.Equal(other.asked, []string{"there"}) {
		t.Errorf("c was asked for %q, and a for %q", silent.asked, other.asked)
	}
	if found, err := b.KnownAnywhere(t.Context(), "s", []string{"here", "there", "lost"}); !errors.Is(err, ErrAway) {
		t.Errorf("while c is silent: %v, %v", found, err)
	}
	silent.away = nil
	if found, err := b.KnownAnywhere(t.Context(), "s", []string{"here", "there", "lost"}); err != nil || len(found) != 2 {
		t.Errorf("once c answers: %v, %v", found, err)
	}
}

// A former owner that is silent is waited for as long as a look into its store may take, and no longer: the sender waits meanwhile.
func TestSilentCellsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	maps := chain(t, [3]uint32{1, 0, 0}, [3]uint32{0, 1, 0})
	synctest.Test(t, func(t *testing.T) {
		b := joined(t, maps, map[string]*ledger{"b": {}})["b"]
		began := time.Now()
		p, err := b.Place(t.Context(), "s", &hookonce.Verified{Events: []hookonce.Event{{Key: "k"}}}, nil, nil)
		if took := time.Since(began); !errors.Is(err, ErrAway) || took != patience {
			t.Errorf("after %s: %+v, %v", took, p, err)
		}
	})
}

// transport carries what a cell says with HTTP.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A cell that knows no map learns of whichever cell tells, although another one takes what it is
// told and says nothing; and of the one that tells nobody says that it does not answer.
func TestMapsAreLearnedBesideASilentCell(t *testing.T) {
	t.Parallel()
	maps := chain(t, [3]uint32{1, 0, 1})
	synctest.Test(t, func(t *testing.T) {
		c := joined(t, maps, map[string]*ledger{"c": {}})["c"]
		b, log := newCell("b", new(keeper))
		told, err := json.Marshal(tidings{"c", maps.contents()})
		if err != nil {
			t.Fatal(err)
		}
		b.client = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "a" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(told))}, nil
		})}
		b.links = map[string]*callmux.Client{"https://c": callmux.NewClient(func(context.Context) (io.ReadWriteCloser, error) {
			near, far := net.Pipe()
			go c.server.Serve(context.Background(), far, bufio.NewReader(far), c.memory("b"), nil)
			return near, nil
		}, maxHanded)}
		t.Cleanup(b.Close)
		b.told.Store(&Configured{Number: 2, Cells: []Cell{{"a", "https://a", 1}, {"b", "https://b", 1}, {"c", "https://c", 1}}, Sources: []string{"s"}})
		began := time.Now()
		b.upkeep(t.Context())
		if took, s := time.Since(began), b.state.Load(); took != patience || s.chain.numbered(1) == nil || s.chain.Newest().Number != 2 {
			t.Errorf("after %s it has the maps %q", took, s.chain.contents())
		}
		if n := strings.Count(log.String(), "a cell does not answer"); n != 1 || !strings.Contains(log.String(), "cell=a ") {
			t.Errorf("the log says of %d cells that they do not answer:\n%s", n, log)
		}
	})
}

// Whoever takes a request that was handed on hears how long its sender's door waits for the answer.
func TestTheTimeThatIsLeftIsTold(t *testing.T) {
	t.Parallel()
	c, _ := newCell("b", new(keeper))
	var left time.Duration
	c.take = func(_ context.Context, hop *Hop, _ *Request) Outcome {
		left = hop.Left
		return Outcome{Answer: &Answer{Status: http.StatusOK}}
	}
	c.serveCall(t.Context(), 7*time.Second, handed(nil, &Hop{From: "a", To: "b", Map: "m", Part: "p"}, &Request{Method: "POST", Target: "/"}))
	if left != 7*time.Second {
		t.Errorf("it was told of %s", left)
	}
}

// While one source's keys are remembered for ever its former owners are asked for ever, and operators are told so.
func TestStatusTellsWhoIsAskedForEver(t *testing.T) {
	t.Parallel()
	maps := chain(t, [3]uint32{1, 0, 0}, [3]uint32{0, 1, 0})
	b := joined(t, maps, map[string]*ledger{"b": {}})["b"]
	began := time.Now()
	b.state.Load().former[0].Confirmed, b.state.Load().former[0].Until = true, began
	keep := map[string]time.Duration{"short": time.Hour, "long": 3 * time.Hour, "for ever": 0}
	b.opt.Remembered = func(source string) time.Duration { return keep[source] }
	b.opt.Now = func() time.Time { return began.Add(2 * time.Hour) }
	for _, c := range []struct {
		sources []string
		asked   int
		until   time.Time
	}{
		{[]string{"short"}, 0, time.Time{}}, {[]string{"long", "short"}, 1, began.Add(3 * time.Hour)},
		{[]string{"short", "for ever"}, 1, time.Time{}}, {[]string{"for ever", "short"}, 1, time.Time{}},
	} {
		b.told.Store(&Configured{Number: 2, Sources: c.sources})
		got := b.Status().Asked
		if len(got) != c.asked || c.asked > 0 && !got[0].Until.Equal(c.until) {
			t.Errorf("with the sources %q %+v are asked, want %d until %v", c.sources, got, c.asked, c.until)
		}
	}
}

// A cell whose configuration lacks a source says nothing of how its events are placed: the next map has that as the one before.
func TestSourcesOfOthersStayAsTheyAre(t *testing.T) {
	t.Parallel()
	c := new(Chain)
	cells := []Cell{{"a", "https://a", 1}}
	first, err := c.Next(Configured{Cells: cells, Sources: []string{"orders", "users"}, ByScope: []string{"orders", "users"}})
	if err != nil {
		t.Fatal(err)
	}
	c = &Chain{maps: []*Map{first}}
	next, err := c.Next(Configured{Cells: cells, Sources: []string{"users"}})
	if err != nil || !slices.Equal(next.ByScope, []string{"orders"}) {
		t.Errorf("by scope are %+v, %v", next, err)
	}
}

// That the map of the configuration is not the one that counts can be seen, and what lasts is said in the log once.
func TestWhatLastsIsSaidOnce(t *testing.T) {
	t.Parallel()
	c, log := newCell("b", new(keeper))
	s := &state{chain: chain(t, [3]uint32{1, 0, 0}, [3]uint32{0, 1, 0})}
	for number, want := range map[int64]float64{1: 1, 2: 0, 3: 1} {
		c.metrics.show(s, &Configured{Number: number})
		if got := testutil.ToFloat64(c.metrics.old); got != want {
			t.Errorf("with map %d in the configuration, and map 2 that counts, it differs: %v", number, got)
		}
	}
	unmapped := newMetrics()
	if unmapped.show(&state{chain: new(Chain)}, &Configured{Number: 2}); testutil.ToFloat64(unmapped.old) != 1 {
		t.Error("no map is known, and it is that of the configuration")
	}
	for range 3 {
		c.say("an old map")
		c.note("a", ErrAway)
	}
	c.note("a", nil)
	c.note("a", nil)
	c.say("another map")
	for _, line := range []string{"an old map", "another map", "a cell does not answer", "a cell answers again"} {
		if n := strings.Count(log.String(), line); n != 1 {
			t.Errorf("the log says %q %d times:\n%s", line, n, log)
		}
	}
}

package cells

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hookonce/hookonce/internal/journal"
)

// keeper is the side of a store that keeps maps.
type keeper struct {
	journal.CellKeeper
	record journal.CellRecord
	refuse error // what raising ends with
	away   error // what reading ends with
	events bool  // there are some
	name   string
}

func (k *keeper) CellName(context.Context) (string, error) { return k.name, nil }

func (k *keeper) CellRecord(context.Context) (journal.CellRecord, error) { return k.record, k.away }

func (k *keeper) RaiseCellMap(_ context.Context, r journal.CellRaise) error {
	if k.events && r.Fresh && len(k.record.Maps) == 0 {
		return journal.ErrCellEvents
	}
	if k.refuse == nil {
		k.record.Maps = append(k.record.Maps, r.Maps...)
	}
	return k.refuse
}

func (k *keeper) ConfirmCell(_ context.Context, c journal.CellConfirmation) error {
	k.record.Confirmations = append(k.record.Confirmations, c)
	return nil
}

// newCell returns a cell, and its log.
func newCell(self string, k *keeper) (*Cells, *strings.Builder) {
	log := new(strings.Builder)
	c := &Cells{metrics: newMetrics(), changing: make(chan struct{}, 1), reached: map[string]error{}, opt: Options{
		Self: self, Store: k, Now: time.Now, Logger: slog.New(slog.NewTextHandler(log, nil)),
	}}
	c.state.Store(&state{chain: new(Chain)})
	return c, log
}

// A map that was introduced, or may have been, is not called unchanged where this cell cannot look at it.
func TestIntroducedButNotSeen(t *testing.T) {
	t.Parallel()
	lost := errors.New("the connection was lost")
	for name, c := range map[string]struct {
		keeper keeper
		weight uint32 // of the other cell
		want   bool
	}{
		"the store cannot be read afterwards": {keeper{away: lost}, 0, true},
		"nobody knows what became of it":      {keeper{refuse: lost}, 0, true},
		"it is refused":                       {keeper{refuse: journal.ErrCellEvents}, 0, false},
		"it cannot be the first":              {keeper{}, 1, false},
	} {
		cell, _ := newCell("a", &c.keeper)
		err := cell.Configure(t.Context(), Configured{Number: 1, Cells: []Cell{{"a", "https://a", 1}, {"b", "https://b", c.weight}}, Sources: []string{"s"}})
		var introduced *IntroducedError
		if got := errors.As(err, &introduced); got != c.want || err == nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.want && (introduced.Number != 1 || !errors.Is(err, lost)) {
			t.Errorf("%s: map %d, because of %v", name, introduced.Number, introduced.Err)
		}
	}
}

// A store with events takes its first map from another cell only where all that it may have on record is its own by that.
func TestWhoMayJoin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		self   string
		first  [3]uint32
		events bool
		want   error
	}{
		"an empty one": {"b", [3]uint32{1, 1, 0}, false, ErrMaps}, "the owner of all": {"b", [3]uint32{0, 1, 0}, true, ErrMaps},
		"one of the owners": {"b", [3]uint32{1, 1, 0}, true, ErrHasEvents}, "the owner of nothing": {"c", [3]uint32{1, 0, 0}, true, ErrHasEvents},
	} {
		k := &keeper{events: c.events}
		cell, _ := newCell(c.self, k)
		theirs := chain(t, c.first, [3]uint32{1, 1, 1})
		err := cell.learn(t.Context(), "x", &tidings{"x", theirs.contents()})
		if !errors.Is(err, c.want) || (len(k.record.Maps) == 2) != (c.want == ErrMaps) {
			t.Errorf("%s: %v, and %d maps are stored", name, err, len(k.record.Maps))
		}
		if k.name = c.self; c.want == ErrHasEvents { // whose maps were taken back
			if err := cell.learn(t.Context(), "x", &tidings{"x", theirs.contents()}); !errors.Is(err, c.want) || strings.Contains(err.Error(), "begin with") {
				t.Errorf("%s, once more: %v", name, err)
			}
		}
	}
}

// A cell that knows no map says which cells it waits for, those of its configuration, and which of them are away.
func TestStatusWithoutAMap(t *testing.T) {
	t.Parallel()
	c, _ := newCell("b", new(keeper))
	if s := c.Status(); len(s.Peers) != 0 {
		t.Errorf("before it is configured it waits for %+v", s.Peers)
	}
	c.told.Store(&Configured{Number: 2, Cells: []Cell{{"a", "https://a", 1}, {"b", "https://b", 1}, {"c", "https://c", 0}}})
	c.note("a", ErrAway)
	c.note("c", nil)
	s := c.Status()
	want := []Peer{{Cell: Cell{"a", "https://a", 1}, Reached: ErrAway}, {Cell: Cell{"c", "https://c", 0}}}
	if s.Map.Number != 0 || s.Told != 2 || !slices.Equal(s.Peers, want) {
		t.Errorf("it stands so: %+v, want %+v", s, want)
	}
}

// How a cell stands that was given up is told no more, nor what an exchange with it comes to that was under way.
func TestForgottenCellsAreNotTold(t *testing.T) {
	t.Parallel()
	c, _ := newCell("a", new(keeper))
	maps := chain(t, [3]uint32{1, 1, 0})
	c.state.Store(&state{chain: maps, reachable: maps.cells()})
	c.note("b", ErrAway)
	c.note("c", nil)
	if n := testutil.CollectAndCount(c.metrics.up); n != 2 || c.reached["b"] == nil {
		t.Fatalf("%d cells are told, and %v", n, c.reached)
	}
	m, err := maps.Forget("b", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	maps = &Chain{maps: append(maps.maps, m)}
	s := &state{chain: maps, reachable: maps.cells()}
	c.state.Store(s)
	c.drop(s)
	c.note("b", ErrAway)
	if n := testutil.CollectAndCount(c.metrics.up); n != 1 || c.reached["b"] != nil {
		t.Errorf("%d cells are told, and %v", n, c.reached)
	}
}

// Maps of which the store has another one by now are a conflict, and so is a store whose maps do not follow each other: that is said.
func TestConflictsOfTheStoreAreTold(t *testing.T) {
	t.Parallel()
	theirs := chain(t, [3]uint32{1, 0, 0}, [3]uint32{1, 1, 1})
	cell, _ := newCell("b", &keeper{refuse: journal.ErrOtherCellMap})
	if err := cell.learn(t.Context(), "x", &tidings{"x", theirs.contents()}); !errors.Is(err, ErrConflict) {
		t.Errorf("it is told as %v", err)
	}
	k := new(keeper)
	for _, m := range []*Map{chain(t, [3]uint32{1, 2, 0}).Newest(), theirs.Newest()} {
		k.record.Maps = append(k.record.Maps, journal.CellMap{Number: m.Number, Content: m.content})
	}
	cell, log := newCell("b", k)
	cell.upkeep(t.Context())
	if !strings.Contains(log.String(), "map 2 does not follow map 1") {
		t.Errorf("the log says %q", log)
	}
}

// still is a store that stands still.
type still struct {
	keeper
	asked, goes chan struct{}
}

func (s *still) CellRecord(context.Context) (journal.CellRecord, error) {
	s.asked <- struct{}{}
	<-s.goes
	return s.record, nil
}

// Whoever reads the maps while another one waits for the store waits for as long as it can, and not for the store.
func TestNobodyWaitsForWhoWaits(t *testing.T) {
	t.Parallel()
	s := &still{asked: make(chan struct{}, 1), goes: make(chan struct{})}
	c, _ := newCell("a", &s.keeper)
	c.opt.Store = s
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- c.Refresh(t.Context()) }()
	<-s.asked
	gone, cancel := context.WithCancelCause(t.Context())
	go func() { second <- c.Refresh(gone) }()
	over := errors.New("it has waited long enough")
	cancel(over)
	select {
	case err := <-second:
		if !errors.Is(err, over) {
			t.Errorf("%v, want %v", err, over)
		}
	case <-time.After(time.Minute):
		t.Error("it waits for who waits")
	}
	close(s.goes)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// counted is a store whose looks are counted, the first of which stands still, and some of which fail.
type counted struct {
	still
	looks atomic.Int64
	fail  func(look int64) error
}

func (s *counted) CellRecord(ctx context.Context) (journal.CellRecord, error) {
	look := s.looks.Add(1)
	if look == 1 {
		before := s.record // what it sees is from when it began
		_, _ = s.still.CellRecord(ctx)
		return before, nil
	}
	return s.record, s.fail(look)
}

// Those that ask for the maps of the store while one of them is looking share the next look, which begins after they asked, and
// not the one that is under way, which may have seen what was before. One that fails says nothing to the others.
func TestLooksAreShared(t *testing.T) {
	t.Parallel()
	damaged := errors.New("the store is away")
	for name, c := range map[string]struct {
		fail          int64
		looks, failed int
	}{"all goes well": {0, 2, 0}, "a look fails": {2, 3, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &counted{still: still{asked: make(chan struct{}, 1), goes: make(chan struct{})}, fail: func(look int64) error {
					if look == c.fail {
						return damaged
					}
					return nil
				}}
				cell, _ := newCell("a", &s.keeper)
				cell.opt.Store = s
				newer := chain(t, [3]uint32{1, 0, 0})
				const many = 20
				results := make(chan error, many+1)
				go func() { results <- cell.Refresh(t.Context()) }()
				<-s.asked
				s.record.Maps = []journal.CellMap{{Number: 1, Content: newer.Newest().content}}
				for range many {
					go func() {
						err := cell.Refresh(t.Context())
						if err == nil && cell.state.Load().chain.ID() != newer.ID() {
							err = errors.New("it goes by what was before it asked")
						}
						results <- err
					}()
				}
				synctest.Wait()
				close(s.goes)
				failed := 0
				for range many + 1 {
					if err := <-results; errors.Is(err, damaged) {
						failed++
					} else if err != nil {
						t.Error(err)
					}
				}
				if looks := int(s.looks.Load()); looks != c.looks || failed != c.failed {
					t.Errorf("%d looks, want %d; %d failed, want %d", looks, c.looks, failed, c.failed)
				}
				if err := cell.Refresh(t.Context()); err != nil || int(s.looks.Load()) != c.looks+1 {
					t.Errorf("who asks later does not look: %v, %d looks", err, s.looks.Load())
				}
			})
		})
	}
}

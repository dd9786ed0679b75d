package cells

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/callmux"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/quota"
)

// Errors of placing and forwarding.
var (
	// ErrMaps says that another cell had another map. By now both have the newer one: place the events again.
	ErrMaps = errors.New("cells: another cell has another map")
	// ErrNoMap says that this cell does not know the maps yet that its configuration is the successor of.
	ErrNoMap = errors.New("cells: the maps before the configured one are not known yet")
	// ErrAway wraps why another cell did not answer. What it was handed may be stored there.
	ErrAway = errors.New("cells: another cell does not answer")
	// ErrRefused says that another cell did not take what it was handed: see [RefusedError].
	ErrRefused = errors.New("cells: another cell refused the request")
	// ErrElsewhere says that an event belongs to another cell, and was not stored in this one.
	ErrElsewhere = errors.New("cells: it belongs to another cell")
	// ErrDisagree says that two cells see different events in one request: they are configured differently, or another
	// version of the program reads requests in another way.
	ErrDisagree = errors.New("cells: two cells do not see the same events in a request")
	// ErrNotThisCell says that a store with maps is opened as another cell than it is, or as none.
	ErrNotThisCell = errors.New("cells: the store is not the cell of the configuration")
	// ErrFirstMap says that a first map has several owners.
	ErrFirstMap = errors.New("cells: there is no map yet, and a first one in which several cells have a weight would take for new what any of them has on record; begin with cells_map: 1 and weight: 0 for every cell but one, and raise it when that runs")
	// ErrHasEvents says that a first map would give away keys that are on record.
	ErrHasEvents = errors.New("cells: the store has events already, which a first map would take for new elsewhere, because another cell has the weight; begin with cells_map: 1 and weight: 0 for every other cell, and raise it when that runs")
)

// takenBackError is [ErrHasEvents] of a store that had maps: to begin with its own would be a second first map.
type takenBackError struct{}

func (takenBackError) Error() string {
	return "cells: this cell's maps were taken back, and it has events that no other cell would ask it for; see two first maps among the known faults in docs/cells.md"
}

func (takenBackError) Is(target error) bool { return target == ErrHasEvents }

// RefusedError is [ErrRefused] with the reason that the other cell gives.
type RefusedError struct{ Cell, Reason string }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%v: %s: %s", ErrRefused, e.Cell, e.Reason)
}

// Unwrap returns [ErrRefused].
func (*RefusedError) Unwrap() error { return ErrRefused }

// Busy are the reasons that say nothing of how the other cell is configured: it sees the request as this one does, and could not
// take it now. They are told whichever cell the request came to.
var Busy = []string{"queue_full", "closing", "store", "timeout", "row_refused", "loop", "unanswered", "undecided", "cell_away", "cell_map"}

// Busy reports whether the reason is one of [Busy].
func (e *RefusedError) Busy() bool { return slices.Contains(Busy, e.Reason) }

// IntroducedError says that a map was introduced, or may have been, and that what had to follow failed. It counts then: maps
// do not go back.
type IntroducedError struct {
	Number int64
	Err    error
}

func (e *IntroducedError) Error() string {
	return fmt.Sprintf("map %d of the cells is introduced, or may be ('hookonce cells status' says so): %v", e.Number, e.Err)
}

func (e *IntroducedError) Unwrap() error { return e.Err }

// Known is [journal.Reconciler.Known], as it answers within this cell.
type Known func(ctx context.Context, source string, keys []string) (map[string]journal.Known, error)

// Options configure [Open]. All are needed unless it is said otherwise.
type Options struct {
	// Self is the name of this cell.
	Self string
	// Store keeps the maps, and is the fence.
	Store journal.CellKeeper
	// Known says what is on record here.
	Known Known
	// Remembered says for how long the keys of a source are. 0: for ever.
	Remembered func(source string) time.Duration
	// Configured is the map of the configuration.
	Configured Configured
	// Peers carries requests to other cells.
	Peers http.RoundTripper
	// MaxBody is how many bytes the body of a request has at most, see [Cells.Fit].
	MaxBody int64
	// Peer says whose certificate a request of another cell came with, and returns what says whether that is trusted still.
	// Nil: everybody is, and is who he says.
	Peer func(r *http.Request) (name string, trusted func() bool)
	// Now is the clock.
	Now func() time.Time
	// Logger receives what operators need to know.
	Logger *slog.Logger
}

// Cells is a cell among others. Its methods are safe for concurrent use.
type Cells struct {
	opt     Options
	client  *http.Client
	metrics *metrics
	state   atomic.Pointer[state]
	told    atomic.Pointer[Configured]
	take    Taker
	server  *callmux.Server
	room    quota.Pool // of what other cells hand on

	changing chan struct{} // has whoever changes the state, which may wait for the store
	reads    atomic.Int64  // of the store's maps that were begun
	shown    int64         // the one that state comes from; of whoever has changing
	mu       sync.Mutex
	reached  map[string]error // what came of the last exchange with a cell
	said     string           // of the configuration, in the log
	links    map[string]*callmux.Client
	shares   map[string]*share // of room, by cell
}

// Open reads the maps of the store, and introduces that of the configuration if it is the next one.
// Errors wrap [ErrConflict] or [ErrHasEvents] where the configured map cannot be, or are the
// store's. It may be called again after one.
func Open(ctx context.Context, o Options) (*Cells, error) {
	c, err := read(ctx, o)
	if err == nil {
		err = c.Configure(ctx, o.Configured)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Register shows the metrics, which are kept from the beginning.
func (c *Cells) Register(r prometheus.Registerer) error { return c.metrics.register(r) }

// read returns a cell with the maps of its store.
func read(ctx context.Context, o Options) (*Cells, error) {
	c := &Cells{opt: o, client: &http.Client{Transport: o.Peers, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		changing: make(chan struct{}, 1), reached: map[string]error{}, links: map[string]*callmux.Client{}, shares: map[string]*share{}}
	c.server = callmux.NewServer(c.serveCall)
	c.Fit(o.MaxBody)
	c.metrics = newMetrics()
	c.state.Store(&state{chain: new(Chain)})
	if err := CheckName(ctx, o.Store, o.Self); err != nil {
		return nil, err
	}
	return c, c.Refresh(ctx)
}

// maxHead is how many bytes a request has at most beside its body, and minHanded what there is room for at least.
const (
	maxHead   = 1 << 20
	minHanded = 128 << 20
)

// MaxHanded is how many bytes of requests that other cells hand on, and of answers to them, are held at most where the body of
// one has up to maxBody: 128 MiB, or four of the largest, so that one of these is taken while its source, and another cell, have
// a part of as much.
func MaxHanded(maxBody int64) int64 { return max(minHanded, 4*(maxBody+maxHead)) }

// Fit makes room for requests of other cells whose bodies have up to maxBody bytes. Larger ones are not taken.
func (c *Cells) Fit(maxBody int64) {
	c.room.Resize(MaxHanded(maxBody), true)
	c.server.Limit(max(maxBody, callmux.MaxShared)+maxHead, (&Outcome{Refused: hookonce.ReasonTooLarge}).text())
}

// CheckName refuses a store with maps to whoever takes it for another cell, or for none (""): what they accept would pass the
// fence, and be accepted by the owner once more. Errors wrap [ErrNotThisCell], or are the store's.
func CheckName(ctx context.Context, store journal.CellKeeper, name string) error {
	own, err := store.CellName(ctx)
	switch {
	case err != nil || own == "" || own == name:
		return err
	case name == "":
		return fmt.Errorf("%w: it is the cell %q, and the file has no cells; write cell: %s with the cells_map, cells, cell_listen and cell_tls of the cell's other gateways into it", ErrNotThisCell, own, own)
	}
	return fmt.Errorf("%w: it is the cell %q, and the file says cell: %s; correct cell, or store", ErrNotThisCell, own, name)
}

// Configure holds the map of a configuration against those on record, and introduces it if it is the next one. One that is
// older is passed over: the store's is what counts. One whose predecessors are not known waits for them ([Cells.Run]).
func (c *Cells) Configure(ctx context.Context, told Configured) error {
	if err := c.introduce(ctx, told); err != nil {
		return err
	}
	c.told.Store(&told)
	return nil
}

func (c *Cells) introduce(ctx context.Context, told Configured) error {
	s := c.state.Load()
	newest := s.chain.Newest()
	have := int64(0)
	if newest != nil {
		have = newest.Number
	}
	switch {
	case told.Number == have && have > 0:
		return told.conflict(newest)
	case told.Number < have:
		c.say(fmt.Sprintf("the configuration has cells_map %d, and map %d is on record; it is what counts: write it into the file ('hookonce cells status --yaml')", told.Number, have))
		return nil
	case told.Number > have+1:
		c.say(fmt.Sprintf("the configuration has cells_map %d, and map %d is the newest that is known here; the ones between are asked for of the other cells", told.Number, have))
		return nil
	}
	if have == 0 && owners(told.Cells) > 1 {
		return ErrFirstMap
	}
	next, err := s.chain.Next(told)
	if err != nil {
		return err
	}
	err = c.raise(ctx, []journal.CellMap{{Number: next.Number, Content: next.content, Since: c.opt.Now()}}, told.Cells)
	switch {
	case errors.Is(err, ErrHasEvents):
		return err
	case err != nil && !errors.Is(err, ErrConflict):
		return &IntroducedError{next.Number, err}
	}
	if now := c.state.Load().chain.numbered(next.Number); now == nil || now.digest != next.digest {
		return cmp.Or(told.conflict(c.state.Load().chain.Newest()), err) // somebody else was first
	}
	c.opt.Logger.Info("cells: a map is introduced", "number", next.Number, "cells", names(next.Cells))
	return nil
}

// owners is how many cells own keys.
func owners(all []Cell) (n int) {
	for _, o := range all {
		n += min(1, int(o.Weight))
	}
	return n
}

// say logs what is to be known of the configuration, once until it is something else.
func (c *Cells) say(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said != text {
		c.said = text
		c.opt.Logger.Warn("cells: " + text)
	}
}

// raise stores maps, and goes by them. First are the cells of the first map that there is: a store without maps is refused by
// which others own what may be on record here, because nobody would ask for it.
func (c *Cells) raise(ctx context.Context, maps []journal.CellMap, first []Cell) error {
	others := slices.ContainsFunc(first, func(o Cell) bool { return o.Name != c.opt.Self && o.Weight > 0 })
	err := c.opt.Store.RaiseCellMap(ctx, journal.CellRaise{Cell: c.opt.Self, Maps: maps, Fresh: others})
	switch {
	case errors.Is(err, journal.ErrCellEvents):
		err = ErrHasEvents
		if name, failed := c.opt.Store.CellName(ctx); failed == nil && name != "" {
			err = takenBackError{}
		}
	case errors.Is(err, journal.ErrOtherCellMap):
		c.metrics.conflicts.Inc()
		err = errors.Join(fmt.Errorf("%w: %w", ErrConflict, err), c.Refresh(ctx))
	}
	if err != nil {
		return err
	}
	return c.Refresh(ctx)
}

// Refresh goes by the maps that are in the store now, or were at some moment since it was called: many that call at once, as after
// another map, share one look.
func (c *Cells) Refresh(ctx context.Context) error {
	called := c.reads.Load()
	select {
	case c.changing <- struct{}{}:
		defer func() { <-c.changing }()
	case <-ctx.Done(): // or all that come while the store stands still would wait for each other's patience
		return context.Cause(ctx)
	}
	if c.shown > called {
		return nil
	}
	number := c.reads.Add(1)
	r, err := c.opt.Store.CellRecord(ctx)
	if err != nil {
		return err
	}
	s, err := newState(r)
	if err != nil {
		return err
	}
	before := c.state.Load().chain
	c.state.Store(s)
	c.shown = number
	if s.chain.ID() != before.ID() {
		c.drop(s)
		c.opt.Logger.Info("cells: another map counts from now on", "was", before.ID(), "is", s.chain.ID())
	}
	c.metrics.show(s, c.told.Load())
	return nil
}

// Self is the name of this cell.
func (c *Cells) Self() string { return c.opt.Self }

// every is how often the store is looked at for a newer map, and patience how long a cell may take to answer what needs
// one indexed read.
const (
	every     = time.Second
	reachable = 5 * time.Second
	patience  = 3 * time.Second
)

// Run goes by what the store and the other cells say until ctx ends: it takes over newer maps, tells others of them, and
// notes when these confirm that they accept nothing under older ones.
func (c *Cells) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var group sync.WaitGroup
	defer group.Wait()
	busy := map[string]*atomic.Bool{}
	last := map[string]time.Time{}
	for {
		c.upkeep(ctx)
		for _, p := range c.state.Load().peers(c.opt.Self) {
			if c.settled(p.Name) && c.opt.Now().Sub(last[p.Name]) < reachable {
				continue
			}
			if busy[p.Name] == nil {
				busy[p.Name] = new(atomic.Bool)
			}
			if b := busy[p.Name]; b.CompareAndSwap(false, true) {
				last[p.Name] = c.opt.Now()
				group.Go(func() { defer b.Store(false); c.visit(ctx, p) })
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// upkeep reads the store, and introduces what waits for its predecessors.
func (c *Cells) upkeep(ctx context.Context) {
	if err := patiently(ctx, c.Refresh); err != nil {
		if errors.Is(err, ErrConflict) {
			c.say(err.Error())
		}
		return // or the journal says that the store is away
	}
	told := c.told.Load()
	if told == nil {
		return
	}
	newest := c.state.Load().chain.Newest()
	switch {
	case newest == nil:
		c.visitAll(ctx, others(told.Cells, c.opt.Self))
	case told.Number == newest.Number || told.Number == newest.Number+1:
	default:
		return
	}
	err := patiently(ctx, func(ctx context.Context) error { return c.introduce(ctx, *told) })
	if err != nil && ctx.Err() == nil {
		c.say(err.Error())
	}
}

// patiently does what the store, or another cell, may keep waiting.
func patiently(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return do(ctx)
}

// settled reports whether a cell is known to have the newest map, and answered when it was asked last.
func (c *Cells) settled(cell string) bool {
	s := c.state.Load()
	newest := s.chain.Newest()
	if newest == nil {
		return false
	}
	_, fenced := s.fencedAt(cell, newest.Number-1)
	c.mu.Lock()
	defer c.mu.Unlock()
	err, asked := c.reached[cell]
	return fenced && asked && err == nil
}

// visit exchanges maps with a cell.
func (c *Cells) visit(ctx context.Context, p Cell) {
	err := patiently(ctx, func(ctx context.Context) error { return c.exchange(ctx, p) })
	if !errors.Is(ctx.Err(), context.Canceled) {
		c.note(p.Name, err)
	}
}

// visitAll visits cells at once: one that is silent uses up nobody's time but its own.
func (c *Cells) visitAll(ctx context.Context, all []Cell) {
	var group sync.WaitGroup
	for _, p := range all {
		group.Go(func() { c.visit(ctx, p) })
	}
	group.Wait()
}

// note remembers whether a cell can be reached, and logs when that changes.
func (c *Cells) note(cell string, err error) {
	c.mu.Lock()
	s := c.state.Load() // not before: what is dropped has to stay so
	if _, spoken := s.peer(cell); !spoken && s.chain.Newest() != nil {
		c.mu.Unlock()
		return // it was given up while it was asked
	}
	before, known := c.reached[cell]
	c.reached[cell] = err
	c.metrics.reached(cell, err == nil)
	c.mu.Unlock()
	switch {
	case err != nil && (!known || before == nil):
		c.opt.Logger.Warn("cells: a cell does not answer, or does not agree", "cell", cell, "error", err)
	case err == nil && known && before != nil:
		c.opt.Logger.Info("cells: a cell answers again", "cell", cell)
	}
}

// confirm notes that a cell accepts nothing under maps below the newest.
func (c *Cells) confirm(ctx context.Context, cell string, number int64) error {
	if _, known := c.state.Load().fencedAt(cell, number-1); known {
		return nil
	}
	if err := c.opt.Store.ConfirmCell(ctx, journal.CellConfirmation{Cell: cell, Number: number, At: c.opt.Now()}); err != nil {
		return err
	}
	return c.Refresh(ctx)
}

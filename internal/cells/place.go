package cells

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// Placement says which events of a request are accepted where.
type Placement struct {
	// Map is for [journal.Event.CellMap] of the events that are accepted here.
	Map   int64
	chain string
	here  int // events that are accepted here
	other []*Part
	where []int32  // of each event: here, elsewhere, skipped, settled or unknown
	keys  []string // of each event, under which it is on record
	sizes []int64  // of the body of each event, in bytes
	mine  []int32  // which events are accepted here, if there are several
	away  error    // see Away
	size  int64    // of the bodies of the events that are accepted here, in bytes
	one   struct { // room for what is known of each event, if there is one: nearly all requests have one
		where [1]int32
		keys  [1]string
		sizes [1]int64
	}
}

// Where an event of a request goes.
const (
	unknown   = -3 // a cell that may know it cannot be asked
	settled   = -2 // it is on record here, by an earlier placing of the request
	skipped   = -1 // it is another cell's, which whoever forwarded the request sees to
	here      = 0
	elsewhere = 1 // and above: the number of the part, from 1
)

// Part are those events of a request that one cell accepts.
type Part struct {
	Cell    string
	Known   bool // they are on record there
	keys    []string
	settled int
}

// Events is how many there are.
func (p *Part) Events() int { return len(p.keys) }

// Settled is how many of them are on record here already, as those who placed the request said: the part's cell finds them, and
// they are no news.
func (p *Part) Settled() int { return p.settled }

// add adds the i-th of the keys. A part with one key has it where it stands.
func (p *Part) add(keys []string, i int) {
	if p.keys == nil {
		p.keys = keys[i : i+1 : i+1]
		return
	}
	p.keys = append(p.keys, keys[i])
}

// id tells which events they are, so that two cells can tell that they see the same.
func (p *Part) id() string {
	var room [512]byte // enough for the key of one event
	text := room[:0]
	for _, k := range p.keys {
		text = append(strconv.AppendInt(text, int64(len(k)), 10), ':')
		text = append(text, k...)
	}
	sum := sha256.Sum256(text)
	id := append(strconv.AppendInt(make([]byte, 0, 48), int64(len(p.keys)), 10), ' ')
	return string(hex.AppendEncode(id, sum[:16]))
}

// Here is how many events are accepted here.
func (p *Placement) Here() int { return p.here }

// Events is how many events the request has.
func (p *Placement) Events() int { return len(p.where) }

// At is which event of the request the n-th of those is that are accepted here, from 0. There are several in the request.
func (p *Placement) At(n int) int {
	if p.mine == nil { // there is one
		return n
	}
	return int(p.mine[n])
}

// Elsewhere are the parts that other cells accept.
func (p *Placement) Elsewhere() []*Part { return p.other }

// Stranger says to which cell a single event belongs that is not accepted here. Errors wrap [ErrElsewhere]; nil: it is.
func (p *Placement) Stranger() error {
	if p.Here() > 0 || len(p.other) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s; it is stored when that cell compares, or by 'hookonce reconcile' with its configuration", ErrElsewhere, p.other[0].Cell)
}

// Keyed is p without the events that are accepted here and have no key: nobody would recognise them when the sender comes
// again.
func (p *Placement) Keyed() *Placement {
	own := *p
	own.where = slices.Clone(p.where)
	for i, w := range own.where {
		if w == here && own.keys[i] == "" {
			own.where[i] = skipped
		}
	}
	own.count()
	return &own
}

// count says what is accepted here, by where each event goes.
func (p *Placement) count() {
	p.here, p.mine, p.size = 0, nil, 0
	for i, w := range p.where {
		if w != here {
			continue
		}
		p.here++
		p.size += p.sizes[i]
		if len(p.where) > 1 {
			p.mine = append(p.mine, int32(i))
		}
	}
}

// Away is why some events can be accepted nowhere now, and are left out: a cell that may know them cannot be asked. Nil: there
// are none.
func (p *Placement) Away() error { return p.away }

// Select returns the verified request with those events alone that are accepted here.
func (p *Placement) Select(d *hookonce.Verified) *hookonce.Verified {
	if p.Here() == len(p.where) {
		return d
	}
	own := *d
	if d.Batch == nil {
		own.Events = nil
		for i := range d.Events {
			if p.where[i] == here {
				own.Events = append(own.Events, d.Events[i])
			}
		}
		return &own
	}
	own.Batch = &hookonce.Batch{Len: p.Here(), Size: p.size, All: func(yield func(*hookonce.Event) bool) {
		i := 0
		for ev := range d.Batch.All {
			if i < len(p.where) && p.where[i] == here && !yield(ev) {
				return
			}
			i++
		}
	}}
	return &own
}

// recorded is the key under which an event is on record.
func recorded(ev *hookonce.Event) string {
	if ev.Coalesce {
		return journal.CoalesceKey(ev.Key)
	}
	return ev.Key
}

// moved is an event that is to be accepted here, and that another cell may have on record.
type moved struct {
	at      int
	key     string
	formers []string
}

// Place says where the events of a verified request belong. hop is how it came from another cell; nil: it came from its sender. Those that
// are on record here already, because the request was placed before and maps changed meanwhile, stand in done, by their numbers,
// and are left out: without a key they could not be recognised. But one that another cell owns by now is in that one's part, which
// takes all events of the request that it owns for meant, and asks this cell for it. Nil: none is.
//
// The owner by the newest map asks for what it would accept as new and another cell may know. What it cannot ask for is left out
// where there are other events, see [Placement.Away]. Errors: [ErrMaps], after which the events are to be placed again, [ErrAway],
// [RefusedError], [ErrDisagree], [ErrNoMap] and what the store says.
func (c *Cells) Place(ctx context.Context, source string, d *hookonce.Verified, hop *Hop, done []bool) (*Placement, error) {
	s := c.state.Load()
	newest := s.chain.Newest()
	if newest == nil {
		return nil, ErrNoMap
	}
	if hop != nil && hop.Map != s.chain.ID() {
		return nil, ErrMaps
	}
	t := &placing{Cells: c, state: s, source: source, hop: hop, done: done, Placement: Placement{Map: newest.Number, chain: s.chain.ID()}}
	t.asked = s.asked(c.opt.Self, c.opt.Remembered(source), s.clock(c.opt.Now()))
	t.where, t.keys, t.sizes = t.one.where[:0], t.one.keys[:0], t.one.sizes[:0]
	if d.Batch != nil {
		t.addBatch(newest, d.Batch)
	} else {
		for i := range d.Events {
			t.add(newest, &d.Events[i])
		}
	}
	if err := t.settle(ctx); err != nil {
		return nil, err
	}
	if t.away != nil && t.Here() == 0 && len(t.other) == 0 {
		return nil, t.away
	}
	if hop == nil {
		return &t.Placement, nil
	}
	if meant := t.meant(); hop.Part != meant {
		if hop.Known && t.forgotten() {
			return nil, ErrMaps
		}
		return nil, fmt.Errorf("%w: cell %s sees %s here, and this cell sees %s", ErrDisagree, hop.From, hop.Part, meant)
	}
	return &t.Placement, nil
}

// placing is one call of Place.
type placing struct {
	*Cells
	Placement
	state  *state
	source string
	hop    *Hop
	done   []bool
	asked  []Asked
	open   []moved
}

// addBatch places the events of a batch by the newest map.
func (t *placing) addBatch(newest *Map, b *hookonce.Batch) {
	for ev := range b.All {
		t.add(newest, ev)
	}
}

// add places an event by the newest map.
func (t *placing) add(newest *Map, ev *hookonce.Event) {
	at := len(t.where)
	t.where = append(t.where, skipped)
	t.keys, t.sizes = append(t.keys, recorded(ev)), append(t.sizes, int64(len(ev.Body)))
	owner := newest.Owner(t.source, ev.Key, ev.Scope)
	mine := owner == "" || owner == t.opt.Self
	switch {
	case at < len(t.done) && t.done[at] && (mine || t.hop != nil || ev.Key == ""):
		t.where[at] = settled
	case t.hop != nil && t.hop.Known:
		if owner == t.hop.From && ev.Key != "" {
			t.open = append(t.open, moved{at: at, key: recorded(ev)})
		}
	case !mine && t.hop == nil:
		t.where[at] = t.part(owner, false)
	case mine && (owner != "" || t.hop == nil):
		t.where[at] = here
		if ev.Key == "" || len(t.asked) == 0 {
			return
		}
		if formers := t.state.formers(t.asked, t.opt.Self, t.source, ev.Key, ev.Scope); len(formers) > 0 {
			t.open = append(t.open, moved{at, recorded(ev), formers})
		}
	}
}

// part returns the number of the part that a cell accepts.
func (t *placing) part(cell string, known bool) int32 {
	i := slices.IndexFunc(t.other, func(p *Part) bool { return p.Cell == cell && p.Known == known })
	if i < 0 {
		i = len(t.other)
		t.other = append(t.other, &Part{Cell: cell, Known: known})
	}
	return int32(i + elsewhere)
}

// settle decides what has to be asked, and says which events are in which part.
func (t *placing) settle(ctx context.Context) error {
	if len(t.open) > 0 {
		if err := t.ask(ctx); err != nil {
			return err
		}
	}
	if t.hop != nil && t.hop.Known {
		t.Map = journal.CopiesOnly
	}
	t.count()
	for i, w := range t.where {
		if w >= elsewhere {
			part := t.other[w-elsewhere]
			if part.add(t.keys, i); i < len(t.done) && t.done[i] {
				part.settled++
			}
		}
	}
	t.other = slices.DeleteFunc(t.other, func(p *Part) bool { return len(p.keys) == p.settled }) // nothing in it is news
	return nil
}

// meant tells the events that whoever handed the request on has to mean: all that this cell sees to.
func (t *placing) meant() string {
	var p Part
	for i, w := range t.where {
		if w != skipped {
			p.add(t.keys, i)
		}
	}
	return p.id()
}

// forgotten reports whether the other cell may mean events that were on record here when it asked, and have been purged since, or
// have given their keys up: it has to ask again.
func (t *placing) forgotten() bool {
	all := new(Part)
	for _, m := range t.open {
		all.keys = append(all.keys, m.key)
	}
	var meant int
	_, err := fmt.Sscan(t.hop.Part, &meant) // see id
	return err == nil && (meant < len(all.keys) || t.hop.Part == all.id())
}

// ask looks for keys that may be on record here, and then for those that are not at the cells that owned them.
func (t *placing) ask(ctx context.Context) error {
	local, err := known(ctx, t.opt.Known, t.source, t.open)
	if err != nil {
		return fmt.Errorf("%w: %w", journal.ErrUnavailable, err)
	}
	if t.hop != nil && t.hop.Known {
		for _, m := range t.open {
			if local[m.key] {
				t.where[m.at] = here
			}
		}
		return nil
	}
	questions := map[string][]moved{}
	for _, m := range t.open {
		if !local[m.key] {
			for _, f := range m.formers {
				questions[f] = append(questions[f], m)
			}
		}
	}
	type finding struct {
		keys map[string]bool
		err  error
	}
	found := map[string]*finding{}
	for f := range questions {
		found[f] = new(finding)
	}
	var group sync.WaitGroup
	for f, of := range questions {
		group.Go(func() {
			found[f].keys, found[f].err = known(ctx, func(ctx context.Context, source string, keys []string) (map[string]journal.Known, error) {
				return t.askCell(ctx, t.state, f, source, keys)
			}, t.source, of)
		})
	}
	group.Wait()
	for f, of := range questions {
		if errors.Is(found[f].err, ErrMaps) {
			return found[f].err
		}
		for _, m := range of {
			if found[f].keys[m.key] && t.where[m.at] == here {
				t.where[m.at] = t.part(f, true)
			}
		}
	}
	for f, of := range questions {
		for _, m := range of {
			if found[f].err != nil && t.where[m.at] == here {
				t.where[m.at], t.away = unknown, found[f].err
			}
		}
	}
	return nil
}

// known asks for keys, so many at a time.
func known(ctx context.Context, ask Known, source string, of []moved) (map[string]bool, error) {
	all := map[string]bool{}
	for part := range slices.Chunk(of, journal.MaxKnown) {
		keys := make([]string, len(part))
		for i, m := range part {
			keys[i] = m.key
		}
		found, err := ask(ctx, source, keys)
		if err != nil {
			return nil, err
		}
		for k := range found {
			all[k] = true
		}
	}
	return all, nil
}

// KnownAnywhere is Known of all cells: what is on record of keys in any of them. It fails where one of them does not answer.
func (c *Cells) KnownAnywhere(ctx context.Context, source string, keys []string) (map[string]journal.Known, error) {
	all, err := c.opt.Known(ctx, source, keys)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		err := c.askAll(ctx, source, keys, all)
		if err == nil || !errors.Is(err, ErrMaps) || try == MaxTries {
			return all, err
		}
	}
}

// askAll adds what other cells know.
func (c *Cells) askAll(ctx context.Context, source string, keys []string, all map[string]journal.Known) error {
	s := c.state.Load()
	if s.chain.Newest() == nil {
		return ErrNoMap
	}
	for _, p := range s.peers(c.opt.Self) {
		missing := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { _, known := all[k]; return known })
		if len(missing) == 0 {
			return nil
		}
		found, err := c.askCell(ctx, s, p.Name, source, missing)
		if err != nil {
			return err
		}
		for k, v := range found {
			all[k] = v
		}
	}
	return nil
}

// MaxTries is how often the events of a request are placed, if maps change meanwhile.
const MaxTries = 4

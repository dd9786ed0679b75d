// Package journaltest helps to test what stands on a [journal.Store]: a reference model in memory, a
// wrapper that injects faults, and the conformance suite that every store passes.
package journaltest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// ErrRefused is the row error for an event whose ID is stored already.
var ErrRefused = errors.New("journaltest: the id is taken by another event")

// Memory is a [journal.Store] that keeps everything in maps under one mutex. It is the model that the
// real stores are compared with: short rather than fast. Nothing of it is durable.
type Memory struct {
	// Refuse, when set, is asked about every new entry; its error becomes the entry's Result.Err. It
	// plays the database that refuses a row for its content. Set it before the store is used.
	Refuse func(*journal.Record) error
	// Exclusive makes Orphans hand back everything that is processing, as a store does that is
	// locked to one process. Set it before the store is used.
	Exclusive bool
	// Now is the clock of the database, in what it says of cells. Nil: [time.Now]. Set it before the store is used.
	Now func() time.Time

	mu         sync.Mutex
	closed     bool
	events     map[int64]*event
	keys       map[ref]int64
	deliveries map[target]*Delivery
	attempts   []journal.Outcome
	logical    map[ref]int64  // the event that has a logical key
	newest     map[group]mark // the rank that was delivered
	answers    map[target]journal.Response
	marks      map[string]*journal.Mark
	missing    map[missingRef]*missing
	cells      cellBook
	records
	talliers
	journal.AlertMemory
}

// ref is a key, or a logical key, inside its source.
type ref struct{ source, key string }

// group is what the deliveries of one resource to one destination share.
type group struct{ destination, name string }

// mark is the newest rank of an ordering group that was delivered, and the event that had it.
type mark struct {
	rank  hookonce.Rank
	event int64
}

type target struct {
	event       int64
	destination string
}

type event struct {
	source, key, kind    string
	digest, header, body []byte
	received             time.Time
	hasBody              bool
	resource             string
	rank                 hookonce.Rank
	vouched              int16
	unrouted             bool
	listed               bool  // and without a digest until a copy supplies it: verified
	verified             bool  // a copy came that is not from a list
	logicalDuplicateOf   int64 // the earlier event with the same logical key
	dropped              bool  // that one's deliveries stand for it
}

// Delivery is the row of an open delivery. Done deliveries have none.
type Delivery struct {
	EventID     int64
	Destination string
	State       journal.State
	Token       int64
	Tries       int
	Due         time.Time // processing: the end of the lease; dead: zero
	LastError   string
	Kind        journal.ErrorKind
	Status      int
	Group       string // set: deliveries of it follow each other
	Forced      bool
	Origin      journal.Origin
	WaitsSince  time.Time // zero: since its event was accepted
}

var _ journal.Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{
		events:     map[int64]*event{},
		keys:       map[ref]int64{},
		deliveries: map[target]*Delivery{},
		logical:    map[ref]int64{},
		newest:     map[group]mark{},
		answers:    map[target]journal.Response{},
		marks:      map[string]*journal.Mark{},
		missing:    map[missingRef]*missing{},
	}
}

// errClosed is what every method answers after Close.
var errClosed = errors.New("journaltest: the store is closed")

// begin opens the transaction that every method is: the caller defers the function it returns.
func (m *Memory) begin(ctx context.Context) (end func(), err error) {
	m.mu.Lock()
	if err = ctx.Err(); err == nil && m.closed {
		err = errClosed
	}
	return m.mu.Unlock, err
}

// held returns the delivery that h names if h's token is current, or nil.
func (m *Memory) held(h journal.Held) *Delivery {
	d := m.deliveries[target{h.EventID, h.Destination}]
	if d == nil || d.State != journal.Processing || d.Token != h.Token {
		return nil
	}
	return d
}

// Extend implements [journal.Store].
func (m *Memory) Extend(ctx context.Context, held []journal.Held, lease time.Time) ([]bool, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	still := make([]bool, len(held))
	for i, h := range held {
		if d := m.held(h); d != nil {
			d.Due, still[i] = lease, true
		}
	}
	return still, nil
}

// Finish implements [journal.Store].
func (m *Memory) Finish(ctx context.Context, outcomes []journal.Outcome) ([]bool, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	applied := make([]bool, len(outcomes))
	for i, o := range outcomes {
		if d := m.held(o.Held); d != nil {
			m.finish(d, o)
			applied[i] = true
		}
	}
	return applied, nil
}

func (m *Memory) finish(d *Delivery, o journal.Outcome) {
	d.State, d.Due = o.State, o.Due
	if o.Spared {
		d.Tries--
	}
	switch o.State {
	case journal.Pending:
		d.Tries--
		return
	case journal.Done:
		delete(m.deliveries, target{d.EventID, d.Destination})
	case journal.Dead:
		d.Due = time.Time{}
	}
	if o.State == journal.Done {
		m.raise(o)
		m.keep(o)
	}
	o.Error, o.Excerpt, o.Response, o.Group, o.Rank, o.Spared = o.ErrorText(), bytes.Clone(o.KeptExcerpt()), nil, "", hookonce.Rank{}, false
	d.LastError, d.Kind, d.Status = o.Error, o.Kind, o.Status
	m.attempts = append(m.attempts, o)
}

// Orphans implements [journal.Store].
func (m *Memory) Orphans(ctx context.Context, now time.Time) (int, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil || !m.Exclusive {
		return 0, err
	}
	n := 0
	for _, d := range m.deliveries {
		if d.State == journal.Processing {
			d.Due = now
			n++
		}
	}
	return n, nil
}

// Stats implements [journal.Store].
func (m *Memory) Stats(ctx context.Context) (journal.Stats, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return journal.Stats{}, err
	}
	backlog := m.backlog()
	return journal.Stats{Open: journal.ByState(backlog), Backlog: backlog, Events: int64(len(m.events))}, nil
}

// Ping implements [journal.Store].
func (m *Memory) Ping(ctx context.Context) error {
	end, err := m.begin(ctx)
	defer end()
	return err
}

// Close implements [journal.Store]. Every later call answers an error.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// Attempts returns the recorded attempts, oldest first. It is for assertions, as are the methods below.
func (m *Memory) Attempts() []journal.Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.attempts)
}

// Deliveries returns the open deliveries, by event and destination.
func (m *Memory) Deliveries() []Delivery {
	m.mu.Lock()
	defer m.mu.Unlock()
	var open []Delivery
	for _, d := range m.deliveries {
		open = append(open, *d)
	}
	slices.SortFunc(open, func(a, b Delivery) int {
		return cmp.Or(cmp.Compare(a.EventID, b.EventID), cmp.Compare(a.Destination, b.Destination))
	})
	return open
}

// Events returns the number of stored events.
func (m *Memory) Events() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.events)
}

// Lose forgets an event and its deliveries, as a database does that is restored, or that took over without having them.
func (m *Memory) Lose(id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.purge(journal.KindIDs, id)
	maps.DeleteFunc(m.deliveries, func(t target, _ *Delivery) bool { return t.event == id })
}

// Lookup returns the event that is stored under a key of a source.
func (m *Memory) Lookup(source, key string) (id int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, ok = m.keys[ref{source, key}]
	return id, ok
}

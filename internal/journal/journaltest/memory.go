// Package journaltest helps to test what stands on a [journal.Store]: a reference model in memory, a
// wrapper that injects faults, and the conformance suite that every store passes.
package journaltest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// ErrRefused is the row error for an event whose ID is stored already.
var ErrRefused = errors.New("journaltest: the id is taken by another event")

// errBodyGone is left on a delivery that can not be attempted any more.
const errBodyGone = "the body was purged before the delivery was done"

// Memory is a [journal.Store] that keeps everything in maps under one mutex. It is the model that the
// real stores are compared with: short rather than fast. Nothing of it is durable.
type Memory struct {
	// Refuse, when set, is asked about every new entry; its error becomes the entry's Result.Err. It
	// plays the database that refuses a row for its content. Set it before the store is used.
	Refuse func(*journal.Entry) error
	// Exclusive makes Orphans hand back everything that is processing, as a store does that is
	// locked to one process. Set it before the store is used.
	Exclusive bool

	mu         sync.Mutex
	closed     bool
	events     map[int64]*event
	keys       map[ref]int64
	deliveries map[target]*Delivery
	attempts   []journal.Outcome
}

type ref struct{ source, key string }

type target struct {
	event       int64
	destination string
}

type event struct {
	source, key, kind    string
	digest, header, body []byte
	received             time.Time
	hasBody              bool
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
}

var _ journal.Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{
		events:     map[int64]*event{},
		keys:       map[ref]int64{},
		deliveries: map[target]*Delivery{},
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

// Accept implements [journal.Store].
func (m *Memory) Accept(ctx context.Context, batch []*journal.Entry, now, lease time.Time) ([]journal.Result, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	results := make([]journal.Result, len(batch))
	for i, e := range batch {
		results[i] = m.accept(e, batch[:i], now, lease)
	}
	return results, nil
}

func (m *Memory) accept(e *journal.Entry, before []*journal.Entry, now, lease time.Time) journal.Result {
	if err := e.Validate(); err != nil {
		return journal.Result{Err: err}
	}
	if id, ok := m.keys[ref{e.Source, e.Key}]; ok && e.Key != "" && !m.release(id, e, before) {
		return m.again(id, e, now)
	}
	if m.Refuse != nil {
		if err := m.Refuse(e); err != nil {
			return journal.Result{Err: err}
		}
	}
	if m.events[e.ID] != nil {
		return journal.Result{Err: ErrRefused}
	}
	m.events[e.ID] = &event{
		source: e.Source, key: e.Key, kind: e.Type, digest: bytes.Clone(e.Digest),
		header: bytes.Clone(e.Header), body: bytes.Clone(e.Body), received: e.ReceivedAt, hasBody: true,
	}
	for _, dest := range e.Destinations {
		d := &Delivery{EventID: e.ID, Destination: dest, State: journal.Pending, Due: now}
		if e.Hold {
			d.State, d.Token, d.Tries, d.Due = journal.Processing, 1, 1, lease
		}
		m.deliveries[target{e.ID, dest}] = d
	}
	if e.Key == "" {
		return journal.Result{Status: journal.Unkeyed, ID: e.ID}
	}
	m.keys[ref{e.Source, e.Key}] = e.ID
	return journal.Result{Status: journal.Accepted, ID: e.ID}
}

// release takes the key from event id, if e coalesces and the event has begun. One of the same batch has
// not.
func (m *Memory) release(id int64, e *journal.Entry, before []*journal.Entry) bool {
	if !journal.Coalesces(e.Key) || slices.ContainsFunc(before, func(b *journal.Entry) bool { return b.ID == id }) {
		return false
	}
	coming := map[string]bool{}
	for _, d := range m.deliveries {
		if d.EventID == id && d.State != journal.Processing {
			coming[d.Destination] = true
		}
	}
	if e.Waits(coming) {
		return false
	}
	m.events[id].key = ""
	delete(m.keys, ref{e.Source, e.Key})
	return true
}

// again handles a copy of event id: it re-drives what failed.
func (m *Memory) again(id int64, e *journal.Entry, now time.Time) journal.Result {
	res := journal.Result{Status: journal.Duplicate, ID: id, Done: true}
	if !journal.Coalesces(e.Key) && !bytes.Equal(m.events[id].digest, e.Digest) {
		res.Status = journal.Conflict
	}
	for _, d := range m.deliveries {
		if d.EventID != id {
			continue
		}
		res.Done = false
		if d.State == journal.Failed || d.State == journal.Dead {
			d.State, d.Tries, d.Due = journal.Pending, 0, now
			res.Redriven = true
		}
	}
	return res
}

// Take implements [journal.Store].
func (m *Memory) Take(ctx context.Context, now, lease time.Time, want journal.Wanted) ([]*journal.Work, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	var work []*journal.Work
	var taken int64
	for _, d := range m.due(now) {
		if want.Destinations != nil && !slices.Contains(want.Destinations, d.Destination) {
			continue
		}
		if len(work) == want.Deliveries || want.Bytes > 0 && taken >= want.Bytes {
			break
		}
		ev := m.events[d.EventID]
		if ev == nil || !ev.hasBody {
			d.State, d.Due, d.LastError = journal.Dead, time.Time{}, errBodyGone
			continue
		}
		taken += int64(len(ev.header) + len(ev.body))
		d.State, d.Due = journal.Processing, lease
		d.Token++
		d.Tries++
		work = append(work, &journal.Work{
			Held:   journal.Held{EventID: d.EventID, Destination: d.Destination, Token: d.Token},
			Source: ev.source, Key: ev.key, Type: ev.kind, Tries: d.Tries,
			Header: bytes.Clone(ev.header), Body: bytes.Clone(ev.body),
			ReceivedAt: ev.received, Lease: lease,
		})
	}
	return work, nil
}

// due returns what can be taken at now, oldest due first.
func (m *Memory) due(now time.Time) []*Delivery {
	var due []*Delivery
	for _, d := range m.deliveries {
		if d.State != journal.Dead && !d.Due.After(now) {
			due = append(due, d)
		}
	}
	slices.SortFunc(due, func(a, b *Delivery) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.EventID, b.EventID), cmp.Compare(a.Destination, b.Destination))
	})
	return due
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
	switch o.State {
	case journal.Pending:
		d.Tries--
		return
	case journal.Done:
		delete(m.deliveries, target{d.EventID, d.Destination})
	case journal.Dead:
		d.Due = time.Time{}
	}
	o.Error = o.ErrorText()
	d.LastError = o.Error
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

// Purge implements [journal.Store].
func (m *Memory) Purge(ctx context.Context, bodies, events time.Time, limit int) (journal.Purged, error) {
	var purged journal.Purged
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return purged, err
	}
	open := map[int64]bool{}
	for _, d := range m.deliveries {
		open[d.EventID] = true
	}
	for id, ev := range m.events {
		if open[id] {
			continue
		}
		if ev.hasBody && ev.received.Before(bodies) && purged.Bodies < limit {
			m.dropBody(id)
			purged.Bodies++
		}
		if ev.received.Before(events) && purged.Events < limit {
			m.dropBody(id)
			delete(m.events, id)
			delete(m.keys, ref{ev.source, ev.key})
			purged.Events++
		}
	}
	return purged, nil
}

func (m *Memory) dropBody(id int64) {
	ev := m.events[id]
	ev.hasBody, ev.header, ev.body = false, nil, nil
	m.attempts = slices.DeleteFunc(m.attempts, func(o journal.Outcome) bool { return o.EventID == id })
}

// Stats implements [journal.Store].
func (m *Memory) Stats(ctx context.Context) (journal.Stats, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return journal.Stats{}, err
	}
	s := journal.Stats{Open: map[journal.State]int64{}, Events: int64(len(m.events))}
	for _, d := range m.deliveries {
		s.Open[d.State]++
	}
	return s, nil
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

// Lookup returns the event that is stored under a key of a source.
func (m *Memory) Lookup(source, key string) (id int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, ok = m.keys[ref{source, key}]
	return id, ok
}

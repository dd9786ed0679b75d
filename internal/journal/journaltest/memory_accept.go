package journaltest

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Accept implements [journal.Store].
func (m *Memory) Accept(ctx context.Context, batch []*journal.Record, now, lease time.Time) ([]journal.Result, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	results := make([]journal.Result, len(batch))
	for i, e := range batch {
		if err := m.fenced(e, batch[:i], results); err != nil {
			results[i].Err = err
			continue
		}
		results[i] = m.accept(e, batch[:i], now, lease)
	}
	return results, nil
}

func (m *Memory) accept(e *journal.Record, before []*journal.Record, now, lease time.Time) journal.Result {
	if err := e.Validate(); err != nil {
		return journal.Result{Err: err}
	}
	if id, ok := m.keys[ref{e.Source, e.Key}]; ok && e.Key != "" && !m.release(id, e, before) {
		return m.again(id, e, now)
	}
	if e.CellMap == journal.CopiesOnly {
		return journal.Result{Err: journal.ErrCellMap}
	}
	if m.Refuse != nil {
		if err := m.Refuse(e); err != nil {
			return journal.Result{Err: err}
		}
	}
	if m.events[e.ID] != nil {
		return journal.Result{Err: ErrRefused}
	}
	ev := &event{
		source: e.Source, key: e.Key, kind: e.Type, digest: bytes.Clone(e.Digest),
		header: bytes.Clone(e.Lines()), body: bytes.Clone(e.Body), received: e.ReceivedAt, hasBody: true,
		resource: e.Resource, rank: e.Rank, vouched: e.Vouched, unrouted: e.Unrouted(),
		listed: e.Listed, verified: !e.Listed,
	}
	m.events[e.ID] = ev
	if e.Key == "" {
		m.open(e, now, lease)
		return journal.Result{Status: journal.Unkeyed, ID: e.ID}
	}
	m.keys[ref{e.Source, e.Key}] = e.ID
	res := journal.Result{Status: journal.Accepted, ID: e.ID}
	if ev.logicalDuplicateOf = m.logicalDuplicateOf(e); ev.logicalDuplicateOf != 0 {
		res.LogicalDuplicateOf, res.LogicalDuplicateKey = ev.logicalDuplicateOf, m.events[ev.logicalDuplicateOf].key
	}
	if ev.dropped = ev.logicalDuplicateOf != 0 && e.DropLogicalDuplicate; ev.dropped {
		if !e.Listed && !e.Bypassed {
			res.Redriven, _ = m.redrive(ev.logicalDuplicateOf, now)
		}
		return res
	}
	m.open(e, now, lease)
	return res
}

// logicalDuplicateOf returns the earlier event that has the logical key of e, 0 if that is e itself.
func (m *Memory) logicalDuplicateOf(e *journal.Record) int64 {
	if !e.HasLogicalKey() {
		return 0
	}
	logical := ref{e.Source, e.LogicalKey}
	if first, ok := m.logical[logical]; ok {
		return first
	}
	m.logical[logical] = e.ID
	return 0
}

// open makes the deliveries of a new event.
func (m *Memory) open(e *journal.Record, now, lease time.Time) {
	for _, dest := range e.Destinations {
		d := &Delivery{EventID: e.ID, Destination: dest, State: journal.Pending, Due: now, Origin: e.Origin()}
		if slices.Contains(e.Hold, dest) {
			d.State, d.Token, d.Tries, d.Due = journal.Processing, 1, 1, lease
		}
		if slices.Contains(e.Ordered, dest) {
			d.Group = e.Group()
		}
		m.deliveries[target{e.ID, dest}] = d
	}
}

// release takes the key from event id, if e coalesces and the event has begun. One of the same batch has
// not.
func (m *Memory) release(id int64, e *journal.Record, before []*journal.Record) bool {
	if !journal.Coalesces(e.Key) {
		return false
	}
	if at := slices.IndexFunc(before, func(b *journal.Record) bool { return b.ID == id }); at >= 0 {
		if before[at].TakesIn(e.Event) {
			return false
		}
	} else {
		coming := map[string]bool{}
		for _, d := range m.deliveries {
			if d.EventID == id && d.Token == 0 && d.State == journal.Pending {
				coming[d.Destination] = true
			}
		}
		if e.Waits(coming) {
			return false
		}
	}
	m.events[id].key = ""
	delete(m.keys, ref{e.Source, e.Key})
	return true
}

// again handles a copy of event id: it re-drives what failed, of the first logical duplicate if id has no deliveries of
// its own, unless the copy went past the store. One from a list changes nothing.
func (m *Memory) again(id int64, e *journal.Record, now time.Time) journal.Result {
	res := journal.Result{Status: journal.Duplicate, ID: id}
	ev := m.events[id]
	if !ev.verified && !e.Listed {
		ev.digest, ev.verified = bytes.Clone(e.Digest), true
	}
	if !e.Listed && !journal.Coalesces(e.Key) && !bytes.Equal(ev.digest, e.Digest) {
		res.Status = journal.Conflict
	}
	if ev.dropped {
		id = ev.logicalDuplicateOf
	}
	if e.Listed || e.Bypassed {
		res.Done = len(m.openOf(id)) == 0
		return res
	}
	redriven, open := m.redrive(id, now)
	res.Redriven, res.Done = redriven, !open
	return res
}

// redrive makes what failed of event id due, and reports whether there was anything, and whether anything
// is open.
func (m *Memory) redrive(id int64, now time.Time) (redriven, open bool) {
	for _, d := range m.deliveries {
		if d.EventID != id {
			continue
		}
		open = true
		if d.State == journal.Failed || d.State == journal.Dead {
			d.State, d.Tries, d.Due, d.Origin = journal.Pending, 0, now, journal.OriginRedriven
			redriven = true
		}
	}
	return redriven, open
}

package journaltest

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Take implements [journal.Store].
func (m *Memory) Take(ctx context.Context, now, lease time.Time, want journal.Wanted) ([]*journal.Work, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	if want.Destinations == nil {
		all := journal.Want{Deliveries: want.Deliveries, Bytes: want.Bytes}
		return m.take(m.due(now, func(string) bool { return true }), all, lease), nil
	}
	var work []*journal.Work
	for _, w := range want.Destinations {
		if len(work) >= want.Deliveries || want.Bytes > 0 && weigh(work) >= want.Bytes {
			break
		}
		w.Deliveries = min(w.Deliveries, want.Deliveries-len(work))
		if left := want.Bytes - weigh(work); want.Bytes > 0 && (w.Bytes == 0 || left < w.Bytes) {
			w.Bytes = left
		}
		due := m.due(now, func(destination string) bool { return destination == w.Destination })
		work = append(work, m.take(due, w, lease)...)
	}
	return work, nil
}

func weigh(work []*journal.Work) (bytes int64) {
	for _, w := range work {
		bytes += int64(len(w.Header) + len(w.Body))
	}
	return bytes
}

// take leases of what is due as much as is wanted.
func (m *Memory) take(due []*Delivery, want journal.Want, lease time.Time) (work []*journal.Work) {
	for _, d := range due {
		if len(work) == want.Deliveries || want.Bytes > 0 && weigh(work) >= want.Bytes {
			break
		}
		ev := m.events[d.EventID]
		if ev == nil || !ev.hasBody {
			d.State, d.Due, d.LastError = journal.Dead, time.Time{}, errBodyGone
			continue
		}
		d.State, d.Due = journal.Processing, lease
		d.Token++
		d.Tries++
		work = append(work, m.work(d, ev, want.Stale))
	}
	return work
}

// work returns a delivery as its worker gets it.
func (m *Memory) work(d *Delivery, ev *event, compare bool) *journal.Work {
	w := &journal.Work{
		Held:   journal.Held{EventID: d.EventID, Destination: d.Destination, Token: d.Token},
		Source: ev.source, Key: ev.key, Type: ev.kind, Tries: d.Tries,
		Header: bytes.Clone(ev.header), Body: bytes.Clone(ev.body),
		ReceivedAt: ev.received, Lease: d.Due, Resource: ev.resource, Rank: ev.rank, Forced: d.Forced,
	}
	if n, ok := m.newest[lane{d.Destination, ev.resource}]; ok && compare && ev.rank != 0 {
		w.Stale = ev.rank < n.rank
	}
	if first := m.events[ev.twin]; first != nil {
		w.Twin = first.key
	}
	return w
}

// due returns what can be taken at now for some destinations, oldest due first.
func (m *Memory) due(now time.Time, wanted func(destination string) bool) []*Delivery {
	var due []*Delivery
	for _, d := range m.deliveries {
		if d.State != journal.Dead && !d.Due.After(now) && wanted(d.Destination) && m.hasTurn(d) {
			due = append(due, d)
		}
	}
	slices.SortFunc(due, func(a, b *Delivery) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.EventID, b.EventID), cmp.Compare(a.Destination, b.Destination))
	})
	return due
}

// hasTurn reports whether no other delivery of its resource is before d: the one that is processing, or
// else the oldest that is not dead.
func (m *Memory) hasTurn(d *Delivery) bool {
	if d.Resource == "" || d.State == journal.Processing {
		return true
	}
	for _, other := range m.deliveries {
		same := other.Destination == d.Destination && other.Resource == d.Resource && other.State != journal.Dead
		if same && (other.State == journal.Processing || other.EventID < d.EventID) {
			return false
		}
	}
	return true
}

// raise makes the rank of a delivery that is done the newest of its resource, unless that is newer.
func (m *Memory) raise(o journal.Outcome) {
	at := lane{o.Destination, o.Resource}
	if n, ok := m.newest[at]; o.Rank != 0 && (!ok || o.Rank > n.rank) {
		m.newest[at] = mark{o.Rank, o.EventID}
	}
}

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
		for _, name := range m.targets() {
			want.Destinations = append(want.Destinations, journal.Want{Destination: name, Deliveries: want.Deliveries})
		}
	}
	var due []*Delivery
	for _, w := range want.Destinations {
		due = append(due, m.choose(now, w, want.Deliveries-len(due))...)
	}
	slices.SortFunc(due, compareDue)
	return m.take(due, want, lease), nil
}

// targets are the destinations that there is work for.
func (m *Memory) targets() (names []string) {
	for at := range m.deliveries {
		names = append(names, at.destination)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// choose returns what is taken for one destination: deliveries in ordering groups are at most half.
func (m *Memory) choose(now time.Time, want journal.Want, most int) []*Delivery {
	n := min(want.Deliveries, most)
	if want.Pick {
		return m.pick(now, want, n)
	}
	groups := m.weighed(m.due(now, want.Destination, true), want.Bytes, 0)
	groups = groups[:min(len(groups), (n+1)/2)]
	free := m.weighed(m.due(now, want.Destination, false), want.Bytes, m.weigh(groups...))
	return append(groups, free[:min(len(free), n-len(groups))]...)
}

// pick returns what is preferred of a destination.
func (m *Memory) pick(now time.Time, want journal.Want, n int) (chosen []*Delivery) {
	var all []journal.Choice
	for _, d := range append(m.due(now, want.Destination, true), m.due(now, want.Destination, false)...) {
		c := journal.Choice{EventID: d.EventID, OrderingGroup: d.Group, Untried: d.Tries == 0 && d.LastError == ""}
		if ev := m.events[d.EventID]; ev != nil {
			c.Class = journal.Class{Source: ev.source, Type: ev.kind, Resource: ev.resource}
		}
		all = append(all, c)
	}
	for _, c := range want.Choose(all, n) {
		chosen = append(chosen, m.deliveries[target{c.EventID, want.Destination}])
	}
	return m.weighed(chosen, want.Bytes, 0)
}

// weighed returns the first of some deliveries until there are bytes enough, with so many there already.
func (m *Memory) weighed(due []*Delivery, bytes, there int64) []*Delivery {
	for i, d := range due {
		if bytes > 0 && there >= bytes {
			return due[:i]
		}
		there += m.weigh(d)
	}
	return due
}

func (m *Memory) weigh(due ...*Delivery) (bytes int64) {
	for _, d := range due {
		if ev := m.events[d.EventID]; ev != nil {
			bytes += int64(len(ev.header) + len(ev.body))
		}
	}
	return bytes
}

// take leases what was chosen, as far as the bytes go.
func (m *Memory) take(due []*Delivery, want journal.Wanted, lease time.Time) (work []*journal.Work) {
	for _, d := range m.weighed(due, want.Bytes, 0) {
		ev := m.events[d.EventID]
		if ev == nil || !ev.hasBody {
			d.State, d.Due, d.LastError = journal.Dead, time.Time{}, journal.BodyGone
			d.Kind, d.Status = journal.ErrorBodyGone, 0
			continue
		}
		if d.State != journal.Processing {
			d.Tries++
		}
		d.State, d.Due = journal.Processing, lease
		d.Token++
		compare := slices.ContainsFunc(want.Destinations, func(w journal.Want) bool {
			return w.Destination == d.Destination && w.Stale
		})
		work = append(work, m.work(d, ev, compare))
	}
	return work
}

// work returns a delivery as its worker gets it.
func (m *Memory) work(d *Delivery, ev *event, compare bool) *journal.Work {
	w := &journal.Work{
		Held:   journal.Held{EventID: d.EventID, Destination: d.Destination, Token: d.Token},
		Source: ev.source, Key: ev.key, Type: ev.kind, Tries: d.Tries,
		Header: bytes.Clone(ev.header), Body: bytes.Clone(ev.body),
		ReceivedAt: ev.received, Lease: d.Due, Resource: ev.resource, Ordered: d.Group != "", Rank: ev.rank, Vouched: ev.vouched, Forced: d.Forced, Origin: d.Origin,
	}
	if n, ok := m.newest[group{d.Destination, w.Group()}]; ok && compare && !ev.rank.IsZero() {
		w.Stale = ev.rank.Kind == n.rank.Kind && ev.rank.N < n.rank.N
	}
	if first := m.events[ev.logicalDuplicateOf]; first != nil {
		w.LogicalDuplicateKey = first.key
	}
	return w
}

// due returns what can be taken at now for a destination, in ordering groups or not, oldest due first.
func (m *Memory) due(now time.Time, destination string, groups bool) []*Delivery {
	var due []*Delivery
	for _, d := range m.deliveries {
		open := d.State != journal.Dead && !d.Due.After(now)
		if open && d.Destination == destination && (d.Group != "") == groups && m.hasTurn(d) {
			due = append(due, d)
		}
	}
	slices.SortFunc(due, compareDue)
	return due
}

func compareDue(a, b *Delivery) int {
	return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.EventID, b.EventID), cmp.Compare(a.Destination, b.Destination))
}

// hasTurn reports whether no other delivery of its ordering group is before d: the one that is processing, or
// else the oldest that is not dead.
func (m *Memory) hasTurn(d *Delivery) bool {
	if d.Group == "" || d.State == journal.Processing {
		return true
	}
	for _, other := range m.deliveries {
		same := other.Destination == d.Destination && other.Group == d.Group && other.State != journal.Dead
		if same && (other.State == journal.Processing || other.EventID < d.EventID) {
			return false
		}
	}
	return true
}

// raise makes the rank of a delivery that is done the newest of its resource, unless that is newer.
func (m *Memory) raise(o journal.Outcome) {
	at := group{o.Destination, o.Group}
	if n, ok := m.newest[at]; !o.Rank.IsZero() && (!ok || o.Rank.Kind != n.rank.Kind || o.Rank.N > n.rank.N) {
		m.newest[at] = mark{o.Rank, o.EventID}
	}
}

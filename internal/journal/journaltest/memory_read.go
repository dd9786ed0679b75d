package journaltest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

var _ journal.Store = (*Memory)(nil)

// records is what Memory keeps for people.
type records struct {
	journal.Roster
	receipts  map[int64][]journal.DuplicateReceipt
	pauses    map[string]journal.Pause
	audits    []journal.Audit // in the order of their numbers, which count from 1
	lastAudit int64           // the last of these numbers
}

// List implements [journal.Store].
func (m *Memory) List(ctx context.Context, f journal.Filter, before int64, limit int) (journal.Page, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return journal.Page{}, err
	}
	first, last := f.Window()
	var page journal.Page
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(m.events))) {
		if id < first || id >= last || before != 0 && id >= before || !m.matches(id, f) {
			continue
		}
		if len(page.Events) == limit {
			page.Next = page.Events[limit-1].ID
			break
		}
		page.Events = append(page.Events, m.summary(id))
	}
	return page, nil
}

// Arrivals implements [journal.Store].
func (m *Memory) Arrivals(ctx context.Context, first int64, limit int) (all []journal.Arrival, err error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(m.events)) {
		if id >= first && len(all) < limit {
			all = append(all, journal.Arrival{ID: id, Source: m.events[id].source, Type: m.events[id].kind})
		}
	}
	return all, nil
}

// Summaries implements [journal.Store].
func (m *Memory) Summaries(ctx context.Context, ids []int64) (all []journal.Summary, err error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if m.events[id] != nil {
			all = append(all, m.summary(id))
		}
	}
	return all, nil
}

// matches reports whether an event is one that f wants, its time apart.
func (m *Memory) matches(id int64, f journal.Filter) bool {
	ev := m.events[id]
	return (f.Source == "" || f.Source == ev.source) &&
		f.MatchType(ev.kind) &&
		(f.Resource == "" || ev.resource == f.Resource || strings.Contains(ev.resource, journal.ResourcePart(f.Resource))) &&
		(f.Destination == "" || m.goesTo(id, f.Destination)) &&
		(f.State == "" && !f.ByError() || m.isIn(id, f)) &&
		(!f.Unrouted || ev.unrouted) &&
		(f.Seen == "" || slices.ContainsFunc(m.receipts[id], func(s journal.DuplicateReceipt) bool { return s.Kind == f.Seen }))
}

// goesTo reports whether the event was attempted at the destination, or is to be.
func (m *Memory) goesTo(id int64, destination string) bool {
	return m.deliveries[target{id, destination}] != nil || slices.ContainsFunc(m.attempts, func(o journal.Outcome) bool {
		return o.EventID == id && o.Destination == destination
	})
}

// isIn reports whether a delivery of the event, to the destination if one is named, is in the state of the filter, and
// failed as it says.
func (m *Memory) isIn(id int64, f journal.Filter) bool {
	open := slices.DeleteFunc(m.openOf(id), func(d journal.Delivery) bool {
		return f.Destination != "" && d.Destination != f.Destination
	})
	if f.State == journal.Done && !f.ByError() {
		return len(open) == 0
	}
	return slices.ContainsFunc(open, func(d journal.Delivery) bool {
		failed := !f.ByError() || (d.State == journal.Failed || d.State == journal.Dead) && f.MatchError(&d)
		return slices.Contains(f.Open(), d.State) && failed
	})
}

// openOf returns the open deliveries of an event, by destination.
func (m *Memory) openOf(id int64) []journal.Delivery {
	var open []journal.Delivery
	for _, d := range m.deliveries {
		if d.EventID == id {
			open = append(open, journal.Delivery{
				EventID: id, Destination: d.Destination, State: d.State, Token: d.Token, Tries: d.Tries,
				Due: d.Due, LastError: d.LastError, Kind: d.Kind, Status: d.Status, Forced: d.Forced, Group: d.Group,
			})
		}
	}
	slices.SortFunc(open, byDestination)
	return open
}

func byDestination(a, b journal.Delivery) int { return cmp.Compare(a.Destination, b.Destination) }

// finishedOf returns the deliveries of an event that are done, by destination, with their last tokens.
func (m *Memory) finishedOf(id int64) []journal.Delivery {
	last, done, ended := map[string]int64{}, map[string]bool{}, map[string]time.Time{}
	for _, o := range m.attempts {
		if o.EventID == id {
			last[o.Destination] = max(last[o.Destination], o.Token)
			done[o.Destination] = done[o.Destination] || o.State == journal.Done
			if at := o.Started.Add(o.Duration); o.State == journal.Done && at.After(ended[o.Destination]) {
				ended[o.Destination] = at
			}
		}
	}
	var finished []journal.Delivery
	for destination, token := range last {
		if done[destination] && m.deliveries[target{id, destination}] == nil {
			finished = append(finished, journal.Delivery{EventID: id, Destination: destination, State: journal.Done, Token: token, Ended: ended[destination]})
		}
	}
	slices.SortFunc(finished, byDestination)
	return finished
}

func (m *Memory) summary(id int64) journal.Summary {
	ev := m.events[id]
	return journal.Summary{
		ID: id, Source: ev.source, Key: ev.key, Type: ev.kind, ReceivedAt: ev.received,
		Resource: ev.resource, Rank: ev.rank.N, LogicalDuplicateOf: ev.logicalDuplicateOf, HasBody: ev.hasBody, Vouched: ev.vouched, Unrouted: ev.unrouted, Listed: ev.listed, Deliveries: m.openOf(id),
	}
}

// Contents implements [journal.Store].
func (m *Memory) Contents(ctx context.Context, ids []int64, see func(id int64, header, body []byte) error) error {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if ev := m.events[id]; ev != nil && ev.hasBody {
			if err := see(id, slices.Clone(ev.header), slices.Clone(ev.body)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Find implements [journal.Store].
func (m *Memory) Find(ctx context.Context, source, key string) (int64, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return 0, err
	}
	id, ok := m.keys[ref{source, key}]
	if !ok || key == "" {
		return 0, journal.ErrNoEvent
	}
	return id, nil
}

// FindAnywhere implements [journal.Store].
func (m *Memory) FindAnywhere(ctx context.Context, key string) (all []journal.Summary, err error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	for r, id := range m.keys {
		if r.key == key && key != "" {
			all = append(all, m.summary(id))
		}
	}
	if all == nil {
		return nil, journal.ErrNoEvent
	}
	slices.SortFunc(all, func(a, b journal.Summary) int { return cmp.Compare(b.ID, a.ID) })
	return all, nil
}

// History implements [journal.Store].
func (m *Memory) History(ctx context.Context, id int64) (*journal.History, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	if m.events[id] == nil {
		return nil, journal.ErrNoEvent
	}
	h := &journal.History{Summary: m.summary(id), Size: int64(len(m.events[id].body)), Finished: m.finishedOf(id)}
	for _, o := range m.attempts {
		if o.EventID == id {
			h.Attempts = append(h.Attempts, journal.Attempt{
				Destination: o.Destination, Token: o.Token, State: o.State, Status: o.Status, Error: o.Error, Kind: o.Kind,
				Started: o.Started, Duration: o.Duration, Excerpt: o.KeptExcerpt(),
			})
		}
	}
	slices.SortStableFunc(h.Attempts, func(a, b journal.Attempt) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.Token, b.Token))
	})
	h.Attempts = h.Attempts[max(0, len(h.Attempts)-journal.MaxAttempts):]
	h.Duplicates = slices.Clone(m.receipts[id])
	slices.SortFunc(h.Duplicates, func(a, b journal.DuplicateReceipt) int {
		return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.Kind, b.Kind))
	})
	return h, nil
}

// Open implements [journal.Store].
func (m *Memory) Open(ctx context.Context) ([]journal.OpenCount, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	return m.backlog(), nil
}

// receivedAt is when an event was received; zero if there is a delivery of it alone.
func (m *Memory) receivedAt(id int64) (at time.Time) {
	if ev := m.events[id]; ev != nil {
		at = ev.received
	}
	return at
}

// backlog is what [Memory.Open] returns.
func (m *Memory) backlog() (open []journal.OpenCount) {
	type group struct {
		destination string
		state       journal.State
	}
	type sum struct {
		n, oldest, accepted int64
		replayed            time.Time
	}
	all := map[group]*sum{}
	for _, d := range m.deliveries {
		g := group{d.Destination, d.State}
		if all[g] == nil {
			all[g] = &sum{oldest: d.EventID}
		}
		s := all[g]
		s.n++
		s.oldest = min(s.oldest, d.EventID)
		switch at := d.WaitsSince; {
		case at.IsZero() || d.State == journal.Dead:
			if s.accepted == 0 || d.EventID < s.accepted {
				s.accepted = d.EventID
			}
		case s.replayed.IsZero() || at.Before(s.replayed):
			s.replayed = at
		}
	}
	for g, s := range all {
		open = append(open, journal.OpenCount{Destination: g.destination, State: g.state, Count: s.n,
			Oldest: journal.AcceptedAt(s.oldest, m.receivedAt(s.oldest)), Since: journal.WaitsSince(s.accepted, m.receivedAt(s.accepted), s.replayed)})
	}
	slices.SortFunc(open, func(a, b journal.OpenCount) int {
		return cmp.Or(cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.State, b.State))
	})
	return open
}

// RecordDuplicates implements [journal.Store].
func (m *Memory) RecordDuplicates(ctx context.Context, seen []journal.DuplicateReceipt) error {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return err
	}
	if m.receipts == nil {
		m.receipts = map[int64][]journal.DuplicateReceipt{}
	}
	for _, s := range seen {
		if m.events[s.EventID] == nil {
			continue
		}
		kept := m.receipts[s.EventID]
		if last := latest(kept, s.Kind); last != nil {
			last.Copies += s.Copies
			last.Last = laterOf(last.Last, s.Last)
			continue
		}
		m.receipts[s.EventID] = append(kept, s)
	}
	return nil
}

// latest returns the duplicate receipt that sums up what comes later, nil if there is room for another one.
func latest(kept []journal.DuplicateReceipt, kind journal.ReceiptKind) *journal.DuplicateReceipt {
	n := 0
	for i := range kept {
		if kept[i].Kind != kind {
			continue
		}
		if n++; n == journal.MaxReceipts {
			return &kept[i]
		}
	}
	return nil
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

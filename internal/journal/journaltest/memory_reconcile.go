package journaltest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Known implements [journal.Store].
func (m *Memory) Known(ctx context.Context, source string, keys []string) (map[string]journal.Known, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	if keys, err = journal.Askable(source, keys); err != nil {
		return nil, err
	}
	known := map[string]journal.Known{}
	for _, key := range keys {
		id, ok := m.keys[ref{source, key}]
		if !ok {
			continue
		}
		ev, delivered := m.events[id], id
		if ev.dropped {
			delivered = ev.logicalDuplicateOf
		}
		var open []journal.State
		for _, d := range m.openOf(delivered) {
			open = append(open, d.State)
		}
		known[key] = journal.Known{ID: id, ReceivedAt: ev.received, Listed: ev.listed, Verified: ev.verified, State: journal.Standing(open)}
	}
	return known, nil
}

// KnownElsewhere implements [journal.Store].
func (m *Memory) KnownElsewhere(ctx context.Context, source string, strangers, keys []string) (map[string]journal.Elsewhere, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	if keys, err = journal.Askable(source, keys); err != nil {
		return nil, err
	}
	found := map[string]journal.Elsewhere{}
	for r, id := range m.keys {
		at := m.events[id].received
		if slices.Contains(keys, r.key) && r.source != source && !slices.Contains(strangers, r.source) && !at.Before(found[r.key].ReceivedAt) {
			found[r.key] = journal.Elsewhere{Source: r.source, ReceivedAt: at}
		}
	}
	return found, nil
}

// HasBefore implements [journal.Store].
func (m *Memory) HasBefore(ctx context.Context, source string, before time.Time) (bool, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return false, err
	}
	ids := slices.Sorted(maps.Keys(m.events))
	if i, _ := slices.BinarySearch(ids, journal.FirstID(before)); i >= 0 {
		ids = ids[max(0, i-journal.MaxScan):i]
	}
	return slices.ContainsFunc(ids, func(id int64) bool { return m.events[id].source == source }), nil
}

// TakeMark implements [journal.Store].
func (m *Memory) TakeMark(ctx context.Context, source, holder string, now, lease time.Time) (journal.Mark, bool, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return journal.Mark{}, false, err
	}
	mark := m.marks[source]
	if mark == nil {
		mark = &journal.Mark{Source: source}
		m.marks[source] = mark
	}
	if mark.Held(holder, now, lease) {
		return *mark, false, nil
	}
	mark.Token++
	mark.Holder, mark.Lease = holder, lease
	return *mark, true, nil
}

// heldMark returns the mark of a source if the token is current, or nil.
func (m *Memory) heldMark(source string, token int64) *journal.Mark {
	if mark := m.marks[source]; mark != nil && mark.Holder != "" && mark.Token == token {
		return mark
	}
	return nil
}

// AdvanceMark implements [journal.Store].
func (m *Memory) AdvanceMark(ctx context.Context, source string, token int64, a journal.MarkAdvance) (bool, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return false, err
	}
	mark := m.heldMark(source, token)
	if mark == nil {
		return false, nil
	}
	if mark.Lease = a.Lease; a.Back && !a.Through.IsZero() {
		mark.Through = a.Through
	}
	mark.Through = laterOf(mark.Through, a.Through)
	if a.Found != nil {
		m.keepMissing(source, a.Found)
	}
	return true, nil
}

// ReleaseMark implements [journal.Store].
func (m *Memory) ReleaseMark(ctx context.Context, source string, token int64, r journal.MarkResult) (bool, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return false, err
	}
	mark := m.heldMark(source, token)
	if mark == nil {
		return false, nil
	}
	mark.Holder, mark.Lease, mark.Last = "", time.Time{}, r.Kept()
	return true, nil
}

// Marks implements [journal.Store].
func (m *Memory) Marks(ctx context.Context) (all []journal.Mark, err error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	for _, mark := range m.marks {
		all = append(all, *mark)
	}
	slices.SortFunc(all, func(a, b journal.Mark) int { return cmp.Compare(a.Source, b.Source) })
	return all, nil
}

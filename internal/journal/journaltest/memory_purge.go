package journaltest

import (
	"context"
	"maps"
	"slices"

	"github.com/hookonce/hookonce/internal/journal"
)

// Purge implements [journal.Store].
func (m *Memory) Purge(ctx context.Context, p journal.Purge) (journal.Purged, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return journal.Purged{}, err
	}
	switch p.Kind {
	case journal.KindRanks:
		before := len(m.newest)
		after, end := p.Range()
		maps.DeleteFunc(m.newest, func(_ group, n mark) bool {
			ev := m.events[n.event]
			return n.event > after && n.event < end && !(p.Ahead && ev != nil && !ev.received.Before(p.Before))
		})
		return journal.Purged{Deleted: before - len(m.newest), Next: p.After}, nil
	case journal.KindAudits:
		return m.purgeAudits(&p), nil
	}
	old, purged := p.Choose(p.Aged(m.found(&p)))
	for _, id := range old {
		purged.Deleted += m.purge(p.Kind, id)
	}
	return purged, nil
}

// purgeAudits forgets the oldest records. The others keep their numbers.
func (m *Memory) purgeAudits(p *journal.Purge) journal.Purged {
	n := 0
	for n < len(m.audits) && n < p.Limit && m.audits[n].At.Before(p.Before) {
		n++
	}
	m.audits = m.audits[n:]
	return journal.Purged{Deleted: n, Next: p.After, More: n > 0 && n == p.Limit}
}

// found returns the events that have something of the kind, oldest first.
func (m *Memory) found(p *journal.Purge) (found []journal.Found) {
	after, end := p.Range()
	for _, id := range slices.Sorted(maps.Keys(m.events)) {
		ev := m.events[id]
		in := id < end
		if !p.Ahead { // what the range says of identifiers, of times before 2020 as well, when there are none
			in = ev.received.Before(p.Before)
		}
		if id <= after || !in || !m.has(p.Kind, id) || len(found) == p.Look() {
			continue
		}
		found = append(found, journal.Found{ID: id, Source: ev.source, Open: len(m.openOf(id)) > 0, Received: ev.received})
	}
	return found
}

func (m *Memory) has(kind journal.Kind, id int64) bool {
	switch kind {
	case journal.KindBodies:
		return m.events[id].hasBody
	case journal.KindAttempts:
		return slices.ContainsFunc(m.attempts, func(o journal.Outcome) bool { return o.EventID == id })
	case journal.KindAnswers:
		return slices.ContainsFunc(slices.Collect(maps.Keys(m.answers)), func(t target) bool { return t.event == id })
	}
	return true
}

// purge deletes a kind of an event and returns how many rows that are.
func (m *Memory) purge(kind journal.Kind, id int64) (n int) {
	ev := m.events[id]
	switch kind {
	case journal.KindBodies:
		ev.hasBody, ev.header, ev.body = false, nil, nil
		return 1
	case journal.KindAttempts:
		before := len(m.attempts)
		m.attempts = slices.DeleteFunc(m.attempts, func(o journal.Outcome) bool { return o.EventID == id })
		return before - len(m.attempts)
	case journal.KindAnswers:
		before := len(m.answers)
		maps.DeleteFunc(m.answers, func(t target, _ journal.Response) bool { return t.event == id })
		return before - len(m.answers)
	}
	m.purge(journal.KindAttempts, id)
	m.purge(journal.KindAnswers, id)
	delete(m.events, id)
	delete(m.keys, ref{ev.source, ev.key})
	delete(m.receipts, id)
	maps.DeleteFunc(m.logical, func(_ ref, owner int64) bool { return owner == id })
	return 1
}

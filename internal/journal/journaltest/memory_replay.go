package journaltest

import (
	"context"
	"maps"
	"slices"

	"github.com/hookonce/hookonce/internal/journal"
)

// Replay implements [journal.Store].
func (m *Memory) Replay(ctx context.Context, r journal.Replay, limit int) (journal.Replayed, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return journal.Replayed{}, err
	}
	n, audit := 0, r.Audit
	if !r.DryRun {
		begun, err := r.Begun(func() (found []journal.Audit, err error) {
			if a := m.auditOf(audit); a != nil {
				found = append(found, *a)
			}
			return found, nil
		})
		if err != nil {
			return journal.Replayed{}, err
		}
		n = int(begun.Count)
	}
	found, next := m.candidates(&r, limit)
	plan := r.Plan(found, n)
	plan.Next = next
	if r.DryRun || plan.Idle(&r) {
		return plan.Replayed, nil
	}
	for _, d := range plan.Redrive {
		open := m.deliveries[target{d.EventID, d.Destination}]
		if open.State == journal.Dead {
			open.WaitsSince = d.WaitsSince
		}
		open.State, open.Tries, open.Due, open.Origin = d.State, 0, d.Due, journal.OriginReplayed
	}
	for _, d := range plan.Create {
		m.deliveries[target{d.EventID, d.Destination}] = &Delivery{
			EventID: d.EventID, Destination: d.Destination, State: d.State, Token: d.Token, Due: d.Due,
			Forced: true, Origin: journal.OriginReplayed, Group: d.Group, WaitsSince: d.WaitsSince,
		}
	}
	if audit == 0 {
		audit = m.audit(r.Record())
	}
	m.auditOf(audit).Count += int64(plan.Deliveries)
	plan.Audit = audit
	return plan.Replayed, nil
}

func (m *Memory) audit(a journal.Audit) int64 {
	m.lastAudit++
	a.ID = m.lastAudit
	m.audits = append(m.audits, a)
	return a.ID
}

// auditOf returns the record with a number, or nil.
func (m *Memory) auditOf(id int64) *journal.Audit {
	for i := range m.audits {
		if m.audits[i].ID == id {
			return &m.audits[i]
		}
	}
	return nil
}

// candidates returns the next events that the replay looks at, at most limit, and where it goes on.
func (m *Memory) candidates(r *journal.Replay, limit int) (found []journal.Candidate, next int64) {
	first, last := r.Window()
	states, all := r.Scope()
	for _, id := range slices.Sorted(maps.Keys(m.events)) {
		if id < first || id >= last || r.Only != nil && !slices.Contains(r.Only, id) {
			continue
		}
		wanted := slices.ContainsFunc(m.openOf(id), func(d journal.Delivery) bool {
			return slices.Contains(states, d.State) && r.MatchError(&d) && (r.Destination == "" || r.Destination == d.Destination)
		})
		if !m.chosen(id, r.Filter) || !all && !wanted {
			continue
		}
		if len(found) == limit {
			return found, found[limit-1].ID
		}
		ev := m.events[id]
		found = append(found, journal.Candidate{
			ID: id, Source: ev.source, Key: ev.key, Resource: ev.resource, HasBody: ev.hasBody,
			Deliveries: slices.Concat(m.openOf(id), m.finishedOf(id)),
		})
	}
	return found, 0
}

// chosen reports whether a replay looks at an event, its deliveries apart.
func (m *Memory) chosen(id int64, f journal.Filter) bool {
	f.State, f.Destination, f.Error, f.Status = "", "", "", 0
	return m.matches(id, f)
}

// SetPaused implements [journal.Store].
func (m *Memory) SetPaused(ctx context.Context, p journal.Pause, paused bool) (changed bool, err error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return false, err
	}
	if _, is := m.pauses[p.Destination]; is == paused {
		return false, nil
	}
	if paused {
		if m.pauses == nil {
			m.pauses = map[string]journal.Pause{}
		}
		m.pauses[p.Destination] = p
	} else {
		delete(m.pauses, p.Destination)
	}
	m.audit(p.Record(paused))
	return true, nil
}

// Pauses implements [journal.Store].
func (m *Memory) Pauses(ctx context.Context) ([]journal.Pause, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	var pauses []journal.Pause
	for _, name := range slices.Sorted(maps.Keys(m.pauses)) {
		pauses = append(pauses, m.pauses[name])
	}
	return pauses, nil
}

// RecordAudit implements [journal.Store].
func (m *Memory) RecordAudit(ctx context.Context, a journal.Audit) error {
	end, err := m.begin(ctx)
	defer end()
	if err == nil {
		m.audit(a)
	}
	return err
}

// Audits implements [journal.Store].
func (m *Memory) Audits(ctx context.Context, before int64, limit int) ([]journal.Audit, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	var audits []journal.Audit
	for _, a := range slices.Backward(m.audits) {
		if before != 0 && a.ID >= before || len(audits) == limit {
			continue
		}
		audits = append(audits, a)
	}
	return audits, nil
}

package journaltest

import (
	"bytes"
	"context"

	"github.com/hookonce/hookonce/internal/journal"
)

// Statuses implements [journal.Store].
func (m *Memory) Statuses(ctx context.Context, targets []journal.DeliveryID) ([]journal.DeliveryStatus, error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	standings := make([]journal.DeliveryStatus, len(targets))
	for i, t := range targets {
		at := target{t.EventID, t.Destination}
		switch d := m.deliveries[at]; {
		case d != nil:
			standings[i].State = d.State
		case m.events[t.EventID] != nil:
			standings[i].State = journal.Done
		default:
			standings[i].State = journal.Absent
		}
		if a, ok := m.answers[at]; ok {
			standings[i].Response = &a
		}
	}
	return standings, nil
}

// keep stores the reply of an outcome.
func (m *Memory) keep(o journal.Outcome) {
	if o.Response != nil {
		m.answers[target{o.EventID, o.Destination}] = journal.Response{
			Status: o.Response.Status, Header: bytes.Clone(o.Response.Header), Body: bytes.Clone(o.Response.Body),
		}
	}
}

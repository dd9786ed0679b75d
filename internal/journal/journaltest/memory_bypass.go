package journaltest

import (
	"context"

	"github.com/hookonce/hookonce/internal/journal"
)

// RecordBypassed implements [journal.Store].
func (m *Memory) RecordBypassed(ctx context.Context, outcomes []journal.Outcome) error {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		m.recordBypassed(o)
	}
	return nil
}

func (m *Memory) recordBypassed(o journal.Outcome) {
	d := m.deliveries[target{o.EventID, o.Destination}]
	if d == nil {
		d = &Delivery{EventID: o.EventID, Destination: o.Destination}
		for _, a := range m.attempts {
			if a.EventID != o.EventID || a.Destination != o.Destination {
				continue
			}
			if a.State == journal.Done && a.Started.Equal(o.Started) {
				return
			}
			d.Token = max(d.Token, a.Token)
		}
	}
	o.Token, o.State = d.Token+1, journal.Done
	m.finish(d, o)
}

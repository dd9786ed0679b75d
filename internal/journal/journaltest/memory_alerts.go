package journaltest

import (
	"context"

	"github.com/hookonce/hookonce/internal/journal"
)

// ChangeAlerts implements [journal.Store].
func (m *Memory) ChangeAlerts(ctx context.Context, try bool, change func(*journal.AlertBook) (*journal.AlertChanges, error)) (bool, error) {
	var audits []journal.Audit
	changed, err := m.AlertMemory.ChangeAlerts(ctx, try, func(b *journal.AlertBook) (*journal.AlertChanges, error) {
		c, err := change(b)
		if err == nil && c != nil {
			audits = c.Audits
		}
		return c, err
	})
	if err != nil {
		return changed, err
	}
	end, err := m.begin(ctx)
	defer end()
	for _, a := range audits {
		m.audit(a)
	}
	return changed, err
}

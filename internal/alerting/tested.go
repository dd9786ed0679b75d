package alerting

import (
	"context"

	"github.com/hookonce/hookonce/internal/journal"
)

// Tested puts on record that somebody had a test message sent to an address.
func (d *Desk) Tested(ctx context.Context, address, by, reason string) error {
	_, err := d.Store.ChangeAlerts(ctx, false, func(*journal.AlertBook) (*journal.AlertChanges, error) {
		return &journal.AlertChanges{Audits: []journal.Audit{{At: d.Now(), By: by, Reason: reason, Action: journal.ActionTest, Filter: address}}}, nil
	})
	return err
}

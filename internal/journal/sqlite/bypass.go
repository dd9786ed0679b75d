package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/hookonce/hookonce/internal/journal"
)

// RecordBypassed implements [journal.Store].
func (s *Store) RecordBypassed(ctx context.Context, outcomes []journal.Outcome) error {
	if len(outcomes) == 0 {
		return ctx.Err()
	}
	return s.write(ctx, "recording what was delivered past the store", func(w *writer) error {
		for i := range outcomes {
			if err := w.recordBypassed(outcomes[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// recordBypassed ends one delivery.
func (w *writer) recordBypassed(o journal.Outcome) error {
	var resource any
	open, known := false, false // known: this attempt is on record
	o.State = journal.Done
	err := w.end.query(func(row []driver.Value) error {
		o.Token, resource, open = row[0].(int64)+1, row[1], true
		return nil
	}, o.EventID, o.Destination)
	if err == nil && !open {
		err = w.tried.query(func(row []driver.Value) error {
			o.Token, known = row[0].(int64)+1, row[1].(int64) != 0
			return nil
		}, o.EventID, o.Destination, o.Started.UnixMicro())
	}
	if err == nil && resource != nil {
		err = w.passTurn(&o, resource)
	}
	if err != nil || known {
		return err
	}
	return w.ended(&o)
}

// passTurn has an ordering group looked at that a delivery has left.
func (w *writer) passTurn(o *journal.Outcome, resource any) error {
	at := o.Started.UnixMicro()
	if _, err := w.freeGroup.exec(o.Destination, resource, o.EventID, at); err != nil {
		return err
	}
	_, err := w.openGroup.exec(o.Destination, resource, at)
	return err
}

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
)

// Enqueue implements [hookonce.Outbox].
func (s *Store) Enqueue(ctx context.Context, tx *sql.Tx, e hookonce.Effect) error {
	if err := e.Validate(); err != nil {
		return err
	}
	now, step := s.now(), cmp.Or(e.Step, e.Name)
	due := now
	if !e.Due.IsZero() {
		due = instant(e.Due)
	}
	n, err := affected(run(ctx, tx, s.dialect.enqueue, e.Source, sql.NullString{String: e.Key, Valid: e.Key != ""},
		step, e.Name, present(e.Payload), s.dialect.time(due), s.dialect.time(now)))
	if s.dialect.exists(err) || (err == nil && n == 0) {
		err = hookonce.ErrEffectExists
	}
	if err != nil {
		return fmt.Errorf("sqlstore: effect %q of %s: %w", step, e.Ref, s.explain(ctx, tx, err))
	}
	return nil
}

// instant returns t in the resolution that databases keep.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// row is a row of the outbox.
type row struct {
	hookonce.QueuedEffect
	due time.Time // while it is processing: when the lease ends
}

// fields are the destinations for effectColumns.
func (r *row) fields() []any {
	return []any{
		&r.ID, &r.Source, &r.Key, &r.Step, &r.Name, &r.Payload, &r.State, &r.Token, &r.Tries, &r.Deaths,
		stamp{&r.due}, stamp{&r.EnqueuedAt}, &r.LastError,
	}
}

// effect returns the row as callers get it.
func (r *row) effect() hookonce.QueuedEffect {
	if r.State == hookonce.StateProcessing {
		r.Lease = r.due
	} else {
		r.Due = r.due
	}
	return r.QueuedEffect
}

// effects runs a query for rows of the outbox.
func effects(ctx context.Context, q querier, s statement, args ...any) ([]hookonce.QueuedEffect, error) {
	var found []hookonce.QueuedEffect
	err := each(ctx, q, s, args, func(scan func(...any) error) error {
		var r row
		if err := scan(r.fields()...); err != nil {
			return err
		}
		found = append(found, r.effect())
		return nil
	})
	return found, err
}

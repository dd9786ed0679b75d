package pgstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5"
)

// Enqueue implements [hookonce.Outbox] in one round trip. It waits for another transaction that stored an
// effect of the same event and step as long as the caller's lock_timeout lets it. Under REPEATABLE READ
// and SERIALIZABLE it fails with SQLSTATE 40001 if that one committed: roll back and try again.
func (s *Store) Enqueue(ctx context.Context, tx pgx.Tx, e hookonce.Effect) error {
	if err := e.Validate(); err != nil {
		return err
	}
	e.Step = cmp.Or(e.Step, e.Name)
	now := s.now()
	due := instant(e.Due)
	if due.IsZero() {
		due = now
	}
	tag, err := tx.Exec(ctx, s.sql.enqueue, e.Source, e.Key, e.Step, e.Name, present(e.Payload), due, now)
	if err == nil && tag.RowsAffected() == 0 {
		err = hookonce.ErrEffectExists
	}
	if err != nil {
		return fmt.Errorf("pgstore: enqueue effect %q of %s: %w", e.Step, e.Ref, explain(err))
	}
	return nil
}

// enqueueSQL affects no row if the event has an effect with that step. An effect without a key never
// meets another one, because null is not equal to null.
const enqueueSQL = `
INSERT INTO {effects} (source, key, step, name, payload, due_at, enqueued_at, updated_at)
VALUES ($1::text, nullif($2::text, ''), $3::text, $4::text, $5::bytea, $6::timestamptz, $7::timestamptz, $7::timestamptz)
ON CONFLICT (source, key, step) DO NOTHING`

// effectColumns are what effectRecord reads, in its order.
const effectColumns = `id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error`

// effectRecord is a row of the outbox as a statement returns it.
type effectRecord struct {
	effect hookonce.QueuedEffect
	state  string
	due    *time.Time // the end of the lease while it is processing
}

// fields are the places to scan effectColumns into.
func (r *effectRecord) fields() []any {
	e := &r.effect
	return []any{&e.ID, &e.Source, &e.Key, &e.Step, &e.Name, &e.Payload, &r.state, &e.Token, &e.Tries, &e.Deaths, &r.due, &e.EnqueuedAt, &e.LastError}
}

func (r *effectRecord) queued() hookonce.QueuedEffect {
	e := r.effect
	e.State, e.EnqueuedAt = hookonce.State(r.state), e.EnqueuedAt.UTC()
	switch {
	case r.due == nil:
	case e.State == hookonce.StateProcessing:
		e.Lease = r.due.UTC()
	default:
		e.Due = r.due.UTC()
	}
	return e
}

// queuedEffects reads all rows of effectColumns.
func queuedEffects(rows pgx.Rows, err error) ([]hookonce.QueuedEffect, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (hookonce.QueuedEffect, error) {
		var r effectRecord
		err := row.Scan(r.fields()...)
		return r.queued(), err
	})
}

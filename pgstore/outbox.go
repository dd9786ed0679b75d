package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
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
	tag, err := tx.Exec(ctx, s.sql.Enqueue, e.Source, e.Key, e.Step, e.Name, claimsql.Present(e.Payload), due, now)
	if err == nil && tag.RowsAffected() == 0 {
		err = hookonce.ErrEffectExists
	}
	if err != nil {
		return fmt.Errorf("pgstore: enqueue effect %q of %s: %w", e.Step, e.Ref, explain(err))
	}
	return nil
}

// TakeEffects implements [hookonce.EffectQueue] in one round trip. While it runs it locks up to limit due
// effects of each name; another caller passes over them, and may get fewer than there are.
func (s *Store) TakeEffects(ctx context.Context, req hookonce.TakeRequest) ([]hookonce.QueuedEffect, error) {
	if req.Lease <= 0 {
		return nil, fmt.Errorf("pgstore: take effects for %v: the lease must be positive", req.Lease)
	}
	if req.Limit <= 0 || len(req.Names) == 0 {
		return nil, ctx.Err()
	}
	var taken []hookonce.QueuedEffect
	err := s.again(ctx, func() (err error) {
		now := s.now()
		taken, err = queuedEffects(s.pool.Query(ctx, s.sql.Take, req.Names, now, req.Limit, instant(now.Add(req.Lease)), max(req.Suspects, 0)))
		return inTime(ctx, err)
	})
	if err != nil {
		return nil, fmt.Errorf("pgstore: take effects: %w", explain(err))
	}
	return taken, nil
}

// CompleteEffect implements [hookonce.EffectQueue].
func (s *Store) CompleteEffect(ctx context.Context, e hookonce.QueuedEffect) error {
	return wrap("complete effect", e.ID, s.changeEffect(ctx, e, effectChange{state: hookonce.StateDone}, hookonce.StateDone))
}

// FailEffect implements [hookonce.EffectQueue].
func (s *Store) FailEffect(ctx context.Context, e hookonce.QueuedEffect, f hookonce.Failure, retry time.Time) error {
	text := f.Text()
	to := effectChange{state: f.State(), text: &text}
	if !f.Dead {
		retry = instant(retry)
		to.due = &retry
	}
	return wrap("fail effect", e.ID, s.changeEffect(ctx, e, to, hookonce.StateFailed, hookonce.StateDead))
}

// ExtendEffect implements [hookonce.EffectQueue].
func (s *Store) ExtendEffect(ctx context.Context, e hookonce.QueuedEffect, d time.Duration) (hookonce.QueuedEffect, error) {
	if d <= 0 {
		return hookonce.QueuedEffect{}, fmt.Errorf("pgstore: extend effect %d by %v: the duration must be positive", e.ID, d)
	}
	e.State, e.Lease = hookonce.StateProcessing, instant(s.now().Add(d))
	if err := s.changeEffect(ctx, e, effectChange{state: e.State, due: &e.Lease, lease: d}); err != nil {
		return hookonce.QueuedEffect{}, wrap("extend effect", e.ID, err)
	}
	return e, nil
}

// effectChange is what becomes of an effect that is processing.
type effectChange struct {
	state hookonce.State
	due   *time.Time    // see effectRecord
	text  *string       // the last error; nil: as it was
	lease time.Duration // while processing
}

// changeEffect applies to while e's token is current. An effect that the token left in one of the states of
// repeats stays as it is.
func (s *Store) changeEffect(ctx context.Context, e hookonce.QueuedEffect, to effectChange, repeats ...hookonce.State) error {
	return s.settle(ctx, e.Token, repeats, func() (row standing, err error) {
		var state string
		err = s.urgent(ctx, patience(to.lease), func(on asker) error {
			return inTime(ctx, on.QueryRow(ctx, s.sql.ChangeEffect, e.ID, e.Token, string(to.state), to.due, to.text, s.now()).
				Scan(&row.applied, &state, &row.token))
		})
		row.state = hookonce.State(state)
		return row, err
	})
}

// Effects implements [hookonce.EffectAdmin].
func (s *Store) Effects(ctx context.Context, state hookonce.State, after int64, limit int) ([]hookonce.QueuedEffect, error) {
	text, known := s.sql.Effects[string(state)]
	if !known || limit <= 0 {
		return nil, ctx.Err()
	}
	found, err := queuedEffects(s.pool.Query(ctx, text, after, limit))
	if err != nil {
		return nil, fmt.Errorf("pgstore: list effects: %w", explain(err))
	}
	return found, nil
}

// RedriveEffect implements [hookonce.EffectAdmin].
func (s *Store) RedriveEffect(ctx context.Context, id int64) error {
	return wrap("redrive effect", id, s.again(ctx, func() error {
		var redriven bool
		var state string
		err := s.pool.QueryRow(ctx, s.sql.Redrive, id, s.now()).Scan(&redriven, &state)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return hookonce.ErrNotFound
		case err == nil && !redriven:
			return fmt.Errorf("it is %s, or was changed at the same moment: %w", state, hookonce.ErrStale)
		}
		return err
	}))
}

// effectRecord is a row of the outbox as a statement returns it.
type effectRecord struct {
	effect hookonce.QueuedEffect
	state  string
	due    *time.Time // the end of the lease while it is processing
}

// fields are the places to scan [claimsql.EffectColumns] into.
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

// queuedEffects reads all rows.
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

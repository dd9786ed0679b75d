package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5"
)

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
		taken, err = queuedEffects(s.pool.Query(ctx, s.sql.take, req.Names, now, req.Limit, instant(now.Add(req.Lease)), max(req.Suspects, 0)))
		return err
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

// Effects implements [hookonce.EffectQueue].
func (s *Store) Effects(ctx context.Context, state hookonce.State, after int64, limit int) ([]hookonce.QueuedEffect, error) {
	text, known := s.sql.effects[state]
	if !known || limit <= 0 {
		return nil, ctx.Err()
	}
	found, err := queuedEffects(s.pool.Query(ctx, text, after, limit))
	if err != nil {
		return nil, fmt.Errorf("pgstore: list effects: %w", explain(err))
	}
	return found, nil
}

// ReviveEffect implements [hookonce.EffectQueue].
func (s *Store) ReviveEffect(ctx context.Context, id int64) error {
	return wrap("revive effect", id, s.again(ctx, func() error {
		var revived bool
		var state string
		err := s.pool.QueryRow(ctx, s.sql.reviveEffect, id, s.now()).Scan(&revived, &state)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return hookonce.ErrNotFound
		case err == nil && !revived:
			return fmt.Errorf("it is %s, or was changed at the same moment: %w", state, hookonce.ErrStale)
		}
		return err
	}))
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
			return on.QueryRow(ctx, s.sql.changeEffect, e.ID, e.Token, string(to.state), to.due, to.text, s.now()).
				Scan(&row.applied, &state, &row.token)
		})
		row.state = hookonce.State(state)
		return row, err
	})
}

// takeSQL looks at each name by itself, so that a long queue of one costs what is taken of it and not
// what waits. Effects that another caller is taking are passed over.
const takeSQL = `
WITH fresh AS MATERIALIZED (
	SELECT e.id AS due_id, e.due_at AS since
	FROM (SELECT DISTINCT unnest($1::text[]) AS name) AS asked CROSS JOIN LATERAL (
		SELECT id, due_at FROM {effects} WHERE name = asked.name AND due_at <= $2::timestamptz AND state <> 'processing'
		ORDER BY due_at, id LIMIT $3::bigint FOR UPDATE SKIP LOCKED
	) AS e
	ORDER BY since, due_id LIMIT $3::bigint
), suspects AS MATERIALIZED (
	SELECT id AS due_id, due_at AS since FROM {effects}
	WHERE state = 'processing' AND name = ANY ($1::text[]) AND due_at <= $2::timestamptz
	ORDER BY due_at, id LIMIT $5::bigint FOR UPDATE SKIP LOCKED
), due AS (
	SELECT * FROM fresh UNION ALL SELECT * FROM suspects ORDER BY since, due_id LIMIT $3::bigint
), taken AS (
	UPDATE {effects} AS effects SET state = 'processing', token = token + 1,
		tries = tries + CASE WHEN state = 'processing' THEN 0 ELSE 1 END,
		deaths = deaths + CASE WHEN state = 'processing' THEN 1 ELSE 0 END, due_at = $4::timestamptz, updated_at = $2::timestamptz
	FROM due WHERE effects.id = due_id
	RETURNING effects.*, since
)
SELECT {effect} FROM taken ORDER BY since, id`

// changeEffectSQL changes an effect that is processing under the given token, and returns whether it did
// and how the effect stands.
const changeEffectSQL = `
WITH changed AS (
	UPDATE {effects} SET state = $3::text, deaths = CASE WHEN $3::text = 'processing' THEN deaths ELSE 0 END, due_at = $4::timestamptz, last_error = coalesce($5::text, last_error), updated_at = $6::timestamptz
	WHERE id = $1::bigint AND token = $2::bigint AND state = 'processing'
	RETURNING state, token
)
SELECT true, state, token FROM changed
UNION ALL
SELECT false, state, token FROM {effects} WHERE id = $1::bigint AND NOT EXISTS (SELECT 1 FROM changed)`

// effectsSQL has the state in its text, so that the server can tell which index knows all such effects:
// done ones, which are nearly all, are in none but that of the numbers.
const effectsSQL = `SELECT {effect} FROM {effects} WHERE {condition} AND id > $1::bigint ORDER BY id LIMIT $2::bigint`

// effectLists returns effectsSQL for each state.
func effectLists(fill func(string) string) map[hookonce.State]string {
	lists := map[hookonce.State]string{}
	for state, condition := range map[hookonce.State]string{
		hookonce.StatePending:    `state = 'pending' AND due_at IS NOT NULL`,
		hookonce.StateProcessing: `state = 'processing' AND due_at IS NOT NULL`,
		hookonce.StateFailed:     `state = 'failed' AND due_at IS NOT NULL`,
		hookonce.StateDead:       `state = 'dead'`,
		hookonce.StateDone:       `state = 'done'`,
	} {
		lists[state] = fill(strings.ReplaceAll(effectsSQL, "{condition}", condition))
	}
	return lists
}

// reviveEffectSQL returns whether it revived the effect, and the state before.
const reviveEffectSQL = `
WITH revived AS (
	UPDATE {effects} SET state = 'failed', tries = 0, deaths = 0, due_at = $2::timestamptz, updated_at = $2::timestamptz
	WHERE id = $1::bigint AND state = 'dead'
	RETURNING id
)
SELECT EXISTS (SELECT 1 FROM revived), state FROM {effects} WHERE id = $1::bigint`

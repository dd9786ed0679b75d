package pg

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
)

// bypassingSQL locks the deliveries that were made past the store, in the order in which all statements do. It is a statement of
// its own, so that the next one sees the attempts of who had the locks before.
const bypassingSQL = `SELECT FROM {{.}}deliveries d
	JOIN unnest($1::bigint[], $2::text[]) AS o (event_id, destination) ON o.event_id = d.event_id AND o.destination = d.destination
	ORDER BY d.event_id, d.destination
	FOR UPDATE OF d`

// bypassedSQL ends deliveries that were made past the store, whoever has them. The ordering groups are locked after them, like
// everywhere. What was done before has one attempt more, unless this one is on record already.
const bypassedSQL = `WITH ` + durable + `, outcome AS (
	SELECT o.* FROM durable, unnest($1::bigint[], $2::text[], $3::int[], $4::text[], $5::timestamptz[], $6::bigint[],
		$7::bytea[], $8::text[], $9::bigint[], $10::text[])
		AS o (event_id, destination, status, error, started_at, duration_us, answer, resource, rank, rank_kind)
), ended AS (
	DELETE FROM {{.}}deliveries d USING outcome o
	WHERE d.event_id = o.event_id AND d.destination = o.destination
	RETURNING d.event_id, d.destination, d.token, d.resource
), tried AS (
	INSERT INTO {{.}}attempts (event_id, destination, token, outcome, status, error, started_at, duration_us, answer)
	SELECT o.event_id, o.destination, coalesce(e.token, before.token, 0) + 1, 'done', o.status, o.error, o.started_at, o.duration_us, o.answer
	FROM outcome o LEFT JOIN ended e ON e.event_id = o.event_id AND e.destination = o.destination, LATERAL (
		SELECT max(a.token) AS token, coalesce(bool_or(a.outcome = 'done' AND a.started_at = o.started_at), false) AS known
		FROM ` + allAttempts + ` WHERE a.event_id = o.event_id AND a.destination = o.destination
	) before
	WHERE e.event_id IS NOT NULL OR NOT before.known
), freed AS (
	INSERT INTO {{.}}lanes (destination, resource, due_at)
	SELECT e.destination, e.resource, min(o.started_at)
	FROM ended e JOIN outcome o ON o.event_id = e.event_id AND o.destination = e.destination
	WHERE e.resource IS NOT NULL
	GROUP BY e.destination, e.resource ORDER BY e.destination, e.resource
	ON CONFLICT (destination, resource) DO UPDATE SET due_at = least(lanes.due_at, excluded.due_at),
		event_id = CASE WHEN EXISTS (SELECT FROM ended e WHERE e.event_id = lanes.event_id
			AND e.destination = lanes.destination) THEN NULL ELSE lanes.event_id END -- another one may have the turn
)
` + raise + `WHERE o.rank IS NOT NULL
` + raised

// RecordBypassed implements [journal.Store]. It takes turns with replays, which make anew what is done: their deliveries and the
// attempts here would come to have the same token.
func (s *Store) RecordBypassed(ctx context.Context, outcomes []journal.Outcome) error {
	c := newOutcomeColumns(outcomes)
	return s.change(ctx, "recording what was delivered past the store", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, s.sql.bypassing, c.event, c.destination); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, s.sql.bypassed, c.event, c.destination, c.status, c.text, c.started, c.duration,
			c.answer, c.group, c.rank, c.rankKind)
		return err
	})
}

package pg

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
)

// knownSQL finds what is on record under keys of a source, each by itself in the index of keys, with the states of the
// deliveries that stand for it. Whoever asks goes by it, also another cell, so that it has to be where commits wait for it to be.
const knownSQL = `WITH ` + durable + `, ` + replicated + `
SELECT e.key, e.id, e.received_at, coalesce(e.listed, false), e.listed IS NULL OR e.digest IS NOT NULL,
	ARRAY(SELECT DISTINCT d.state FROM {{.}}deliveries d WHERE d.event_id = coalesce(t.first, e.id))
FROM replicated, unnest($2::text[]) AS k (key), LATERAL (
	SELECT key, id, received_at, listed, digest FROM {{.}}events WHERE source = $1 AND key = k.key LIMIT 1) e
LEFT JOIN {{.}}twins t ON t.event_id = e.id AND t.dropped`

// Known implements [journal.Store].
func (s *Store) Known(ctx context.Context, source string, keys []string) (map[string]journal.Known, error) {
	keys, err := journal.Askable(source, keys)
	if err != nil {
		return nil, err
	}
	known := make(map[string]journal.Known, len(keys))
	var key string
	var k journal.Known
	var open []journal.State
	err = s.waits.Heed(func() error {
		return each(ctx, s.pool, s.in(knownSQL), []any{source, keys}, []any{&key, &k.ID, &k.ReceivedAt, &k.Listed, &k.Verified, &open}, func() error {
			k.State = journal.Standing(open)
			known[key] = k
			return nil
		})
	})
	if err != nil {
		return nil, failed("looking for keys", err)
	}
	return known, nil
}

// sourcesSQL goes from source to source along the index of keys, to the first $1 of them.
const sourcesSQL = `WITH RECURSIVE s AS (
	(SELECT source, 1 AS n FROM {{.}}events ORDER BY source LIMIT 1)
	UNION ALL
	SELECT (SELECT e.source FROM {{.}}events e WHERE e.source > s.source ORDER BY e.source LIMIT 1), s.n + 1 FROM s WHERE s.source IS NOT NULL AND s.n < $1
)
`

// elsewhereSQL looks each key up in the index of keys, source by source.
const elsewhereSQL = sourcesSQL + `SELECT DISTINCT ON (k.key) k.key, s.source, e.received_at FROM s CROSS JOIN unnest($3::text[]) AS k (key), LATERAL (
	SELECT received_at FROM {{.}}events WHERE source = s.source AND key = k.key LIMIT 1) e
WHERE s.source <> ALL ($2::text[]) ORDER BY k.key, e.received_at DESC, s.source`

// KnownElsewhere implements [journal.Store].
func (s *Store) KnownElsewhere(ctx context.Context, source string, strangers, keys []string) (map[string]journal.Elsewhere, error) {
	keys, err := journal.Askable(source, keys)
	if err != nil {
		return nil, err
	}
	found := map[string]journal.Elsewhere{}
	var key string
	var e journal.Elsewhere
	err = each(ctx, s.pool, s.in(elsewhereSQL), []any{journal.MaxSources, append([]string{source}, strangers...), keys}, []any{&key, &e.Source, &e.ReceivedAt}, func() error {
		found[key] = e
		return nil
	})
	if err != nil {
		return nil, failed("looking for keys under other sources", err)
	}
	return found, nil
}

// HasBefore implements [journal.Store].
func (s *Store) HasBefore(ctx context.Context, source string, before time.Time) (has bool, err error) {
	const text = `SELECT EXISTS (SELECT 1 FROM (SELECT source FROM {{.}}events WHERE id < $1 ORDER BY id DESC LIMIT $2) e WHERE e.source = $3)`
	err = s.pool.QueryRow(ctx, s.in(text), journal.FirstID(before), journal.MaxScan, source).Scan(&has)
	return has, failed("looking for earlier events of a source", err)
}

// markColumns are what [scanMark] reads.
const markColumns = `source, through, token, holder, lease_until, ended_at, listed, missing, recovered, error`

func scanMark(row pgx.CollectableRow) (m journal.Mark, err error) {
	var through, lease, ended *time.Time
	err = row.Scan(&m.Source, &through, &m.Token, &m.Holder, &lease, &ended, &m.Last.Listed, &m.Last.Missing, &m.Last.Recovered, &m.Last.Error)
	m.Through, m.Lease, m.Last.Ended = orZero(through), orZero(lease), orZero(ended)
	return m, err
}

const takeMarkSQL = `WITH ` + durable + `
INSERT INTO {{.}}reconcile_marks AS m (source, holder, lease_until, token) SELECT $1::text, $2::text, $4::timestamptz, 1 FROM durable
ON CONFLICT (source) DO UPDATE SET holder = excluded.holder, lease_until = excluded.lease_until, token = m.token + 1
WHERE m.holder IN ('', excluded.holder) OR m.lease_until <= $3 OR m.lease_until > $5
RETURNING ` + markColumns

// TakeMark implements [journal.Store].
func (s *Store) TakeMark(ctx context.Context, source, holder string, now, lease time.Time) (m journal.Mark, taken bool, err error) {
	const what = "taking the mark of a source"
	err = s.retry(ctx, what, func() error {
		r, err := s.pool.Query(ctx, s.in(takeMarkSQL), source, holder, now, lease, lease.Add(journal.MuchAhead))
		if err != nil {
			return err
		}
		m, err = pgx.CollectExactlyOneRow(r, scanMark)
		taken = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil || taken {
		return m, taken, err
	}
	r, err := s.pool.Query(ctx, s.in(`SELECT `+markColumns+` FROM {{.}}reconcile_marks WHERE source = $1`), source)
	if err == nil {
		m, err = pgx.CollectExactlyOneRow(r, scanMark)
	}
	return m, false, failed(what, err)
}

const advanceMarkSQL = `WITH ` + durable + `
UPDATE {{.}}reconcile_marks SET lease_until = $3::timestamptz,
	through = CASE WHEN $5::boolean THEN coalesce($4::timestamptz, through) ELSE greatest(through, $4::timestamptz) END FROM durable
WHERE source = $1 AND token = $2 AND holder <> ''`

// AdvanceMark implements [journal.Store].
func (s *Store) AdvanceMark(ctx context.Context, source string, token int64, a journal.MarkAdvance) (bool, error) {
	const what = "advancing the mark of a source"
	args := []any{source, token, a.Lease, moment(a.Through), a.Back}
	if a.Found == nil {
		return s.changeMark(ctx, what, advanceMarkSQL, args...)
	}
	held := false
	err := s.retry(ctx, what, func() error {
		return s.durably(ctx, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, s.in(advanceMarkSQL), args...) // which locks the mark
			if held = tag.RowsAffected() == 1; err != nil || !held {
				return err
			}
			return s.keepMissing(ctx, tx, source, a.Found)
		})
	})
	return held && err == nil, err
}

const releaseMarkSQL = `WITH ` + durable + `
UPDATE {{.}}reconcile_marks SET holder = '', lease_until = NULL, ended_at = $3::timestamptz,
	listed = $4, missing = $5, recovered = $6, error = $7 FROM durable
WHERE source = $1 AND token = $2 AND holder <> ''`

// ReleaseMark implements [journal.Store].
func (s *Store) ReleaseMark(ctx context.Context, source string, token int64, r journal.MarkResult) (bool, error) {
	r = r.Kept()
	return s.changeMark(ctx, "releasing the mark of a source", releaseMarkSQL, source, token, moment(r.Ended), r.Listed, r.Missing, r.Recovered, r.Error)
}

// changeMark changes one mark, and reports whether it did.
func (s *Store) changeMark(ctx context.Context, what, text string, args ...any) (held bool, err error) {
	err = s.retry(ctx, what, func() error {
		tag, err := s.pool.Exec(ctx, s.in(text), args...)
		held = tag.RowsAffected() == 1
		return err
	})
	return held && err == nil, err
}

// Marks implements [journal.Store].
func (s *Store) Marks(ctx context.Context) ([]journal.Mark, error) {
	all, err := rows(ctx, s.pool, s.in(`SELECT `+markColumns+` FROM {{.}}reconcile_marks ORDER BY source`), nil, scanMark)
	return all, failed("reading the marks of sources", err)
}

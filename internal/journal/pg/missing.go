package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
)

// stands is the condition for what is missing and not over; $1 is now, and $2 the time before which providers were asked.
const stands = `m.dismissed_at IS NULL AND m.expires_at > $1 AND (m.asked_at IS NULL OR m.asked_at <= $2)
	AND NOT (m.keyed AND EXISTS (SELECT 1 FROM {{.}}events e WHERE e.source = m.source AND e.key = m.entry))`

// overMissingSQL forgets what is over. What was dismissed stays until it expires.
const overMissingSQL = `DELETE FROM {{.}}reconcile_missing m WHERE m.expires_at <= $1 OR m.source = $2 AND m.keyed
	AND EXISTS (SELECT 1 FROM {{.}}events e WHERE e.source = m.source AND e.key = m.entry)`

// overElsewhereSQL forgets what is on record in another cell.
const overElsewhereSQL = `DELETE FROM {{.}}reconcile_missing WHERE source = $1 AND keyed AND entry = ANY ($2::text[])`

const putMissingSQL = `INSERT INTO {{.}}reconcile_missing AS m (source, keyed, entry, event_type, happened_at, found_at, asked_at, reason, expires_at)
SELECT $1::text, * FROM unnest($2::boolean[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[], $8::text[], $9::timestamptz[])
ON CONFLICT (source, keyed, entry) DO UPDATE SET asked_at = coalesce(m.asked_at, excluded.asked_at),
	reason = CASE excluded.reason WHEN '' THEN m.reason ELSE excluded.reason END, expires_at = greatest(m.expires_at, excluded.expires_at)`

const countMissingSQL = `INSERT INTO {{.}}reconcile_missing AS m (source, keyed, entry, event_type, happened_at, found_at, reason, expires_at, n)
VALUES ($1, false, '', '', $2, $3, '', $4, $5)
ON CONFLICT (source, keyed, entry) DO UPDATE SET n = greatest(m.n, excluded.n), found_at = excluded.found_at, happened_at = least(m.happened_at, excluded.happened_at),
	expires_at = greatest(m.expires_at, excluded.expires_at)`

// keepMissing puts on record what a run found. The mark of the source is locked.
func (s *Store) keepMissing(ctx context.Context, tx pgx.Tx, source string, f *journal.Finding) error {
	if _, err := tx.Exec(ctx, s.in(overMissingSQL), f.At, source); err != nil {
		return err
	}
	if len(f.Over) > 0 {
		if _, err := tx.Exec(ctx, s.in(overElsewhereSQL), source, f.Over); err != nil {
			return err
		}
	}
	if len(f.Missing) == 0 && f.Beyond == 0 {
		return nil
	}
	kept, here := 0, map[journal.MissingEvent]bool{}
	var id string
	var keyed bool
	err := each(ctx, tx, s.in(`SELECT entry, keyed FROM {{.}}reconcile_missing WHERE source = $1 AND entry <> ''`), []any{source}, []any{&id, &keyed}, func() error {
		kept++
		here[named(id, keyed)] = true
		return nil
	})
	if err != nil {
		return err
	}
	put, beyond, from := f.Fit(source, func(id string, keyed bool) bool { return here[named(id, keyed)] }, kept)
	if beyond > 0 {
		if _, err := tx.Exec(ctx, s.in(countMissingSQL), source, moment(from), f.At, f.Expires, beyond); err != nil {
			return err
		}
	}
	if len(put) == 0 {
		return nil
	}
	var keys []bool
	var ids, types, why []string
	var happened, asked []*time.Time
	var found, expires []time.Time
	for i := range put {
		m := &put[i]
		id, keyed := m.ID()
		keys, ids, types, why = append(keys, keyed), append(ids, id), append(types, m.Type), append(why, m.Why)
		happened, asked = append(happened, orNull(&m.Happened)), append(asked, orNull(&m.Asked))
		found, expires = append(found, m.Found), append(expires, m.Expires)
	}
	_, err = tx.Exec(ctx, s.in(putMissingSQL), source, keys, ids, types, happened, found, asked, why, expires)
	return err
}

// named is an event of which nothing else is known.
func named(id string, keyed bool) journal.MissingEvent {
	if keyed {
		return journal.MissingEvent{Key: id}
	}
	return journal.MissingEvent{Entry: id}
}

const missingSQL = `SELECT m.keyed, m.entry, m.event_type, m.happened_at, m.found_at, m.asked_at, m.reason, m.expires_at
FROM {{.}}reconcile_missing m WHERE m.source = $3 AND m.entry <> '' AND ` + stands + `
ORDER BY m.found_at, m.happened_at, m.entry, m.keyed LIMIT $4`

// Missing implements [journal.Store].
func (s *Store) Missing(ctx context.Context, q journal.MissingQuery) ([]journal.MissingEvent, error) {
	args := []any{q.Now, q.Now.Add(-journal.AskedGrace), q.Source, q.Limit}
	all, err := rows(ctx, s.pool, s.in(missingSQL), args, func(row pgx.CollectableRow) (m journal.MissingEvent, err error) {
		var keyed bool
		var id string
		var happened, asked *time.Time
		err = row.Scan(&keyed, &id, &m.Type, &happened, &m.Found, &asked, &m.Why, &m.Expires)
		name := named(id, keyed)
		m.Key, m.Entry, m.Happened, m.Asked = name.Key, name.Entry, orZero(happened), orZero(asked)
		return m, err
	})
	return all, failed("reading what never arrived", err)
}

const missingCountsSQL = `SELECT m.source, coalesce(sum(m.n) FILTER (WHERE m.entry <> ''), 0)::bigint, coalesce(sum(m.n) FILTER (WHERE m.entry = ''), 0)::bigint, min(m.found_at)
FROM {{.}}reconcile_missing m WHERE ` + stands + ` GROUP BY m.source ORDER BY m.source`

// MissingCounts implements [journal.Store].
func (s *Store) MissingCounts(ctx context.Context, now time.Time) ([]journal.MissingCount, error) {
	all, err := rows(ctx, s.pool, s.in(missingCountsSQL), []any{now, now.Add(-journal.AskedGrace)}, func(row pgx.CollectableRow) (c journal.MissingCount, err error) {
		err = row.Scan(&c.Source, &c.Kept, &c.Beyond, &c.First)
		return c, err
	})
	return all, failed("counting what never arrived", err)
}

// The statements that dismiss. Of what a [journal.Dismissal] does not say there is null, which nothing meets.
const (
	dismissMissingSQL = `UPDATE {{.}}reconcile_missing m SET dismissed_at = $1 WHERE m.source = $3 AND m.entry <> ''
	AND (m.entry = ANY ($4::text[]) OR m.found_at < $5) AND ` + stands + ` RETURNING entry`
	forgetBeyondSQL = `DELETE FROM {{.}}reconcile_missing WHERE source = $1 AND NOT keyed AND entry = '' AND (happened_at >= $2 OR found_at < $3) RETURNING n`
)

// DismissMissing implements [journal.Store].
func (s *Store) DismissMissing(ctx context.Context, d journal.Dismissal) (n int64, err error) {
	err = s.change(ctx, "dismissing what never arrived", func(tx pgx.Tx) error {
		ids, err := rows(ctx, tx, s.in(dismissMissingSQL), []any{d.At, d.AskedBefore(), d.Source, d.IDs, moment(d.FoundBefore)}, pgx.RowTo[string])
		if err != nil {
			return err
		}
		beyond, err := rows(ctx, tx, s.in(forgetBeyondSQL), []any{d.Source, moment(d.Since), moment(d.FoundBefore)}, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		n = int64(len(ids))
		for _, more := range beyond {
			n += more
		}
		if n == 0 {
			return nil
		}
		_, err = s.audit(ctx, tx, d.Record(n, ids))
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

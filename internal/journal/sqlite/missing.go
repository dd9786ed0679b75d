package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// stands is the condition for what is missing and not over; ?1 is now, and ?2 the time before which providers were asked.
const stands = `m.dismissed_at IS NULL AND m.expires_at > ?1 AND (m.asked_at IS NULL OR m.asked_at <= ?2)
	AND NOT (m.keyed AND EXISTS (SELECT 1 FROM {{.}}events e WHERE e.source = m.source AND e.key = m.entry))`

// overMissingSQL forgets what is over. What was dismissed stays until it expires.
const overMissingSQL = `DELETE FROM {{.}}reconcile_missing AS m WHERE m.expires_at <= ?1 OR m.source = ?2 AND m.keyed
	AND EXISTS (SELECT 1 FROM {{.}}events e WHERE e.source = m.source AND e.key = m.entry)`

// overElsewhereSQL forgets what is on record in another cell.
const overElsewhereSQL = `DELETE FROM {{.}}reconcile_missing WHERE source = ?1 AND keyed AND entry = ?2`

const putMissingSQL = `INSERT INTO {{.}}reconcile_missing AS m (source, keyed, entry, event_type, happened_at, found_at, asked_at, reason, expires_at)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
	ON CONFLICT (source, keyed, entry) DO UPDATE SET asked_at = coalesce(m.asked_at, excluded.asked_at),
		reason = CASE excluded.reason WHEN '' THEN m.reason ELSE excluded.reason END, expires_at = max(m.expires_at, excluded.expires_at)`

const countMissingSQL = `INSERT INTO {{.}}reconcile_missing AS m (source, keyed, entry, event_type, happened_at, found_at, reason, expires_at, n)
	VALUES (?1, 0, '', '', ?2, ?3, '', ?4, ?5)
	ON CONFLICT (source, keyed, entry) DO UPDATE SET n = max(m.n, excluded.n), found_at = excluded.found_at, happened_at = min(m.happened_at, excluded.happened_at),
		expires_at = max(m.expires_at, excluded.expires_at)`

// keepMissing puts on record what a run found.
func (s *Store) keepMissing(w *writer, source string, f *journal.Finding) error {
	if _, err := w.once(s.in(overMissingSQL), f.At.UnixMicro(), source); err != nil {
		return err
	}
	for _, key := range f.Over {
		if _, err := w.once(s.in(overElsewhereSQL), source, key); err != nil {
			return err
		}
	}
	if len(f.Missing) == 0 && f.Beyond == 0 {
		return nil
	}
	type named struct {
		id    string
		keyed bool
	}
	here := map[named]bool{}
	err := w.ask(s.in(`SELECT entry, keyed FROM {{.}}reconcile_missing WHERE source = ? AND entry <> ''`), func(row []driver.Value) error {
		here[named{row[0].(string), row[1].(int64) != 0}] = true
		return nil
	}, source)
	if err != nil {
		return err
	}
	put, beyond, from := f.Fit(source, func(id string, keyed bool) bool { return here[named{id, keyed}] }, len(here))
	if beyond > 0 {
		if _, err := w.once(s.in(countMissingSQL), source, moment(from), f.At.UnixMicro(), f.Expires.UnixMicro(), beyond); err != nil {
			return err
		}
	}
	return w.with(s.in(putMissingSQL), func(insert *stmt) error {
		for i := range put {
			m := &put[i]
			id, keyed := m.ID()
			if _, err := insert.exec(source, number(keyed), id, m.Type, moment(m.Happened), m.Found.UnixMicro(), moment(m.Asked), m.Why, m.Expires.UnixMicro()); err != nil {
				return err
			}
		}
		return nil
	})
}

const missingSQL = `SELECT m.keyed, m.entry, m.event_type, m.happened_at, m.found_at, m.asked_at, m.reason, m.expires_at
	FROM {{.}}reconcile_missing m WHERE m.source = ?3 AND m.entry <> '' AND ` + stands + `
	ORDER BY m.found_at, m.happened_at IS NULL, m.happened_at, m.entry, m.keyed LIMIT ?4`

// Missing implements [journal.Store].
func (s *Store) Missing(ctx context.Context, q journal.MissingQuery) ([]journal.MissingEvent, error) {
	args := []any{q.Now.UnixMicro(), q.Now.Add(-journal.AskedGrace).UnixMicro(), q.Source, q.Limit}
	all, err := rows(ctx, s.readers, s.in(missingSQL), args, func(row scanner) (m journal.MissingEvent, err error) {
		var keyed bool
		var id string
		var found, expires int64
		var happened, asked sql.NullInt64
		err = row.Scan(&keyed, &id, &m.Type, &happened, &found, &asked, &m.Why, &expires)
		m.Happened, m.Found, m.Asked, m.Expires = orZero(happened), time.UnixMicro(found), orZero(asked), time.UnixMicro(expires)
		if keyed {
			m.Key = id
		} else {
			m.Entry = id
		}
		return m, err
	})
	return all, failed("reading what never arrived", err)
}

const missingCountsSQL = `SELECT m.source, coalesce(sum(m.n) FILTER (WHERE m.entry <> ''), 0), coalesce(sum(m.n) FILTER (WHERE m.entry = ''), 0), min(m.found_at)
	FROM {{.}}reconcile_missing m WHERE ` + stands + ` GROUP BY m.source ORDER BY m.source`

// MissingCounts implements [journal.Store].
func (s *Store) MissingCounts(ctx context.Context, now time.Time) ([]journal.MissingCount, error) {
	args := []any{now.UnixMicro(), now.Add(-journal.AskedGrace).UnixMicro()}
	all, err := rows(ctx, s.readers, s.in(missingCountsSQL), args, func(row scanner) (c journal.MissingCount, err error) {
		var first int64
		err = row.Scan(&c.Source, &c.Kept, &c.Beyond, &first)
		c.First = time.UnixMicro(first)
		return c, err
	})
	return all, failed("counting what never arrived", err)
}

// The statements that dismiss. Of what a [journal.Dismissal] does not say there is null, which nothing meets.
const (
	dismissMissingSQL = `UPDATE {{.}}reconcile_missing AS m SET dismissed_at = ?1 WHERE m.source = ?3 AND m.entry <> ''
		AND (m.entry IN (SELECT value FROM json_each(?4)) OR m.found_at < ?5) AND ` + stands + ` RETURNING entry`
	forgetBeyondSQL = `DELETE FROM {{.}}reconcile_missing WHERE source = ?1 AND NOT keyed AND entry = '' AND (happened_at >= ?2 OR found_at < ?3) RETURNING n`
)

// DismissMissing implements [journal.Store].
func (s *Store) DismissMissing(ctx context.Context, d journal.Dismissal) (n int64, err error) {
	const what = "dismissing what never arrived"
	named, err := json.Marshal(d.IDs)
	if err != nil {
		return 0, failed(what, err)
	}
	err = s.write(ctx, what, func(w *writer) error {
		var ids []string
		err := w.ask(s.in(dismissMissingSQL), func(row []driver.Value) error { ids = append(ids, row[0].(string)); return nil },
			d.At.UnixMicro(), d.AskedBefore().UnixMicro(), d.Source, string(named), moment(d.FoundBefore))
		if err != nil {
			return err
		}
		n = int64(len(ids))
		err = w.ask(s.in(forgetBeyondSQL), func(row []driver.Value) error { n += row[0].(int64); return nil }, d.Source, moment(d.Since), moment(d.FoundBefore))
		if err != nil || n == 0 {
			return err
		}
		_, err = s.audit(w, d.Record(n, ids))
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

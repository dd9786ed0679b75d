package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// knownSQL finds what is on record under keys of a source, each by itself in the index of keys, with the states of the
// deliveries that stand for it.
const knownSQL = `SELECT e.key, e.id, e.received_at, coalesce(e.listed, 0), e.listed IS NULL OR e.digest IS NOT NULL,
		coalesce((SELECT group_concat(DISTINCT d.state) FROM {{.}}deliveries d WHERE d.event_id = coalesce(t.first, e.id)), '')
	FROM json_each(?2) k CROSS JOIN {{.}}events e ON e.source = ?1 AND e.key = k.value
	LEFT JOIN {{.}}twins t ON t.event_id = e.id AND t.dropped`

// Known implements [journal.Store].
func (s *Store) Known(ctx context.Context, source string, keys []string) (map[string]journal.Known, error) {
	const what = "looking for keys"
	keys, err := journal.Askable(source, keys)
	if err != nil {
		return nil, err
	}
	asked, err := json.Marshal(keys)
	if err != nil {
		return nil, failed(what, err)
	}
	known := make(map[string]journal.Known, len(keys))
	_, err = rows(ctx, s.readers, s.in(knownSQL), []any{source, string(asked)}, func(row scanner) (struct{}, error) {
		var key, states string
		var received int64
		var k journal.Known
		err := row.Scan(&key, &k.ID, &received, &k.Listed, &k.Verified, &states)
		k.ReceivedAt = time.UnixMicro(received)
		var open []journal.State
		for state := range strings.SplitSeq(states, ",") {
			if state != "" {
				open = append(open, journal.State(state))
			}
		}
		k.State = journal.Standing(open)
		known[key] = k
		return struct{}{}, err
	})
	if err != nil {
		return nil, failed(what, err)
	}
	return known, nil
}

// sourcesSQL goes from source to source along the index of keys, to the first ?1 of them.
const sourcesSQL = `WITH RECURSIVE s (source, n) AS (
		SELECT * FROM (SELECT source, 1 FROM {{.}}events ORDER BY source LIMIT 1)
		UNION ALL
		SELECT (SELECT e.source FROM {{.}}events e WHERE e.source > s.source ORDER BY e.source LIMIT 1), s.n + 1 FROM s WHERE s.source IS NOT NULL AND s.n < ?1
	)
	`

// elsewhereSQL looks each key up in the index of keys, source by source. Of a group with max SQLite
// returns the row that has it.
const elsewhereSQL = sourcesSQL + `SELECT k.value, e.source, max(e.received_at) FROM s CROSS JOIN json_each(?3) k CROSS JOIN {{.}}events e ON e.source = s.source AND e.key = k.value
	WHERE s.source NOT IN (SELECT value FROM json_each(?2)) GROUP BY k.value`

// KnownElsewhere implements [journal.Store].
func (s *Store) KnownElsewhere(ctx context.Context, source string, strangers, keys []string) (map[string]journal.Elsewhere, error) {
	const what = "looking for keys under other sources"
	keys, err := journal.Askable(source, keys)
	if err != nil {
		return nil, err
	}
	asked, err := json.Marshal(keys)
	if err != nil {
		return nil, failed(what, err)
	}
	except, err := json.Marshal(append([]string{source}, strangers...))
	if err != nil {
		return nil, failed(what, err)
	}
	found := map[string]journal.Elsewhere{}
	_, err = rows(ctx, s.readers, s.in(elsewhereSQL), []any{journal.MaxSources, string(except), string(asked)}, func(row scanner) (struct{}, error) {
		var key, at string
		var received int64
		err := row.Scan(&key, &at, &received)
		found[key] = journal.Elsewhere{Source: at, ReceivedAt: time.UnixMicro(received)}
		return struct{}{}, err
	})
	if err != nil {
		return nil, failed(what, err)
	}
	return found, nil
}

// HasBefore implements [journal.Store].
func (s *Store) HasBefore(ctx context.Context, source string, before time.Time) (bool, error) {
	const text = `SELECT 1 FROM (SELECT source FROM {{.}}events WHERE id < ? ORDER BY id DESC LIMIT ?) e WHERE e.source = ? LIMIT 1`
	one, err := rows(ctx, s.readers, s.in(text), []any{journal.FirstID(before), journal.MaxScan, source}, func(row scanner) (n int, err error) {
		return n, row.Scan(&n)
	})
	return len(one) > 0, failed("looking for earlier events of a source", err)
}

// markColumns are what [markOf] reads.
const markColumns = `source, through, token, holder, lease_until, ended_at, listed, missing, recovered, error`

// markOf is the mark that a row describes, as the driver returns it or as database/sql does.
func markOf[V any](row []V) journal.Mark {
	at := func(column int) (t time.Time) {
		if us, ok := any(row[column]).(int64); ok {
			t = time.UnixMicro(us)
		}
		return t
	}
	text := func(column int) string { return any(row[column]).(string) }
	number := func(column int) int64 { return any(row[column]).(int64) }
	return journal.Mark{
		Source: text(0), Through: at(1), Token: number(2), Holder: text(3), Lease: at(4),
		Last: journal.MarkResult{Ended: at(5), Listed: number(6), Missing: number(7), Recovered: number(8), Error: text(9)},
	}
}

const takeMarkSQL = `INSERT INTO {{.}}reconcile_marks (source, holder, lease_until, token) VALUES (?1, ?2, ?4, 1)
	ON CONFLICT (source) DO UPDATE SET holder = excluded.holder, lease_until = excluded.lease_until, token = token + 1
	WHERE holder IN ('', excluded.holder) OR lease_until <= ?3 OR lease_until > ?5
	RETURNING ` + markColumns

// TakeMark implements [journal.Store].
func (s *Store) TakeMark(ctx context.Context, source, holder string, now, lease time.Time) (m journal.Mark, taken bool, err error) {
	err = s.write(ctx, "taking the mark of a source", func(w *writer) error {
		taken = false
		err := w.ask(s.in(takeMarkSQL), func(row []driver.Value) error { m, taken = markOf(row), true; return nil },
			source, holder, now.UnixMicro(), lease.UnixMicro(), lease.Add(journal.MuchAhead).UnixMicro())
		if err != nil || taken {
			return err
		}
		return w.ask(s.in(`SELECT `+markColumns+` FROM {{.}}reconcile_marks WHERE source = ?`),
			func(row []driver.Value) error { m = markOf(row); return nil }, source)
	})
	if err != nil {
		return journal.Mark{}, false, err
	}
	return m, taken, nil
}

const advanceMarkSQL = `UPDATE {{.}}reconcile_marks SET lease_until = ?3,
		through = CASE WHEN ?4 IS NOT NULL AND (?5 OR through IS NULL OR through < ?4) THEN ?4 ELSE through END
	WHERE source = ?1 AND token = ?2 AND holder <> ''`

// AdvanceMark implements [journal.Store].
func (s *Store) AdvanceMark(ctx context.Context, source string, token int64, a journal.MarkAdvance) (bool, error) {
	held := false
	err := s.write(ctx, "advancing the mark of a source", func(w *writer) error {
		n, err := w.once(s.in(advanceMarkSQL), source, token, a.Lease.UnixMicro(), moment(a.Through), number(a.Back))
		if held = n == 1; err != nil || !held || a.Found == nil {
			return err
		}
		return s.keepMissing(w, source, a.Found)
	})
	return held && err == nil, err
}

const releaseMarkSQL = `UPDATE {{.}}reconcile_marks SET holder = '', lease_until = NULL, ended_at = ?3,
		listed = ?4, missing = ?5, recovered = ?6, error = ?7
	WHERE source = ?1 AND token = ?2 AND holder <> ''`

// ReleaseMark implements [journal.Store].
func (s *Store) ReleaseMark(ctx context.Context, source string, token int64, r journal.MarkResult) (bool, error) {
	r = r.Kept()
	return s.changeMark(ctx, "releasing the mark of a source", releaseMarkSQL, source, token, moment(r.Ended), r.Listed, r.Missing, r.Recovered, r.Error)
}

// changeMark changes one mark, and reports whether it did.
func (s *Store) changeMark(ctx context.Context, what, text string, args ...any) (held bool, err error) {
	err = s.write(ctx, what, func(w *writer) error {
		n, err := w.once(s.in(text), args...)
		held = n == 1
		return err
	})
	return held && err == nil, err
}

// Marks implements [journal.Store].
func (s *Store) Marks(ctx context.Context) ([]journal.Mark, error) {
	const text = `SELECT ` + markColumns + ` FROM {{.}}reconcile_marks ORDER BY source`
	all, err := rows(ctx, s.readers, s.in(text), nil, func(row scanner) (journal.Mark, error) {
		var of, to [10]any
		for i := range of {
			to[i] = &of[i]
		}
		if err := row.Scan(to[:]...); err != nil {
			return journal.Mark{}, err
		}
		return markOf(of[:]), nil
	})
	return all, failed("reading the marks of sources", err)
}

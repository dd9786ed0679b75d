package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/tally"
)

// addTalliesSQL adds points if their batch is a new one. Who sends a batch again while it is still on its way waits for the
// row of the process, and finds then that it was added. Rows that several processes add to are locked in one order, minutes
// before hours: that the hours are made of what was returned for the minutes fixes it. A minute that is active already is
// active once: it counts in its hour only if its row was made here.
const addTalliesSQL = `WITH ` + durable + `, batch AS (
	INSERT INTO {{.}}tally_writers AS last (process, seq, minute)
	SELECT $1, $2::bigint, $3::timestamptz FROM durable
	ON CONFLICT (process) DO UPDATE SET seq = excluded.seq, minute = excluded.minute WHERE last.seq < excluded.seq
	RETURNING seq
), point AS (
	SELECT p.* FROM batch, unnest($4::timestamptz[], $5::text[], $6::text[], $7::text[], $8::bigint[])
		AS p (minute, source, destination, what, n)
), active AS (
	INSERT INTO {{.}}tallies (minute, source, destination, what, n)
	SELECT minute, source, destination, what, n FROM point WHERE what = 'active' ORDER BY minute, source, destination
	ON CONFLICT (minute, source, destination, what) DO NOTHING
	RETURNING minute, source, destination, what
), minutes AS (
	INSERT INTO {{.}}tallies AS kept (minute, source, destination, what, n)
	SELECT minute, source, destination, what, n FROM point WHERE what <> 'active' ORDER BY minute, source, destination, what
	ON CONFLICT (minute, source, destination, what) DO UPDATE SET n = kept.n + excluded.n
	RETURNING minute, source, destination, what
), made AS (
	SELECT * FROM active UNION ALL SELECT * FROM minutes
)
INSERT INTO {{.}}tally_hours AS kept (hour, source, destination, what, n)
SELECT date_trunc('hour', minute, 'UTC'), source, destination, what, sum(n)::bigint FROM point
JOIN made USING (minute, source, destination, what)
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
ON CONFLICT (hour, source, destination, what) DO UPDATE SET n = kept.n + excluded.n`

// AddTallies implements [journal.Store].
func (s *Store) AddTallies(ctx context.Context, process string, seq int64, points []tally.Point) error {
	var youngest time.Time
	var minute []time.Time
	var source, destination, what []string
	var n []int64
	for _, p := range points {
		minute, n = append(minute, p.Minute), append(n, p.N)
		source, destination, what = append(source, p.Source), append(destination, p.Destination), append(what, string(p.What))
		if p.Minute.After(youngest) {
			youngest = p.Minute
		}
	}
	return s.retry(ctx, "adding what was counted", func() error {
		_, err := s.pool.Exec(ctx, s.in(addTalliesSQL), process, seq, youngest, minute, source, destination, what, n)
		return err
	})
}

// talliesSQL reads points, of minutes or hours.
const talliesSQL = `SELECT %s, CASE WHEN $6 THEN '' ELSE source END, CASE WHEN $6 THEN '' ELSE destination END, what, sum(n)::bigint
FROM {{.}}%s WHERE %[1]s >= $1 AND %[1]s < $2 AND ($3 = '' OR source = $3) AND ($4 = '' OR destination = $4)
	AND (cardinality($5::text[]) = 0 OR what = ANY ($5))
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4 LIMIT nullif($7, 0)`

// Tallies implements [journal.Store].
func (s *Store) Tallies(ctx context.Context, q tally.Query) ([]tally.Point, error) {
	text := fmt.Sprintf(talliesSQL, "minute", "tallies")
	if q.Step == time.Hour {
		text = fmt.Sprintf(talliesSQL, "hour", "tally_hours")
	}
	whats := make([]string, len(q.Whats))
	for i, w := range q.Whats {
		whats[i] = string(w)
	}
	args := []any{q.From, q.Until, q.Source, q.Destination, whats, q.Total, int64(q.Limit)}
	points, err := rows(ctx, s.pool, s.in(text), args, func(row pgx.CollectableRow) (p tally.Point, err error) {
		err = row.Scan(&p.Minute, &p.Source, &p.Destination, &p.What, &p.N)
		p.Minute = p.Minute.UTC()
		return p, err
	})
	return points, failed("reading what was counted", err)
}

// forgetTallies are the statements that delete what is older than $1.
var forgetTallies = []struct {
	text string
	keep time.Duration
}{
	{`DELETE FROM {{.}}tallies WHERE minute < $1`, tally.KeepMinutes},
	{`DELETE FROM {{.}}tally_hours WHERE hour < $1`, tally.KeepHours},
	{`DELETE FROM {{.}}tally_writers WHERE minute < $1`, tally.KeepHours},
}

// ForgetTallies implements [journal.Store]. While another process purges nothing is deleted.
func (s *Store) ForgetTallies(ctx context.Context, now time.Time) (busy bool, err error) {
	err = s.retry(ctx, "forgetting what was counted", func() error {
		return s.durably(ctx, func(tx pgx.Tx) error {
			mine, err := s.tryPurge(ctx, tx)
			if busy = !mine; err != nil || busy {
				return err
			}
			for _, f := range forgetTallies {
				if _, err := tx.Exec(ctx, s.in(f.text), now.Add(-f.keep)); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return busy && err == nil, err
}

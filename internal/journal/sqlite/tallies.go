package sqlite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/tally"
)

const newBatchSQL = `INSERT INTO {{.}}tally_writers (process, seq, minute) VALUES (?, ?, ?)
	ON CONFLICT (process) DO UPDATE SET seq = excluded.seq, minute = excluded.minute WHERE seq < excluded.seq`

const addMinuteSQL = `INSERT INTO {{.}}tallies (minute, source, destination, what, n) VALUES (?, ?, ?, ?, ?)
	ON CONFLICT (minute, source, destination, what) DO UPDATE SET n = n + excluded.n`

const addHourSQL = `INSERT INTO {{.}}tally_hours (hour, source, destination, what, n) VALUES (?, ?, ?, ?, ?)
	ON CONFLICT (hour, source, destination, what) DO UPDATE SET n = n + excluded.n`

// AddTallies implements [journal.Store].
func (s *Store) AddTallies(ctx context.Context, process string, seq int64, points []tally.Point) error {
	return s.ride(ctx, "adding what was counted", func(w *writer) error { return s.addTallies(w, process, seq, points) })
}

// addTallies adds points if their batch is a new one.
func (s *Store) addTallies(w *writer, process string, seq int64, points []tally.Point) error {
	var youngest time.Time
	for _, p := range points {
		if p.Minute.After(youngest) {
			youngest = p.Minute
		}
	}
	if added, err := w.once(s.in(newBatchSQL), process, seq, youngest.UnixMicro()); err != nil || added == 0 {
		return err
	}
	for _, table := range []struct {
		text string
		step time.Duration
	}{{addMinuteSQL, time.Minute}, {addHourSQL, time.Hour}} {
		err := w.with(s.in(table.text), func(add *stmt) error {
			for _, p := range points {
				if _, err := add.exec(p.Minute.Truncate(table.step).UnixMicro(), p.Source, p.Destination, string(p.What), p.N); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// talliesSQL reads points, of minutes or hours.
const talliesSQL = `SELECT %s AS at, iif(?6, '', source), iif(?6, '', destination), what, sum(n)
	FROM {{.}}%s WHERE at >= ?1 AND at < ?2 AND (?3 = '' OR source = ?3) AND (?4 = '' OR destination = ?4)
	AND (?5 = '' OR instr(?5, ',' || what || ',') > 0)
	GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4 LIMIT ?7`

// Tallies implements [journal.Store].
func (s *Store) Tallies(ctx context.Context, q tally.Query) ([]tally.Point, error) {
	text := fmt.Sprintf(talliesSQL, "minute", "tallies")
	if q.Step == time.Hour {
		text = fmt.Sprintf(talliesSQL, "hour", "tally_hours")
	}
	var whats strings.Builder
	for _, w := range q.Whats {
		whats.WriteString("," + string(w) + ",")
	}
	limit := -1
	if q.Limit > 0 {
		limit = q.Limit
	}
	args := []any{q.From.UnixMicro(), q.Until.UnixMicro(), q.Source, q.Destination, whats.String(), q.Total, limit}
	points, err := rows(ctx, s.readers, s.in(text), args, func(row scanner) (p tally.Point, err error) {
		var at int64
		err = row.Scan(&at, &p.Source, &p.Destination, &p.What, &p.N)
		p.Minute = time.UnixMicro(at).UTC()
		return p, err
	})
	return points, failed("reading what was counted", err)
}

// ForgetTallies implements [journal.Store].
func (s *Store) ForgetTallies(ctx context.Context, now time.Time) error {
	return s.write(ctx, "forgetting what was counted", func(w *writer) error {
		for _, f := range []struct {
			text string
			keep time.Duration
		}{
			{`DELETE FROM {{.}}tallies WHERE minute < ?`, tally.KeepMinutes},
			{`DELETE FROM {{.}}tally_hours WHERE hour < ?`, tally.KeepHours},
			{`DELETE FROM {{.}}tally_writers WHERE minute < ?`, tally.KeepHours},
		} {
			if _, err := w.once(s.in(f.text), now.Add(-f.keep).UnixMicro()); err != nil {
				return err
			}
		}
		return nil
	})
}

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

// addActiveSQL adds a minute that is active, unless it is already.
const addActiveSQL = `INSERT INTO {{.}}tallies (minute, source, destination, what, n) VALUES (?, ?, ?, ?, ?)
	ON CONFLICT (minute, source, destination, what) DO NOTHING`

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
	var active, others, hours []tally.Point
	for _, p := range points {
		if p.What == tally.Active {
			active = append(active, p)
		} else {
			others = append(others, p)
		}
	}
	if err := s.addPoints(w, addActiveSQL, time.Minute, active, func(p tally.Point) { hours = append(hours, p) }); err != nil {
		return err
	}
	if err := s.addPoints(w, addMinuteSQL, time.Minute, others, func(tally.Point) {}); err != nil {
		return err
	}
	return s.addPoints(w, addHourSQL, time.Hour, append(hours, others...), func(tally.Point) {})
}

// addPoints adds points of a step with a statement, and tells which of them changed something.
func (s *Store) addPoints(w *writer, text string, step time.Duration, points []tally.Point, added func(tally.Point)) error {
	return w.with(s.in(text), func(add *stmt) error {
		for _, p := range points {
			n, err := add.exec(p.Minute.Truncate(step).UnixMicro(), p.Source, p.Destination, string(p.What), p.N)
			if err != nil {
				return err
			}
			if n > 0 {
				added(p)
			}
		}
		return nil
	})
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
func (s *Store) ForgetTallies(ctx context.Context, now time.Time) (busy bool, err error) {
	return false, s.write(ctx, "forgetting what was counted", func(w *writer) error {
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

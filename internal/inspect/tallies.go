package inspect

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/tally"
)

// app begins the words under which programs count. A gateway counts in the same tables, and the program behind it often has
// sources of the same names.
const app = "app:"

// upsert is how a row that is there already is added to, or left as it is. The first of the texts stands behind the table.
var upsert = map[ddl.Dialect]struct{ as, add, leave string }{
	ddl.Postgres: {" AS kept", " ON CONFLICT ({at}, source, destination, what) DO UPDATE SET n = kept.n + excluded.n", " ON CONFLICT (process) DO NOTHING"},
	ddl.SQLite:   {" AS kept", " ON CONFLICT ({at}, source, destination, what) DO UPDATE SET n = kept.n + excluded.n", " ON CONFLICT (process) DO NOTHING"},
	ddl.MySQL:    {"", " ON DUPLICATE KEY UPDATE n = n + VALUES(n)", " ON DUPLICATE KEY UPDATE process = process"},
}

// maxRows is how many rows a statement has: no database takes more than some ten thousand arguments.
const maxRows = 500

// AddTallies implements [hookonce.Tallier]. Who sends a batch again while it is still on its way waits for the row of the
// process, and finds then that it was added.
func (t *Tables) AddTallies(ctx context.Context, process string, seq int64, tallies []hookonce.Tally) error {
	minutes, hours := map[hookonce.Tally]int64{}, map[hookonce.Tally]int64{}
	var youngest time.Time
	for _, p := range tallies {
		if err := (hookonce.Ref{Source: p.Source}).Validate(); err != nil {
			return err
		}
		n := p.N
		p.N, p.Minute = 0, p.Minute.UTC().Truncate(time.Minute)
		if p.Minute.After(youngest) {
			youngest = p.Minute
		}
		minutes[p] += n
		p.Minute = p.Minute.Truncate(time.Hour)
		hours[p] += n
	}
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	u := upsert[t.tables.Dialect]
	if _, err := t.in(ctx, tx, "INSERT INTO {}tally_writers (process, seq, minute) VALUES (@1, 0, @2)"+u.leave, process, t.time(youngest)); err != nil {
		return err
	}
	added, err := t.in(ctx, tx, "UPDATE {}tally_writers SET seq = @1, minute = @2 WHERE process = @3 AND seq < @1", seq, t.time(youngest), process)
	if err != nil || added == 0 {
		return err
	}
	if err := t.addRows(ctx, tx, "tallies", "minute", minutes); err != nil {
		return err
	}
	if err := t.addRows(ctx, tx, "tally_hours", "hour", hours); err != nil {
		return err
	}
	return tx.Commit()
}

// addRows adds to the rows of a table, which all processes lock in one order.
func (t *Tables) addRows(ctx context.Context, tx *sql.Tx, table, at string, counts map[hookonce.Tally]int64) error {
	sorted := slices.SortedFunc(maps.Keys(counts), func(a, b hookonce.Tally) int {
		return cmp.Or(a.Minute.Compare(b.Minute), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Status, b.Status))
	})
	u := upsert[t.tables.Dialect]
	for rows := range slices.Chunk(sorted, maxRows) {
		var values []string
		var args []any
		for _, r := range rows {
			n := len(args)
			values = append(values, fmt.Sprintf("(@%d, @%d, '', @%d, @%d)", n+1, n+2, n+3, n+4))
			args = append(args, t.time(r.Minute), r.Source, app+r.Status, counts[r])
		}
		text := "INSERT INTO {}" + table + u.as + " (" + at + ", source, destination, what, n) VALUES " + strings.Join(values, ", ") +
			strings.ReplaceAll(u.add, "{at}", at)
		if _, err := t.in(ctx, tx, text, args...); err != nil {
			return err
		}
	}
	return nil
}

// executor is a database or a transaction.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// in runs a statement, and returns how many rows it changed.
func (t *Tables) in(ctx context.Context, on executor, text string, args ...any) (int64, error) {
	text, args = t.say(text, args)
	res, err := on.ExecContext(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// maxTallies bounds the answer to a question.
const maxTallies = 10_000

// Tallies implements [hookonce.Tallier].
func (t *Tables) Tallies(ctx context.Context, q hookonce.TallyQuery) (found []hookonce.Tally, err error) {
	table, at := "tallies", "minute"
	if q.Hours {
		table, at = "tally_hours", "hour"
	}
	text := "SELECT source, what, sum(n) FROM {}" + table + " WHERE " + at + " >= @1 AND " + at + " < @2 AND what LIKE '" + app + "%' GROUP BY source, what ORDER BY source, what LIMIT @3"
	err = t.each(ctx, text, []any{t.time(q.From), t.time(q.Until), maxTallies}, func(scan func(...any) error) error {
		var p hookonce.Tally
		err := scan(&p.Source, &p.Status, &p.N)
		p.Status = strings.TrimPrefix(p.Status, app)
		found = append(found, p)
		return err
	})
	return found, err
}

// ForgetTallies implements [hookonce.Tallier]. It deletes an hour of minutes and a day of hours, whoever counted them.
func (t *Tables) ForgetTallies(ctx context.Context) (more bool, err error) {
	for _, f := range []struct {
		table, at   string
		keep, piece time.Duration
	}{
		{"tallies", "minute", tally.KeepMinutes, time.Hour},
		{"tally_hours", "hour", tally.KeepHours, 24 * time.Hour},
	} {
		var oldest time.Time
		err := t.each(ctx, "SELECT min("+f.at+") FROM {}"+f.table, nil, func(scan func(...any) error) error { return scan(stamp{&oldest}) })
		if err != nil {
			return false, err
		}
		end := t.now().Add(-f.keep)
		if oldest.IsZero() || !oldest.Before(end) {
			continue
		}
		if piece := oldest.Add(f.piece); piece.Before(end) {
			end, more = piece, true
		}
		if _, err := t.in(ctx, t.db, "DELETE FROM {}"+f.table+" WHERE "+f.at+" < @1", t.time(end)); err != nil {
			return false, err
		}
	}
	_, err = t.in(ctx, t.db, "DELETE FROM {}tally_writers WHERE minute < @1", t.time(t.now().Add(-tally.KeepHours)))
	return more, err
}

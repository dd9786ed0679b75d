package effects

import (
	"context"
	"database/sql"
	"strings"
)

// rowsSQL is every row that counts, under names of our own. An empty identifier is none. Columns have the table's name in front:
// SQLite takes a name in double quotes that is no column for a text, and all rows for those of one event.
func (n names) rowsSQL(where string) string {
	column := func(name string) string { return n.table + "." + name }
	source, time := "''", "NULL"
	if n.source != "" {
		source = "CAST(" + column(n.source) + " AS text)"
	}
	if n.time != "" {
		time = column(n.time)
	}
	return "SELECT nullif(CAST(" + column(n.event) + " AS text), '') AS event, " + source + " AS source, " + time + " AS at FROM " + n.table +
		" WHERE " + condition(where)
}

// condition is a user's condition as a part of one of ours. The line break ends a comment in it.
func condition(where string) string {
	if strings.TrimSpace(where) == "" {
		return "true"
	}
	return "(" + where + "\n)"
}

// doubled fills in r what is known about doubled effects.
func (s *session) doubled(ctx context.Context, n names, q Question, r *Report) error {
	rows := n.rowsSQL(q.Where)
	var args []any
	if q.Only != "" && q.Source != "" {
		rows, args = "SELECT * FROM ("+rows+") AS all_rows WHERE source = "+s.placeholder, []any{q.Only}
	}
	err := s.row(ctx, `SELECT count(*), coalesce(sum(copies), 0), coalesce(sum(CASE WHEN copies > 1 THEN 1 ELSE 0 END), 0),
		coalesce(sum(copies - 1), 0) FROM (SELECT count(*) AS copies FROM (`+rows+`) AS r WHERE event IS NOT NULL GROUP BY source, event) AS g`,
		args, &r.Events, &r.Rows, &r.Doubled, &r.Surplus)
	if err == nil {
		err = s.row(ctx, `SELECT count(*) FROM (`+rows+`) AS r WHERE event IS NULL`, args, &r.Unidentified)
	}
	if err != nil {
		return err
	}
	return s.each(ctx, `SELECT coalesce(source, ''), event, count(*), coalesce(CAST(min(at) AS text), ''), coalesce(CAST(max(at) AS text), '')
		FROM (`+rows+`) AS r WHERE event IS NOT NULL GROUP BY source, event HAVING count(*) > 1 ORDER BY count(*) DESC, event LIMIT `+limit(q.Limit),
		args, func(rows *sql.Rows) error {
			var o Offender
			err := rows.Scan(&o.Source, &o.Event, &o.Count, &o.First, &o.Last)
			r.Offenders = append(r.Offenders, o)
			return err
		})
}

// lost finds what is done and has no row, or why that cannot be known.
func (s *session) lost(ctx context.Context, n names, q Question) (*Lost, error) {
	if fault, err := s.absent(ctx, q); fault != "" || err != nil {
		return &Lost{Fault: fault, Events: []Missing{}}, err
	}
	done, args := s.done[q.Lost], []any(nil)
	if q.Only != "" {
		done, args = "SELECT * FROM ("+done+") AS any_source WHERE source = "+s.placeholder, []any{q.Only}
	}
	same := ""
	if n.source != "" {
		same = " AND r.source = d.source"
	}
	lost := "SELECT * FROM (" + done + ") AS d WHERE NOT hidden AND NOT EXISTS (SELECT 1 FROM (" +
		n.rowsSQL(q.Where) + ") AS r WHERE r.event = d.event" + same + ")"
	l := &Lost{Events: []Missing{}}
	err := s.row(ctx, "SELECT count(*), coalesce(sum(CASE WHEN hidden THEN 1 ELSE 0 END), 0) FROM ("+done+") AS d", args, &l.Done, &l.Hidden)
	if err == nil {
		err = s.row(ctx, "SELECT count(*) FROM ("+lost+") AS l", args, &l.Count)
	}
	if err == nil && l.Done == 0 {
		l.Fault, err = s.nothing(ctx, q)
	}
	if err != nil {
		return nil, err
	}
	err = s.each(ctx, "SELECT source, event, at FROM ("+lost+") AS l ORDER BY at DESC, event LIMIT "+limit(q.Limit), args, func(rows *sql.Rows) error {
		var m Missing
		err := rows.Scan(&m.Source, &m.Event, &m.Done)
		l.Events = append(l.Events, m)
		return err
	})
	return l, err
}

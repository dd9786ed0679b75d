package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// isFailed are the deliveries, and hasFailed the attempts, that the indexes of failures have.
const (
	isFailed  = `state IN ('failed', 'dead')`
	hasFailed = `error_kind <> ''`
	ofGroup   = ` AND destination = ?1 AND error_kind = ?2 AND status = ?3 `
)

// FailureGroups implements [journal.Reader].
func (s *Store) FailureGroups(ctx context.Context, since time.Time) (f journal.Failures, err error) {
	err = s.read(ctx, "grouping failures", func(tx *sql.Tx) error {
		r := failureReader{s, tx, since.UnixMicro()}
		open, openCut, err := r.groups(ctx, `{{.}}deliveries WHERE `+isFailed, r.open)
		if err != nil {
			return err
		}
		past, pastCut, err := r.groups(ctx, `{{.}}attempts WHERE `+hasFailed, r.past)
		f = journal.Failures{Open: open, Resolved: past, More: openCut || pastCut}
		return err
	})
	return f, err
}

// failureReader describes groups of failures, in one state of the file.
type failureReader struct {
	store *Store
	tx    *sql.Tx
	since int64
}

// groups finds groups by stepping from one to the next in an index on destination, error_kind and status, whatever the
// number of rows, and returns those that describe finds worth it, with whether there may be more of a destination: stepping ends
// where there are more than are returned, whatever describe finds them worth.
func (r failureReader) groups(ctx context.Context, from string, describe func(context.Context, *journal.FailureGroup) (bool, error)) ([]journal.FailureGroup, bool, error) {
	text := r.store.in(`SELECT destination, error_kind, status FROM ` + from + `
		AND (destination, error_kind, status) > (?, ?, ?) ORDER BY destination, error_kind, status LIMIT 1`)
	var all []journal.FailureGroup
	var last journal.FailureGroup
	ended := false
	for n := 0; ; {
		kind := string(last.Kind)
		if n > journal.MaxFailureGroups {
			kind, ended = "~", true // behind all kinds
		}
		next, err := rows(ctx, r.tx, text, []any{last.Destination, kind, int64(last.Status)}, func(row scanner) (g journal.FailureGroup, err error) {
			return g, row.Scan(&g.Destination, &g.Kind, &g.Status)
		})
		if err != nil || len(next) == 0 {
			kept, cut := journal.CutFailures(all)
			return kept, cut || ended, err
		}
		g := next[0]
		if n++; g.Destination != last.Destination {
			n = 1
		}
		last = g
		wanted, err := describe(ctx, &g)
		if err != nil {
			return nil, false, err
		}
		if wanted {
			all = append(all, g)
		}
	}
}

// open describes a group of open deliveries. The time of one that died without an attempt is that of its event.
func (r failureReader) open(ctx context.Context, g *journal.FailureGroup) (bool, error) {
	const deliveries = ` FROM {{.}}deliveries WHERE ` + isFailed + ofGroup
	err := r.one(ctx, `SELECT count(*), coalesce(sum(state = 'dead'), 0) FROM (SELECT state`+deliveries+`LIMIT ?4)`, g,
		[]any{journal.MaxFailureCount + 1}, &g.Count, &g.Dead)
	if err != nil {
		return false, err
	}
	var oldest, newest int64
	var began, ended sql.NullInt64
	if err := r.one(ctx, `SELECT (SELECT event_id`+deliveries+`ORDER BY event_id LIMIT 1), (SELECT event_id`+deliveries+`ORDER BY event_id DESC LIMIT 1)`,
		g, nil, &oldest, &newest); err != nil {
		return false, err
	}
	if err := r.one(ctx, `SELECT (SELECT min(started_at) FROM {{.}}attempts WHERE event_id = ?4 `+ofGroup+`),
		(SELECT started_at FROM {{.}}attempts WHERE `+hasFailed+ofGroup+`ORDER BY started_at DESC LIMIT 1)`,
		g, []any{oldest}, &began, &ended); err != nil {
		return false, err
	}
	g.Since, g.Latest = timeOr(began, journal.IDTime(oldest)), timeOr(ended, journal.IDTime(newest))
	return true, r.samples(ctx, g, `SELECT d.event_id, d.state, d.last_error AS error,
			(SELECT max(token) FROM {{.}}attempts a WHERE a.event_id = d.event_id AND a.destination = ?1 AND a.error_kind = ?2 AND a.status = ?3) AS token
		FROM {{.}}deliveries d WHERE `+isFailed+ofGroup+`ORDER BY d.event_id DESC LIMIT ?4`)
}

// past describes a group of attempts that failed since then, and reports whether there are any and nothing is open.
func (r failureReader) past(ctx context.Context, g *journal.FailureGroup) (bool, error) {
	const attempts = ` FROM {{.}}attempts WHERE ` + hasFailed + ofGroup + `AND started_at >= ?4 `
	var isOpen bool
	var began, ended sql.NullInt64
	if err := r.one(ctx, `SELECT EXISTS (SELECT 1 FROM {{.}}deliveries WHERE `+isFailed+ofGroup+`),
		(SELECT started_at`+attempts+`ORDER BY started_at LIMIT 1), (SELECT started_at`+attempts+`ORDER BY started_at DESC LIMIT 1),
		(SELECT count(*) FROM (SELECT 1`+attempts+`LIMIT ?5))`,
		g, []any{r.since, journal.MaxFailureCount + 1}, &isOpen, &began, &ended, &g.Count); err != nil || isOpen || g.Count == 0 {
		return false, err
	}
	g.Since, g.Latest = time.UnixMicro(began.Int64), time.UnixMicro(ended.Int64)
	return true, r.samples(ctx, g, `SELECT event_id, coalesce((SELECT state FROM {{.}}deliveries d
			WHERE d.event_id = a.event_id AND d.destination = ?1), 'done') AS state, max(error) AS error, max(token) AS token FROM (
		SELECT event_id, error, token FROM {{.}}attempts WHERE `+hasFailed+ofGroup+`ORDER BY started_at DESC LIMIT 100
	) a GROUP BY event_id ORDER BY event_id DESC LIMIT ?4`)
}

// samples gives a group those deliveries of it that chosen selects, with their last attempts.
func (r failureReader) samples(ctx context.Context, g *journal.FailureGroup, chosen string) (err error) {
	g.Samples, err = rows(ctx, r.tx, r.store.in(`SELECT c.event_id, e.source, coalesce(e.key, ''), e.event_type, c.state, a.started_at, c.error, a.answer
		FROM (`+chosen+`) c JOIN {{.}}events e ON e.id = c.event_id
		LEFT JOIN {{.}}attempts a ON a.event_id = c.event_id AND a.destination = ?1 AND a.token = c.token
		ORDER BY c.event_id DESC`), []any{g.Destination, string(g.Kind), int64(g.Status), journal.FailureSamples},
		func(row scanner) (one journal.FailureSample, err error) {
			var started sql.NullInt64
			err = row.Scan(&one.EventID, &one.Source, &one.Key, &one.Type, &one.State, &started, &one.Error, &one.Excerpt)
			one.Started = timeOr(started, time.Time{})
			return one, err
		})
	if len(g.Samples) > 0 {
		g.Error = g.Samples[0].Error
	}
	return err
}

// one reads one row about a group: ?1 to ?3 are what it is, and what follows are the arguments.
func (r failureReader) one(ctx context.Context, text string, g *journal.FailureGroup, args []any, to ...any) error {
	args = append([]any{g.Destination, string(g.Kind), int64(g.Status)}, args...)
	return r.tx.QueryRowContext(ctx, r.store.in(text), args...).Scan(to...)
}

// timeOr returns the time that was stored, or else the other one.
func timeOr(stored sql.NullInt64, other time.Time) time.Time {
	if !stored.Valid {
		return other
	}
	return time.UnixMicro(stored.Int64)
}

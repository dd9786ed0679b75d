package pg

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
)

// groupsOf finds which groups of failures there are, at most $1 of each destination, by stepping from one to the next in
// an index on destination, error_kind and status, whatever the number of rows. '~' is behind all kinds.
func groupsOf(table, failed string) string {
	return `WITH RECURSIVE g AS (
	(SELECT destination, error_kind, status, 1 AS n FROM ` + table + ` WHERE ` + failed + `
		ORDER BY destination, error_kind, status LIMIT 1)
	UNION ALL
	SELECT next.destination, next.error_kind, next.status, CASE WHEN next.destination = g.destination THEN g.n + 1 ELSE 1 END
	FROM g, LATERAL (SELECT destination, error_kind, status FROM ` + table + ` WHERE ` + failed + `
		AND (destination, error_kind, status) > (g.destination, CASE WHEN g.n < $1 THEN g.error_kind ELSE '~' END, g.status)
		ORDER BY destination, error_kind, status LIMIT 1) next
)`
}

// ofGroup is the condition that a row is of the group g.
const ofGroup = `destination = g.destination AND error_kind = g.error_kind AND status = g.status`

// isFailed are the deliveries, and hasFailed the attempts, that the indexes of failures have.
const (
	isFailed  = `state IN ('failed', 'dead')`
	hasFailed = `error_kind <> ''`
)

// openFailuresSQL describes the groups of open deliveries. $2 is how far they are counted.
var openFailuresSQL = groupsOf(`{{.}}deliveries`, isFailed) + `
SELECT g.destination, g.error_kind, g.status, counted.n, counted.dead, oldest.event_id, newest.event_id, began.at, ended.at, g.n >= $1
FROM g, LATERAL (
	SELECT count(*) AS n, count(*) FILTER (WHERE state = 'dead') AS dead
	FROM (SELECT state FROM {{.}}deliveries WHERE ` + isFailed + ` AND ` + ofGroup + ` LIMIT $2) bounded
) counted, LATERAL (
	SELECT event_id FROM {{.}}deliveries WHERE ` + isFailed + ` AND ` + ofGroup + ` ORDER BY event_id LIMIT 1
) oldest, LATERAL (
	SELECT event_id FROM {{.}}deliveries WHERE ` + isFailed + ` AND ` + ofGroup + ` ORDER BY event_id DESC LIMIT 1
) newest, LATERAL (
	SELECT min(started_at) AS at FROM ` + allAttempts + ` WHERE event_id = oldest.event_id AND ` + ofGroup + `
) began LEFT JOIN LATERAL (
	SELECT started_at AS at FROM ` + allAttempts + ` WHERE ` + hasFailed + ` AND ` + ofGroup + ` ORDER BY started_at DESC LIMIT 1
) ended ON true
ORDER BY 1, 2, 3`

// pastFailuresSQL describes the groups of attempts that failed since $3 and of which nothing is open. The last one of a
// destination at which stepping ended comes in any case, so that this is known; its count is 0 if it is none of those.
var pastFailuresSQL = groupsOf(allAttempts, hasFailed) + `
SELECT g.destination, g.error_kind, g.status, CASE WHEN wanted.is THEN counted.n ELSE 0 END, 0::bigint, 0::bigint, 0::bigint, first.at, last.at, g.n >= $1
FROM g, LATERAL (
	SELECT started_at AS at FROM ` + allAttempts + ` WHERE ` + hasFailed + ` AND ` + ofGroup + ` ORDER BY started_at DESC LIMIT 1
) last, LATERAL (
	SELECT last.at >= $3 AND NOT EXISTS (SELECT FROM {{.}}deliveries WHERE ` + isFailed + ` AND ` + ofGroup + `) AS is
) wanted, LATERAL (
	SELECT count(*) AS n FROM (SELECT FROM ` + allAttempts + `
		WHERE ` + hasFailed + ` AND ` + ofGroup + ` AND started_at >= $3 LIMIT $2) bounded
) counted LEFT JOIN LATERAL (
	SELECT started_at AS at FROM ` + allAttempts + `
	WHERE ` + hasFailed + ` AND ` + ofGroup + ` AND started_at >= $3 ORDER BY started_at LIMIT 1
) first ON true
WHERE wanted.is OR g.n >= $1
ORDER BY 1, 2, 3`

// FailureGroups implements [journal.Reader].
func (s *Store) FailureGroups(ctx context.Context, since time.Time) (f journal.Failures, err error) {
	err = s.read(ctx, "grouping failures", func(tx pgx.Tx) error {
		var cut bool
		if f.Open, cut, err = s.failures(ctx, tx, openFailuresSQL, openSamplesSQL); err != nil {
			return err
		}
		f.More = cut
		f.Resolved, cut, err = s.failures(ctx, tx, pastFailuresSQL, pastSamplesSQL, since)
		f.More = f.More || cut
		return err
	})
	return f, err
}

// failures returns groups with their samples, and whether there may be more of a destination than are returned.
func (s *Store) failures(ctx context.Context, tx pgx.Tx, groups, samples string, args ...any) ([]journal.FailureGroup, bool, error) {
	all, err := rows(ctx, tx, s.in(groups), append([]any{journal.MaxFailureGroups + 1, journal.MaxFailureCount + 1}, args...), scanGroup)
	if err != nil {
		return nil, false, err
	}
	ended := false
	wanted := make([]journal.FailureGroup, 0, len(all))
	for _, g := range all {
		ended = ended || g.last
		if g.Count > 0 {
			wanted = append(wanted, g.FailureGroup)
		}
	}
	kept, cut := journal.CutFailures(wanted)
	return kept, cut || ended, s.addSamples(ctx, tx, samples, kept)
}

// foundGroup is a group, and whether it is the last of its destination because stepping ended there.
type foundGroup struct {
	journal.FailureGroup
	last bool
}

// scanGroup reads a group. Of deliveries that died without an attempt the times are those of their events.
func scanGroup(row pgx.CollectableRow) (g foundGroup, err error) {
	var oldest, newest int64
	var began, ended *time.Time
	if err = row.Scan(&g.Destination, &g.Kind, &g.Status, &g.Count, &g.Dead, &oldest, &newest, &began, &ended, &g.last); err != nil {
		return g, err
	}
	g.Since, g.Latest = journal.IDTime(oldest), journal.IDTime(newest)
	if began != nil {
		g.Since = *began
	}
	if ended != nil {
		g.Latest = *ended
	}
	return g, nil
}

// samplesSQL returns of each group the rows that chosen selects for it.
func samplesSQL(chosen string) string {
	return `SELECT g.n, c.event_id, e.source, coalesce(e.key, ''), e.event_type, c.state, c.started_at, c.error, c.answer
FROM unnest($1::text[], $2::text[], $3::int[]) WITH ORDINALITY AS g (destination, error_kind, status, n), LATERAL (` + chosen + `) c
JOIN {{.}}events e ON e.id = c.event_id ORDER BY g.n, c.event_id DESC`
}

// openSamplesSQL are the deliveries of the newest events, with their last attempts. $4 is how many.
var openSamplesSQL = samplesSQL(`
	SELECT d.event_id, d.state, a.started_at, d.last_error AS error, a.answer FROM (
		SELECT event_id, state, last_error FROM {{.}}deliveries WHERE ` + isFailed + ` AND ` + ofGroup + ` ORDER BY event_id DESC LIMIT $4
	) d LEFT JOIN LATERAL (
		SELECT started_at, answer FROM ` + allAttempts + ` WHERE a.event_id = d.event_id AND ` + ofGroup + ` ORDER BY token DESC LIMIT 1
	) a ON true`)

// pastSamplesSQL are the latest attempts, one of each event among the latest hundred.
var pastSamplesSQL = samplesSQL(`
	SELECT a.event_id, coalesce((SELECT d.state FROM {{.}}deliveries d
		WHERE d.event_id = a.event_id AND d.destination = g.destination), 'done') AS state, a.started_at, a.error, a.answer FROM (
		SELECT DISTINCT ON (event_id) * FROM (
			SELECT event_id, started_at, error, answer FROM ` + allAttempts + ` WHERE ` + hasFailed + ` AND ` + ofGroup + `
			ORDER BY started_at DESC LIMIT 100
		) latest ORDER BY event_id DESC, started_at DESC LIMIT $4
	) a`)

// addSamples gives groups their samples.
func (s *Store) addSamples(ctx context.Context, tx pgx.Tx, text string, groups []journal.FailureGroup) error {
	var destination, kind []string
	var status []int32
	for _, g := range groups {
		destination, kind, status = append(destination, g.Destination), append(kind, string(g.Kind)), append(status, int32(g.Status))
	}
	var n int
	var one journal.FailureSample
	var started *time.Time
	to := []any{&n, &one.EventID, &one.Source, &one.Key, &one.Type, &one.State, &started, &one.Error, &one.Excerpt}
	return each(ctx, tx, s.in(text), []any{destination, kind, status, journal.FailureSamples}, to, func() error {
		g := &groups[n-1]
		one.Started = time.Time{}
		if started != nil {
			one.Started = *started
		}
		if len(g.Samples) == 0 {
			g.Error = one.Error
		}
		sample := one
		sample.Excerpt = slices.Clone(one.Excerpt)
		g.Samples = append(g.Samples, sample)
		return nil
	})
}

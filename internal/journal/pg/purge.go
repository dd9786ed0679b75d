package pg

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
)

// Purge implements [journal.Store]. Identifiers grow with time, so ages are read off the primary keys, to
// the millisecond; see [journal.Purge.Ahead] for those of a clock that was wrong. While another process purges, drops a
// partition, or replays, nothing is deleted. The statements see everything that was committed before they began, whatever the server's default is.
func (s *Store) Purge(ctx context.Context, p journal.Purge) (purged journal.Purged, err error) {
	err = s.retry(ctx, "purging "+string(p.Kind), func() error {
		purged = journal.Purged{Next: p.After, Busy: true}
		return s.durably(ctx, func(tx pgx.Tx) error {
			if mine, err := s.tryPurge(ctx, tx); err != nil || !mine {
				return err
			}
			purged, err = s.purge(ctx, tx, &p)
			return err
		})
	})
	if err != nil {
		return journal.Purged{}, err
	}
	return purged, nil
}

// durably runs f in a transaction of which each statement has a snapshot of its own.
func (s *Store) durably(ctx context.Context, f func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, setDurable); err != nil {
			return err
		}
		return f(tx)
	})
}

// purge does the step in a transaction that nobody else purges in.
func (s *Store) purge(ctx context.Context, tx pgx.Tx, p *journal.Purge) (journal.Purged, error) {
	switch p.Kind {
	case journal.KindRanks:
		after, end := p.Range()
		return s.purgeOldest(ctx, tx, p, purgeRanksSQL, after, end, p.Ahead, p.Before)
	case journal.KindAudits:
		return s.purgeOldest(ctx, tx, p, purgeAuditsSQL, p.Before)
	}
	after, end, err := s.purgeRange(ctx, tx, p)
	if err != nil {
		return journal.Purged{}, err
	}
	look, tables := purgeable(p.Kind)
	found, err := rows(ctx, tx, s.in(look), []any{after, end, p.Look()}, func(row pgx.CollectableRow) (f journal.Found, err error) {
		var received *time.Time
		err = row.Scan(&f.ID, &f.Source, &f.Open, &received)
		f.Received = orZero(received)
		return f, err
	})
	if err != nil {
		return journal.Purged{}, err
	}
	old, purged := p.Choose(p.Aged(found))
	if len(old) > 0 {
		purged.Deleted, err = s.purgeEvents(ctx, tx, tables, old)
	}
	return purged, err
}

// purgeRange returns between which identifiers to look. Of what has no period of its own, the partitions that this role may
// drop go as a whole, so only what is older than all of them is left for here, and what waits in none or in one of years to come.
func (s *Store) purgeRange(ctx context.Context, tx pgx.Tx, p *journal.Purge) (after, end int64, err error) {
	after, end = p.Range()
	if !divided(p.Kind) || !p.Others || p.Ahead {
		return after, end, nil
	}
	all, err := s.droppable(ctx, tx, p.Kind)
	for _, part := range all {
		end = min(end, part.first)
	}
	return after, end, err
}

// purgeEvents deletes what the tables have of these events, which are sorted, and returns how many rows that
// were or, if the events themselves go, how many events. The bounds spare the server the partitions in which there is nothing.
func (s *Store) purgeEvents(ctx context.Context, tx pgx.Tx, tables []string, ids []int64) (n int, err error) {
	for _, table := range tables {
		id := "event_id"
		if table == "events" {
			id, n = "id", 0 // which are what counts here
		}
		tag, err := tx.Exec(ctx, s.in(fmt.Sprintf(`DELETE FROM {{.}}%s WHERE %[2]s = ANY ($1::bigint[])
			AND %[2]s BETWEEN $2 AND $3`, table, id)), ids, ids[0], ids[len(ids)-1])
		if err != nil {
			return 0, err
		}
		n += int(tag.RowsAffected())
	}
	return n, nil
}

// purgeOldest deletes what belongs to no source, oldest first. The first argument of the statement is its limit.
func (s *Store) purgeOldest(ctx context.Context, tx pgx.Tx, p *journal.Purge, sql string, args ...any) (journal.Purged, error) {
	tag, err := tx.Exec(ctx, s.in(sql), append([]any{max(p.Limit, 0)}, args...)...)
	n := int(tag.RowsAffected())
	return journal.Purged{Deleted: n, Next: p.After, More: n > 0 && n == p.Limit}, err
}

// purgeable returns the query for identifiers of a kind, and the tables that its rows are deleted from, in this
// order. The rows themselves say what there is: their events may be gone.
func purgeable(kind journal.Kind) (look string, tables []string) {
	switch kind {
	case journal.KindBodies, journal.KindAttempts:
		tables = []string{string(kind), "kept_" + string(kind)}
	case journal.KindAnswers:
		tables = []string{string(kind)}
	default:
		return lookSQL(`SELECT id AS event_id FROM {{.}}events WHERE id > $1 AND id < $2`),
			[]string{"bodies", "kept_bodies", "attempts", "kept_attempts", "answers", "twins", "sightings", "events"}
	}
	ids := make([]string, len(tables))
	for i, table := range tables {
		ids[i] = `SELECT event_id FROM {{.}}` + table + ` WHERE event_id > $1 AND event_id < $2`
	}
	return lookSQL(strings.Join(ids, " UNION ALL ")), tables
}

// lookSQL returns the query for the first events among those given, with what decides about them. What
// decides is looked up one by one, however many the server believes there are.
func lookSQL(ids string) string {
	return `SELECT f.event_id, coalesce((SELECT e.source FROM {{.}}events e WHERE e.id = f.event_id), ''),
		EXISTS (SELECT FROM {{.}}deliveries d WHERE d.event_id = f.event_id),
		(SELECT e.received_at FROM {{.}}events e WHERE e.id = f.event_id)
	FROM (SELECT DISTINCT event_id FROM (` + ids + `) i ORDER BY event_id LIMIT $3) f ORDER BY f.event_id`
}

// purgeRanksSQL forgets the ranks of resources that nothing was delivered of for long. $4: whether the event has to say how old it
// is, in which case one that is gone is.
const purgeRanksSQL = `DELETE FROM {{.}}newest WHERE (destination, resource) IN (
	SELECT destination, resource FROM {{.}}newest n WHERE event_id > $2 AND event_id < $3 AND NOT ($4::bool AND EXISTS (
		SELECT FROM {{.}}events e WHERE e.id = n.event_id AND e.received_at >= $5::timestamptz)) LIMIT $1 FOR UPDATE SKIP LOCKED)`

// purgeAuditsSQL forgets what operators did. Numbers grow with time.
const purgeAuditsSQL = `DELETE FROM {{.}}audits WHERE id IN (
	SELECT id FROM {{.}}audits WHERE at < $2::timestamptz ORDER BY id LIMIT $1)`

// tryPurge reports whether nobody else is purging this schema or replaying in it. If so nobody can until the
// transaction ends, which works behind a pooler as well.
func (s *Store) tryPurge(ctx context.Context, tx pgx.Tx) (mine bool, err error) {
	err = tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))`, s.in("{{.}}bodies")).Scan(&mine)
	return mine, err
}

// awaitPurge waits until nobody is purging, and keeps everybody from it until the transaction ends.
func (s *Store) awaitPurge(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, s.in("{{.}}bodies"))
	return err
}

// sizesSQL estimates how many rows the tables have: what the last ANALYZE counted, or what the server's
// activity statistics believe, which know about a young table sooner. A table that is divided is the sum of
// its partitions.
const sizesSQL = `SELECT t.kind, coalesce(sum(greatest(c.reltuples::bigint, pg_stat_get_live_tuples(c.oid), 0)), 0)::bigint,
	coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
FROM (VALUES ('', 'events'), ('bodies', 'bodies'), ('bodies', 'kept_bodies'), ('attempts', 'attempts'), ('attempts', 'kept_attempts'),
	('answers', 'answers'), ('audits', 'audits'), ('deliveries', 'deliveries'), ('sightings', 'sightings')) AS t (kind, name),
	LATERAL (SELECT to_regclass('{{.}}' || t.name) UNION ALL
		SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass('{{.}}' || t.name)) p (oid)
	JOIN pg_class c ON c.oid = p.oid
GROUP BY t.kind`

// Stats implements [journal.Store].
func (s *Store) Stats(ctx context.Context) (journal.Stats, error) {
	backlog, err := s.Open(ctx)
	if err != nil {
		return journal.Stats{}, err
	}
	stats := journal.Stats{Open: journal.ByState(backlog), Backlog: backlog, Rows: map[journal.Kind]int64{}}
	return stats, failed("estimating the sizes of tables", s.sizes(ctx, &stats))
}

func (s *Store) sizes(ctx context.Context, stats *journal.Stats) error {
	var kind string
	var n, bytes int64
	return each(ctx, s.pool, s.in(sizesSQL), nil, []any{&kind, &n, &bytes}, func() error {
		stats.Bytes += bytes
		switch kind {
		case "":
			stats.Events = n
		case string(journal.KindBodies), string(journal.KindAttempts), string(journal.KindAnswers), string(journal.KindAudits):
			stats.Rows[journal.Kind(kind)] = n
		}
		return nil
	})
}

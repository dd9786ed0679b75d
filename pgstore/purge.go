package pgstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/hookonce/hookonce"
)

// Purge implements [hookonce.Purger]. Several purges at once share the work. A limit of a few thousand keeps each
// statement short. Versions and states have no index by age, which would cost every guard: of these each call reads
// all that there is.
func (s *Store) Purge(ctx context.Context, req hookonce.PurgeRequest) (n int, err error) {
	if err := req.Validate(s.now()); err != nil {
		return 0, err
	}
	from, to := req.Span()
	d := s.sql.purge[doomed(req.Kind)]
	text := d.delete
	if req.Dry {
		text = d.count
	}
	err = s.eachSource(ctx, d, req, func(source ...any) (more bool, err error) {
		var gone int
		args := append(source, from, to, req.Limit-n)
		err = s.again(ctx, func() error { return s.pool.QueryRow(ctx, text, args...).Scan(&gone) })
		n += gone
		return n < req.Limit, err
	})
	if err != nil {
		return n, fmt.Errorf("pgstore: purge: %w", explain(err))
	}
	return n, nil
}

// eachSource calls do for each source that the request is about, one after the other, until it says that there is no
// room for more. Where there are no sources it calls do once. So what a purge reads is what it deletes, however
// much of others is kept for longer.
func (s *Store) eachSource(ctx context.Context, d doom, req hookonce.PurgeRequest, do func(source ...any) (more bool, err error)) error {
	switch stored := req.Stored(); {
	case req.Limit <= 0:
		return ctx.Err()
	case d.next == "":
		_, err := do()
		return err
	case stored != "":
		_, err := do(stored)
		return err
	}
	for source := ""; ; {
		var next *string
		err := s.again(ctx, func() error { return s.pool.QueryRow(ctx, d.next, source).Scan(&next) })
		if err != nil || next == nil {
			return err
		}
		if source = *next; !req.Covers(source) {
			continue
		}
		if more, err := do(source); err != nil || !more {
			return err
		}
	}
}

// doom is how rows of one table are purged. The parameters of count and delete are the source, if rows have one, the
// span, and the limit; both return a number of rows.
type doom struct {
	next          string // the first source after the one that is the parameter; empty: rows have none
	count, delete string
}

// doomed returns the name of what a kind is about; see [dooms].
func doomed(kind hookonce.PurgeKind) string {
	switch kind {
	case "", hookonce.PurgeEvents, hookonce.PurgeOnce:
		return "done"
	}
	return string(kind)
}

func dooms(fill func(string) string) map[string]doom {
	sourced := func(table, over, along string) doom {
		chosen := `FROM ` + table + ` WHERE source = $1::text AND ` + over + ` AND updated_at >= $2::timestamptz AND updated_at < $3::timestamptz
			ORDER BY updated_at LIMIT $4::bigint`
		return doom{next: fill(`SELECT min(source) FROM ` + table + ` WHERE source > $1::text`), count: fill(countSQL(chosen)), delete: fill(purgeSQL(table, chosen, along))}
	}
	bare := func(table string) doom {
		chosen := `FROM ` + table + ` WHERE updated_at >= $1::timestamptz AND updated_at < $2::timestamptz LIMIT $3::bigint`
		return doom{count: fill(countSQL(chosen)), delete: fill(purgeSQL(table, chosen, ""))}
	}
	const responses = `, unkept AS (
		DELETE FROM {responses} AS responses USING purged WHERE responses.source = purged.source AND responses.key = purged.key
	)`
	return map[string]doom{
		"done":    sourced(`{claims}`, `state = 'done'`, responses),
		"failed":  sourced(`{claims}`, `state IN ('failed', 'dead')`, responses),
		"effects": sourced(`{effects}`, `state = 'done'`, ""), "versions": bare(`{versions}`), "states": bare(`{states}`),
	}
}

func countSQL(chosen string) string { return `SELECT count(*) FROM (SELECT ` + chosen + `) AS old` }

// purgeSQL skips what another purge is deleting at the same moment.
func purgeSQL(table, chosen, along string) string {
	return strings.NewReplacer("{table}", table, "{chosen}", chosen, "{along}", along).Replace(`
WITH purged AS (
	DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT ctid {chosen} FOR UPDATE SKIP LOCKED))
	RETURNING *
){along}
SELECT count(*) FROM purged`)
}

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/hookonce/hookonce"
)

// Purge implements [hookonce.Purger]. It deletes the claims' responses with them. On Postgres several purges
// at once share the work; elsewhere they take turns. A limit of a few thousand keeps each transaction short. Versions
// and states have no index by age, which would cost every guard: of these each call reads all that there is.
func (s *Store) Purge(ctx context.Context, req hookonce.PurgeRequest) (n int, err error) {
	if err := req.Validate(s.now()); err != nil {
		return 0, err
	}
	from, to := req.Span()
	span := []any{s.dialect.time(from), s.dialect.time(to)}
	d := s.dialect.doomed(req.Kind)
	err = s.eachSource(ctx, d, req, func(source ...any) (more bool, err error) {
		var gone int64
		err = s.insist(ctx, func() (err error) {
			gone, err = s.purge(ctx, d, append(source, span...), req.Limit-n, req.Dry)
			return err
		})
		n += int(gone)
		return n < req.Limit, err
	})
	if err != nil {
		return n, fmt.Errorf("sqlstore: purge: %w", s.explain(ctx, s.db, err))
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
	case d.next.text == "":
		_, err := do()
		return err
	case stored != "":
		_, err := do(stored)
		return err
	}
	for source := ""; ; {
		var next sql.NullString
		err := s.insist(ctx, func() error {
			_, err := one(ctx, s.db, d.next, []any{source}, &next)
			return err
		})
		if err != nil || !next.Valid {
			return err
		}
		if source = next.String; !req.Covers(source) {
			continue
		}
		if more, err := do(source); err != nil || !more {
			return err
		}
	}
}

// purge deletes, or counts, what one step may.
func (s *Store) purge(ctx context.Context, d doom, args []any, limit int, dry bool) (n int64, err error) {
	if limit <= 0 {
		return 0, nil
	}
	if dry {
		_, err = one(ctx, s.db, d.count, append(args, limit), &n)
		return n, err
	}
	return s.dialect.purge(ctx, s.db, d, args, limit)
}

// doom is how rows of one table are purged. The parameters of all statements but the first are the source, if rows
// have one, the span, and the limit.
type doom struct {
	next statement // the first source after the one that is the parameter; empty: rows have none
	count,
	look, // the keys of the rows, as they are written in a statement; only where the next ones need them
	along, // deletes what goes with the rows, before them
	rows statement
}

// doomed returns what a kind is about.
func (s statements) doomed(kind hookonce.PurgeKind) doom {
	switch kind {
	case hookonce.PurgeFailed:
		return s.failedClaims
	case hookonce.PurgeVersions:
		return s.oldVersions
	case hookonce.PurgeStates:
		return s.oldStates
	case hookonce.PurgeEffects:
		return s.doneEffects
	}
	return s.doneClaims
}

// purged is a table that can be purged.
type purged struct {
	table, key string // key: its columns
	over       string // which rows are over and done with, besides their age
	sourced    bool
}

// withDooms adds how each table is purged, with what is different in each dialect filled in by own.
func (s statements) withDooms(sql func(string) statement, own func(d *doom, p purged, chosen string)) statements {
	fill := func(p purged) (d doom) {
		chosen := `FROM ` + p.table + ` WHERE updated_at >= @1 AND updated_at < @2 LIMIT @3`
		if p.sourced {
			d.next = sql(`SELECT min(source) FROM ` + p.table + ` WHERE source > @1`)
			chosen = `FROM ` + p.table + ` WHERE source = @1 AND ` + p.over + ` AND updated_at >= @2 AND updated_at < @3 ORDER BY updated_at LIMIT @4`
		}
		d.count = sql(`SELECT count(*) FROM (SELECT 1 AS one ` + chosen + `) AS old`)
		own(&d, p, chosen)
		return d
	}
	s.doneClaims = fill(purged{`{claims}`, `source, {key}`, `state = 'done'`, true})
	s.failedClaims = fill(purged{`{claims}`, `source, {key}`, `state IN ('failed', 'dead')`, true})
	s.doneEffects = fill(purged{`{effects}`, `id`, `state = 'done'`, true})
	s.oldVersions = fill(purged{table: `{versions}`, key: `resource`})
	s.oldStates = fill(purged{table: `{states}`, key: `entity`})
	return s
}

// claims reports whether p is the table of claims, with which responses go.
func (p purged) claims() bool { return p.table == `{claims}` }

// doomSQLite chooses in a transaction, whose first statement takes the write lock: both find the same rows.
func doomSQLite(sql func(string) statement) func(*doom, purged, string) {
	return func(d *doom, p purged, chosen string) {
		where := ` WHERE (` + p.key + `) IN (SELECT ` + p.key + ` ` + chosen + `)`
		d.rows = sql(`DELETE FROM ` + p.table + where)
		if p.claims() {
			d.along = sql(`DELETE FROM {responses}` + where)
		}
	}
}

func purgeSQLite(ctx context.Context, db *sql.DB, d doom, args []any, limit int) (n int64, err error) {
	args = append(args, limit)
	err = inTx(ctx, db, func(tx *sql.Tx) error {
		if d.along.text != "" {
			if _, err := run(ctx, tx, d.along, args...); err != nil {
				return err
			}
		}
		n, err = affected(run(ctx, tx, d.rows, args...))
		return err
	})
	return n, err
}

// doomPostgres needs one statement, which passes over what others are deleting.
func doomPostgres(sql func(string) statement) func(*doom, purged, string) {
	return func(d *doom, p purged, chosen string) {
		along := ``
		if p.claims() {
			along = `, along AS (DELETE FROM {responses} r USING gone WHERE r.source = gone.source AND r.key = gone.key)`
		}
		d.rows = sql(`
			WITH gone AS (
				DELETE FROM ` + p.table + ` WHERE ctid = ANY (ARRAY(SELECT ctid ` + chosen + ` FOR UPDATE SKIP LOCKED))
				RETURNING ` + p.key + `
			)` + along + `
			SELECT count(*) FROM gone`)
	}
}

func purgePostgres(ctx context.Context, db *sql.DB, d doom, args []any, limit int) (n int64, err error) {
	_, err = one(ctx, db, d.rows, append(args, limit), &n)
	return n, err
}

// doomMySQL looks first. Claims and effects are locked by that, in the order of their age, so that purges take turns.
// Versions and states are not, because without an index all of them would be; their age is looked at again.
func doomMySQL(sql func(string) statement) func(*doom, purged, string) {
	return func(d *doom, p purged, chosen string) {
		switch {
		case p.claims():
			d.look = sql("SELECT CONCAT('0x', HEX({key})) " + chosen + " FOR UPDATE")
			d.along = sql(`DELETE FROM {responses} WHERE source = @1 AND {key} IN ({ids})`)
			d.rows = sql(`DELETE FROM {claims} WHERE source = @1 AND {key} IN ({ids})`)
		case p.sourced:
			d.look = sql(`SELECT CAST(id AS CHAR) ` + chosen + ` FOR UPDATE`)
			d.rows = sql(`DELETE FROM ` + p.table + ` WHERE source = @1 AND id IN ({ids})`)
		default:
			d.look = sql(`SELECT CONCAT('0x', HEX(` + p.key + `)) ` + chosen)
			d.rows = sql(`DELETE FROM ` + p.table + ` WHERE ` + p.key + ` IN ({ids}) AND updated_at >= @1 AND updated_at < @2`)
		}
	}
}

// purgeStep is how many keys stand in one statement.
const purgeStep = 1000

func purgeMySQL(ctx context.Context, db *sql.DB, d doom, args []any, limit int) (n int64, err error) {
	for n < int64(limit) {
		step := min(purgeStep, limit-int(n))
		looked, gone, err := stepMySQL(ctx, db, d, args, step)
		n += gone
		if err != nil || looked < step {
			return n, err
		}
	}
	return n, nil
}

// stepMySQL returns how many rows it found, and how many of them it deleted.
func stepMySQL(ctx context.Context, db *sql.DB, d doom, args []any, limit int) (looked int, gone int64, err error) {
	err = inTx(ctx, db, func(tx *sql.Tx) error {
		var keys []string
		err := each(ctx, tx, d.look, append(args, limit), func(scan func(...any) error) error {
			var key string
			err := scan(&key)
			keys = append(keys, key)
			return err
		})
		looked, gone = len(keys), 0
		if err != nil || looked == 0 {
			return err
		}
		ids := strings.Join(keys, ",")
		if d.along.text != "" {
			if _, err := run(ctx, tx, d.along.of(ids), args...); err != nil {
				return err
			}
		}
		gone, err = affected(run(ctx, tx, d.rows.of(ids), args...))
		return err
	})
	if err != nil {
		gone = 0
	}
	return looked, gone, err
}

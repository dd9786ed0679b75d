package pgstore

import (
	"context"
	"fmt"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Newer implements [hookonce.Guards] in one round trip. It waits for another transaction that asked about
// the resource as long as the caller's lock_timeout lets it. Under REPEATABLE READ and SERIALIZABLE it
// fails with SQLSTATE 40001 if that one committed: roll back and try again.
func (s *Store) Newer(ctx context.Context, tx pgx.Tx, resource string, rank hookonce.Rank) (bool, error) {
	if rank.IsZero() {
		return true, nil
	}
	if err := hookonce.ValidateResource(resource, rank); err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, s.sql.newer, resource, rank.N, s.now(), string(rank.Kind))
	if err != nil {
		return false, fmt.Errorf("pgstore: %v of %s: %w", rank, resource, explain(err))
	}
	return tag.RowsAffected() == 1, nil
}

// Transition implements [hookonce.Guards] in one round trip. It waits for another transaction that asked
// about the entity as long as the caller's lock_timeout lets it. Under REPEATABLE READ and SERIALIZABLE it
// fails with SQLSTATE 40001 if that one committed: roll back and try again.
func (s *Store) Transition(ctx context.Context, tx pgx.Tx, entity, from, to string) (state string, move hookonce.Move, err error) {
	if err := hookonce.ValidateTransition(entity, from, to); err != nil {
		return "", "", err
	}
	written := false
	var b pgx.Batch
	b.Queue(s.sql.transition, entity, from, to, s.now()).Exec(func(tag pgconn.CommandTag) error {
		written = tag.RowsAffected() == 1
		return nil
	})
	b.Queue(s.sql.stateOf, entity).QueryRow(func(row pgx.Row) error { return row.Scan(&state) })
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return "", "", fmt.Errorf("pgstore: move %s from %q to %q: %w", entity, from, to, explain(err))
	}
	return state, hookonce.MoveOf(written, state, to), nil
}

// newerSQL affects one row if the rank supersedes the recorded one (see [hookonce.Rank.Supersedes]). Otherwise
// it only locks the row: that is what a conflict does even where its condition is false.
const newerSQL = `
INSERT INTO {versions} AS versions (resource, version, updated_at, kind) VALUES ($1::text, $2::bigint, $3::timestamptz, $4::text)
ON CONFLICT (resource) DO UPDATE SET version = excluded.version, kind = excluded.kind, updated_at = excluded.updated_at
WHERE versions.kind <> excluded.kind OR versions.version < excluded.version
	OR versions.version = excluded.version AND excluded.kind = 'time'`

// transitionSQL moves the entity if it is in the state $2, and locks its row in any case. For one that was
// never seen, and is not asked to move from there, a row is made to be locked.
const transitionSQL = `
INSERT INTO {states} AS states (entity, state, updated_at)
VALUES ($1::text, CASE WHEN $2::text = '' THEN $3::text ELSE '' END, $4::timestamptz)
ON CONFLICT (entity) DO UPDATE SET state = $3::text, updated_at = excluded.updated_at
WHERE states.state = $2::text`

// stateOfSQL follows transitionSQL as a statement of its own: it sees what was committed while that one
// waited for the lock.
const stateOfSQL = `SELECT state FROM {states} WHERE entity = $1::text`

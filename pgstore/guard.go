package pgstore

import (
	"context"
	"fmt"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// SameTx reports whether b is a, or a savepoint of it: they are on one connection. [hookonce.Enqueue] and the guards ask for it in
// a handler.
func (s *Store) SameTx(a, b pgx.Tx) bool { return a.Conn() == b.Conn() }

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
	tag, err := tx.Exec(ctx, s.sql.Newer, resource, rank.N, s.now(), string(rank.Kind))
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
	b.Queue(s.sql.Transition, entity, from, to, s.now()).Exec(func(tag pgconn.CommandTag) error {
		written = tag.RowsAffected() == 1
		return nil
	})
	b.Queue(s.sql.StateOf, entity).QueryRow(func(row pgx.Row) error { return row.Scan(&state) })
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return "", "", fmt.Errorf("pgstore: move %s from %q to %q: %w", entity, from, to, explain(err))
	}
	return state, hookonce.MoveOf(written, state, to), nil
}

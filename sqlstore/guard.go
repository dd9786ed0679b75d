package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/hookonce/hookonce"
)

// Newer implements [hookonce.Guards].
func (s *Store) Newer(ctx context.Context, tx *sql.Tx, resource string, rank hookonce.Rank) (bool, error) {
	if rank.IsZero() {
		return true, nil
	}
	if err := hookonce.ValidateResource(resource, rank); err != nil {
		return false, err
	}
	newer, err := s.guard(ctx, tx, s.dialect.newest, resource, rank.N, s.dialect.time(s.now()), string(rank.Kind))
	if err != nil {
		return false, fmt.Errorf("sqlstore: %v of %s: %w", rank, resource, s.explain(ctx, tx, err))
	}
	return newer, nil
}

// Transition implements [hookonce.Guards].
func (s *Store) Transition(ctx context.Context, tx *sql.Tx, entity, from, to string) (state string, move hookonce.Move, err error) {
	if err := hookonce.ValidateTransition(entity, from, to); err != nil {
		return "", "", err
	}
	applied, err := s.guard(ctx, tx, s.dialect.transition, entity, from, to, s.dialect.time(s.now()))
	if err == nil {
		_, err = one(ctx, tx, s.dialect.state, []any{entity}, &state)
	}
	if err != nil {
		return "", "", fmt.Errorf("sqlstore: move %s from %q to %q: %w", entity, from, to, s.explain(ctx, tx, err))
	}
	return state, hookonce.MoveOf(applied, state, to), nil
}

// guard runs a statement that changes or makes a row if a condition holds, and locks it in any case. It
// reports whether it did.
func (s *Store) guard(ctx context.Context, tx *sql.Tx, st statement, args ...any) (applied bool, err error) {
	result, err := run(ctx, tx, st, args...)
	if err != nil {
		return false, err
	}
	return s.dialect.applied(result)
}

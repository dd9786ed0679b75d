package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/hookonce/hookonce"
)

// Newer implements [hookonce.Guards].
func (s *Store) Newer(ctx context.Context, tx *sql.Tx, resource string, version int64) (bool, error) {
	if err := hookonce.ValidateResource(resource); err != nil {
		return false, err
	}
	newer := false
	result, err := run(ctx, tx, s.dialect.newest, resource, version, s.dialect.time(s.now()))
	if err == nil {
		newer, err = s.dialect.newer(result)
	}
	if err != nil {
		return false, fmt.Errorf("sqlstore: version %d of %s: %w", version, resource, s.explain(ctx, tx, err))
	}
	return newer, nil
}

// Transition implements [hookonce.Guards]. An entity that was never seen gets a row all the same, in the
// state "": without a row there is nothing that others could wait for.
func (s *Store) Transition(ctx context.Context, tx *sql.Tx, entity, from, to string) (string, bool, error) {
	if err := hookonce.ValidateTransition(entity, from, to); err != nil {
		return "", false, err
	}
	now := s.dialect.time(s.now())
	state, err := s.lockState(ctx, tx, entity, now)
	if err == nil && state == from {
		_, err = run(ctx, tx, s.dialect.move, entity, to, now)
	}
	switch {
	case err != nil:
		return "", false, fmt.Errorf("sqlstore: move %s from %q to %q: %w", entity, from, to, s.explain(ctx, tx, err))
	case state == from:
		return to, true, nil
	}
	return state, false, nil
}

// lockState returns the state of the entity, which is nobody else's to change until tx ends.
func (s *Store) lockState(ctx context.Context, tx *sql.Tx, entity string, now any) (state string, err error) {
	_, err = s.dialect.change(ctx, tx, change{
		statement: s.dialect.lockState, args: []any{entity, now},
		read: s.dialect.state, readArgs: []any{entity},
	}, &state)
	return state, err
}

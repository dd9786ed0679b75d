package memstore

import (
	"context"

	"github.com/hookonce/hookonce"
)

// Newer implements [hookonce.Guards]. It waits for another transaction that asked about the resource until
// ctx ends.
func (s *Store) Newer(ctx context.Context, tx *Tx, resource string, rank hookonce.Rank) (bool, error) {
	if rank.IsZero() {
		return true, nil
	}
	if err := hookonce.ValidateResource(resource, rank); err != nil {
		return false, err
	}
	if err := tx.lock(ctx, row{table: "ranks", ref: hookonce.Ref{Key: resource}}, nil); err != nil {
		return false, err
	}
	newest, known := read(tx, func(r *rows) map[string]mark[hookonce.Rank] { return r.ranks }, resource)
	if known && !rank.Supersedes(newest.value) {
		return false, nil
	}
	tx.ranks[resource] = mark[hookonce.Rank]{rank, s.now()}
	return true, nil
}

// Transition implements [hookonce.Guards]. It waits for another transaction that asked about the entity
// until ctx ends.
func (s *Store) Transition(ctx context.Context, tx *Tx, entity, from, to string) (string, hookonce.Move, error) {
	if err := hookonce.ValidateTransition(entity, from, to); err != nil {
		return "", "", err
	}
	if err := tx.lock(ctx, row{table: "states", ref: hookonce.Ref{Key: entity}}, nil); err != nil {
		return "", "", err
	}
	stored, _ := read(tx, func(r *rows) map[string]mark[string] { return r.states }, entity)
	state := stored.value
	made := state == from
	if made {
		state = to
		tx.states[entity] = mark[string]{to, s.now()}
	}
	return state, hookonce.MoveOf(made, state, to), nil
}

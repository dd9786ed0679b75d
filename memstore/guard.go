package memstore

import (
	"context"

	"github.com/hookonce/hookonce"
)

// Newer implements [hookonce.Guards]. It waits for another transaction that asked about the resource until
// ctx ends.
func (s *Store) Newer(ctx context.Context, tx *Tx, resource string, version int64) (bool, error) {
	if err := hookonce.ValidateResource(resource); err != nil {
		return false, err
	}
	if err := tx.lock(ctx, row{table: "versions", ref: hookonce.Ref{Key: resource}}, nil); err != nil {
		return false, err
	}
	newest, known := read(tx, func(r *rows) map[string]int64 { return r.versions }, resource)
	if known && version <= newest {
		return false, nil
	}
	tx.versions[resource] = version
	return true, nil
}

// Transition implements [hookonce.Guards]. It waits for another transaction that asked about the entity
// until ctx ends.
func (s *Store) Transition(ctx context.Context, tx *Tx, entity, from, to string) (string, bool, error) {
	if err := hookonce.ValidateTransition(entity, from, to); err != nil {
		return "", false, err
	}
	if err := tx.lock(ctx, row{table: "states", ref: hookonce.Ref{Key: entity}}, nil); err != nil {
		return "", false, err
	}
	state, _ := read(tx, func(r *rows) map[string]string { return r.states }, entity)
	if state != from {
		return state, false, nil
	}
	tx.states[entity] = to
	return to, true, nil
}

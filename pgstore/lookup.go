package pgstore

import (
	"context"
	"errors"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5"
)

// Lookup implements [hookonce.Store].
func (s *Store) Lookup(ctx context.Context, ref hookonce.Ref) (hookonce.Claim, error) {
	if err := ref.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	var r record
	err := s.pool.QueryRow(ctx, s.sql.lookup, ref.Source, ref.Key).Scan(r.fields()...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = hookonce.ErrNotFound
	}
	if err != nil {
		return hookonce.Claim{}, wrap("look up", ref, err)
	}
	return r.claim(ref), nil
}

package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// Purge implements [hookonce.Store]. Several processes may purge at the same time.
func (s *Store) Purge(ctx context.Context, before time.Time, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	var n int
	err := again(func() error { return s.pool.QueryRow(ctx, s.sql.purge, before, limit).Scan(&n) })
	if err != nil {
		return 0, fmt.Errorf("pgstore: purge: %w", explain(err))
	}
	return n, nil
}

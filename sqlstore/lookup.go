package sqlstore

import (
	"context"
	"fmt"

	"github.com/hookonce/hookonce"
)

// Lookup implements [hookonce.Store].
func (s *Store) Lookup(ctx context.Context, ref hookonce.Ref) (hookonce.Claim, error) {
	if err := ref.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	c := hookonce.Claim{Ref: ref}
	found, err := s.read(ctx, &c)
	if err == nil && !found {
		err = hookonce.ErrNotFound
	}
	if err != nil {
		return hookonce.Claim{}, fmt.Errorf("sqlstore: look up %s: %w", ref, s.explain(ctx, s.db, err))
	}
	return c, nil
}

// read fills in the claim that is stored under c's reference, and reports whether there is one.
func (s *Store) read(ctx context.Context, c *hookonce.Claim) (found bool, err error) {
	err = s.insist(ctx, func() (err error) {
		found, err = one(ctx, s.db, s.dialect.lookup, []any{c.Source, c.Key}, fields(c)...)
		return err
	})
	return found, err
}

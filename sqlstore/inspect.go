package sqlstore

import (
	"context"
	"fmt"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/inspect"
)

// Sources implements [hookonce.Inspector].
func (s *Store) Sources(ctx context.Context) (names []string, err error) {
	err = s.inspect(ctx, "list sources", func(t *inspect.Tables) (err error) { names, err = t.Sources(ctx); return err })
	return names, err
}

// ListClaims implements [hookonce.Inspector].
func (s *Store) ListClaims(ctx context.Context, q hookonce.ClaimQuery) (found []hookonce.Claim, err error) {
	err = s.inspect(ctx, "list claims", func(t *inspect.Tables) (err error) { found, err = t.ListClaims(ctx, q); return err })
	return found, err
}

// FindClaims implements [hookonce.Inspector].
func (s *Store) FindClaims(ctx context.Context, source string, keys []string) (found []hookonce.Claim, err error) {
	err = s.inspect(ctx, "find claims", func(t *inspect.Tables) (err error) { found, err = t.FindClaims(ctx, source, keys); return err })
	return found, err
}

// CountClaims implements [hookonce.Inspector].
func (s *Store) CountClaims(ctx context.Context, limit int) (counts []hookonce.ClaimCount, err error) {
	err = s.inspect(ctx, "count claims", func(t *inspect.Tables) (err error) { counts, err = t.CountClaims(ctx, limit); return err })
	return counts, err
}

// ListEffects implements [hookonce.Inspector].
func (s *Store) ListEffects(ctx context.Context, q hookonce.EffectQuery) (found []hookonce.QueuedEffect, err error) {
	err = s.inspect(ctx, "list effects", func(t *inspect.Tables) (err error) { found, err = t.ListEffects(ctx, q); return err })
	return found, err
}

// CountEffects implements [hookonce.Inspector].
func (s *Store) CountEffects(ctx context.Context, limit int) (counts []hookonce.EffectCount, err error) {
	err = s.inspect(ctx, "count effects", func(t *inspect.Tables) (err error) { counts, err = t.CountEffects(ctx, limit); return err })
	return counts, err
}

// ListGuards implements [hookonce.Inspector].
func (s *Store) ListGuards(ctx context.Context, kind hookonce.GuardKind, after string, limit int) (found []hookonce.Guard, err error) {
	err = s.inspect(ctx, "list guards", func(t *inspect.Tables) (err error) { found, err = t.ListGuards(ctx, kind, after, limit); return err })
	return found, err
}

// Reconciliations implements [hookonce.Inspector].
func (s *Store) Reconciliations(ctx context.Context, limit int) (found []hookonce.Reconciliation, err error) {
	err = s.inspect(ctx, "list reconciliations", func(t *inspect.Tables) (err error) { found, err = t.Reconciliations(ctx, limit); return err })
	return found, err
}

// AddTallies implements [hookonce.Tallier].
func (s *Store) AddTallies(ctx context.Context, process string, seq int64, tallies []hookonce.Tally) error {
	return s.inspect(ctx, "add tallies", func(t *inspect.Tables) error {
		return s.insist(ctx, func() error { return t.AddTallies(ctx, process, seq, tallies) })
	})
}

// Tallies implements [hookonce.Tallier].
func (s *Store) Tallies(ctx context.Context, q hookonce.TallyQuery) (found []hookonce.Tally, err error) {
	err = s.inspect(ctx, "read tallies", func(t *inspect.Tables) (err error) { found, err = t.Tallies(ctx, q); return err })
	return found, err
}

// ForgetTallies implements [hookonce.Tallier].
func (s *Store) ForgetTallies(ctx context.Context) (more bool, err error) {
	err = s.inspect(ctx, "forget tallies", func(t *inspect.Tables) error {
		return s.insist(ctx, func() (err error) { more, err = t.ForgetTallies(ctx); return err })
	})
	return more, err
}

// inspect has the tables looked at.
func (s *Store) inspect(ctx context.Context, what string, look func(*inspect.Tables) error) error {
	t, err := inspect.New(s.db, s.dialect.schema, s.name, s.now)
	if err == nil {
		err = look(t)
	}
	if err != nil {
		return fmt.Errorf("sqlstore: %s: %w", what, s.explain(ctx, s.db, err))
	}
	return nil
}

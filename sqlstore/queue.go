package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
)

// CompleteEffect implements [hookonce.EffectQueue].
func (s *Store) CompleteEffect(ctx context.Context, e hookonce.QueuedEffect) error {
	_, err := s.settleEffect(ctx, e, s.dialect.completeEffect, nil, hookonce.StateDone)
	return err
}

// FailEffect implements [hookonce.EffectQueue].
func (s *Store) FailEffect(ctx context.Context, e hookonce.QueuedEffect, f hookonce.Failure, retry time.Time) error {
	due := instant(retry)
	if f.Dead {
		due = time.Time{}
	}
	args := []any{string(f.State()), s.dialect.nullable(due), f.Text()}
	_, err := s.settleEffect(ctx, e, s.dialect.failEffect, args, hookonce.StateFailed, hookonce.StateDead)
	return err
}

// ExtendEffect implements [hookonce.EffectQueue].
func (s *Store) ExtendEffect(ctx context.Context, e hookonce.QueuedEffect, d time.Duration) (hookonce.QueuedEffect, error) {
	if d <= 0 {
		return hookonce.QueuedEffect{}, fmt.Errorf("sqlstore: extend effect %d by %v: the duration must be positive", e.ID, d)
	}
	return s.settleEffect(ctx, e, s.dialect.extendEffect, []any{s.dialect.time(instant(s.now().Add(d)))})
}

// settleEffect changes the effect while e's token is current and it is processing, and returns it as it is
// stored then. An effect that this token already brought to one of the states in already is left alone.
func (s *Store) settleEffect(ctx context.Context, e hookonce.QueuedEffect, st statement, args []any, already ...hookonce.State) (hookonce.QueuedEffect, error) {
	args = append([]any{e.ID, e.Token, s.dialect.time(s.now())}, args...)
	stored, err := s.changeEffect(ctx, e.ID, st, args, func(stored hookonce.QueuedEffect) error {
		if stored.Token == e.Token && slices.Contains(already, stored.State) {
			return nil
		}
		return fmt.Errorf("it is %s under token %d, not %d: %w", stored.State, stored.Token, e.Token, hookonce.ErrStale)
	})
	if err != nil {
		return hookonce.QueuedEffect{}, fmt.Errorf("sqlstore: record the outcome of effect %d: %w", e.ID, err)
	}
	return stored, nil
}

// ReviveEffect implements [hookonce.EffectQueue].
func (s *Store) ReviveEffect(ctx context.Context, id int64) error {
	_, err := s.changeEffect(ctx, id, s.dialect.revive, []any{id, s.dialect.time(s.now())}, func(stored hookonce.QueuedEffect) error {
		return fmt.Errorf("it is %s, not dead: %w", stored.State, hookonce.ErrStale)
	})
	if err != nil {
		return fmt.Errorf("sqlstore: revive effect %d: %w", id, err)
	}
	return nil
}

// changeEffect runs a statement that changes the effect and returns it as it is stored then. Where the
// statement does not apply, inert decides by what is stored.
func (s *Store) changeEffect(ctx context.Context, id int64, st statement, args []any, inert func(hookonce.QueuedEffect) error) (hookonce.QueuedEffect, error) {
	var r row
	var applied, found bool
	c := change{statement: st, args: args, read: s.dialect.effect, readArgs: []any{id}}
	err := s.insist(ctx, func() (err error) {
		if applied, err = s.dialect.change(ctx, s.db, c, r.fields()...); err == nil && !applied {
			found, err = one(ctx, s.db, c.read, c.readArgs, r.fields()...)
		}
		return err
	})
	switch {
	case err != nil:
		return hookonce.QueuedEffect{}, s.explain(ctx, s.db, err)
	case applied:
		return r.effect(), nil
	case !found:
		return hookonce.QueuedEffect{}, hookonce.ErrNotFound
	}
	return r.effect(), inert(r.effect())
}

// Effects implements [hookonce.EffectQueue].
func (s *Store) Effects(ctx context.Context, state hookonce.State, after int64, limit int) (found []hookonce.QueuedEffect, err error) {
	err = s.insist(ctx, func() (err error) {
		found, err = effects(ctx, s.db, s.dialect.effects, string(state), after, max(limit, 0))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sqlstore: list effects: %w", s.explain(ctx, s.db, err))
	}
	return found, nil
}

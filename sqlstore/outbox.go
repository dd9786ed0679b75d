package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
)

// Enqueue implements [hookonce.Outbox].
func (s *Store) Enqueue(ctx context.Context, tx *sql.Tx, e hookonce.Effect) error {
	if err := e.Validate(); err != nil {
		return err
	}
	now, step := s.now(), cmp.Or(e.Step, e.Name)
	due := now
	if !e.Due.IsZero() {
		due = instant(e.Due)
	}
	n, err := affected(run(ctx, tx, s.dialect.enqueue, e.Source, sql.NullString{String: e.Key, Valid: e.Key != ""},
		step, e.Name, claimsql.Present(e.Payload), s.dialect.time(due), s.dialect.time(now)))
	if s.dialect.exists(err) || (err == nil && n == 0) {
		err = hookonce.ErrEffectExists
	}
	if err != nil {
		return fmt.Errorf("sqlstore: effect %q of %s: %w", step, e.Ref, s.explain(ctx, tx, err))
	}
	return nil
}

// TakeEffects implements [hookonce.EffectQueue]. It looks first, name by name, which walks along an index
// and stops at the limit; then it leases what it saw, except for what others took meanwhile.
func (s *Store) TakeEffects(ctx context.Context, req hookonce.TakeRequest) (taken []hookonce.QueuedEffect, err error) {
	if req.Lease <= 0 {
		return nil, fmt.Errorf("sqlstore: take effects for %v: the lease must be positive", req.Lease)
	}
	req.Names = slices.Compact(slices.Sorted(slices.Values(req.Names)))
	err = s.insist(ctx, func() error {
		taken = nil // what an earlier try took was rolled back
		for range maxRounds {
			seen, err := s.due(ctx, req)
			if err != nil || len(seen.ids) == 0 {
				return err
			}
			if taken, err = s.take(ctx, seen, req.Lease); err != nil || len(taken) > 0 {
				return err
			}
		}
		return nil // others were faster every time
	})
	if err != nil {
		return nil, fmt.Errorf("sqlstore: take effects: %w", s.explain(ctx, s.db, err))
	}
	return taken, nil
}

// due returns what the request asks for.
func (s *Store) due(ctx context.Context, req hookonce.TakeRequest) (seen due, err error) {
	fresh, err := s.waiting(ctx, s.dialect.due, req.Names, req.Limit)
	if err != nil {
		return due{}, err
	}
	suspects, err := s.waiting(ctx, s.dialect.suspects, req.Names, min(req.Suspects, req.Limit))
	if err != nil {
		return due{}, err
	}
	for _, w := range suspects {
		seen.suspects = append(seen.suspects, w.id)
	}
	for _, w := range oldest(append(fresh, suspects...), req.Limit) {
		seen.ids = append(seen.ids, w.id)
	}
	return seen, nil
}

// waiting is an effect that is due, and since when.
type waiting struct {
	id    int64
	since time.Time
}

// oldest returns at most limit of them, the longest due first.
func oldest(all []waiting, limit int) []waiting {
	slices.SortFunc(all, func(a, b waiting) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.id, b.id)) })
	return all[:max(0, min(limit, len(all)))]
}

// waiting returns at most limit effects of these names that the query finds due.
func (s *Store) waiting(ctx context.Context, query statement, names []string, limit int) (all []waiting, err error) {
	if limit <= 0 {
		return nil, nil
	}
	for _, name := range names {
		err := each(ctx, s.db, query, []any{name, s.dialect.time(s.now()), limit}, func(scan func(...any) error) error {
			var w waiting
			err := scan(&w.id, stamp{&w.since})
			all = append(all, w)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return oldest(all, limit), nil
}

// take leases those of the effects that are still due, and returns them in the order in which they were seen.
func (s *Store) take(ctx context.Context, seen due, lease time.Duration) ([]hookonce.QueuedEffect, error) {
	on, err := s.once(ctx)
	if err != nil {
		return nil, err
	}
	defer on.end()
	now := s.now()
	taken, err := s.dialect.take(s.dialect, ctx, on, seen, now, instant(now.Add(lease)))
	slices.SortFunc(taken, func(a, b hookonce.QueuedEffect) int {
		return cmp.Compare(slices.Index(seen.ids, a.ID), slices.Index(seen.ids, b.ID))
	})
	return taken, s.broke(err)
}

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

// RedriveEffect implements [hookonce.EffectAdmin].
func (s *Store) RedriveEffect(ctx context.Context, id int64) error {
	_, err := s.changeEffect(ctx, id, s.dialect.redrive, []any{id, s.dialect.time(s.now())}, func(stored hookonce.QueuedEffect) error {
		return fmt.Errorf("it is %s, not dead: %w", stored.State, hookonce.ErrStale)
	})
	if err != nil {
		return fmt.Errorf("sqlstore: redrive effect %d: %w", id, err)
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

// Effects implements [hookonce.EffectAdmin].
func (s *Store) Effects(ctx context.Context, state hookonce.State, after int64, limit int) (found []hookonce.QueuedEffect, err error) {
	list, known := s.dialect.effects[state]
	if !known {
		return nil, ctx.Err()
	}
	err = s.insist(ctx, func() (err error) {
		found, err = effects(ctx, s.db, list, after, max(limit, 0))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sqlstore: list effects: %w", s.explain(ctx, s.db, err))
	}
	return found, nil
}

package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
)

// TakeEffects implements [hookonce.EffectQueue].
func (s *Store) TakeEffects(ctx context.Context, req hookonce.TakeRequest) ([]hookonce.QueuedEffect, error) {
	if req.Lease <= 0 {
		return nil, fmt.Errorf("memstore: take effects for %v: the lease must be positive", req.Lease)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, now := s.table, s.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	var taken []hookonce.QueuedEffect
	suspects := 0
	for _, e := range t.due(req.Names, now) {
		if len(taken) >= req.Limit {
			break
		}
		if e.State == hookonce.StateProcessing {
			if suspects >= req.Suspects {
				continue
			}
			suspects++
			e.Deaths++
		} else {
			e.Tries++
		}
		e.State, e.Due, e.Lease, e.updatedAt = hookonce.StateProcessing, time.Time{}, instant(now.Add(req.Lease)), now
		e.Token++
		t.effects[e.ID] = e
		taken = append(taken, e.seen())
	}
	return taken, nil
}

// due returns the effects of these names that somebody may take, the longest due first. The caller holds mu.
func (t *table) due(names []string, now time.Time) []effect {
	var due []effect
	for _, e := range t.effects {
		if at, open := e.dueAt(); open && !at.After(now) && slices.Contains(names, e.Name) {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, func(a, b effect) int {
		at, _ := a.dueAt()
		bt, _ := b.dueAt()
		return cmp.Or(at.Compare(bt), cmp.Compare(a.ID, b.ID))
	})
	return due
}

// CompleteEffect implements [hookonce.EffectQueue].
func (s *Store) CompleteEffect(ctx context.Context, e hookonce.QueuedEffect) error {
	_, err := s.changeEffect(ctx, e, func(stored *effect) { stored.State = hookonce.StateDone }, hookonce.StateDone)
	return err
}

// FailEffect implements [hookonce.EffectQueue].
func (s *Store) FailEffect(ctx context.Context, e hookonce.QueuedEffect, f hookonce.Failure, retry time.Time) error {
	_, err := s.changeEffect(ctx, e, func(stored *effect) {
		stored.State, stored.LastError = f.State(), f.Text()
		if !f.Dead {
			stored.Due = instant(retry)
		}
	}, hookonce.StateFailed, hookonce.StateDead)
	return err
}

// ExtendEffect implements [hookonce.EffectQueue].
func (s *Store) ExtendEffect(ctx context.Context, e hookonce.QueuedEffect, d time.Duration) (hookonce.QueuedEffect, error) {
	if d <= 0 {
		return hookonce.QueuedEffect{}, fmt.Errorf("memstore: extend effect %d by %v: the duration must be positive", e.ID, d)
	}
	stored, err := s.changeEffect(ctx, e, func(stored *effect) { stored.Lease = instant(s.now().Add(d)) })
	if err != nil {
		return hookonce.QueuedEffect{}, err
	}
	e.State, e.Lease = stored.State, stored.Lease
	return e, nil
}

// changeEffect applies update to the stored effect while it is processing under e's token, and returns it
// as it is stored then. An effect that the token left in one of the states of repeats stays as it is.
func (s *Store) changeEffect(ctx context.Context, e hookonce.QueuedEffect, update func(*effect), repeats ...hookonce.State) (effect, error) {
	if err := ctx.Err(); err != nil {
		return effect{}, err
	}
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	stored, ok := t.effects[e.ID]
	switch {
	case !ok:
		return effect{}, fmt.Errorf("memstore: effect %d: %w", e.ID, hookonce.ErrNotFound)
	case stored.Token == e.Token && stored.State == hookonce.StateProcessing:
		update(&stored)
		stored.updatedAt = s.now()
		if stored.State != hookonce.StateProcessing {
			stored.Lease, stored.Deaths = time.Time{}, 0
		}
		t.effects[e.ID] = stored
	case stored.Token != e.Token || !slices.Contains(repeats, stored.State):
		return effect{}, fmt.Errorf("memstore: effect %d is %s under token %d, not %d: %w",
			e.ID, stored.State, stored.Token, e.Token, hookonce.ErrStale)
	}
	return stored, nil
}

// Effects implements [hookonce.EffectAdmin].
func (s *Store) Effects(ctx context.Context, state hookonce.State, after int64, limit int) ([]hookonce.QueuedEffect, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	var found []hookonce.QueuedEffect
	for id, e := range s.table.effects {
		if e.State == state && id > after {
			found = append(found, e.seen())
		}
	}
	slices.SortFunc(found, func(a, b hookonce.QueuedEffect) int { return cmp.Compare(a.ID, b.ID) })
	return found[:min(max(limit, 0), len(found))], nil
}

// RedriveEffect implements [hookonce.EffectAdmin].
func (s *Store) RedriveEffect(ctx context.Context, id int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	e, ok := s.table.effects[id]
	switch {
	case !ok:
		return fmt.Errorf("memstore: effect %d: %w", id, hookonce.ErrNotFound)
	case e.State != hookonce.StateDead:
		return fmt.Errorf("memstore: effect %d is %s, not dead: %w", id, e.State, hookonce.ErrStale)
	}
	now := s.now()
	e.State, e.Tries, e.Due, e.updatedAt = hookonce.StateFailed, 0, now, now
	s.table.effects[id] = e
	return nil
}

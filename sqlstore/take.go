package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
)

// TakeEffects implements [hookonce.EffectQueue]. It looks first, name by name, which walks along an index
// and stops at the limit; then it leases what it saw, except for what others took meanwhile.
func (s *Store) TakeEffects(ctx context.Context, req hookonce.TakeRequest) (taken []hookonce.QueuedEffect, err error) {
	if req.Lease <= 0 {
		return nil, fmt.Errorf("sqlstore: take effects for %v: the lease must be positive", req.Lease)
	}
	req.Names = slices.Compact(slices.Sorted(slices.Values(req.Names)))
	err = s.insist(ctx, func() error {
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

// due are the numbers of effects that are due, the longest due first, and those of the suspects among them.
type due struct{ ids, suspects []int64 }

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
	now := s.now()
	taken, err := s.dialect.take(s.dialect, ctx, s.db, seen, now, instant(now.Add(lease)))
	slices.SortFunc(taken, func(a, b hookonce.QueuedEffect) int {
		return cmp.Compare(slices.Index(seen.ids, a.ID), slices.Index(seen.ids, b.ID))
	})
	return taken, err
}

// takeAtOnce is for databases where one statement does it.
func takeAtOnce(d dialect, ctx context.Context, db *sql.DB, seen due, now, lease time.Time) ([]hookonce.QueuedEffect, error) {
	return effects(ctx, db, d.takeEffects, list(seen.ids), list(seen.suspects), d.time(now), d.time(lease))
}

// list returns numbers with commas between them.
func list(ids []int64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(texts, ",")
}

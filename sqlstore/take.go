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
func (s *Store) TakeEffects(ctx context.Context, names []string, limit int, lease time.Duration) (taken []hookonce.QueuedEffect, err error) {
	if lease <= 0 {
		return nil, fmt.Errorf("sqlstore: take effects for %v: the lease must be positive", lease)
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	err = s.insist(ctx, func() error {
		for range maxRounds {
			ids, err := s.due(ctx, names, limit)
			if err != nil || len(ids) == 0 {
				return err
			}
			if taken, err = s.take(ctx, ids, lease); err != nil || len(taken) > 0 {
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

// due returns the numbers of at most limit effects of these names that are due, the longest due first.
func (s *Store) due(ctx context.Context, names []string, limit int) (ids []int64, err error) {
	if limit <= 0 {
		return nil, nil
	}
	type due struct {
		id int64
		at time.Time
	}
	var all []due
	for _, name := range names {
		err := each(ctx, s.db, s.dialect.due, []any{name, s.dialect.time(s.now()), limit}, func(scan func(...any) error) error {
			var d due
			err := scan(&d.id, stamp{&d.at})
			all = append(all, d)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b due) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
	for _, d := range all[:min(limit, len(all))] {
		ids = append(ids, d.id)
	}
	return ids, nil
}

// take leases those of the effects that are still due, and returns them in the order of ids.
func (s *Store) take(ctx context.Context, ids []int64, lease time.Duration) ([]hookonce.QueuedEffect, error) {
	now := s.now()
	taken, err := s.dialect.take(s.dialect, ctx, s.db, ids, now, instant(now.Add(lease)))
	slices.SortFunc(taken, func(a, b hookonce.QueuedEffect) int {
		return cmp.Compare(slices.Index(ids, a.ID), slices.Index(ids, b.ID))
	})
	return taken, err
}

// takeAtOnce is for databases where one statement does it.
func takeAtOnce(d dialect, ctx context.Context, db *sql.DB, ids []int64, now, lease time.Time) ([]hookonce.QueuedEffect, error) {
	return effects(ctx, db, d.takeEffects, list(ids), d.time(now), d.time(lease))
}

// list returns numbers with commas between them.
func list(ids []int64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(texts, ",")
}

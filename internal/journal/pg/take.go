package pg

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
)

// Take implements [journal.Store]. Where no ordering group is due it is one statement and the question whether one
// is. Deliveries in ordering groups get at most half of what is wanted, so that the others come to their turn too.
func (s *Store) Take(ctx context.Context, now, lease time.Time, want journal.Wanted) (work []*journal.Work, err error) {
	if want.Deliveries <= 0 {
		return nil, nil
	}
	t := &taking{sql: &s.sql, now: now, lease: lease, want: want}
	if want.Destinations == nil {
		return s.takeOthers(ctx, t, nil)
	}
	others, failed := false, error(nil)
	for _, w := range want.Destinations {
		var more []*journal.Work
		var err error
		switch {
		case w.Pick:
			more, err = s.pick(ctx, t, w, work)
			s.pickTrouble(ctx, w.Destination, err)
		case !others: // all of them at once, at the place of the first: what there is room for is used up in the order that is wanted
			others = true
			more, err = s.takeOthers(ctx, t, work)
			s.pickTrouble(ctx, "all that are well", err)
		}
		work, failed = append(work, more...), cmp.Or(failed, err) // what is wrong with one is no reason to leave others waiting
	}
	if len(work) > 0 {
		return work, nil // which is leased by now, and would be nobody's
	}
	return nil, failed
}

// takeOthers takes for the destinations for which it is not chosen what is taken, after this was taken for others.
func (s *Store) takeOthers(ctx context.Context, t *taking, taken []*journal.Work) (work []*journal.Work, err error) {
	err = s.retry(ctx, "taking work", func() error {
		others, err := s.others(ctx, t.want)
		if err != nil {
			return err
		}
		all := t.of(taken, others...)
		if all.total <= 0 {
			return nil
		}
		work, err = s.take(ctx, all)
		return err
	})
	if err != nil {
		return nil, err
	}
	return work, nil
}

// pickTrouble says in the log that a destination's work cannot be picked, once for each cause: beside what was taken for others
// nobody else would hear of it.
func (s *Store) pickTrouble(ctx context.Context, destination string, err error) {
	if err == nil {
		s.picking.Delete(destination)
		return
	}
	if last, told := s.picking.Swap(destination, err.Error()); !told || last != err.Error() {
		s.log.WarnContext(ctx, "journal/pg: the work of a destination cannot be taken; trying again", "destination", destination, "error", err)
	}
}

// pick takes in one transaction for a destination for which it is chosen what is taken. If the server gives that up, it
// alone is tried again: what was taken before, for others, stays taken.
func (s *Store) pick(ctx context.Context, t *taking, want journal.Want, taken []*journal.Work) (picked []*journal.Work, err error) {
	err = s.retry(ctx, "picking work", func() error {
		own := t.of(taken, want)
		if own.total <= 0 {
			return nil
		}
		return s.inGroups(ctx, func(tx pgx.Tx) (err error) {
			picked, err = own.pick(ctx, tx, want)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return picked, nil
}

// take takes in one transaction.
func (s *Store) take(ctx context.Context, t *taking) (work []*journal.Work, err error) {
	if len(t.destination) == 0 {
		return nil, nil
	}
	var groups bool
	if err := s.pool.QueryRow(ctx, t.sql.groupsDue, t.destination, t.now).Scan(&groups); err != nil {
		return nil, err
	}
	if !groups {
		return t.free(ctx, s.pool)
	}
	err = s.inGroups(ctx, func(tx pgx.Tx) error {
		turns, err := t.turns(ctx, tx)
		if err != nil {
			return err
		}
		t.use(turns)
		free, err := t.free(ctx, tx)
		work = append(turns, free...)
		return err
	})
	return work, err
}

// inGroups runs a transaction in which each statement has a snapshot of its own, whatever the server's
// default is: see turnsSQL.
func (s *Store) inGroups(ctx context.Context, f func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, f)
}

// taking is one call of Take.
type taking struct {
	sql         *statements
	now, lease  time.Time
	want        journal.Wanted
	total       int   // that may still be taken
	bytes       int64 // the same; 0: no bound
	destination []string
	deliveries  []int32
	weight      []int64 // 0: no bound
	stale       []bool
}

// of returns one for these destinations, in the arrays that the statements take, after this was taken for others.
func (t *taking) of(taken []*journal.Work, all ...journal.Want) *taking {
	own := &taking{sql: t.sql, now: t.now, lease: t.lease, want: t.want, total: t.want.Deliveries, bytes: t.want.Bytes}
	own.use(taken)
	for _, w := range all {
		own.destination = append(own.destination, w.Destination)
		own.deliveries = append(own.deliveries, int32(w.Deliveries))
		own.weight = append(own.weight, w.Bytes)
		own.stale = append(own.stale, w.Stale)
	}
	return own
}

// others returns the destinations for which it is not chosen what is taken.
func (s *Store) others(ctx context.Context, want journal.Wanted) (all []journal.Want, err error) {
	if want.Destinations == nil {
		names, err := rows(ctx, s.pool, s.sql.targets, nil, pgx.RowTo[string])
		for _, name := range names {
			all = append(all, journal.Want{Destination: name, Deliveries: want.Deliveries})
		}
		return all, err
	}
	for _, w := range want.Destinations {
		if !w.Pick {
			all = append(all, w)
		}
	}
	return all, nil
}

// half returns half of n, rounded up.
func half[T int | int32](n T) T { return (n + 1) / 2 }

// turns takes from ordering groups.
func (t *taking) turns(ctx context.Context, tx pgx.Tx) ([]*journal.Work, error) {
	deliveries := slices.Clone(t.deliveries)
	for i, n := range deliveries {
		deliveries[i] = half(n)
	}
	var destination, resource []string
	var d, r string
	err := each(ctx, tx, t.sql.groups, []any{t.destination, deliveries, t.now, half(t.total)}, []any{&d, &r}, func() error {
		destination, resource = append(destination, d), append(resource, r)
		return nil
	})
	if err != nil || len(destination) == 0 {
		return nil, err
	}
	return t.query(ctx, tx, t.sql.turns, destination, resource)
}

// use takes what was taken off what is wanted.
func (t *taking) use(work []*journal.Work) {
	for _, w := range work {
		t.total--
		if t.bytes > 0 {
			if t.bytes -= w.Size(); t.bytes <= 0 {
				t.bytes, t.total = 1, 0
			}
		}
		i := slices.Index(t.destination, w.Destination)
		if i < 0 {
			continue
		}
		t.deliveries[i]--
		if t.weight[i] > 0 {
			if t.weight[i] -= w.Size(); t.weight[i] <= 0 {
				t.weight[i], t.deliveries[i] = 1, 0
			}
		}
	}
}

// free takes what is in no ordering group.
func (t *taking) free(ctx context.Context, db querier) ([]*journal.Work, error) {
	return t.query(ctx, db, t.sql.take, max(t.total, 0))
}

// query runs a statement that takes.
func (t *taking) query(ctx context.Context, db querier, sql string, args ...any) ([]*journal.Work, error) {
	args = append([]any{t.now, t.lease, journal.BodyGone, t.bytes, t.destination, t.deliveries, t.weight, t.stale}, args...)
	return rows(ctx, db, sql, args, func(row pgx.CollectableRow) (*journal.Work, error) {
		w := &journal.Work{Lease: t.lease}
		return w, row.Scan(&w.EventID, &w.Destination, &w.Token, &w.Tries, &w.Forced, &w.Origin, &w.Header, &w.Body,
			&w.Source, &w.Key, &w.Type, &w.ReceivedAt, &w.Resource, &w.Ordered, &w.Rank.N, &w.Rank.Kind, &w.Vouched, &w.Stale, &w.LogicalDuplicateKey)
	})
}

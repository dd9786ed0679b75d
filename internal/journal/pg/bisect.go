package pg

import (
	"context"

	"github.com/hookonce/hookonce/internal/pgerror"
	"github.com/jackc/pgx/v5"
)

// bisect stores, in one transaction, the entries that the server does not refuse, gives the others
// their error, and returns those whose keys are taken. It is for batches that failed as a whole.
func (a *acceptance) bisect(ctx context.Context, number int64, entries []int) (copies []int, err error) {
	err = a.durably(ctx, func(tx pgx.Tx) error {
		copies = copies[:0]
		return a.bisectWithin(ctx, tx, number, entries, &copies)
	})
	return copies, err
}

// bisectWithin stores entries under a savepoint and, where that fails, tries each half by itself, down to
// the rows that are at fault. The order stays ascending, so the locks are taken as everywhere else.
func (a *acceptance) bisectWithin(ctx context.Context, tx pgx.Tx, number int64, entries []int, copies *[]int) error {
	var taken []int
	err := pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) (err error) {
		taken, err = a.insert(ctx, sp, number, entries)
		return err
	})
	switch {
	case err == nil:
		*copies = append(*copies, taken...)
		return nil
	case !rowRefused(err):
		return err
	case len(entries) == 1:
		a.results[entries[0]].Err = err
		a.log.WarnContext(ctx, "journal/pg: the database refused an event", "source", a.batch[entries[0]].Source, "code", pgerror.State(err))
		return nil
	}
	half := len(entries) / 2
	if err := a.bisectWithin(ctx, tx, number, entries[:half], copies); err != nil {
		return err
	}
	return a.bisectWithin(ctx, tx, number, entries[half:], copies)
}
